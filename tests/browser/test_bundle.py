"""The bundle of a page: its plans are the library's, its data the same in any language, its checks find mistakes."""

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.distributions import DISTRIBUTIONS
from gridwise_py.bench.cases.own_files import load_benchmarks
from gridwise_py.bench.cases.workloads import USUAL_AXES, WORKLOADS
from gridwise_py.bench.sweep.axes import collect_axes
from gridwise_py.bench.sweep.suite import BENCH_PROTOCOL, DEFAULT_AXES, Sweep, load_suite, own_sweeps
from gridwise_py.browser import bundle as bundle_module
from gridwise_py.browser.bundle import bundle_of
from gridwise_py.browser.classes import device_classes
from gridwise_py.browser.data import STEPS, Recipe, Wanted, recipe_for
from gridwise_py.browser.page import page_html
from gridwise_py.cli import main
from gridwise_py.planning.shaders import prologue, sha256
from gridwise_py.planning.signature import Argument
from gridwise_py.types.datatype import STORAGE_DATATYPES
from helpers.page_bundles import items_of, plan_of, run_case, text_of, wrong

N = 3000
FEW = ("copy", "reduce", "scan", "select")
INPUT = Argument("input")
SORTED = Argument("input", ascending=True)
#: Of the datatypes that a page makes data of.
DATATYPES = [name for name in STORAGE_DATATYPES if name != "f64"]


def _sweep(primitives, **axes):
    given = [f"{name}={value}" for name, value in {"n": N, "datatype": "u32", **axes}.items()]
    return Sweep(tuple(primitives), collect_axes(given, {}, DEFAULT_AXES))


def _case(entry):
    """The case of an entry of a bundle."""
    return Case.build(entry["primitive"], entry["n"], **{**USUAL_AXES, **{k: v for k, v in entry["axes"].items() if v}})


@pytest.fixture(scope="module")
def few():
    """A bundle of few primitives."""
    return bundle_of([_sweep(FEW), _sweep(("reduce", "mean"), datatype="f32")], BENCH_PROTOCOL, suite="few")


# ---- data


@given(st.data())
def test_every_step_does_what_plain_integers_do(data):
    numbers = {"hash": 1, "and_hash": 1, "sum": 0, "sort": 0, "reverse": 0, "differences": 0}
    name = data.draw(st.sampled_from(sorted(STEPS)))
    most = {"shift": 31, "times_around": 2**21 - 1}.get(name, 2**32 - 1)
    arguments = [data.draw(st.integers(1, most)) for _ in range(numbers.get(name, 1))]
    form = data.draw(st.sampled_from(["u8", "u16", "u32", "u64", "f32"]))
    recipe = Recipe(data.draw(st.integers(0, 9)), (("hash", 5), (name, *arguments)), form, 0.25, -3.0)
    dtype = np.dtype({"f32": "f4", "u64": "u8"}.get(form, f"u{int(form[1:]) // 8}"))
    assert recipe.items(dtype).tobytes() == items_of(recipe.to_json())


def test_the_hash_is_this_one():
    """JavaScript must give these, too: a change of the data makes results of other pages incomparable."""
    assert Recipe(4, (("hash", 0),)).items(np.dtype("u4")).tolist() == [0, 0x64625032, 0xD9C0799C, 0xAF362E10]
    reals = Recipe(2, (("hash", 7), ("shift", 8)), "f32", 2.0**-23, -1.0).items(np.dtype("f4"))
    assert reals.tolist() == [0.8393994569778442, 0.7873913049697876]


def _recipe(argument, dtype, length=N, **given):
    wanted = Wanted(length, np.dtype(dtype), given.pop("axes", {}), given.pop("seed", 3))
    return recipe_for(argument, wanted, **given)


