"""The schema of a record accepts what its types and limits say, and nothing else."""

from dataclasses import dataclass

import pytest

from gridwise_py.bench.results.browser_model import PageFile
from gridwise_py.fleet.model import Fleet
from gridwise_py.storage.records import Record
from gridwise_py.storage.schemas import schema_of


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
