"""What looks for faults finds them: random plans, mutants, and what the validation layer says."""

import importlib.util
import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.primitives import REGISTRY
from helpers import random_plans
from helpers.paths import ROOT

SCRIPTS = ROOT / "scripts"
needs_scripts = pytest.mark.needs("the repository")
pytestmark = pytest.mark.slow


def _script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# ---- random plans


def test_random_plans_equal_numpy(device):
    for number in range(10, 40):
        call = random_plans.draw(device, 1, number)
        try:
            random_plans.run(device, call)
        except AssertionError as error:
            raise AssertionError(f"plan {number} of seed 1: {random_plans.describe(call)}: {error}") from error


def test_a_plan_follows_from_its_number(device):
    for number in (3, 44):
        one, other = random_plans.draw(device, 5, number), random_plans.draw(device, 5, number)
        assert random_plans.describe(one) == random_plans.describe(other)
        assert all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(
            one.inputs.values(), other.inputs.values(), strict=True))  # fmt: skip
    assert {type(random_plans.draw(device, 0, n).primitive).__name__ for n in range(0, 1000, 5)} == {
        cls.__name__ for name, cls in REGISTRY.items() if name not in random_plans.COUNTED
    }  # fmt: skip


def test_a_wrong_item_and_one_written_beside_are_found(device):
    for number in range(100):
        call = random_plans.draw(device, 0, number)
        (name, want), *_ = call.wanted.items()
        if call.bounded is None and want.size > 5 and call.offsets[name]:
            break
    random_plans.run(device, call)
    wrong = {**call.wanted, name: np.roll(want, 1) + want.dtype.type(1)}
    with pytest.raises(AssertionError, match="items are wrong"):
        random_plans.run(device, call._replace(wanted=wrong))
    lengthened = call._replace(primitive=_Overwriting(call.primitive, device, name))
    with pytest.raises(AssertionError, match="beside"):
        random_plans.run(device, lengthened)


class _Overwriting:
    """A primitive that also writes the item before its output."""

    def __init__(self, primitive, device, name):
        self.primitive, self.device, self.name = primitive, device, name

    def execute(self, **arguments):
        self.primitive.execute(**arguments)
        view = arguments[self.name]
        before = gw.Array(view.buffer, view.datatype, 1, view.offset - 1, device=self.device)
        before.copy_from(np.array([99], view.dtype))


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


# ---- mutants


@pytest.fixture
def mutate(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    return _script("mutate")


@needs_scripts
def test_mutants_of_wgsl_are_of_code_only(mutate):
    found = list(mutate.wgsl_mutants("shaders/lib/look_back.wgsl"))
    assert len(found) > 20
    for mutant in found:
        assert mutant.old != mutant.new
        assert not mutant.old.startswith("//")
        text = (SCRIPTS.parent / mutant.place).read_text(encoding="utf-8")
        changed = [
            i for i, (a, b) in enumerate(zip(text.splitlines(), mutant.text.splitlines(), strict=True), 1) if a != b
        ]
        assert changed == [mutant.line]
    assert all((SCRIPTS.parent / place).is_file() for place in mutate.PYTHON)
    assert mutate._WGSL.keys() <= mutate.WGSL.keys(), "these shaders are gone"
    assert all((SCRIPTS.parent / test).is_file() for tests in (mutate.PYTHON | mutate.WGSL).values()
               for test in tests.split())  # fmt: skip


@needs_scripts
def test_a_mutant_is_killed_by_a_failure_or_lives(tmp_path, mutate):
    (tmp_path / "module.py").write_text("VALUE = 1\n")
    (tmp_path / "test_module.py").write_text("import module\ndef test_value():\n    assert module.VALUE > 0\n")
    bad = mutate.Mutant("module.py", 1, "VALUE = 1", "VALUE = 0", "VALUE = 0\n")
    assert mutate.is_killed(tmp_path, bad, "test_module.py", 60) == "test_module.py::test_value"
    assert (tmp_path / "module.py").read_text() == "VALUE = 1\n"
    assert mutate.is_killed(tmp_path, bad._replace(text="VALUE = 2\n"), "test_module.py", 60) is None
    endless = bad._replace(text="while True:\n    pass\n")
    assert mutate.is_killed(tmp_path, endless, "test_module.py", 3) == "no end"


@pytest.fixture
def small_repository(tmp_path, monkeypatch, mutate, capsys):
    """A shader of three lines, whose last line no test looks at; returns what mutates it and gives what it said."""
    import mutants

    for folder in ("shaders", "tests", "gridwise_py"):
        (tmp_path / "repository" / folder).mkdir(parents=True)
    (tmp_path / "repository/shaders/few.wgsl").write_text("let a = 7u;\n// let b = 8u;\nlet c = 9u;\n")
    (tmp_path / "repository/tests/test_few.py").write_text(
        "from pathlib import Path\n"
        "TEXT = Path('shaders/few.wgsl').read_text()\n"
        "def test_b():\n    assert 'b = 8u' in TEXT\n"
        "def test_a():\n    assert 'a = 7u' in TEXT\n"
    )
    monkeypatch.setattr(mutate, "ROOT", tmp_path / "repository")
    monkeypatch.setattr(mutants, "ROOT", tmp_path / "repository")
    monkeypatch.setattr(mutate, "PYTHON", {})
    monkeypatch.setattr(mutate, "WGSL", {"shaders/few.wgsl": "tests/test_few.py"})
    monkeypatch.setattr(mutate.signal, "signal", lambda *_: None)  # pytest keeps its own

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["mutate.py", "--json", str(tmp_path / "tried.json"), *words])
        code = mutate.main()
        return code, capsys.readouterr().out

    return run


