"""What looks for faults finds them: random plans, and what the validation layer says."""

import importlib.util
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from helpers import random_plans
from helpers.every_primitive import Call, covering
from helpers.paths import ROOT
from helpers.strategies import quick_first

pytestmark = pytest.mark.slow

SCRIPTS = ROOT / "scripts"
needs_scripts = pytest.mark.needs("the repository")


def _script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---- random plans


@pytest.mark.parametrize("first", quick_first([10], [20, 30]))
def test_random_plans_equal_numpy(device, first):
    for number in range(first, first + 10):
        call = random_plans.draw(device, 1, number)
        try:
            random_plans.run(call, number)
        except AssertionError as error:
            raise AssertionError(f"plan {number} of seed 1: {random_plans.describe(call)}: {error}") from error


def test_a_plan_follows_from_its_number(device):
    for number in (3, 44):
        one, other = random_plans.draw(device, 5, number), random_plans.draw(device, 5, number)
        assert random_plans.describe(one) == random_plans.describe(other)
        assert all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(
            one.inputs.values(), other.inputs.values(), strict=True))  # fmt: skip
    assert {random_plans.draw(device, 0, n).row["name"] for n in range(0, 2000, 5)} == gw.primitives.REGISTRY.keys()


def test_a_wrong_item_and_one_written_beside_are_found(device):
    row = next(row for row in covering() if row["name"] == "copy" and row["form"] == "whole")
    call = Call(device, row | {"place": "unaligned"}, 100)
    call.run(1)
    output = call.primitive.execute(**call.place()).output.to_numpy()
    with pytest.raises(AssertionError, match="wrong items"):
        call.check({"output": np.roll(output, 1)})
    call.primitive = _Overwriting(call.primitive, device)
    with pytest.raises(AssertionError, match="byte"):
        call.run(1)


class _Overwriting:
    """A primitive that also writes the item before its output."""

    def __init__(self, primitive, device):
        self.primitive, self.device = primitive, device

    def __getattr__(self, name):
        return getattr(self.primitive, name)

    def execute(self, output, **arguments):
        before = gw.Array(output.buffer, output.datatype, 1, output.offset - 1, device=self.device)
        before.copy_from(np.array([99], output.dtype))
        return self.primitive.execute(output=output, **arguments)


@pytest.mark.gpu
def test_a_soak_goes_on_where_it_was_and_tells_of_wrong_answers(tmp_path, monkeypatch):
    path = tmp_path / "soak.json"
    words = ["--json", str(path), "--seed", "2", "--plans"]
    assert CliRunner().invoke(random_plans.main, [*words, "2"]).exit_code == 0
    assert CliRunner().invoke(random_plans.main, [*words, "4"]).exit_code == 0
    (result,) = json.loads(path.read_text())["results"]
    assert (result["plans"], result["next"], result["wrong"]) == (4, 4, [])

    def fail(*_):
        raise AssertionError("an item is wrong")

    monkeypatch.setattr(random_plans, "run", fail)
    done = CliRunner().invoke(random_plans.main, [*words, "5"])
    assert done.exit_code == 4
    assert "WRONG: plan 4 of seed 2" in done.output
    (result,) = json.loads(path.read_text())["results"]
    assert [wrong["number"] for wrong in result["wrong"]] == [4]
    assert CliRunner().invoke(random_plans.main, [*words, "5", "--minutes", "0"]).exit_code == 4, "it is not forgotten"


# ---- what the layer says


@needs_scripts
def test_messages_of_the_layer_are_summed_up_with_the_tests_that_ran(tmp_path, monkeypatch):
    validate = _script("validate")
    listener = validate.Listener(tmp_path / "pipe")
    monkeypatch.setenv(validate.PIPE, str(tmp_path / "pipe"))
    validate.pytest_runtest_logstart("tests/test_x.py::test_y")
    name = "VUID-vkCmdDispatch-None-02699"
    message = (
        f"{name}(ERROR / SPEC): msgNum: 123 - Validation Error: [ {name} ] Object 0: handle = 0x1, type = 3; | "
        "MessageID = 0x9 | Something is wrong\n    Objects: 1\n"
    )
    with open(tmp_path / "pipe", "w") as pipe:
        pipe.write(message * 2 + "UNASSIGNED-x(WARN / PERF): msgNum: 0 - Slow | that is slow\n")
    validate.pytest_runtest_logfinish("tests/test_x.py::test_y")
    listener.settle()
    assert validate.report(listener) == (
        [
            "ERROR VUID-vkCmdDispatch-None-02699, 2 times", "    Something is wrong", "    in tests/test_x.py::test_y",
            "WARN UNASSIGNED-x, 1 times", "    that is slow", "    in tests/test_x.py::test_y",
        ],
        1,
    )  # fmt: skip


@needs_scripts
def test_without_the_layer_nothing_is_claimed(monkeypatch, capsys):
    validate = _script("validate")
    monkeypatch.setattr(validate, "LAYER", "VK_LAYER_that_no_machine_has")
    monkeypatch.setattr(sys, "argv", ["validate", "--version"])
    assert validate.main() == 3
    assert "NOTHING WAS VALIDATED" in capsys.readouterr().out
