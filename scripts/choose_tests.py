"""Chooses the tests of `make test` from those of `make test-full`: what kills most mutants and runs most lines.

Usage: python scripts/choose_tests.py [--tree FOLDER] [--core-s 55] [--pipelines 300]

It needs what `scripts/mutate.py full --killers 3` leaves: the lines and the pipelines of each test and what it costs,
in .make/ of the tree, and up to three killers of each stored mutant. It writes tests/left_out.json, and says what the
choice kills, runs and costs. A test that the measurement did not know stays in `make test`. Run it again after larger
changes of the tests, then look at what it left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import mutants as store
from coverage import CoverageData

#: What a mutant's first killer is worth, and each further one, in lines of code that no other test runs.
_KILL, _KILL_AGAIN = 1000, 30
#: What a test is worth that runs nothing new: it looks at other results. Cheap ones come in by this.
_ANY = 0.5
#: The first test of a file, and of a function.
_FILE, _FUNCTION = 20, 3
#: Taken first, whatever else runs the same lines: every primitive at its edges; README's code, the arithmetic of the
#: instrument, errors that come before anything is submitted, where a test costs less than half a core-second.
_ALWAYS = re.compile(
    r"tests/(project/test_examples|timing/test_|bench/test_st|runtime/test_bad_input"
    r"|primitives/test_every_primitive\.py::test_configurations_at_every_length\[.*-once\])"
)
#: What a pipeline costs that no other test of the choice has compiled, in core-seconds; and what coverage makes of it
#: and of a second of Python.
_PIPELINE_CORE_S, _COVERED_PIPELINE_CORE_S, _COVERED_CORE_S = 0.14, 0.2, 1.6


@dataclass
class Candidate:
    """A test: what it costs by itself, the pipelines that it asks for, and what it brings, as sets of bits."""

    name: str
    core_s: float
    pipelines: int = 0
    lines: int = 0
    kills: int = 0
    places: set[str] = field(default_factory=set)


def read_candidates(tree: Path, mutants: list[store.Mutant]) -> list[Candidate]:
    """Return the tests of the last measurement."""
    costs = json.loads((tree / ".make/costs.json").read_text(encoding="utf-8"))
    costs = {name: cost for name, cost in costs.items() if (store.ROOT / name.partition("::")[0]).exists()}
    found = {
        name: Candidate(name, max((core_s - made * _COVERED_PIPELINE_CORE_S) / _COVERED_CORE_S, 0.003))
        for name, (core_s, made, _) in costs.items()
    }
    numbers: dict[str, int] = defaultdict(lambda: len(numbers))
    for name, (_, _, asked) in costs.items():
        found[name].pipelines = sum(1 << numbers[pipeline] for pipeline in asked)
        found[name].places = {name.partition("::")[0], name.partition("[")[0]}
    data = CoverageData(str(tree / ".make/coverage"))
    data.read()
    bit = 1
    for file in data.measured_files():
        for contexts in data.contexts_by_lineno(file).values():
            for name in {context.rpartition("|")[0] for context in contexts} & found.keys():
                found[name].lines |= bit
            bit <<= 1
    for number, mutant in enumerate(mutants):
        for name in killers(mutant) & found.keys():
            found[name].kills |= 1 << number
    return list(found.values())


def killers(mutant: store.Mutant) -> set[str]:
    """Return the tests that were seen to notice a mutant."""
    result = mutant.results.get("full", {})
    return {name.removesuffix(" (no end)") for name in (result.get("killed_by") or "", *result.get("also_by", ()))}


@dataclass
class Choice:
    """The tests that were taken, in order, and what they bring together."""

    tests: list[Candidate] = field(default_factory=list)
    core_s: float = 0.0
    pipelines: int = 0
    lines: int = 0
    killed: int = 0
    killed_again: int = 0
    places: set[str] = field(default_factory=set)

    def cost_core_s(self, test: Candidate) -> float:
        """Return what one more test costs: pipelines that others ask for cost nothing more."""
        return test.core_s + _PIPELINE_CORE_S * (test.pipelines & ~self.pipelines).bit_count()

    def worth(self, test: Candidate) -> float:
        """Return what one more test brings, in lines."""
        new = (test.lines & ~self.lines).bit_count() + _ANY
        new += _KILL * (test.kills & ~self.killed).bit_count()
        new += _KILL_AGAIN * (test.kills & self.killed & ~self.killed_again).bit_count()
        return new + sum(_FILE if place.endswith(".py") else _FUNCTION for place in test.places - self.places)

    def take(self, test: Candidate) -> None:
        """Add a test."""
        self.core_s += self.cost_core_s(test)
        self.tests.append(test)
        self.pipelines |= test.pipelines
        self.lines |= test.lines
        self.killed_again |= self.killed & test.kills
        self.killed |= test.kills
        self.places |= test.places


def choose(candidates: list[Candidate], core_s: float, pipelines: int) -> Choice:
    """Take, as long as it fits, the test that brings most for what it costs (greedy weighted set cover)."""
    choice, left = Choice(), list(candidates)
    for test in candidates:
        if _ALWAYS.match(test.name) and test.core_s < 0.5:
            choice.take(test)
            left.remove(test)
    while True:
        left = [
            test
            for test in left
            if choice.core_s + choice.cost_core_s(test) <= core_s
            and (choice.pipelines | test.pipelines).bit_count() <= pipelines
        ]
        if not left:
            return choice
        best = max(left, key=lambda test: choice.worth(test) / choice.cost_core_s(test))
        choice.take(best)
        left.remove(best)


def left_out(candidates: list[Candidate], choice: Choice) -> dict[str, dict[str, list[str]]]:
    """Return by file and function the parameters that are taken, of functions that are not taken whole."""
    taken = {test.name for test in choice.tests}
    found: dict[str, dict[str, list[str]]] = {}
    for test in sorted(candidates, key=lambda test: test.name):
        if test.name not in taken:
            file, _, name = test.name.removeprefix("tests/").partition("::")
            found.setdefault(file, {})[name.partition("[")[0]] = []
    for name in sorted(taken):
        file, _, name = name.removeprefix("tests/").partition("::")
        function, _, parameters = name.partition("[")
        if function in found.get(file, {}):
            found[file][function].append(parameters.removesuffix("]"))
    return found


def say_what(candidates: list[Candidate], choice: Choice, mutants: list[store.Mutant]) -> None:
    """Print what the choice brings, of all."""
    lines = 0
    for test in candidates:
        lines |= test.lines
    share = choice.lines.bit_count() / lines.bit_count()
    print(f"{len(choice.tests)} of {len(candidates)} tests, {choice.core_s:.0f} core-s, {share:.1%} of the lines")
    print(f"{choice.pipelines.bit_count()} pipelines")
    for group in (*store.GROUPS, "faults"):
        of = [n for n, mutant in enumerate(mutants) if mutant.group == group and killers(mutant) - {""}]
        print(f"{group}: {sum(choice.killed >> n & 1 for n in of)} of {len(of)} mutants by a known killer")


def main() -> int:
    """Choose, write and say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=store.ROOT, help="where scripts/mutate.py measured")
    parser.add_argument("--file", type=Path, default=store.STORED, help="the mutants")
    parser.add_argument("--core-s", type=float, default=55.0, help="what the tests may cost")
    parser.add_argument("--pipelines", type=int, default=300, help="how many different ones they may compile")
    options = parser.parse_args()
    mutants = [mutant for mutant in store.read(options.file) if not mutant.struck]
    candidates = read_candidates(options.tree, mutants)
    choice = choose(candidates, options.core_s, options.pipelines)
    text = json.dumps(left_out(candidates, choice), indent=1, ensure_ascii=False)
    (store.ROOT / "tests/left_out.json").write_text(text + "\n", encoding="utf-8")
    say_what(candidates, choice, mutants)
    return 0


if __name__ == "__main__":
    sys.exit(main())