def test_items_of_every_datatype_are_random_and_sorted_where_they_must_be():
    for datatype in DATATYPES:
        dtype = STORAGE_DATATYPES[datatype].dtype
        items, ordered = (_recipe(argument, dtype).items(dtype) for argument in (INPUT, SORTED))
        assert items.size == ordered.size == N
        assert len(np.unique(items)) > min(N, 2 ** (8 * dtype.itemsize)) * 0.5 or dtype.kind == "b"
        assert (ordered[:-1] <= ordered[1:]).all()
        if dtype.kind == "f":
            assert np.abs(items.astype(np.float64)).max() <= 1
            assert (items < 0).any()
        elif dtype.kind == "i":
            assert (items < 0).mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_of_the_same_kind_as_those_of_numpy(name):
    if name in ("zipf", "specials"):
        with pytest.raises(gw.ArgumentError, match=f"no data of the distribution '{name}'; it has uniform, "):
            _recipe(INPUT, "u4", distribution=name)
        return
    items = _recipe(INPUT, "u4", distribution=name).items(np.dtype("u4"))
    numpys = DISTRIBUTIONS[name](np.random.default_rng(0), N, np.dtype("u4"))
    assert len(np.unique(items)) == pytest.approx(len(np.unique(numpys)), rel=0.1)
    ones = [np.unpackbits(x.view(np.uint8)).mean() for x in (items, numpys)]
    if name not in ("few", "equal"):
        assert ones[0] == pytest.approx(ones[1], abs=0.02)
    assert (np.sort(items) == items).all() == (np.sort(numpys) == numpys).all()
    assert (np.sort(items)[::-1] == items).all() == (np.sort(numpys)[::-1] == numpys).all()


def test_every_maker_of_data_has_a_recipe_of_its_kind():
    """A new maker needs one, beside the others in browser/data.py."""
    for name in [name for name, workload in WORKLOADS.items() if workload.data]:
        case = Case.build(name, N, "u32", **{**USUAL_AXES, "share": "0.2"})
        primitive = case.make(None, gw.Capabilities())
        expected = case.inputs(primitive, 0)
        for argument, recipe in bundle_module._recipes(case, primitive, 0, None).items():
            items = recipe.items(expected[argument].dtype)
            assert items.size == expected[argument].size
            if argument not in case.workload.data:
                continue
            wanted = expected[argument].astype(np.float64)
            assert items.astype(np.float64).mean() == pytest.approx(wanted.mean(), rel=0.15)
            if argument == "offsets":
                assert (items == expected[argument]).all()
            elif case.primitive == "scatter":
                assert (np.sort(items) == np.arange(N)).all()
            elif argument == "counts":
                assert items.sum() == N
            elif argument == "keys":
                heads = [np.flatnonzero(x[1:] != x[:-1]) for x in (items, expected[argument])]
                assert len(heads[0]) == pytest.approx(len(heads[1]), rel=0.2)


def test_a_maker_without_a_recipe_is_named(monkeypatch):
    def strange(rng, length, dtype, axes):
        return np.zeros(length, dtype)

    workload = replace(WORKLOADS["copy"], data={"input": strange})
    monkeypatch.setattr("gridwise_py.bench.cases.case.WORKLOADS", {**WORKLOADS, "copy": workload})
    with pytest.raises(gw.ArgumentError, match="no recipe for the data of strange"):
        bundle_of([_sweep(("copy",))], BENCH_PROTOCOL)


