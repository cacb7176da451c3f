"""The public names, frozen: one that comes or goes is a decision, and is in the changelog."""

import dataclasses
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import gridwise_py as gw

ROOT = Path(__file__).resolve().parent.parent
#: Since which version. A name that goes was deprecated in a minor version before (CONTRIBUTING.md), and moves to GONE.
SINCE = {
    "0.1.0": """
        DATATYPES AdapterDescription AdapterError Add Argument ArgumentError Array BadResultsFile BenchmarkResult BinOp
        BufferUsageError Capabilities Copy Datatype DatatypeError DeviceError EmptyReductionError GridwiseError
        GridwiseWarning ImplicitConversionError Kernel Layout LengthError LimitError Max Measurement Min Multiply
        Operand OverlapError PerTrial Plan Primitive Reduce Run SamplingProtocol Scan ShaderError Span TimingError
        TimingHelper TimingNotReady TimingResult TimingSession TimingUnavailable VectorAdd Work add asarray benchmark
        capabilities cumsum default_device empty empty_like list_adapters max measure min prod reduce request_device
        scan sum timing_helper
    """,
    "Unreleased": """
        STORAGE_DATATYPES ArgSort ChunkedArray DeviceLostError DeviceMemoryError DeviceTimeoutError Event ForkError
        KeyAverage KeyAverages LookbackVerdict MatMul Profile Sort SortPairs argsort matmul profile read_results sort
        sort_pairs stream synchronize to_dataframe
    """,
}
#: Public once, and why no more.
GONE: dict[str, str] = {}
#: Names that come with another one, which the changelog has.
COMES_WITH = {
    "Profile": "gw.profile", "KeyAverage": "gw.profile", "KeyAverages": "gw.profile",
    "STORAGE_DATATYPES": "Arrays of f16", "LookbackVerdict": "self-test",
}  # fmt: skip


def _frozen():
    return {name: version for version, names in SINCE.items() for name in names.split()}


def test_the_public_names_are_those_that_were_decided_on():
    frozen = set(_frozen())
    assert set(gw.__all__) - frozen == set(), "new: put it into SINCE, with an entry in CHANGELOG.md"
    assert frozen - set(gw.__all__) == set(), "gone: deprecate first (CONTRIBUTING.md), then move it to GONE"
    assert not frozen & set(GONE)
    assert sum(len(names.split()) for names in SINCE.values()) == len(frozen), "each name once"


@pytest.mark.skipif(not (ROOT / "CHANGELOG.md").exists(), reason="needs the repository")
def test_the_changelog_tells_of_each_name_since_the_first_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## \[([\w.]+)\][^\n]*\n(.*?)(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL))
    assert set(SINCE) <= set(sections)
    for name, version in _frozen().items():
        if version != "0.1.0":
            assert re.search(rf"\b{re.escape(COMES_WITH.get(name, name))}\b", sections[version]), name
    for name in GONE:
        assert name in text


@pytest.mark.skipif(not (ROOT / "scripts").exists(), reason="needs the repository")
def test_each_name_has_its_place_in_the_reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "make_api_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    placed = [name for names in module.AREAS.values() for name in names.split()]
    assert sorted(placed) == sorted(gw.__all__)


def test_records_are_frozen():
    """What a call returns or a plan is made of is compared, hashed and shared: nobody changes it afterwards."""
    grow_while_a_profile_is_read = {"GpuWork", "Node"}
    changeable = set()
    for found in pkgutil.walk_packages(gw.__path__, "gridwise_py."):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            records = (getattr(module, name) for name in getattr(module, "__all__", ()))
            changeable |= {
                record.__name__
                for record in records
                if dataclasses.is_dataclass(record) and not record.__dataclass_params__.frozen
            }
    assert changeable == grow_while_a_profile_is_read
