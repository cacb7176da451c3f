"""The page of `gridwise browser` in headless Chromium, from a file, on SwiftShader: right figures, and each fault."""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import gridwise_py as gw
from helpers.chromium import browser, contrast, find_chromium, luminance
from helpers.measuring_page import changed, own_bundle, small_bundle, visit, workloads
from helpers.page_bundles import STEPS, items_of
from helpers.paths import ROOT
from helpers.tint import WEBGPU_FLAGS

pytestmark = [pytest.mark.browser, pytest.mark.tint, pytest.mark.needs("chromium")]


@pytest.fixture(scope="module")
def new_page():
    """A function that opens a page; the browser is the module's."""
    path = find_chromium()
    with browser(path, *WEBGPU_FLAGS, timeout_s=240.0) as new:
        yield new


@pytest.fixture(scope="module")
def bundle():
    """A copy, an addition and a look-back scan."""
    return small_bundle("vector_add scan")


@pytest.fixture(scope="module")
def measured(new_page, bundle, tmp_path_factory):
    """A visit without faults."""
    return visit(new_page, tmp_path_factory.mktemp("measured"), bundle)


# ---- without faults


def test_it_runs_from_a_file_without_a_request_or_a_complaint(measured):
    assert measured.status == "Done: 3 cases."
    assert [row[5] for row in measured.rows()] == ["right"] * 3
    assert [result["checks"] for result in measured.raw["results"]] == [[{"output": "output", "wrong": None}] * 2] * 3
    assert measured.raw["complete"] is True
    assert measured.raw["planned"] == 3
    assert measured.page.complaints == []
    assert [url for url in measured.page.requests if not url.startswith("data:")] == [
        url for url in measured.page.requests if url.endswith("/page.html")
    ]


def test_the_saved_file_is_read_and_its_summaries_are_those_of_the_stamps(measured, tmp_path):
    found = gw.read_results(measured.save(tmp_path / "page.json"))
    assert {result.primitive for result in found.results} == {"copy", "vector_add", "scan"}
    assert found.device.adapter_type == "CPU"
    assert found.device.subgroup_size == 4
    for result in found.results:
        assert result.correct is True
        entry = measured.results[result.primitive]
        kernels = len(measured.raw["plans"][entry["plan"]]["kernels"])
        ticks = np.array([block["ticks"] for block in entry["blocks"]], dtype=np.float64).reshape(-1, kernels, 2)
        spans_ns = (ticks[:, -1, 1] - ticks[:, 0, 0]) / entry["batch_trials"]
        # Blocks at another clock are left out.
        assert spans_ns.min() <= result.whole.gpu_span_ns <= spans_ns.max()


def test_a_block_has_a_canary_before_and_after_it(measured):
    for result in measured.raw["results"]:
        assert sum(sum(block["counts"]) for block in result["blocks"]) == 12
        assert result["stop_reason"] == "count"
        for block in result["blocks"]:
            kernels = len(measured.raw["plans"][result["plan"]]["kernels"])
            assert len(block["ticks"]) == sum(block["counts"]) * kernels
            assert len(block["before"]) == len(block["after"]) == 5
            stamps = [stamp for name in ("before", "ticks", "after") for pair in block[name] for stamp in pair]
            assert stamps == sorted(stamps)


def test_a_sample_in_mode_batch_is_a_millisecond_and_a_hundred_steps(measured):
    assert measured.page.evaluate("[1, 32, 1e5].map(leastSampleNs)") == pytest.approx([1.1e6, 1.1e6, 1.1e7])


@pytest.mark.parametrize(
    ("dispatch_ns", "step", "most", "busy", "wanted"),
    [
        (7e3, 1, 10**6, 0, range(158, 400)),
        (7e3, 65_536, 10**6, 0, range(150, 400)),  # the first spans read 0
        (7e3, 1, 100, 0, [100]),
        (7e3, 1, 10**6, 5e6, range(158, 400)),  # other work makes the first pass long
        (5e6, 1, 10, 0, [1]),
        (None, 1, 10**6, 0, [1]),  # timestamps that are not written
    ],
)
def test_dispatches_are_repeated_until_the_gpus_clock_says_that_they_last(
    measured, dispatch_ns, step, most, busy, wanted
):
    span = "null" if dispatch_ns is None else f"Math.floor((trials * {dispatch_ns} + busy) / {step}) * {step}"
    found = measured.page.evaluate(
        f"(() => {{ let busy = {busy}; return Gpu.prototype.trialsFor.call({{tickStep: {step},"
        " timedPasses: async (bound, passes, trials) => {"
        f" const end = {span}; busy = 0; return {{ticks: [[0, end]]}}; }}"
        f"}}, null, 1.1e6, {most}); }})()"
    )
    assert found in wanted


