"""What comes from outside stays what it is: operator texts in shaders; labels, paths and files in terminals and traces.

For pages see test_report.py and test_report_page.py.
"""

import ast
import io
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

import gridwise_py as gw
from gridwise_py.bench.report.console import make_console
from gridwise_py.cli import main
from gridwise_py.display.terminal import clean, clean_lines
from gridwise_py.types.operator_text import BINARY, scoped
from gridwise_py.types.wgsl_text import declarations, tokens
from helpers.fuzz_results import mutate, small_files, try_document, try_ticks
from helpers.hostile_results import hostile_document

PACKAGE = Path(gw.__file__).resolve().parent
COMBINE = "fn combine(a: T, b: T) -> T { return a + b; }"
# What a terminal would obey: colours, its title, a link, its clipboard; the other direction of writing.
STEERING = ["\x1b[31mred", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x9b2J", "\x07", "\x08\x08", "\u202eevil"]


# ---- operator texts


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a + b; } fn evil() { let x = 1", "';'"),
        ("a + b } fn evil() -> T { return 1u", "'{'|'}'"),
        ("a + b // the rest", "'//'"),
        ("a + b /* the rest", "'/*'"),
        ("a + b */ 1u", r"'\*/'"),
        ("a + b) + (a", "did not open"),
        ("a[0", r"leaves a '\['"),
        ("(a + b]", "did not open"),
        ("@id(1) a", "'@'"),
        ("a +\u2028 b", "u2028"),
        ("a + b\x00", "x00"),
        ("a \u202e+ b", "u202e"),
        ("a + b\x85", "x85"),
        ("  ", "empty"),
    ],
)
def test_an_expression_is_one_expression(text, why):
    with pytest.raises(gw.ArgumentError, match=why.replace("/*", r"/\*")) as caught:
        gw.BinOp("bad", 0, np.add, expression=text)
    assert "'bad'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (COMBINE + " }", "did not open"),
        (COMBINE + " fn open() {", "leaves a '{'"),
        (COMBINE + " /* the rest", "comment open"),
        (COMBINE + " /* /* */ the rest", "comment open"),
        ("// " + COMBINE, "does not define"),
        ("/* " + COMBINE + " */", "does not define"),
        (COMBINE + " @group(0) @binding(9) var<storage, read_write> more: array<u32>;", "something else: '@group"),
        (COMBINE + " @compute @workgroup_size(1) fn evil() {}", "something else: '@compute"),
        (COMBINE + " var<private> x: u32;", "something else: 'var<private"),
        (COMBINE + " override WORKGROUP_SIZE: u32 = 1u;", "something else: 'override"),
        ("enable f16; " + COMBINE, "something else: 'enable"),
        ("diagnostic(off, derivative_uniformity); " + COMBINE, "something else: 'diagnostic"),
        (COMBINE + " const_assert false;", "something else: 'const_assert"),
        (COMBINE + " // \u2028 }", "u2028"),
        (COMBINE + " // \x0b }", "x0b"),
        (COMBINE + " const x = 1u", "without ';'"),
        ("fn combine(a: T, b: T) -> T; " + COMBINE, "without a body"),
        ("fn combined(a: T) -> T { return a; }", "does not define"),
    ],
)
def test_a_text_is_functions_and_constants_only(text, why):
    with pytest.raises(gw.ArgumentError, match=why) as caught:
        gw.BinOp("bad", 0, np.add, wgsl=text)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "// a comment with a } and a {\n" + COMBINE + "\n/* and /* nested } */ one */",
        "const two = 2u;\n"
        + COMBINE
        + "\nfn more(x: array<u32, 4>) -> u32 { if (x[0] > 1u) { return two; } return 0u; }",
        COMBINE + " // to the end, without a line break",
        "fn combine(a: T, b: T) -> T { /* Größe */ return a + b; };",
    ],
)
def test_what_is_right_is_taken_and_runs(device, text):
    op = gw.BinOp("right", 0, np.add, wgsl=text)
    x = np.arange(1000, dtype=np.uint32)
    assert gw.reduce(x, op, device=device) == x.sum(dtype=np.uint32)


# What the library's texts use of WGSL, and some of their own names.
_NAMES = ("min", "max", "select", "subgroupShuffle", "identity", "load_input")


