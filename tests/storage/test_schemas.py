"""Schemas bound what strangers may write, and values are refused if and only if jsonschema refuses them."""

import copy
import json
import random
from dataclasses import dataclass

import jsonschema
import pytest

from gridwise_py.bench.results.browser_model import PageFile
from gridwise_py.bench.results.model import Results
from gridwise_py.fleet.model import Fleet
from gridwise_py.storage.checks import find_problem
from gridwise_py.storage.records import Record
from gridwise_py.storage.schemas import schema_of
from helpers.page_files import page_file, raw_result, two_blocks
from helpers.results import document, measurement


def _unbounded(schema, where, parts):
    """Places of values that may be of any size."""
    kinds = schema.get("type", [])
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    if "enum" in schema or "pattern" in schema or "$ref" in schema:
        return
    for one in schema.get("anyOf", ()):
        yield from _unbounded(one, where, parts)
    if not kinds and "anyOf" not in schema:
        yield where
    if kinds & {"integer", "number"} and not {"minimum", "exclusiveMinimum"} & schema.keys():
        yield where
    for kind, bound in (("string", "maxLength"), ("array", "maxItems"), ("object", "maxProperties")):
        if kind in kinds and bound not in schema and "properties" not in schema:
            yield where
    if "array" in kinds:
        yield from _unbounded(schema["items"], f"{where}[]", parts)
    if "additionalProperties" in schema:
        yield from _unbounded(schema["additionalProperties"], f"{where}{{}}", parts)
    for name, one in schema.get("properties", {}).items():
        yield from _unbounded(one, f"{where}.{name}", parts)


@pytest.mark.parametrize(
    ("record", "unbounded"),
    [
        # The protocol checks itself, the number of a plan must be that of one, and what the browser says is only shown.
        (PageFile, {"PageFile.protocol", "PageResult.plan", "PageDevice.info{}"}),
        # Their numbers are bounded by the size of the document.
        (Fleet, {"Fleet.planned", "Fleet.members", "Fleet.groups"}),
    ],
)
def test_whatever_a_stranger_may_write_has_a_bound(record, unbounded):
    parts = schema_of(record)["$defs"]
    found = set(_unbounded(schema_of(record), record.__name__, parts))
    for name, part in parts.items():
        found |= set(_unbounded(part, name, parts))
    assert found == unbounded


def test_a_type_that_json_has_not_is_refused():
    @dataclass(frozen=True)
    class Bad(Record):
        """Has a set."""

        names: set[str]

    with pytest.raises(TypeError, match="no JSON Schema"):
        schema_of(Bad)


# ---- checks


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