@needs_scripts
def test_mutants_are_tried_side_by_side_and_a_later_run_goes_on(tmp_path, small_repository):
    def tried():
        return json.loads((tmp_path / "tried.json").read_text())["mutants"]

    code, said = small_repository("--minutes", "0")
    assert (code, "0 of 2" in said) == (1, True), "time was up before the tests were seen to pass"
    code, said = small_repository("--jobs", "2", "--minutes", "1")
    assert code == 0
    assert "SURVIVED shaders/few.wgsl:3\n  - let c = 9u;\n  + let c = 10u;\n" in said
    assert "2 mutants tried" in said
    assert {row["line"]: row["killed_by"] for row in tried()} == {1: "tests/test_few.py::test_a", 3: None}
    assert "0 mutants tried" in small_repository("--minutes", "1")[1], "it goes on where it was"
    with (tmp_path / "repository/tests/test_few.py").open("a") as tests:
        tests.write("def test_c():\n    assert 'c = 9u' in TEXT\n")
    assert "1 mutants tried" in small_repository("--minutes", "1", "--survivors")[1]
    assert {row["line"]: row["killed_by"] for row in tried()} == {
        1: "tests/test_few.py::test_a", 3: "tests/test_few.py::test_c",
    }  # fmt: skip


@needs_scripts
def test_tests_without_a_mutant_run_again_only_if_code_has_changed(tmp_path, small_repository):
    def again():
        return "test_few.py: 2 passed" in small_repository("--minutes", "1", "--survivors")[1]

    assert (again(), small_repository("--minutes", "1")[0], again()) == (False, 0, False)
    for name in ("tests/test_few.py", "tests/helper.py", "gridwise_py/module.py"):
        with (tmp_path / "repository" / name).open("a") as file:
            file.write("# changed\n")
        assert (again(), again()) == (True, False), name


@needs_scripts
@pytest.mark.parametrize(
    ("content", "how"),
    [
        ("def test_broken():\n    assert False\n", "tests/test_few.py::test_broken"),
        ("import pytest\npytestmark = pytest.mark.skip\ndef test_a():\n    pass\n", "all 1 tests were skipped"),
    ],
)
def test_tests_that_tell_nothing_kill_no_mutants(tmp_path, small_repository, content, how):
    (tmp_path / "repository/tests/test_few.py").write_text(content)
    code, said = small_repository("--minutes", "1")
    assert code == 1
    assert f"LEFT OUT what is tried by tests/test_few.py, which without a mutant {how}" in said
    assert "0 mutants tried" in said