def test_kernels_of_a_user_are_measured_and_checked(new_page, device, tmp_path):
    names, axes = ("total", "matmul"), ("n=64", "groups=16", "tile=8")
    bundle = own_bundle(ROOT / "examples" / "my_kernels.py", names, axes, device)
    made = visit(new_page, tmp_path, bundle)
    assert [row[5] for row in made.rows()] == ["right"] * 2
    path = tmp_path / "own.json"
    path.write_text(json.dumps(made.raw))
    results = {result.primitive: result for result in gw.read_results(path).results}
    assert list(results) == ["my_kernels.total", "my_kernels.matmul"]
    assert [kernel.name for kernel in results["my_kernels.total"].kernels] == ["partial sums", "total"]
    assert all(result.correct and result.checked and result.gpu_span for result in results.values())

    def spoil(copy):
        for case in copy["cases"]:
            case["outputs"][0]["atol"] = case["outputs"][0]["rtol"] = 0.0
            case["outputs"][0]["base64"] = base64.b64encode(bytes(case["outputs"][0]["bytes"])).decode()

    spoilt = visit(new_page, tmp_path, changed(bundle, spoil))
    assert all("items of" in result["checks"][0]["wrong"] for result in spoilt.raw["results"])


def test_every_mode_is_measured_as_its_name_says(new_page, tmp_path):
    found = visit(new_page, tmp_path, small_bundle("copy", mode="hot,batch,latency"))
    assert found.status == "Done: 3 cases."
    by_mode = {result["mode"]: result for result in found.raw["results"]}
    assert {mode: result["blocks"][0]["counts"] for mode, result in by_mode.items() if mode != "batch"} == {
        "hot": [4, 2], "latency": [1] * 6,
    }  # fmt: skip
    assert {result.mode for result in gw.read_results(found.save(tmp_path / "modes.json")).results} == {
        "hot", "batch", "latency"
    }  # fmt: skip
    found.page.close()


SEEDS = (0, 1, 0x9E37_79B9, (1 << 32) - 1)
NUMBERS = {
    "hash": SEEDS,
    "and_hash": SEEDS,
    "shift": (0, 8, 31),
    "times_around": (1, 3, (1 << 21) - 1),
    "sum": ((),),
    "sort": ((),),
    "reverse": ((),),
    "differences": ((),),
}


def test_items_are_those_of_python(measured):
    """Each step on numbers of 32 bits, each form, and lengths that are no multiples of words."""

    def recipe(words, *steps, form="u32", scale=1.0, offset=0.0):
        return {"words": words, "steps": [*steps], "as": form, "scale": scale, "offset": offset}

    hashed = ("hash", 7)
    recipes = [
        recipe(1003, hashed, ("and", mask), (name, *(() if number == () else (number,))))
        for mask in ((1 << 32) - 1, 7)
        for name in STEPS
        for number in NUMBERS.get(name, (1, 3, 0x8000_0001, (1 << 32) - 1))
    ]
    recipes += [recipe(n, hashed, form=form) for form in ("u8", "u16", "u32", "u64") for n in (0, 1, 3, 1002)]
    recipes += [recipe(1001, hashed, ("shift", 8), form="f32", scale=2.0**-23, offset=-1.0)]
    recipes += [recipe(7, form="f32", scale=3.0, offset=0.1)]
    found = measured.page.evaluate(
        f"{json.dumps(recipes)}.map((recipe) => {{ const x = itemsOf(recipe);"
        " return [...new Uint8Array(x.buffer, x.byteOffset, x.byteLength)]; })"
    )
    for one, items in zip(recipes, found, strict=True):
        assert bytes(items) == items_of(one), one


