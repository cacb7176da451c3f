"""A type checker finds the slips of a user's script; `help()` and editors see the names of all arguments."""

import ast
import inspect
import json
import re
import subprocess
import sys
import textwrap
from typing import NamedTuple

import pytest

import gridwise_py as gw
from helpers.paths import ROOT

BEGIN = """
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import gridwise_py as gw

device = gw.default_device()
f, u = np.ones(10, np.float32), np.arange(10, dtype=np.uint32)
m = f.reshape(2, 5)
x = gw.asarray(f)
chunks = gw.ChunkedArray([x, x])
scan = gw.Scan(device, "f32")
pairs = gw.SortPairs(device, "f32", "u64")
encoder = device.create_command_encoder()
"""

#: By what a user gets wrong: the line that is right, and the slip. Each is a line of a script.
SLIPS = {
    "a word of a function": ('gw.scan(f, kind="inclusive")', 'gw.scan(f, kind="inclusiv")'),
    "a word of a class": ('gw.Scan(device, "f32", kind="exclusive")', 'gw.Scan(device, "f32", kind="exlusive")'),
    "an option of a sort": ("gw.Sort(device, descending=True)", "gw.Sort(device, descendin=True)"),
    "an option of a function": ("gw.sort(f, descending=True)", "gw.sort(f, descend=True)"),
    "an argument of execute": ("scan.execute(input=x)", "scan.execute(inptu=x)"),
    "an argument of record": ("scan.record(encoder, input=x)", "scan.record(encoder, a=x)"),
    "an argument of bind": ("pairs.bind(keys=x, values=x)", "pairs.bind(keys=x, vals=x)"),
    "an output of pairs": (
        "pairs.execute(keys=x, values=x, output_keys=x)", "pairs.execute(keys=x, values=x, output=x)",
    ),
    "an argument of execute_async": ("scan.execute_async(input=x)", "scan.execute_async(input=x, encoder=encoder)"),
    "an argument by position": ("scan.execute(input=x)", "scan.execute(x)"),
    "numpy instead of an Array": ("scan.execute(input=x)", "scan.execute(input=f)"),
    "a datatype": ('gw.Scan(device, "u32")', 'gw.Scan(device, "u33")'),
    "a datatype that scans do not take": ("gw.Scan(device, np.int64)", "gw.Scan(device, np.str_)"),
    "a datatype that products do not take": (
        'gw.MatMul(device, "f16", m=1, n=1, k=1)', 'gw.MatMul(device, "u32", m=1, n=1, k=1)',
    ),
    "a size of a product": ("gw.MatMul(device, m=2, n=2, k=2)", "gw.MatMul(device, m=2, n=2)"),
    "a datatype of an array": ('gw.empty(9, dtype="f64")', 'gw.empty(9, dtype="f23")'),
    "an operator": ('gw.reduce(f, "multiply")', 'gw.reduce(f, "mul")'),
    "an operator of a class": ('gw.Reduce(device, "f32", gw.Max)', 'gw.Reduce(device, "f32", "maximum")'),
    "a strategy of a scan": ('gw.Scan(device, strategy="lookback")', 'gw.Scan(device, strategy="look-back")'),
    "a strategy of a sort": ('gw.Sort(device, strategy="onesweep")', 'gw.Sort(device, strategy="one_sweep")'),
    "a form of subgroups": (
        'gw.Scan(device, tuning=gw.ScanTuning(subgroups="native"))',
        'gw.Scan(device, tuning=gw.ScanTuning(subgroups="hardware"))',
    ),
    "a tuning of another family": (
        "gw.Sort(device, tuning=gw.SortTuning(items=4))", "gw.Sort(device, tuning=gw.ScanTuning(vecs=4))",
    ),
    "a field of a tuning": ("gw.ReduceTuning(vecs=2)", "gw.ReduceTuning(items=2)"),
    "an access of a kernel": (
        'gw.Kernel(device, "…", {"y": "read_write"}, 1)', 'gw.Kernel(device, "…", {"y": "rd"}, 1)',
    ),
    "a mode of measure": ('gw.measure(scan, mode="cold", input=x)', 'gw.measure(scan, mode="warm", input=x)'),
    "a number for an array": ("gw.sort([3])", "gw.sort(3)"),
    "a broadcast": ("gw.add(f, np.full_like(f, 1))", "gw.add(f, 1)"),
    "an axis": ("gw.sum(m, axis=0)", 'gw.sum(m, axis="rows")'),
    "no device": ('gw.Scan(device, "f32")', 'gw.Scan("f32")'),
    "a name": ("gw.cumsum(f)", "gw.cumsun(f)"),
    "a module for a function": ("gw.asarray(f)", "gw.array(f)"),
    "an Array that is none": ("gw.cumsum(x).to_numpy()", "gw.cumsum(f).to_numpy()"),
    "chunks that are none": ("scan.execute(input=chunks).output.chunks", "scan.execute(input=x).output.chunks"),
    "a time": ("scan.execute().get_timing_result().gpu_span_ns", "scan.execute().get_timing_result().gpu_spam_ns"),
}  # fmt: skip