@needs_scripts
def test_what_is_cut_off_by_a_signal_is_not_taken_for_killed(tmp_path, small_repository, mutate, monkeypatch):
    def cut_off(folder, mutant, *rest):
        if mutant.line == 1:
            raise KeyboardInterrupt
        mutate._stopped.wait(30)
        return "exit code -9"

    monkeypatch.setattr(mutate, "is_killed", cut_off)
    with pytest.raises(KeyboardInterrupt):
        small_repository("--minutes", "1", "--jobs", "2")
    assert json.loads((tmp_path / "tried.json").read_text())["mutants"] == []


@needs_scripts
def test_likely_killers_run_first(tmp_path, mutate, monkeypatch):
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    for name in ("test_fast.py", "test_slow.py"):
        (tmp_path / name).write_text("")
    record = mutate.Record(None)
    place, fast, slow = "module.py", "test_fast.py", "test_slow.py"
    record.add_test_file(fast, {"seconds": 1, "tests": {f"{fast}::a": 0.3, f"{fast}::b[1]": 0.1, f"{fast}::b[2]": 0.2}})
    record.add_test_file(slow, {"seconds": 9, "tests": {f"{slow}::c": 4.0, f"{slow}::d": 5.0}})
    by_time = [f"{fast}::b[1]", f"{fast}::a", f"{fast}::b[2]", f"{slow}::c", f"{slow}::d"]
    mutant = mutate.Mutant(place, 10, "old", "new", "")
    assert record.order(mutant, f"{slow} {fast}") == by_time, "quick files first, and of each function one"
    record.add(mutant._replace(line=90), f"{slow}::c", 1.0)
    record.add(mutant._replace(line=11), f"{slow}::d", 1.0)
    record.add(mutant._replace(line=10, new="other"), "no end", 1.0)
    record.add(mutant._replace(place="other.py"), f"{fast}::a", 1.0)
    assert record.order(mutant, f"{slow} {fast}") == [f"{slow}::d", f"{slow}::c", *by_time[:3]]
    # and the plugin does what the list says
    (tmp_path / "test_order.py").write_text("def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\n")
    (tmp_path / "order.json").write_text(
        '["test_order.py::test_c", "test_order.py::test_gone", "test_order.py::test_b"]'
    )
    code, said = mutate.run_tests(tmp_path, "test_order.py", 60, "--in-order", "order.json", "-vv")
    assert code == 0
    assert [line.split()[0][-6:] for line in said.splitlines() if "PASSED" in line] == ["test_c", "test_b", "test_a"]


@needs_scripts
def test_without_cosmic_ray_shaders_alone_are_mutated(monkeypatch, mutate, capsys):
    monkeypatch.setattr(mutate.importlib.util, "find_spec", lambda name: None)
    options = mutate.argparse.Namespace(kind="all", places=[])
    assert mutate._places(options) == mutate.WGSL
    assert "cosmic-ray is not installed" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="pip install"):
        mutate._places(mutate.argparse.Namespace(kind="python", places=[]))
    with pytest.raises(SystemExit, match=r"no tests are named for nothing\.py"):
        mutate._places(mutate.argparse.Namespace(kind="all", places=["nothing.py"]))


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
    lines, rows = validate.report(listener)
    assert rows[0] == {
        "id": "VUID-vkCmdDispatch-None-02699", "severity": "ERROR", "count": 2, "text": "Something is wrong",
        "explained": None, "tests": ["tests/test_x.py::test_y"],
    }  # fmt: skip
    assert rows[1]["severity"] == "WARN"
    assert any("in tests/test_x.py::test_y" in line for line in lines)


@needs_scripts
def test_without_the_layer_nothing_is_claimed(monkeypatch, capsys):
    validate = _script("validate")
    monkeypatch.setattr(validate, "layer_is_installed", lambda: False)
    monkeypatch.setattr(sys, "argv", ["validate"])
    assert validate.main() == 3
    assert "NOTHING WAS VALIDATED" in capsys.readouterr().out
