"""JSON objects as frozen dataclasses: what is read is written again as it was."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import pytest

from gridwise_py.storage.records import Record, key, left_out


class Colour(StrEnum):
    """Of a leaf."""

    RED = "red"
    GREEN = "green"


@dataclass(frozen=True)
class Leaf(Record):
    """Has a name that is its key in a mapping."""

    name: str = field(metadata=key(None))
    colour: Colour


@dataclass(frozen=True)
class Twig(Record):
    """Is in a list."""

    colour: Colour | None


@dataclass(frozen=True, kw_only=True)
class Tree(Record):
    """Has one field of each kind."""

    height_m: float | None
    class_: str = field(default="plant", metadata=key("class"))
    leaves: Mapping[str, Leaf] | None = None
    rings: tuple[tuple[int, int], ...] = ()
    twigs: tuple[Twig, ...] | None = None
    note: str | None = left_out()


def test_an_object_is_written_as_it_was_read():
    for data in (
        {"height_m": 1.5},
        {"height_m": 1, "class": "plant", "note": "old"},
        {"height_m": None, "class": "x", "leaves": {"a": {"colour": "red"}, "b": {"colour": "green", "new": [1]}}},
        {"height_m": None, "leaves": None, "rings": [[1, 2], [3, 4]]},
        {"height_m": None, "twigs": [{"colour": "red"}, {"colour": None, "a": 1}]},
        {"height_m": None, "twigs": None, "other": {"deep": [None]}},
        {"height_m": None, "rings": []},
    ):  # fmt: skip
        assert Tree.from_json(data).to_json() == data


def test_values_have_the_types_of_their_fields():
    tree = Tree.from_json({"height_m": 2, "leaves": {"a": {"colour": "red"}}, "rings": [[1, 2]], "later": 1})
    assert tree.leaves == {"a": Leaf("a", Colour.RED)}
    assert tree.leaves["a"].colour is Colour.RED
    assert tree.rings == ((1, 2),)
    assert (tree.twigs, tree.class_, tree.unknown) == (None, "plant", {"later": 1})


def test_what_was_missing_is_written_once_it_has_a_value():
    read = Tree.from_json({"height_m": 1})
    assert read == Tree(height_m=1)
    assert replace(read, rings=((1, 2),), note="n").to_json() == {"height_m": 1, "rings": [[1, 2]], "note": "n"}
    made = {"height_m": 1, "class": "plant", "leaves": None, "rings": [], "twigs": None}
    assert Tree(height_m=1).to_json() == made, "what is made here has every key, but for those that are left out"


def test_a_field_without_a_default_must_be_there():
    with pytest.raises(TypeError, match="height_m"):
        Tree.from_json({"class": "x"})