@pytest.mark.parametrize("functions", [_NAMES[::2], _NAMES[1::2]], ids=str)
def test_a_declared_name_takes_the_place_of_nothing(device, functions):
    """Neither of WGSL's function of that name, nor of the library's: results are right. The others are constants."""
    constants = [name for name in _NAMES if name not in functions]
    declared = [f"fn {name}(p: u32) -> u32 {{ return p & 0xffffu; }}" for name in functions]
    declared += [f"const {name} = 0xffffu;" for name in constants]
    low = "".join(f"{name}(" for name in functions) + " & ".join(["{}", *constants]) + ")" * len(functions)
    text = "\n".join(declared) + (
        f"\nfn combine(a: T, b: T) -> T {{ if ({low.format('b')} > {low.format('a')}) {{ return b; }} return a; }}"
    )

    def larger_low_half(a, b):
        return np.where((b & 0xFFFF) > (a & 0xFFFF), b, a)

    op = gw.BinOp("larger", 0, larger_low_half, wgsl=text, commutative=False, check=[1, 2, 3, 65535])
    x = np.random.default_rng(0).integers(0, 1 << 32, 5000, dtype=np.uint32)
    best = np.maximum.accumulate(x & 0xFFFF)
    expected = x.copy()
    for i in range(1, x.size):
        expected[i] = x[i] if x[i] & 0xFFFF > best[i - 1] else expected[i - 1]
    scan = gw.Scan(device, "u32", op, strategy="lookback", tuning=gw.ScanTuning(workgroup_size=64, vecs=1))
    np.testing.assert_array_equal(scan.execute(input=gw.asarray(x, device)).output.to_numpy(), expected)
    reduce = gw.Reduce(device, "u32", op, tuning=gw.ReduceTuning(workgroup_size=64, vecs=1))
    assert reduce.execute(input=gw.asarray(x, device)).output.to_numpy() == expected[-1]


def test_what_an_operator_declares_means_what_it_meant():
    text = """const x = 2u; // x and min
fn min(a: T, x: T) -> T { let own_y = vec2<u32>(a, x); /* min(x) */
  return own_y.x + own_y . /* x */ x; }
@must_use fn max(max: T) -> T { return max; }
fn combine(a: T, b: T) -> T { let min2 = 1.5f; return min(a, b) + x; }"""
    wanted = """const ownown_x = 2u; // x and min
fn ownown_min(a: T, ownown_x: T) -> T { let own_y = vec2<u32>(a, ownown_x); /* min(x) */
  return own_y.x + own_y . /* x */ x; }
@must_use fn ownown_max(ownown_max: T) -> T { return ownown_max; }
fn combine(a: T, b: T) -> T { let min2 = 1.5f; return ownown_min(a, b) + ownown_x; }"""
    assert scoped(BINARY, text) == wanted
    assert scoped(BINARY, COMBINE) == COMBINE
    for alias in ("T", "Acc"):
        with pytest.raises(gw.ArgumentError, match=f"declares {alias!r}, which is the name of a type"):
            gw.BinOp("bad", 0, np.add, wgsl=f"const {alias} = 1u; {COMBINE}")


@given(
    st.lists(
        st.sampled_from(
            ["/*", "*/", "//", "\n", "\r", "a", "b1", " ", "1.5f", ".x", "0x1u", "{", "}", "é", "/", "*", "@"]
        )
    )
)
def test_tokens_are_the_text(pieces):
    text = "".join(pieces)
    found = list(tokens(text))
    assert "".join(token.text for token in found) == text
    for token in found:
        if token.kind == "comment":
            assert token.text.startswith("//") or (token.text.startswith("/*") and token.text.endswith("*/"))
    declarations(text)  # whatever it is, it is read


def test_names_of_built_ins_are_names():
    for option in ("subgroup_reduce", "subgroup_exclusive_scan"):
        with pytest.raises(gw.ArgumentError, match=option):
            gw.BinOp("bad", 0, np.add, expression="a + b", **{option: "subgroupAdd(1u); } fn evil() { f"})
    with pytest.raises(gw.ArgumentError, match="key="):
        gw.BinOp("bad", 0, np.add, expression="a + b", key="min }")


def test_a_label_with_wgsl_in_it_goes_into_no_shader(device):
    name = "x */ } fn evil() {\n//$ include 'lib/seal.wgsl'\n{{ 1 }}"
    op = gw.BinOp(name, 0, np.add, expression="a + b")
    plan = gw.Reduce(device, op=op).plan(gw.Layout.separate(input=5, output=1))
    assert not any("evil" in shader.text for shader in plan.shaders.values())
    template = gw.BinOp("t", 0, np.add, wgsl=COMBINE + "\n//$ include 'canary.wgsl'\n// {{ acc.wgsl }}")
    plan = gw.Reduce(device, op=template).plan(gw.Layout.separate(input=5, output=1))
    assert any("{{ acc.wgsl }}" in shader.text for shader in plan.shaders.values()), "a user's text is no template"


# ---- terminals


@pytest.mark.parametrize("text", STEERING)
def test_what_steers_a_terminal_is_taken_out(text):
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", clean_lines(text))
    assert not re.search("[\x00-\x1f\x7f-\x9f]", clean(text))
    assert clean_lines("a\n\tb – ü") == "a\n\tb – ü"
    assert clean("a\nb") == "a�b"


