"""What conftest.py promises: no skip goes unseen where a GPU is required, and no logged error goes unseen."""

import itertools
import json
import re

import pytest

import gridwise_py as gw
from helpers import needs
from helpers.paths import TESTS, with_helpers

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

SKIPS = {
    "in the test": "def test_it():\n    pytest.skip('no such thing')",
    "by a mark": "@pytest.mark.skip(reason='no such thing')\ndef test_it():\n    pass",
    "by a condition": "@pytest.mark.skipif(True, reason='no such thing')\ndef test_it():\n    pass",
    "in a fixture": (
        "@pytest.fixture\ndef needed():\n    pytest.skip('no such thing')\n\ndef test_it(needed):\n    pass"
    ),
    "of a module": "pytest.skip('no such thing', allow_module_level=True)",
}


@pytest.fixture
def run(pytester, monkeypatch):
    """Return a function that runs a test file beside this conftest.py and returns the outcomes and the output."""
    for name in ("GRIDWISE_REQUIRE_GPU", "GRIDWISE_TEST_REFUSE_FEATURES", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)

    def run(text, *words, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        pytester.makeconftest((TESTS / "conftest.py").read_text(encoding="utf-8"))
        pytester.makepyfile("import logging\nimport pytest\n" + text)
        # A device without features would stay the default one of this process.
        alone = "GRIDWISE_TEST_REFUSE_FEATURES" in environment
        monkeypatch.setenv("PYTHONPATH", with_helpers()["PYTHONPATH"])
        start = pytester.runpytest_subprocess if alone else pytester.runpytest_inprocess
        result = start("-p", "no:cacheprovider", "-rA", *words)
        outcomes = result.parseoutcomes()
        outcomes.pop("warnings", None)  # of marks that no file beside it registers
        return outcomes, result.stdout.str()

    return run


def test_skips_are_skips(run):
    tests = [text.replace("test_it", f"test_{i}") for i, text in enumerate(SKIPS.values()) if "test_it" in text]
    outcomes, _ = run("\n\n".join(tests[:4]))
    assert outcomes == {"skipped": 4}


@pytest.mark.parametrize("how", SKIPS)
def test_skips_are_failures_where_a_gpu_is_required(run, how):
    outcomes, output = run(SKIPS[how], GRIDWISE_REQUIRE_GPU="1")
    assert "skipped" not in outcomes
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 1
    assert "no such thing" in output


def test_expected_failures_and_passes_stay_what_they_are(run):
    text = """
@pytest.mark.xfail(reason="known")
def test_known():
    assert False

def test_good():
    pass
"""
    assert run(text, GRIDWISE_REQUIRE_GPU="1")[0] == {"xfailed": 1, "passed": 1}


USES = """
def test_device(device):
    pass

def test_fresh(fresh_device):
    pass

def test_neither():
    pass
"""


@pytest.fixture
def _no_adapter(monkeypatch):
    def none(*_args, **_kwargs):
        raise gw.AdapterError("no adapter")

    monkeypatch.setattr(gw, "list_adapters", lambda **_: [])
    monkeypatch.setattr(gw, "request_device", none)


INDIRECTLY = """
@pytest.fixture
def through(device):
    pass

def test_through(through):
    pass

@pytest.mark.gpu
def test_marked():
    pass
"""


@pytest.mark.usefixtures("_no_adapter")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_what_uses_a_device_is_marked_and_left_out_on_demand(run):
    assert run(USES + INDIRECTLY)[0] == {"skipped": 4, "passed": 1}
    outcomes, output = run(USES + INDIRECTLY, "-m", "not gpu", GRIDWISE_REQUIRE_GPU="1")
    assert outcomes == {"passed": 1, "deselected": 4}
    assert "PASSED" in output
    assert "test_neither" in output


THIN = """
@pytest.mark.thin(STRENGTH)
@pytest.mark.parametrize("a", ["p", "q", "r", "s"])
@pytest.mark.parametrize("b", ["t", "u", "v"])
@pytest.mark.parametrize(("c", "d"), [("w", "x"), ("y", "z")])
def test_it(a, b, c, d):
    print("<" + a + b + c + d + ">")
"""


@pytest.mark.parametrize(("strength", "fewest", "most"), [(1, 4, 4), (2, 12, 16), (4, 24, 24)])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_a_thinned_test_still_has_every_value_or_pair_of_values(run, strength, fewest, most):
    text = THIN.replace("STRENGTH", str(strength))
    assert run(text)[0] == {"passed": 24}
    outcomes, output = run(text, "-m", "not slow")
    found = re.findall(r"<(....)>", output)
    assert fewest <= len(found) == outcomes["passed"] <= most
    every = itertools.product("pqrs", "tuv", ["wx", "yz"])
    assert {frozenset(c) for words in found for c in itertools.combinations(words, strength)} == {
        frozenset(c) for a, b, cd in every for c in itertools.combinations(a + b + cd, strength)
    }


@pytest.mark.usefixtures("_no_adapter")
def test_without_an_adapter_tests_that_need_one_are_skipped(run):
    outcomes, output = run(USES)
    assert outcomes == {"skipped": 2, "passed": 1}
    assert "no GPU adapter" in output


@pytest.mark.usefixtures("_no_adapter")
def test_without_an_adapter_they_fail_where_a_gpu_is_required(run):
    outcomes, output = run(USES, GRIDWISE_REQUIRE_GPU="1")
    assert outcomes == {"errors": 2, "passed": 1}
    assert "no GPU adapter" in output


NEEDS = """
@pytest.mark.needs("git", NEED)
def test_by_a_mark():
    pass

def test_by_a_fixture(require):
    require(NEED)
"""


@pytest.mark.usefixtures("device")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
@pytest.mark.parametrize(
    ("need", "environment"),
    [
        ("module:no_such_module", {}),
        ("texture-compression-etc2", {}),
        ("timestamp-query", {"GRIDWISE_TEST_REFUSE_FEATURES": "1"}),
    ],
)
def test_a_declared_need_that_is_not_met_is_a_skip_that_says_so(run, need, environment):
    outcomes, output = run(NEEDS.replace("NEED", repr(need)), GRIDWISE_REQUIRE_GPU="1", **environment)
    assert outcomes == {"skipped": 2}
    assert f"needs {need}" in output


def test_a_file_that_imports_what_is_missing_is_a_skip_that_says_so(run):
    text = "from helpers import needs\nwith needs.modules('json', 'no_such_module') as pytestmark:\n"
    text += "    import no_such_module"
    outcomes, output = run(text, GRIDWISE_REQUIRE_GPU="1")
    assert outcomes == {"skipped": 1}
    assert "needs module:no_such_module" in output


@pytest.mark.usefixtures("device")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnknownMarkWarning")
def test_a_need_that_nothing_can_meet_is_a_fault_of_the_test(run):
    outcomes, output = run(NEEDS.replace("NEED", "'time-travel'"))
    assert outcomes == {"errors": 1, "failed": 1}
    assert "no test can need 'time-travel'" in output


@pytest.mark.needs("lavapipe")
@pytest.mark.parametrize("name", [*needs.OF_DEVICE, *(x for x in needs.NATIVE_FEATURES if "chromium" not in x)])
def test_lavapipe_has_what_tests_need_of_a_device(name):
    """So that none is left out everywhere."""
    with_all = gw.request_device(adapter="llvmpipe")
    assert needs.missing((name,), lambda: with_all) == []


@pytest.mark.usefixtures("device")
def test_the_device_has_no_optional_feature_where_they_are_refused(run):
    text = """
def test_it(device):
    assert "subgroup" not in device.features
    assert "timestamp-query" not in device.features
"""
    assert run(text, GRIDWISE_TEST_REFUSE_FEATURES="1")[0] == {"passed": 1}


LOGS = """
def test_logs():
    logging.getLogger("wgpu").LEVEL("something is wrong")

def test_clears(wgpu_errors):
    logging.getLogger("wgpu.child").error("as expected")
    assert wgpu_errors == ["as expected"]
    wgpu_errors.clear()
"""


@pytest.mark.parametrize(
    ("level", "want"),
    [
        ("error", {"passed": 2, "errors": 1}),
        ("critical", {"passed": 2, "errors": 1}),
        ("warning", {"passed": 2}),
    ],
)
def test_a_test_during_which_wgpu_logs_an_error_fails(run, wgpu_errors, level, want):
    outcomes, output = run(LOGS.replace("LEVEL", level))
    wgpu_errors.clear()  # this test is one of those during which it logs
    assert outcomes == want
    assert ("wgpu logged 1 errors" in output) == ("errors" in want)


def test_what_is_left_out_of_make_test_is_marked_and_a_new_test_is_not(run, pytester):
    left = json.loads((TESTS / "left_out.json").read_text(encoding="utf-8"))
    file, name = next((file, name) for file, of in left.items() for name, kept in of.items() if not kept)
    pytester.makepyfile(
        **{f"tests/{file.removesuffix('.py')}": f"def {name}():\n    pass\n\ndef test_new():\n    pass"}
    )
    _, output = run("", "--import-mode=importlib", "-m", "full", "tests")
    assert re.findall(r"^PASSED (.*)$", output, re.MULTILINE) == [f"tests/{file}::{name}"]
    _, output = run("", "--import-mode=importlib", "-m", "not full", "tests")
    assert re.findall(r"^PASSED (.*)$", output, re.MULTILINE) == [f"tests/{file}::test_new"]