@pytest.mark.parametrize("length", [1, N, 1 << 20, pytest.param(1 << 24, marks=pytest.mark.slow)])
def test_sums_of_whole_numbers_are_exact_however_they_are_grouped(length):
    items = _recipe(INPUT, "f4", length, largest=1024).items(np.dtype("f4"))
    total = int(items.astype(np.float64).sum())
    assert np.cumsum(items, dtype=np.float32)[-1] == total
    assert items.sum(dtype=np.float32) == total
    assert np.random.default_rng(0).permutation(items).cumsum(dtype=np.float32)[-1] == total
    rows = np.resize(items, (64, -(-length // 64)))
    rows.reshape(-1)[length:] = 0
    assert rows.cumsum(axis=0, dtype=np.float32)[-1].cumsum(dtype=np.float32)[-1] == total


# ---- plans


def test_each_plan_is_that_of_its_class_with_its_text(few):
    for case in few["cases"]:
        made = _case(case)
        assert len(case["variants"]) == len(few["class_keys"])
        for one, number in list(zip(device_classes(), case["variants"], strict=True))[::17]:
            primitive = made.make(None, one.capabilities())
            lengths = dict(made.lengths)
            lengths |= {o: primitive.signature.output_length(o, made.lengths) for o in primitive.signature.outputs}
            expected = made.workload.kind.plan_for(
                capabilities=one.capabilities(), lengths=lengths,
                **made.options,
            )  # fmt: skip
            found = plan_of(few, number)
            assert found.steps == expected.steps
            assert found.buffers == expected.buffers
            assert {key: shader.text for key, shader in found.shaders.items()} == {
                kernel.shader: expected.shaders[kernel.shader].text for kernel in expected.kernels
            }
            assert dict(found.parameters) == json.loads(json.dumps(dict(expected.parameters)))


def test_texts_have_the_prologue_of_tint_and_the_hash_of_the_library(few):
    own = set()
    for number in range(len(few["shaders"])):
        before, text = text_of(few, number)
        assert prologue("tint", text) == (before + "\n" if before else "")
        own.add(sha256(text))
    assert len(own) == len(few["shaders"])
    assert any(shader[0] for shader in few["shaders"])
    assert few["subgroup_probe"].startswith("enable subgroups;\n")


def test_a_class_that_a_primitive_does_not_fit_has_no_plan(monkeypatch):
    def plan(case, inputs, capacities, capabilities):
        return None if capabilities.is_cpu else made(case, inputs, capacities, capabilities)

    made = bundle_module._plan
    monkeypatch.setattr(bundle_module, "_plan", plan)
    (case,) = bundle_of([_sweep(("copy",))], BENCH_PROTOCOL)["cases"]
    keys = [one.key for one in device_classes()]
    assert {key for key, number in zip(keys, case["variants"], strict=True) if number is None} == {
        one.key for one in device_classes() if one.software
    }
    monkeypatch.setattr(bundle_module, "_plan", lambda *_: None)
    with pytest.raises(gw.ArgumentError, match="no device that a browser has can run it"):
        bundle_of([_sweep(("copy",))], BENCH_PROTOCOL)


# ---- right results


def _class_of(device):
    """The class of this machine's device, as a page finds it."""
    capabilities = gw.capabilities(device)
    lanes = max((k for k in (0, 4, 8) if k <= (capabilities.subgroup_size or 0)), default=0)
    return f"{lanes}/256/16384/{str(capabilities.is_cpu).lower()}/tickets"


def test_cases_are_right_on_a_device(device, few):
    key = _class_of(device)
    for case in few["cases"]:
        found = run_case(device, few, case, key)
        for output in case["outputs"]:
            assert wrong(output, found[output["name"]]) is None, case["primitive"]


def test_a_mistake_in_any_item_is_found(few):
    for case in few["cases"]:
        made = _case(case)
        primitive = made.make(None, gw.Capabilities())
        inputs = {x["name"]: np.frombuffer(items_of(x["recipe"]), dtype=primitive.signature.datatype(x["name"]).dtype)
                  for x in case["inputs"]}  # fmt: skip
        rights = primitive.reference(**inputs)
        for output, right in zip(case["outputs"], rights if isinstance(rights, tuple) else (rights,), strict=True):
            data = np.atleast_1d(np.asarray(right)).tobytes()
            assert wrong(output, data + b"rest of the buffer") is None
            for place in (0, len(data) // 2, len(data) - 1):
                spoilt = bytearray(data)
                spoilt[place] ^= 0x40
                exact = "sha256" in output
                assert (wrong(output, bytes(spoilt)) is not None) or not exact
            if "values" in output:
                assert wrong(output, (np.frombuffer(data, np.float32) * np.float32(1.001)).tobytes()) is not None


def test_work_is_that_of_the_true_counts(few):
    select = next(case for case in few["cases"] if case["primitive"] == "select")
    output, count = select["outputs"]
    assert output["capacity_bytes"] == 4 * N
    assert output["bytes"] < 4 * N
    assert count["bytes"] == 4
    assert select["work"]["write_bytes"] == output["bytes"] + 4


@pytest.mark.slow  # some primitives take seconds to compile on lavapipe
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in FEW])
def test_every_workload_is_in_a_page_and_right(device, name):
    """New primitives come in by the registry."""
    n = 64 if name == "matmul" else N
    datatypes = [d for d in ("u32", "f32") if d in WORKLOADS[name].datatypes]
    made = bundle_of([_sweep((name,), n=n, datatype=",".join(datatypes))], BENCH_PROTOCOL)
    for case in made["cases"]:
        found = run_case(device, made, case, _class_of(device))
        for output in case["outputs"]:
            assert wrong(output, found[output["name"]]) is None, case["axes"]


# ---- kernels of a user

OWN = '''
import numpy as np
import gridwise_py as gw
WGSL = """
struct Factors { low: f32, high: f32 }
@group(0) @binding(0) var<storage, read> x: array<TYPE>;
@group(0) @binding(1) var<storage, read_write> y: array<TYPE>;
@group(0) @binding(2) var<uniform> factor: TYPE;
override OFFSET: u32 = 0;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x + OFFSET < arrayLength(&x)) { y[id.x + OFFSET] = x[id.x + OFFSET] * factor; }
}"""
def kernel(device, kind, offset=0, **names):
    text = WGSL.replace("TYPE", kind)
    for old, new in names.items():
        text = text.replace(f" {old}:", f" {new}:").replace(f"&{old}", f"&{new}").replace(f"{old}[", f"{new}[")
    bindings = {names.get("x", "x"): "read", names.get("y", "y"): "read_write", "factor": "uniform"}
    return gw.Kernel(device, text, bindings, 4, constants={"OFFSET": offset}, label="times")
@gw.benchmarked(n=[200], kind=["u32", "f32"])
def one(device, n, kind):
    """The first items stay as they were."""
    x, y = (np.arange(k, n + k, dtype="u4" if kind == "u32" else "f4") for k in (1, 7))
    run = kernel(device, kind, offset=5)
    right = np.concatenate([y[:5], 3 * x[5:]])
    return gw.Benchmark(run, {"x": x, "y": y, "factor": 3}, right, rtol=1e-6, work=gw.Work(n, 4 * n, 4 * n))
@gw.benchmarked(n=[200], mode="batch")
def two(device, n):
    x = np.arange(n, dtype=np.uint32)
    run = {"first": kernel(device, "u32"), "second": kernel(device, "u32", y="z", x="y")}
    inputs = {"x": x, "y": np.zeros_like(x), "z": np.zeros_like(x), "factor": 3}
    return gw.Benchmark(run, inputs, lambda x: {"y": 3 * x, "z": 9 * x})
'''


@pytest.fixture
def own_sweeps_of(tmp_path, monkeypatch):
    """A function that returns the sweeps of a file of benchmarks."""
    monkeypatch.syspath_prepend(tmp_path)

    def sweeps_of(text=OWN, names=("one", "two")):
        path = tmp_path / "mine.py"
        path.write_text(text)
        found = load_benchmarks(path)
        return own_sweeps([found[name] for name in names], [], {})

    return sweeps_of


def test_kernels_of_a_user_are_in_the_page_and_right(device, own_sweeps_of):
    made = bundle_of(own_sweeps_of(), BENCH_PROTOCOL, device=device)
    assert [(case["primitive"], case["axes"].get("kind")) for case in made["cases"]] == [
        ("mine.one", "u32"), ("mine.one", "f32"), ("mine.two", None)
    ]  # fmt: skip
    assert {(job["case"], job["mode"]) for job in made["jobs"]} == {(0, "hot"), (1, "hot"), (2, "batch")}
    assert made["cases"][0]["work"]["read_bytes"] == 800
    for case in made["cases"]:
        assert len(set(case["variants"])) == 1
        plan = plan_of(made, case["variants"][0])
        assert [kernel.label for kernel in plan.kernels] == (
            ["first", "second"] if len(plan.kernels) > 1 else ["times"]
        )
        found = run_case(device, made, case, _class_of(device))
        for output in case["outputs"]:
            assert wrong(output, found[output["name"]]) is None, case
            assert wrong(output, bytes(len(found[output["name"]]))) is not None
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "gw.Benchmark(run, {",
            "gw.Benchmark(lambda encoder, **_: None, {",
            "a page runs gw.Kernels, .* not a function",
        ),
        (
            "3}, right, rtol=1e-6",
            "3}",
            "it has no reference=, so a page cannot check its results; give one",
        ),
        ("rtol=1e-6", "restore='y'", "a page puts nothing back between trials"),
        (
            "3 * x[5:]",
            "3 * x[5:] + (np.inf if kind == 'f32' else 0)",
            "y has numbers that are not finite, which a page cannot compare",
        ),
        ("3 * x[5:]", "3.5 * x[5:]", "the reference of y has items that are none of uint32"),
        ("right = ", "1 / 0 #", "line 24: ZeroDivisionError"),
    ],
)
def test_what_a_page_cannot_run_is_told_in_a_line(device, own_sweeps_of, old, new, message):
    text = OWN.replace(old, new, 1)
    assert text != OWN
    with pytest.raises(gw.ArgumentError, match=rf"mine\.one kind=(u32|f32) n=200: .*{message}"):
        bundle_of(own_sweeps_of(text, ["one"]), BENCH_PROTOCOL, device=device)