@pytest.mark.parametrize("text", STEERING)
def test_a_console_keeps_its_own_colours_only(text):
    file = io.StringIO()
    table = Table(title=text)
    table.add_column(text)
    table.add_row(f"[bold]{text}")
    console = make_console(file=file, force_terminal=True, width=100, color_system="standard")
    console.print(table)
    console.print(f"[red]red{text}[/red]")
    said = re.sub(r"\x1b\[[\d;]*m", "", file.getvalue().replace("\r", ""))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said)
    assert "\x1b[31m" in file.getvalue(), "its own are kept"


def _commands(folder: Path) -> list[list[str]]:
    wild, tame = folder / "wild\x1b[31m.json", folder / "tame.json"
    document = hostile_document(lambda i, text: f"{STEERING[i % len(STEERING)]}{text}", few=True)
    wild.write_text(json.dumps(document), encoding="utf-8")
    tame.write_text(json.dumps(hostile_document(lambda i, text: text, few=True)), encoding="utf-8")
    broken = folder / "broken\x1b]0;x\x07.json"
    broken.write_text(json.dumps({**document, "results": [{"\x1b[2J": 1}]}), encoding="utf-8")
    return [
        ["compare", str(wild), str(wild)],
        ["compare", str(wild), str(wild), "--format", "markdown"],
        ["compare", str(wild), str(tame)],
        ["compare", str(wild), str(wild), "--across"],
        ["compare", str(wild), str(wild), "--format", "junit"],
        ["compare", str(broken), str(wild)],
        ["compare", str(folder / "none\x1b[31m.json"), str(wild)],
        ["roofline", str(wild)],
        ["trace", str(wild), "-o", str(folder / "out\x1b[31m.json")],
        ["report", str(broken), "-o", str(folder / "out.html")],
    ]


def test_no_command_lets_a_file_steer_the_terminal(tmp_path):
    for words in _commands(tmp_path):
        done = CliRunner().invoke(main, words, color=True)
        said = re.sub(r"\x1b\[[\d;]*m", "", done.output) if words[0] == "roofline" else done.output
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said), (words, done.output)
        assert done.exception is None or isinstance(done.exception, SystemExit), words
        assert done.output


def test_a_profile_of_hostile_labels(device, tmp_path):
    label = "\x1b]0;x\x07[red]</script>"
    kernel = gw.Kernel(
        device, "@group(0) @binding(0) var<storage, read_write> x: array<u32>;\n"
        "@compute @workgroup_size(1) fn main() { x[0] = 1u; }", {"x": "read_write"}, 1, label=label,
    )  # fmt: skip
    with gw.profile(device) as found:
        run = kernel.execute(x=gw.asarray(np.zeros(4, np.uint32), device), enable_cpu_timing=True)
    table = found.key_averages().table()
    assert "[red]" in table
    assert "\x1b" not in table
    assert "\x1b" not in repr(run.get_timing_result())
    assert "</script>" not in run.get_timing_result()._repr_html_()
    path = tmp_path / "trace.json"
    found.export_chrome_trace(path)
    assert "\x1b" not in path.read_text(encoding="utf-8"), "JSON escapes controls"
    assert any(event["name"] == label for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"])


# ---- files


def test_nothing_unpickles_evaluates_or_starts_a_shell():
    """By its imports and calls, whatever a file holds: it is data."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            roots = {name.split(".")[0] for name in names}
            assert not roots & {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml"}, path
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            assert called not in ("eval", "exec", "compile", "__import__", "os.system", "os.popen"), (path, called)
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            assert keywords.get("shell", "False") == "False", path
            if called in ("np.load", "numpy.load"):
                assert keywords.get("allow_pickle") == "False", path


@pytest.mark.needs("the repository")
def test_whatever_a_file_holds_it_is_read_or_refused():
    rng = random.Random(0)
    documents = [json.loads(content) for content in small_files() if b'"gridwise.bench"' in content]
    taken = sum(
        try_document(json.dumps(mutate(rng.choice(documents), rng, rng.choice([1, 1, 2, 4]))).encode())
        for _ in range(40)
    )
    assert 5 < taken < 38
    content = max(small_files(), key=len)
    for _ in range(20):
        at = rng.randrange(len(content))
        assert not try_document(content[:at])


@pytest.mark.needs("the repository")
def test_what_fuzzing_found():
    """By atheris: trials of 0, a long text as version; archives are in the next test."""
    found = [json.loads(content) for content in small_files()]
    (first, *_) = [d for d in found if d.get("schema") == "gridwise.bench"]
    assert try_document(json.dumps(first).encode())
    first["results"][0]["trials"] = 0
    assert not try_document(json.dumps(first).encode())
    assert not try_document(json.dumps({**first, "schema_version": ["x" * 100] * 1000}).encode())


def test_whatever_stands_in_an_archive_of_timestamps_it_is_refused():
    rng = random.Random(1)
    for _ in range(20):
        assert not try_ticks(b"PK\x03\x04" + rng.randbytes(60))
    assert not try_ticks(b"")
