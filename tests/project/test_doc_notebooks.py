"""The notebooks of the documentation run, say what they ran on, and draw; none is stored with what it printed once."""

import re
from xml.etree import ElementTree

import pytest

import gridwise_py as gw
from helpers import needs
from helpers.paths import ROOT

with needs.modules("nbformat", "nbclient", "ipykernel") as modules_are_needed:
    import nbformat

    from helpers.kernels import execute

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
pytestmark = [pytest.mark.needs("the repository"), pytest.mark.slow, modules_are_needed]


def test_the_notebooks_are_there():
    names = {path.stem for path in NOTEBOOKS}
    assert names == {"first-steps", "timing-done-right", "roofline", "group-by", "browser-and-native"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path):
    """What one run printed is nothing to review, and the site shows that of its own run."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert notebook.metadata.kernelspec.name == "python3"
    targets = re.findall(
        r"\]\(([\w./-]+)\)", "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    )
    assert [target for target in targets if not (FOLDER / target).exists()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(device, path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, tmp_path, timeout_s=120, cwd=FOLDER)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output.traceback for output in outputs if output.output_type == "error"] == []
    assert [output.text for output in outputs if output.get("name") == "stderr"] == [], "warnings are for no reader"
    printed = "".join(output.text for output in outputs if output.get("name") == "stdout")
    # Its own default adapter, which need not be that of the fixture.
    assert any(adapter.name in printed for adapter in gw.list_adapters()), "it says what it ran on"
    assert "\x1b[" not in printed, "a page shows no codes for terminals"
    pictures = [output.data["image/svg+xml"] for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert pictures
    assert all(_drawn(picture) for picture in pictures), "a picture with axes only"


def _drawn(picture):
    """Return the shapes of a picture by Vega that stand for data: neither axes nor legends, and of some extent."""
    groups = [one for one in ElementTree.fromstring(picture).iter() if "role-mark" in one.get("class", "").split()]
    shapes = [shape.get("d", "") for group in groups for shape in group.iter() if shape is not group]
    # A bar from 0 on a logarithmic axis has no width.
    return [shape for shape in shapes if shape and "NaN" not in shape and not re.search(r"[hv]0(?![.\d])", shape)]