def test_arguments_that_are_too_large_for_a_page_are_refused(device, own_sweeps_of, monkeypatch):
    monkeypatch.setattr("gridwise_py.browser.own.MOST_OWN_BYTES", 2399)
    with pytest.raises(gw.LimitError, match=r"mine\.one kind=u32 n=200: its arguments have over .* take a smaller n"):
        bundle_of(own_sweeps_of(names=["one"]), BENCH_PROTOCOL, device=device)


def test_the_command_leaves_out_and_names_what_a_page_cannot_run(device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        OWN.replace(
            "@gw.benchmarked(n=[200], mode",
            """@gw.benchmarked(n=[200])
def other(device, n):
    return gw.Benchmark(gw.Reduce(device, "u32"), {"input": np.arange(n, dtype="u4")}, lambda input: input.sum())
@gw.benchmarked(n=[200], mode""",
        )
    )
    done = _call("mine.py")
    assert done.exit_code == 0, done.output
    assert re.search(r"left out: mine\.other n=200: a page runs gw\.Kernels", done.stderr)
    assert "3 cases" in done.stderr
    done = _call("mine.py", "other", "-o", "none.html")
    assert (done.exit_code, (tmp_path / "none.html").exists()) == (2, False), "a page of nothing"


# ---- the page


def test_the_page_allows_its_own_scripts_and_nothing_else(few):
    page = page_html(few)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    for element, rule in (("script", "script-src"), ("style", "style-src")):
        texts = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts]
        assert rules[rule].split() == hashes
    assert set(re.findall(r"""\b(?:src|href)\s*=\s*["']?(\w+:)""", page)) <= {"data:"}


