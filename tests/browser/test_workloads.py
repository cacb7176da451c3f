"""Everything that gridwise bench can run, in a page in Chromium: another compiler (Tint) and another adapter."""

import pytest

from gridwise_py.bench.cases.workloads import WORKLOADS
from gridwise_py.bench.results.reader import document_of
from helpers.chromium import browser, find_chromium
from helpers.measuring_page import small_bundle, visit
from helpers.tint import WEBGPU_FLAGS

pytestmark = [pytest.mark.browser, pytest.mark.tint, pytest.mark.slow]  # 60 s: SwiftShader compiles sorts for long


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("datatype", ["u32", "f32"])
def test_every_workload_is_right_in_a_page(datatype, tmp_path):
    """New primitives come in by the registry."""
    path = find_chromium()
    names = [name for name, workload in WORKLOADS.items() if datatype in workload.datatypes and name != "matmul"]
    if datatype == "f32":  # sorts take long to compile, and their texts hardly depend on the datatype
        names = [name for name in names if "sort" not in name]
    with browser(path, *WEBGPU_FLAGS, timeout_s=500.0) as new_page:
        found = visit(new_page, tmp_path, small_bundle(" ".join(names), n="2^10", datatype=datatype))
        document = document_of(found.raw, "page.json")
    assert {result.primitive for result in document.results} == {"copy", *names}
    assert {
        result.name_with_n: result.error or result.mismatch for result in document.results if not result.correct
    } == {}