#: What comes out, by what goes in.
RESULTS = {
    "gw.sum(f)": "np.float32",
    "gw.sum(x)": "gw.Array",
    "gw.sum(u)": "np.number[Any]",
    "gw.sum(f, dtype=np.float64)": "np.number[Any]",
    "gw.sum(chunks)": "gw.Array",
    "gw.max(u)": "np.uint32",
    "gw.reduce(f)": "np.float32",
    "gw.reduce(np.zeros(3, np.void))": "np.void",
    "gw.cumsum(f)": "npt.NDArray[np.float32]",
    "gw.cumsum(m, axis=1)": "npt.NDArray[np.float32]",
    "gw.cumulative_sum(x, axis=0)": "gw.Array",
    "gw.cumsum(x)": "gw.Array",
    "gw.cumsum(chunks)": "gw.ChunkedArray",
    "gw.scan(u, gw.Max)": "npt.NDArray[np.uint32]",
    "gw.add(f, f)": "npt.NDArray[np.float32]",
    "gw.add(f, x)": "gw.Array",
    "gw.add(chunks, f)": "gw.ChunkedArray",
    "gw.sort(u)": "npt.NDArray[np.uint32]",
    "gw.sort(x)": "gw.Array",
    "gw.argsort(f)": "npt.NDArray[np.intp]",
    "gw.argsort(x)": "gw.Array",
    "gw.sort_pairs(f, u)": "tuple[npt.NDArray[np.float32], npt.NDArray[np.uint32]]",
    "gw.sort_pairs(x, u)": "tuple[gw.Array, gw.Array]",
    "gw.matmul(x, x, k=5)": "gw.Array",
    "scan.execute(input=x).output": "gw.Array",
    "scan.execute(input=chunks).output": "gw.ChunkedArray",
    "gw.Reduce(device).execute(input=chunks).output": "gw.Array",
    "pairs.execute(keys=x, values=x).outputs": "dict[str, gw.Array]",
    "scan.record(encoder, input=x)": "dict[str, gw.Array]",
    "gw.cumsum(scan.execute(input=x).output).to_numpy().size": "int",
    "gw.benchmark(lambda: gw.sum(x), device=device)": "gw.BenchmarkResult",
}

#: What users write that must not be found fault with.
ALSO_RIGHT = """
import pandas as pd

def either(a: gw.Array | gw.ChunkedArray, b: np.ndarray) -> None:
    assert_type(gw.cumsum(a), gw.Array | gw.ChunkedArray)
    gw.sum(b), gw.sort(b[::2]), gw.add(a, b)

async def later() -> np.ndarray:
    return await (await scan.execute_async(input=x)).output.to_numpy_async()

gw.sum(pd.Series([1.0])), gw.sum(range(3)), gw.matmul([[1.0, 2.0]], m)
scan.execute(), scan.execute(input=x, output=None, encoder=encoder, enable_gpu_timing=True, trials=3)
scan.execute(input=x.buffer)
for name in ("u32", "f32"):
    gw.Scan(device, name)
for datatype in gw.DATATYPES.values():
    gw.Scan(device, datatype)
gw.Sort(device, f.dtype), gw.Scan(device, np.float32), gw.Scan(device, "float32")
gw.Scan(None, capabilities=gw.Capabilities())
"""


class Report(NamedTuple):
    """What a type checker says of two scripts: errors by line."""

    right: dict[int, str]
    wrong: dict[int, str]


def _script(lines):
    return BEGIN + "".join(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Run the type checker, once for both scripts, as a user's editor does."""
    folder = tmp_path_factory.mktemp("scripts")
    results = [f"assert_type({call}, {kind})" for call, kind in RESULTS.items()]
    right = _script([*(line for line, _ in SLIPS.values()), *results, ALSO_RIGHT])
    (folder / "right.py").write_text(right, encoding="utf-8")
    (folder / "wrong.py").write_text(_script(slip for _, slip in SLIPS.values()), encoding="utf-8")
    settings = {"typeCheckingMode": "standard", "reportUnusedExpression": False, "reportUnusedCoroutine": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--project", folder, "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found = {"right.py": {}, "wrong.py": {}}
    for fault in json.loads(run.stdout)["generalDiagnostics"]:
        if fault["severity"] == "error":
            name = fault["file"].replace("\\", "/").rpartition("/")[2]
            found[name].setdefault(fault["range"]["start"]["line"] + 1, fault["message"])
    return Report(found["right.py"], found["wrong.py"])


FIRST = BEGIN.count("\n") + 1


@pytest.mark.slow
def test_slips_are_found_each_in_its_line_and_nothing_else(report):
    assert report.right == {}
    assert set(report.wrong) == set(range(FIRST, FIRST + len(SLIPS)))
    assert all(right != slip for right, slip in SLIPS.values())


# ---- at run time: what help() and completion in a notebook see


def test_methods_and_constructors_name_their_arguments():
    for name, cls in gw.primitives.REGISTRY.items():
        arguments = [argument.name for argument in cls.arguments]
        for method in ("bind", "record", "execute", "execute_async"):
            parameters = inspect.signature(getattr(cls, method)).parameters
            assert [p for p in parameters if p in arguments] == arguments, (name, method)
            assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values()), (name, method)
            assert inspect.getdoc(getattr(cls, method)), (name, method)
        assert not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(cls).parameters.values()), name


def test_a_class_has_a_docstring_that_editors_can_read_and_that_names_all_parameters():
    for name, cls in gw.primitives.REGISTRY.items():
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        text = ast.get_docstring(node)
        assert text == inspect.getdoc(cls), f"{name}: a literal, not made when it is imported"
        given = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        named = {word for line in re.findall(r"^(\w.*?)(?: :.*)?$", given, re.MULTILINE) for word in line.split(", ")}
        assert named == set(inspect.signature(cls).parameters), name


@pytest.mark.needs("module:ruff")
def test_stubs_say_what_the_package_says():
    """`scripts/make_stubs.py` writes them again."""
    done = subprocess.run([sys.executable, ROOT / "scripts/make_stubs.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "python scripts/make_stubs.py"
