"""The schema of a record accepts what its types and limits say, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

import jsonschema
import pytest

from gridwise_py.bench.results.browser_model import PageFile
from gridwise_py.fleet.model import Fleet
from gridwise_py.storage.records import Record, key, left_out, may_lack
from gridwise_py.storage.schemas import Limits, schema_of


class Colour(StrEnum):
    """Of a leaf."""

    RED = "red"
    GREEN = "green"


@dataclass(frozen=True, kw_only=True)
class Leaf(Record):
    """A leaf."""

    colour: Colour
    size_m: Annotated[float, Limits(above=0, below=1)] | None


@dataclass(frozen=True, kw_only=True)
class Tree(Record):
    """A tree.

    Attributes
    ----------
    height_m, width_m : float
        None if it was
        not measured.
    """

    height_m: Annotated[float, Limits(at_least=0, at_most=10)]
    width_m: float | None
    class_: Literal["plant"] = field(default="plant", metadata=key("class"))
    leaves: Annotated[tuple[Leaf, ...], Limits(fewest=1, most=2)]
    span: tuple[int, int] = (0, 1)
    named: Mapping[Annotated[str, Limits(one_of=Colour)], Annotated[int | str, Limits(most=3)]] = may_lack()
    owners: Annotated[Mapping[str, str], Limits(needs=("first",), most=2)] | None = left_out()
    note: Annotated[str, Limits(pattern="^a")] | None = left_out()
    anything: Any = may_lack()
    sapling: "Tree | None" = may_lack()


LEAF = {"colour": "red", "size_m": 0.5}
TREE = {"height_m": 1, "width_m": None, "class": "plant", "leaves": [LEAF], "span": [1, 2], "unknown": {"x": []}}

RIGHT = [
    {"height_m": 0}, {"height_m": 10}, {"width_m": 1.5}, {"leaves": [LEAF, LEAF | {"size_m": None}]}, {"owners": None},
    {"named": {"red": 10**9, "green": "abc"}}, {"owners": {"first": "a", "x": "b"}}, {"note": "ab"}, {"note": None},
    {"anything": [None]}, {"sapling": TREE}, {"sapling": None},
]  # fmt: skip
WRONG = [
    {"height_m": -0.1}, {"height_m": 10.1}, {"height_m": None}, {"height_m": "1"}, {"width_m": "1"}, {"class": "x"},
    {"leaves": []}, {"leaves": [LEAF] * 3}, {"leaves": [LEAF | {"colour": "blue"}]}, {"leaves": None},
    {"leaves": [{"colour": "red"}]}, {"leaves": [LEAF | {"size_m": 0}]}, {"leaves": [LEAF | {"size_m": 1}]},
    {"span": [1]}, {"span": [1, 2, 3]}, {"span": [1, 2.5]}, {"named": {"blue": 1}}, {"named": {"red": "abcd"}},
    {"named": {"red": None}}, {"owners": {"x": "b"}}, {"owners": {"first": "a", "x": "b", "y": "c"}}, {"note": "ba"},
    {"sapling": {**TREE, "height_m": -1}}, {"sapling": LEAF},
]  # fmt: skip


def test_values_within_the_limits_are_right_and_others_wrong():
    jsonschema.Draft202012Validator.check_schema(schema_of(Tree))
    validator = jsonschema.Draft202012Validator(schema_of(Tree))
    assert validator.is_valid(TREE)
    assert [change for change in RIGHT if not validator.is_valid({**TREE, **change})] == []
    assert [change for change in WRONG if validator.is_valid({**TREE, **change})] == []
    for name in ("height_m", "width_m", "class", "leaves", "span"):
        assert not validator.is_valid({key: value for key, value in TREE.items() if key != name}), name


def test_descriptions_are_those_of_the_docstring():
    made = schema_of(Tree)
    assert made["description"] == "A tree."
    assert {name for name, one in made["properties"].items() if "description" in one} == {"height_m", "width_m"}
    assert made["properties"]["width_m"]["description"] == "null if it was not measured."


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
