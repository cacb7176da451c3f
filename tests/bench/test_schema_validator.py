"""The quick validator says what jsonschema says, of right files and of broken ones."""

import copy
import json
import random

import jsonschema
import pytest
from jsonschema.exceptions import best_match

from gridwise_py.bench.results.model import Results
from gridwise_py.bench.results.schema import json_schema
from gridwise_py.bench.results.validator import quick_validator
from helpers.results import document, measurement

SCHEMA = json_schema(Results)
WRONG = (None, True, -1, -0.5, 1.5, 2.0, "text", [], {}, [1, "a"], {"a": 1})


def _places(value, path=()):
    """Every place in a JSON value."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
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


def _said(validator, value):
    return sorted((error.json_path, error.message) for error in validator.iter_errors(value))


def _first(validator, value):
    error = best_match(validator.iter_errors(value))
    return None if error is None else (error.json_path, error.message)


@pytest.mark.parametrize("count", [25, pytest.param(500, marks=pytest.mark.slow)])
def test_it_says_what_jsonschema_says(count):
    general, quick = jsonschema.Draft202012Validator(SCHEMA), quick_validator(SCHEMA)
    whole = json.loads(json.dumps(document([measurement(count=3), measurement("copy", op=None, count=2)])))
    assert _said(quick, whole) == _said(general, whole) == []
    rng = random.Random(0)
    places = [path for path in _places(whole) if path]
    broken = 0
    count = min(count, len(places))
    for path in rng.sample(places, count):
        made = _changed(whole, path, rng.choice((*WRONG, KeyError)))
        wanted = _said(general, made)
        assert _said(quick, made) == wanted, path
        assert _first(quick, made) == _first(general, made), path
        broken += bool(wanted)
    assert broken > 0.4 * count


def test_arrays_of_numbers():
    for value in [[1, 2.5], [1, None], [True], [1, -1], ["1"], [[1]], "1", 1, None, []]:
        schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/row"}}, "$defs": {
            "number": {"type": "number", "minimum": 0}, "row": {"type": "array", "items": {"$ref": "#/$defs/number"}},
        }}  # fmt: skip
        general = jsonschema.Draft202012Validator(schema)
        assert _said(quick_validator(schema), {"x": value}) == _said(general, {"x": value})


def test_a_reference_does_not_hide_what_stands_beside_it():
    schema = {
        "properties": {"x": {"$ref": "#/$defs/n", "minimum": 5}},
        "$defs": {"n": {"type": "number", "minimum": 0}},
    }
    for value in (3, 7, -1, "a"):
        assert bool(_said(quick_validator(schema), {"x": value})) == (value != 7)
