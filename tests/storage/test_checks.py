"""Values are refused if and only if jsonschema refuses them, with the place and the words of one of its errors."""

import copy
import json
import random

import jsonschema
import pytest

from gridwise_py.bench.results.browser_model import PageFile
from gridwise_py.bench.results.model import Results
from gridwise_py.storage.checks import find_problem
from gridwise_py.storage.schemas import schema_of
from helpers.page_files import page_file, raw_result, two_blocks
from helpers.results import document, measurement

WRONG = (None, True, -1, -0.5, 1.5, 2.0, 1e30, "text", "x" * 5000, [], {}, [1, "a"], {"a": 1})


def _places(value, path=()):
    """Every place in a JSON value but its top."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        yield (*path, key)
        yield from _places(part, (*path, key))


def _changed(value, path, new):
    made = copy.deepcopy(value)
    at = made
    for key in path[:-1]:
        at = at[key]
    if new is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return made


def _errors(errors):
    for error in errors:
        yield error.json_path, error.message[:200]
        yield from _errors(error.context)


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cls", [Results, PageFile])
def test_it_refuses_what_jsonschema_refuses(cls, count):
    general = jsonschema.Draft202012Validator(schema_of(cls))
    made = document([measurement(count=3), measurement("copy", op=None, count=2)])
    made["device"]["calibration"] = {"copy": [{"moved_bytes": 8, "gbytes_per_s": 1.5}], "floors_ns": {"a": None}}
    whole = json.loads(json.dumps(made if cls is Results else page_file([raw_result(two_blocks(count=3))])))
    assert find_problem(whole, cls) is None
    assert general.is_valid(whole)
    rng, broken = random.Random(0), 0
    places = list(_places(whole))
    for path in rng.choices(places, k=count):
        spoilt = _changed(whole, path, rng.choice((*WRONG, KeyError)))
        found, wanted = find_problem(spoilt, cls), set(_errors(general.iter_errors(spoilt)))
        assert (found is None) == (not wanted), path
        if found is not None:
            assert (found[0], found[1][:200].removesuffix("…")[:199]) in {(at, said[:199]) for at, said in wanted}
        broken += found is not None
    assert broken > 0.3 * count