def test_the_page_has_the_whole_bundle(few):
    page = page_html(few)
    found = re.search(r'id="bundle" data-sha256="([0-9a-f]{64})">([^<]*)<', page)
    content = zlib.decompress(base64.b64decode(found[2]))
    assert hashlib.sha256(content).hexdigest() == found[1]
    assert json.loads(content) == json.loads(json.dumps(few))
    assert page_html(few) == page


@pytest.mark.slow
def test_the_page_of_the_suite_is_below_300_kb():
    suite = load_suite("browser")
    bundle = bundle_of(suite.sweeps, replace(BENCH_PROTOCOL, **suite.protocol), suite="browser")
    assert len(page_html(bundle).encode()) < 300_000


# ---- the command


def _call(*words):
    return CliRunner().invoke(main, ["browser", *map(str, words)])


def test_the_command_writes_a_page(tmp_path):
    out = tmp_path / "page.html"
    done = _call("copy", "vector_add", "map", "-a", f"n={N}", "-a", "datatype=u32", "-o", out)
    assert done.exit_code == 0, done.output
    assert re.search(r"wrote .*page\.html \(\d+ kB, 3 cases\)", done.output)
    content = re.search(r'id="bundle"[^>]*>([^<]*)<', out.read_text())[1]
    bundle = json.loads(zlib.decompress(base64.b64decode(content)))
    assert [(case["primitive"], case["n"]) for case in bundle["cases"]] == [
        ("copy", N), ("vector_add", N), ("map", N)
    ]  # fmt: skip
    assert bundle["suite"] == "browser"
    assert bundle["protocol"]["samples"] == 100


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-o", "page.txt"], "a page ends in .html"),
        (["nosuch"], "'nosuch' is not one of"),
        (["--suite", "nosuch"], "there is no suite 'nosuch'"),
        (["copy", "-a", "n=64", "-a", "mode=cold"], "a page has no mode 'cold'"),
        (["sort", "-a", "n=64", "-a", "distribution=zipf"], "the page has no data of the distribution 'zipf'"),
        (["sort", "-a", "n=64", "-a", "datatype=f64"], "the page has no data of float64"),
        (["matmul", "-a", "n=64", "-a", "datatype=u32"], "matmul has no datatype u32"),
        (["matmul", "-a", "n=2^24"], "needs a buffer of 1,125,899,906,842,624 bytes, and a page has buffers of up to"),
    ],
)
def test_what_a_page_cannot_do_is_said(tmp_path, monkeypatch, words, why):
    monkeypatch.chdir(tmp_path)
    done = _call(*words)
    assert done.exit_code == 2
    assert why in done.output
    assert not list(tmp_path.iterdir())