def test_a_device_belongs_to_the_largest_class_below_its_limits(measured, bundle):
    sizes = {int(key.partition("/")[0]) for key in bundle["class_keys"]}
    grid = list(itertools.product(
        (None, 4, 8, 12, 16, 32, 64, 128), (256, 512, 1024, 2048), (128, 1024), (16_384, 20_000, 32_768, 65_536),
        (False, True), ("safe", "tickets", "no"),
    ))  # fmt: skip
    found = measured.page.evaluate(
        f"{json.dumps(grid)}.map(([lanes, invocations, x, storage, software, verdict]) =>"
        " classOf({bundle: view.bundle, software, device: {limits: {"
        " maxComputeInvocationsPerWorkgroup: invocations, maxComputeWorkgroupSizeX: x,"
        " maxComputeWorkgroupStorageSize: storage}}}, lanes, verdict))"
    )
    for (lanes, invocations, x, storage, software, verdict), name in zip(grid, found, strict=True):
        assert name in bundle["class_keys"]
        subgroups = [size for size in sizes if size <= (lanes or 0) and (size <= 8 or not software)]
        wanted = (
            max(subgroups),
            max(256, 1024 * (min(invocations, x) // 1024)),
            32_768 if storage >= 32_768 else 16_384,
        )
        assert name == "/".join(str(value).lower() for value in (*wanted, software, verdict))


# ---- clocks and features

# Changes what timestamps read as.
_STAMPS = """
(() => {
  const resolved = new WeakSet(), copies = new WeakSet();
  const resolve = GPUCommandEncoder.prototype.resolveQuerySet;
  GPUCommandEncoder.prototype.resolveQuerySet = function (set, first, count, buffer, offset) {
    resolved.add(buffer);
    return resolve.call(this, set, first, count, buffer, offset);
  };
  const copy = GPUCommandEncoder.prototype.copyBufferToBuffer;
  GPUCommandEncoder.prototype.copyBufferToBuffer = function (source, ...rest) {
    if (resolved.has(source)) copies.add(rest.find((value) => value instanceof GPUBuffer));
    return copy.call(this, source, ...rest);
  };
  const range = GPUBuffer.prototype.getMappedRange;
  GPUBuffer.prototype.getMappedRange = function (...args) {
    const found = range.apply(this, args);
    if (!copies.has(this)) return found;
    const stamps = new BigUint64Array(found.slice(0));
    for (let i = 0; i < stamps.length; ++i) stamps[i] = (%s)(stamps[i], i);
    return stamps.buffer;
  };
})();
"""


def test_coarse_timestamps_make_long_samples_and_a_note(new_page, bundle, tmp_path):
    found = visit(new_page, tmp_path, bundle, before=_STAMPS % "(t) => t & ~0xFFFFn")
    assert found.raw["calibration"]["tick_step"] == 65_536
    assert found.status == "Done: 3 cases."
    for result in found.raw["results"]:
        assert result["canary_trials"] > 1
    assert found.results["vector_add"]["batch_trials"] > 1
    assert any("rounds the GPU's clock to 65.5 µs" in note and "chrome://flags" in note for note in found.notes)
    read = gw.read_results(found.save(tmp_path / "coarse.json"))
    assert all(result.correct and result.whole.gpu_span_ns is not None for result in read.results)
    found.page.close()


def test_a_timestamp_that_was_not_written_is_null_and_large_ones_are_exact(new_page, bundle, tmp_path):
    base = 1 << 62
    found = visit(new_page, tmp_path, bundle, before=_STAMPS % f"(t, i) => i % 16 == 14 ? 0n : t + {base}n")
    stamps = [
        stamp
        for result in found.raw["results"]
        for block in result["blocks"]
        for pair in block["ticks"]
        for stamp in pair
    ]
    assert int(found.raw["tick_base"]) > base
    assert None in stamps
    assert 0 <= min(stamp for stamp in stamps if stamp is not None) < 1 << 50
    read = gw.read_results(found.save(tmp_path / "zeros.json"))
    assert sum(result.kernels[0].invalid["zero"] for result in read.results) == stamps.count(None)
    found.page.close()


def _without(feature):
    return (
        "(() => { const get = Object.getOwnPropertyDescriptor(GPUAdapter.prototype, 'features').get;"
        "Object.defineProperty(GPUAdapter.prototype, 'features', {get() {"
        f" const set = new Set(get.call(this)); set.delete('{feature}'); return set; }}}}); }})();"
    )


def test_without_timestamps_there_are_walls_and_the_page_says_so(new_page, bundle, tmp_path):
    found = visit(new_page, tmp_path, bundle, before=_without("timestamp-query"))
    assert found.status == "Done: 3 cases."
    assert found.raw["calibration"] is None
    blocks = [block for result in found.raw["results"] for block in result["blocks"]]
    assert all(set(block) == {"counts", "walls", "submits", "encodes"} for block in blocks)
    wanted_ns = 1.1 * max(1e6, 100 * found.raw["context"]["now_step_ns"])
    for result in found.raw["results"]:
        most = max(1, int(1e8 / result["trial_ns"]))
        assert result["batch_trials"] == min(most, math.ceil(wanted_ns / result["trial_ns"]))
    assert any("no GPU timestamps" in note for note in found.notes)
    read = gw.read_results(found.save(tmp_path / "walls.json"))
    assert all(result.correct and result.whole.gpu_span_ns is None for result in read.results)
    assert all(result.whole.cpu_wall_ns is not None for result in read.results)
    found.page.close()


@pytest.mark.parametrize("missing", ["subgroups", "subgroup_id"])
def test_subgroups_are_used_only_with_subgroup_id(new_page, bundle, tmp_path, missing):
    old = (  # Chrome 134 to 143
        "(() => { const get = Object.getOwnPropertyDescriptor(GPU.prototype, 'wgslLanguageFeatures').get;"
        "Object.defineProperty(GPU.prototype, 'wgslLanguageFeatures', {get() {"
        " const set = new Set(get.call(this)); set.delete('subgroup_id'); return set; }}); })();"
    )
    found = visit(new_page, tmp_path, bundle, before=old if missing == "subgroup_id" else _without("subgroups"))
    assert found.raw["class"].startswith("0/")
    assert "subgroups" not in found.raw["device"]["features"]
    assert [row[5] for row in found.rows()] == ["right"] * 3
    found.page.close()


def test_a_tab_that_was_in_the_background_is_noted(new_page, bundle, tmp_path):
    hide = (
        "setTimeout(() => {"
        " Object.defineProperty(document, 'visibilityState', {value: 'hidden', configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); delete document.visibilityState; }, 300)"
    )
    found = visit(new_page, tmp_path, bundle, opened=hide)
    assert found.raw["context"]["hidden"] is True
    assert any("in the background" in note for note in found.notes)
    found.page.close()


def test_without_an_adapter_the_page_says_so(new_page, bundle, tmp_path):
    found = visit(new_page, tmp_path, bundle, before="GPU.prototype.requestAdapter = async () => null")
    assert "gives no adapter" in found.status
    assert found.raw is None
    assert found.page.evaluate("document.getElementById('share').hidden && !document.getElementById('start').disabled")
    found.page.close()


# ---- faults of a case


def test_a_lost_device_fails_its_case_only(new_page, bundle, tmp_path):
    lose = """
    (() => {
      const request = GPUAdapter.prototype.requestDevice;
      let device = null, waits = 0;
      GPUAdapter.prototype.requestDevice = async function (...args) {
        return device = await request.apply(this, args);
      };
      const wait = GPUQueue.prototype.onSubmittedWorkDone;
      GPUQueue.prototype.onSubmittedWorkDone = function () {
        if (view.rows.length === 1 && ++waits === 12) device.destroy();
        return wait.call(this);
      };
    })()"""
    found = visit(new_page, tmp_path, bundle, opened=lose)
    errors = [result["error"] for result in found.raw["results"]]
    assert errors[0] is None
    assert errors[1].startswith("DeviceLost: destroyed")
    assert errors[2] is None
    assert [row[5] for row in found.rows() if len(row) > 1].count("right") == 2
    assert "1 of 3 cases failed" in found.status
    read = gw.read_results(found.save(tmp_path / "lost.json"))
    assert sorted(result.error is None for result in read.results) == [False, True, True]
    found.page.close()


def test_a_refused_text_fails_its_case_with_the_compilers_words(new_page, bundle, tmp_path):
    def refuse(made):
        made["lines"].append("fn broken() { nosuch = 1; }")
        # The browser reports this one later, and the next case must not be blamed for it.
        made["buffers"].append({"name": "overrun", "role": "params", "size_bytes": 16, "words": [0] * 8})
        (case,) = (case for case in made["cases"] if case["primitive"] == "scan")
        for number in set(case["variants"]):
            made["plans"][number]["buffers"].append(len(made["buffers"]) - 1)
            for step in made["plans"][number]["steps"]:
                shader = made["steps"][step].get("shader")
                if shader is not None:
                    made["shaders"][shader] += [len(made["lines"]) - 1, 1]

    found = visit(new_page, tmp_path, changed(bundle, refuse))
    error = found.results["scan"]["error"]
    assert error.startswith("ShaderError: ")
    assert "unresolved value 'nosuch'" in error
    assert "in `fn broken() { nosuch = 1; }`" in error
    assert {name for name, result in found.results.items() if result["error"] is None} == {"copy", "vector_add"}
    assert any("unresolved value" in row[0] for row in found.rows())
    found.page.close()


def test_an_invalid_command_fails_its_case_only(new_page, bundle, tmp_path):
    """Browsers report such errors some time later."""

    def misalign(made):
        (case,) = (case for case in made["cases"] if case["primitive"] == "vector_add")
        for number in set(case["variants"]):
            for step in made["plans"][number]["steps"]:
                made["steps"][step]["bindings"][1]["offset_bytes"] = 4

    found = visit(new_page, tmp_path, changed(bundle, misalign))
    errors = {name: result["error"] for name, result in found.results.items()}
    assert errors.pop("vector_add").startswith("GPUError: ")
    assert errors == {"copy": None, "scan": None}
    found.page.close()


def _wrong_hash(made):
    for case in made["cases"]:
        if case["primitive"] == "vector_add":
            case["outputs"][0]["sha256"] = "0" * 64


def _changes_its_input(made):
    """After each run, the output becomes an input: the first run is right, later ones are not."""
    (case,) = (case for case in made["cases"] if case["primitive"] == "vector_add")
    step = {"kind": "copy", "source": "output", "source_offset_bytes": 0, "destination": case["inputs"][0]["name"],
            "destination_offset_bytes": 0, "size_bytes": case["outputs"][0]["bytes"]}  # fmt: skip
    made["steps"].append(step)
    for number in set(case["variants"]):
        made["plans"][number]["steps"].append(len(made["steps"]) - 1)


@pytest.mark.parametrize(("fault", "checks"), [(_wrong_hash, [True, True]), (_changes_its_input, [False, True])])
def test_a_wrong_result_is_wrong_in_the_page_and_in_the_file(new_page, bundle, tmp_path, fault, checks):
    found = visit(new_page, tmp_path, changed(bundle, fault))
    assert [check["wrong"] is not None for check in found.results["vector_add"]["checks"]] == checks
    assert [row[5] for row in found.rows() if len(row) > 1].count("WRONG") == 1
    assert "1 of 3 cases failed or gave wrong results" in found.status
    assert "WRONG: the sha256 of output" in found.page.evaluate("markdownOf(figures())")
    read = {result.primitive: result for result in gw.read_results(found.save(tmp_path / "wrong.json")).results}
    assert {name: result.correct for name, result in read.items()} == {"copy": True, "vector_add": False, "scan": True}
    found.page.close()


def test_samples_that_write_nothing_are_wrong(new_page, bundle, tmp_path):
    """The results of the first run do not stay in the outputs."""
    die = """
    (() => {
      const dispatch = GPUComputePassEncoder.prototype.dispatchWorkgroups, map = GPUBuffer.prototype.mapAsync;
      let isDead = false;
      GPUBuffer.prototype.mapAsync = function (...args) {
        isDead ||= Boolean(view.raw?.calibration);  // the first check, of the first case
        return map.apply(this, args);
      };
      GPUComputePassEncoder.prototype.dispatchWorkgroups = function (...args) {
        if (!isDead || view.rows.length) dispatch.apply(this, args);
      };
    })()"""
    found = visit(new_page, tmp_path, bundle, opened=die)
    wrong = [[check["wrong"] is not None for check in result["checks"]] for result in found.raw["results"]]
    assert wrong == [[False, True], [False, False], [False, False]]
    found.page.close()


def test_results_that_round_are_compared_within_their_bounds(measured):
    outputs = [{"name": "x", "bytes": 8, "values": [1.0, -2.0], "errors": [0.0, 0.5]}] * 5
    items = [[1, -2], [1, -2.5], [1, -2.75], [1.25, -2], [1, float("nan")]]
    found = measured.page.evaluate(
        f"Promise.all({json.dumps(items)}.map((x, i) =>"
        f" mismatchOf({json.dumps(outputs)}[i], new Float32Array(x).buffer)))"
    )
    assert found[:2] == [None, None]
    assert "1 of 2 items of x are wrong: item 1 is -2.75, and should be -2 ± 0.5" in found[2]
    assert "item 0 is 1.25" in found[3]
    assert "item 1 is NaN" in found[4]


def test_what_a_device_cannot_do_is_left_out_with_the_reason(new_page, bundle, tmp_path):
    """A buffer that is too large, a class without a plan, and a size that would take too long."""

    def spoil(made):
        copied, added, scanned = (
            next(c for c in made["cases"] if c["primitive"] == name) for name in ("copy", "vector_add", "scan")
        )
        copied["outputs"][0]["capacity_bytes"] = 1 << 40
        added["variants"] = [None] * len(added["variants"])
        scanned["work"]["read_bytes"] = 1 << 50

    found = visit(new_page, tmp_path, changed(bundle, spoil))
    errors = {name: result["error"] for name, result in found.results.items()}
    assert errors["copy"].startswith("LimitError: it needs a buffer of 1099511627776 bytes, and this device binds")
    assert errors["vector_add"].startswith("LimitError: this primitive needs")
    assert re.match(r"TooLong: one trial would take about \S+ s", errors["scan"])
    gw.read_results(found.save(tmp_path / "limits.json"))
    found.page.close()


def test_stop_keeps_the_finished_cases(new_page, tmp_path):
    """The second case would take ten minutes."""
    bundle = changed(small_bundle("vector_add scan reduce"), lambda made: made["protocol"].update(samples=None))
    stop_in_the_second = """
    (() => {
      const row = listener.row;
      listener.row = (...args) => {
        row(...args);
        view.bundle.protocol.timeout_s = 600;
        setTimeout(() => document.getElementById("stop").click(), 700);
      };
      view.bundle.protocol.timeout_s = 0.3;
    })()"""
    found = visit(new_page, tmp_path, bundle, opened=stop_in_the_second)
    assert found.status == "Stopped after 1 of 4 cases."
    assert found.raw["complete"] is False
    assert [result["error"] for result in found.raw["results"]] == [None]
    assert found.page.evaluate("!document.getElementById('share').hidden")
    read = gw.read_results(found.save(tmp_path / "stopped.json"))
    assert (read.complete, read.planned, len(read.results)) == (False, 4, 1)
    # And it starts again.
    assert found.page.evaluate("document.getElementById('start').hidden") is False
    found.page.close()


# ---- what people share

HOSTILE = '</script><img src=x onerror="window.pwned=1"><script>window.pwned=2</script>'


def _fragment(figures):
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = compressor.compress(json.dumps(figures).encode()) + compressor.flush()
    return "#r=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def _figures(text, **changes):
    row = [text, {"datatype": text, text: text}, 4096, text, 1e6, 3.0, None, 0.5, "right", text]
    return {
        "v": 1,
        "name": text,
        "browser": text,
        "date": text,
        "version": text,
        "step_ns": 1,
        "software": False,
        "rows": [row],
    } | changes


def test_a_link_holds_the_figures(new_page, measured, bundle, tmp_path):
    fragment = measured.page.evaluate("fragmentOf(figures())")
    assert len(fragment) < 600
    found = visit(new_page, tmp_path, bundle, fragment=fragment, start=False)
    assert found.rows() == measured.rows()
    assert any("nobody has checked them" in note for note in found.notes)
    assert found.page.evaluate("document.getElementById('share').hidden")
    found.page.close()


def test_nothing_in_a_hostile_link_runs(new_page, bundle, tmp_path):
    found = visit(new_page, tmp_path, bundle, fragment=_fragment(_figures(HOSTILE)), start=False)
    assert found.rows()[0][0].startswith(HOSTILE)
    assert found.page.evaluate("document.getElementById('facts').textContent").count(HOSTILE) == 4
    assert found.page.evaluate("window.pwned ?? null") is None
    assert found.page.evaluate("document.querySelectorAll('img, main script, [onerror]').length") == 0
    assert found.page.complaints == []
    found.page.close()


@pytest.mark.parametrize(
    "figures",
    [
        None, [], {"v": 2}, _figures("a", rows="x"), _figures("a", rows=[[]]), _figures("a", rows=[5]), _figures(7),
        _figures("a", step_ns="1"), _figures("a", rows=[_figures("a")["rows"][0]] * 501),
        _figures("a", padding="a" * 2_000_000),
        _figures("a", rows=[["scan", [], 1, "batch", 1, 1, None, None, "right", None]]),
        _figures("a", rows=[["scan", {}, -1, "batch", 1, 1, None, None, "right", None]]),
        _figures("a", rows=[["scan", {}, 1, "batch", "1", 1, None, None, "right", None]]),
        _figures("a", rows=[["scan", {}, 1, "batch", 1, 1, None, None, "best", None]]),
    ],
    ids=range(14),
)  # fmt: skip
def test_a_link_that_is_not_as_it_should_be_is_refused(measured, figures):
    said = measured.page.evaluate(
        f"figuresOf({json.dumps(_fragment(figures))}).then(() => 'accepted', (error) => error.message)"
    )
    assert said != "accepted"


def test_a_hostile_name_is_text_in_the_file_the_table_and_the_issue(measured, tmp_path):
    page = measured.page
    before = page.evaluate("document.getElementById('name').value")
    page.evaluate(
        f"(() => {{ const i = document.getElementById('name'); i.value = {json.dumps('| a ' + HOSTILE)};"
        "i.dispatchEvent(new Event('input')); })()"
    )
    table, issue = page.evaluate("[markdownOf(figures()), issueOf(figures(), fileName())]")
    name = page.evaluate("fileName()")
    saved = gw.read_results(measured.save(tmp_path / "named.json"))
    page.evaluate(f"document.getElementById('name').value = {json.dumps(before)}")
    assert saved.device.adapter == ("| a " + HOSTILE)[:120]
    assert r"\| a \</script\>\<img" in table
    assert not re.search(r"(?<!\\)<", table)
    assert "Add my GPU: \\| a \\</script" in issue
    assert re.fullmatch(r"gridwise-[a-z0-9-]+-\d{4}-\d\d-\d\d\.json", name)
    assert name in issue
    assert page.evaluate("window.pwned ?? null") is None


def test_buttons_save_and_copy(measured):
    page = measured.page
    page.evaluate(
        "window.clicked = []; HTMLAnchorElement.prototype.click = function () { clicked.push(this.download); };"
        "navigator.clipboard.writeText = async (text) => { window.clip = text; };"
    )
    for button, wanted in (
        ("markdown", "| copy u32 | 2^12 |"), ("issue", "Add my GPU: "), ("link", "/page.html#r="),
    ):  # fmt: skip
        page.evaluate(f"window.clip = ''; document.getElementById('{button}').click()")
        page.wait("window.clip !== ''")
        assert wanted in page.evaluate("window.clip")
        assert (
            page.evaluate("document.getElementById('copied').value === window.clip || undefined") or button == "issue"
        )
    page.evaluate("document.getElementById('save').click()")
    assert page.evaluate("clicked") == [page.evaluate("fileName()")]
    # A browser that refuses selects the text.
    page.evaluate("navigator.clipboard.writeText = async () => { throw new Error('no'); };")
    page.evaluate("document.getElementById('markdown').click()")
    page.wait("document.getElementById('shared').textContent.includes('did not allow')")
    assert page.evaluate("document.activeElement.id") == "copied"


# ---- the page itself


def test_the_policy_stops_every_request(measured):
    page = measured.page
    assert page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')") == "refused"
    assert page.evaluate(
        "new Promise((done) => { const image = new Image(); image.onload = () => done('loaded');"
        " image.onerror = () => done('refused'); image.src = 'http://127.0.0.1:9/x.png'; })"
    ) == "refused"  # fmt: skip
    page.evaluate("(() => { const s = document.createElement('script'); s.textContent = 'window.pwned = 1';"
                  "document.body.append(s); })()")  # fmt: skip
    assert page.evaluate("window.pwned ?? null") is None
    assert sum("Content Security Policy" in text for text in page.complaints) >= 3
    page.complaints.clear()


def test_no_script_can_leave_the_page():
    """A policy cannot forbid to navigate: the scripts do not."""
    forbidden = r"\blocation\b|\bopen\(|\bfetch\b|XMLHttpRequest|WebSocket|sendBeacon|\bimport\b|\beval\b|innerHTML"
    paths = sorted((Path(gw.__file__).parent / "browser" / "page").glob("*.js"))
    assert len(paths) > 5
    for path in paths:
        text = path.read_text(encoding="utf-8").replace("Gpu.open(", "").replace("static async open(", "")
        assert re.findall(forbidden, text) == [], path.name


LONG_ROW = {
    "primitive": "segmented_reduce", "axes": {"op": "add", "datatype": "u32", "segment": "1024"}, "n": 1 << 24,
    "mode": "batch", "ns": 1.25e6, "gbs": 1234.0, "gflops": None, "of": 0.97, "result": "right", "why": None,
    "position": 9, "kernels": [{"label": "reduce", "ns": 1e6}, {"label": "complete", "ns": 2e5}], "gaps_ns": 5e4,
}  # fmt: skip


@pytest.mark.parametrize("width", [360, 420, 1200])
def test_it_fits_any_width(measured, width):
    page = measured.page
    page.evaluate(f"window.rows = view.rows; view.rows = [...view.rows, {json.dumps(LONG_ROW)}]; showRows()")
    page.look(width=width, height=800)
    page.wait("view.drawnWidth === Math.floor(document.getElementById('results').clientWidth)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        f"[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > {width} + 1)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []
    cut = page.evaluate(
        "[...document.querySelectorAll('#speeds svg text')].filter(t => t.getBoundingClientRect().right >"
        " t.ownerSVGElement.getBoundingClientRect().right + 1).map(t => t.textContent)"
    )
    assert cut == []
    plot = page.evaluate("(() => { const r = document.querySelector('#speeds .base').getBoundingClientRect();"
                         " return [r.width, document.getElementById('speeds').clientWidth]; })()")  # fmt: skip
    assert plot[0] > 0.5 * plot[1]
    shown = page.evaluate("document.getElementById('speeds').textContent")
    assert "segmented_reduce add u32 segment=1024" in shown
    # Of each row on a phone, too, what it is stands above its figures or before them.
    assert page.evaluate(
        "[...document.querySelectorAll('#table tbody tr')].every(tr => tr.cells[0].getBoundingClientRect().width > 90)"
    )
    page.evaluate("view.rows = window.rows; showRows()")
    page.look()


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_can_be_read(measured, dark):
    page = measured.page
    page.look(dark=dark)
    wanted = [
        ("body", "backgroundColor"), ("#results", "backgroundColor"), ("body", "color"), (".soft", "color"),
        ("td.right", "color"), ("#start", "backgroundColor"), ("#start", "color"), ("#notes li", "backgroundColor"),
        (".axes text", "fill"),
    ]  # fmt: skip
    paper, card, ink, soft, right, button, label, note, axis = page.evaluate(
        f"{json.dumps(wanted)}.map(([q, p]) => getComputedStyle(document.querySelector(q))[p])"
    )
    series = page.evaluate("[...document.querySelectorAll('#speeds .series')].map(e => getComputedStyle(e).stroke)")
    page.look()
    assert (luminance(paper) < 0.05) == dark
    assert min(contrast(paper, ink), contrast(card, ink), contrast(note, ink)) > 7
    assert min(contrast(paper, soft), contrast(card, soft), contrast(card, right), contrast(card, axis)) > 4.5
    assert contrast(button, label) > 4.5
    assert len(series) == 3
    assert min(contrast(card, colour) for colour in series) > 3


def test_a_keyboard_is_enough_and_everything_has_a_name(new_page, bundle, tmp_path):
    found = visit(new_page, tmp_path, bundle, start=False)
    page = found.page

    def press(key, code, text=""):
        for kind, said in (("keyDown", text), ("keyUp", "")):
            page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=said)

    press("Tab", 9)
    assert page.evaluate("document.activeElement.id") == "start"
    press("Enter", 13, "\r")
    page.wait("document.getElementById('bar').value > 0")  # a case is done, and drawn
    assert page.evaluate("document.activeElement.id") == "stop"
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]  # the bar is there while it runs
    press("Enter", 13, "\r")
    page.wait("!view.running")
    assert page.evaluate("document.activeElement.id") == "start"
    nodes += page.call("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "textbox", "progressbar", "image")
    controls = [node for node in nodes if node.get("role", {}).get("value") in roles]
    assert {node["role"]["value"] for node in controls} == {*roles}
    assert all(node["name"]["value"] for node in controls)
    assert page.evaluate("document.getElementById('status').getAttribute('aria-live')") == "polite"
    found.page.close()


def test_cases_and_times_are_written_as_everywhere_else(measured):
    for primitive, axes, mode, n, name, at in (
        ("scan", {"op": "add", "datatype": "u32"}, "batch", 1 << 20, "scan add u32", "n=2^20"),
        ("sort", {"datatype": "f32", "op": None, "distribution": "uniform"}, "hot", 1000, "sort f32 hot", "n=1,000"),
        ("sort", {"datatype": "f32", "values": "u32", "distribution": "few"}, "latency", 1024,
         "sort f32 few values=u32 latency", "n=2^10"),
    ):  # fmt: skip
        arguments = json.dumps([primitive, axes, mode])[1:-1]
        found = measured.page.evaluate(f"[nameOfCase({arguments}), nameOfCase({arguments}, {n})]")
        assert found == [name, f"{name} {at}"]
    for function, texts in (
        (
            "timeText",
            {0: "0 ns", 0.5: "0.500 ns", 99.97: "100 ns", 999.6: "1.00 µs", 1.2345e9: "1.23 s"},
        ),
        ("stepText", {1: "1 ns", 32: "32 ns", 1e5: "100 µs", 65536: "65.5 µs"}),
        ("leftText", {0.4: "about 1 s left", 89: "about 89 s left", 90: "about 2 min left", 600: "about 10 min left"}),
    ):
        assert measured.page.evaluate(f"{list(texts)}.map({function})") == list(texts.values())


@pytest.mark.slow  # 60 s: SwiftShader compiles sorts for long
@pytest.mark.parametrize("datatype", ["u32", "f32"])
def test_every_workload_is_right(new_page, tmp_path, datatype):
    """New primitives come in by the registry."""
    names = [name for name in workloads(datatype) if name != "matmul"]
    if datatype == "f32":  # the texts of sorts hardly depend on the datatype
        names = [name for name in names if "sort" not in name]
    found = visit(new_page, tmp_path, small_bundle(" ".join(names), n="2^10", datatype=datatype))
    document = gw.read_results(found.save(tmp_path / "all.json"))
    assert {result.primitive for result in document.results} == {"copy", *names}
    assert {r.name_with_n: r.error or r.mismatch for r in document.results if not r.correct} == {}
    found.page.close()
