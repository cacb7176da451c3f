"""Rows of the issue, shapes and variants in turns, beside CUB's. Usage: sweep.py JSON BUDGET_S N [rows…]"""
import itertools, json, os, statistics, sys, time, traceback
from pathlib import Path
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks/peers"))
import numpy as np
import gridwise_py as gw
from gridwise_py import variants
from gridwise_py.bench.cases.case import warm_up
import harness
from data import Data

OUT, BUDGET, N, WANTED = sys.argv[1], float(sys.argv[2]), int(eval(sys.argv[3].replace("^", "**"))), sys.argv[4:]
BEGIN = time.perf_counter()
WARM = os.environ.get("WARM", "")
SMOKE = bool(os.environ.get("SMOKE"))
device = gw.request_device()
data = Data(device, N)
x = gw.u32("x")
half = 1 << 31
S, T, R = gw.StreamTuning, gw.ScanTuning, gw.ReduceTuning
if SMOKE:  # on software: as a GPU's texts
    import gridwise_py.tuning.facts as facts
    from gridwise_py.types.capabilities import Capabilities
    facts._INTEGRATED = facts.DISCRETE
    Capabilities.is_cpu = property(lambda self: False)

ROWS = {
    "select 1/2": (lambda t: gw.Select(device, x, where=x < half, tuning=t), {"x": "words"}, ("output",),
                   ("select", {"input": "words"}, {"bound": half}), S),
    "partition in 2": (lambda t: gw.Partition(device, x, where=x < half, tuning=t), {"x": "words"}, ("first", "rest"),
                       ("partition2", {"input": "words"}, {"bound": half}), S),
    "reduce": (lambda t: gw.Reduce(device, "u32", tuning=t), {"input": "words"}, ("output",),
               ("reduce", {"input": "words"}, {}), R),
}
for k in (1, 8):
    keys = f"runs:{k}"
    ROWS |= {
        f"unique, runs of {k}": (lambda t: gw.Unique(device, "u32", tuning=t), {"keys": keys}, ("output",),
                                 ("unique", {"input": keys}, {}), S),
        f"unique by key, runs of {k}": (lambda t: gw.Unique(device, "u32", "u32", tuning=t),
            {"keys": keys, "values": "values"}, ("output_keys", "output_values"),
            ("unique_by_key", {"keys": keys, "values": "values"}, {}), S),
        f"run lengths, runs of {k}": (lambda t: gw.RunLength(device, "u32", outputs=("values", "lengths"), tuning=t),
            {"keys": keys}, ("values", "lengths"), ("run_length", {"input": keys}, {}), S),
        f"reduce by key, runs of {k}": (lambda t: gw.ReduceByKey(device, "u32", "u32", gw.Add, tuning=t),
            {"keys": keys, "items": "values"}, ("output_keys", "output_values"),
            ("reduce_by_key", {"keys": keys, "values": "values"}, {}), T),
    }

def shape(w, v, **more):
    return {"workgroup_size": w, "vecs": v, **more}

base = [("base", (), {})]
def shapes(on, *pairs, **more):
    """The variants in other shapes."""
    words = " ".join([*on, *(f"{k} {v}" for k, v in more.items())])
    return [(f"{words} {w}x{v}".strip(), on, {"workgroup_size": w, "vecs": v, **more}) for w, v in pairs]

def same(*on, **more):
    return (" ".join([*on, *(f"{k} {v}" for k, v in more.items())]), on, more)

big = SMOKE or N > 1 << 22
# The most valuable first: what there is no time for is left out.
PLANS = {
    # at 2^24 a select counts 64 tiles ahead, its neighbours none
    "select 1/2": base + [same("early"), same("preload"), same(look=2), same("early", look=2), same(ahead=0), same("early", ahead=128), same(ahead=32)]
        + shapes((), (256, 6), (128, 8), (256, 10), (512, 4)) + shapes(("early",), (256, 6), (128, 8), (128, 16), (256, 4), (512, 4))
        + [same(stage=4096)] + shapes(("early",), (128, 8), look=2) + shapes((), (128, 16)),
    "reduce by key, runs of 1": base + [same("copyall"), same("copy8")] + shapes((), (256, 6), (256, 4), (128, 8))
        + shapes(("copyall",), (256, 6), (256, 4), (128, 8), (128, 12)) + [same(look=2)] + shapes((), (128, 12), (256, 7), (128, 16), (512, 4)),
    "unique, runs of 1": base + [same("rows"), same("copy8"), same("rows", "copy8"), same("copyall"), same(order="subgroup"), same(items="held"),
        same(look=2), same("rows", ahead=32), same("early", "rows", ahead=32)]
        + shapes(("rows",), (256, 6), (256, 4), (128, 16)) + shapes(("copy8",), (256, 6), (128, 16)) + [same("rows", stage=4096)],
    "reduce by key, runs of 8": base + shapes((), (256, 6), (256, 4), (256, 7), (128, 8), (128, 12)) + [same(look=2), same("copyall"), same(look=4)]
        + shapes((), (256, 6), (128, 8), look=2) + shapes((), (128, 16), (256, 5), (512, 4)),
    "partition in 2": base + [same(ahead=32), same("early", ahead=32), same("preload", ahead=32), same("early", ahead=64), same("early", ahead=32, items="late"), same(look=2)]
        + shapes((), (256, 6), (128, 16), (512, 4), (128, 8), (256, 10)) + shapes(("early",), (128, 16), (256, 6), ahead=32),
    "reduce": base + [same("polls"), same("stride"), same("stride", "polls")]
        + [(f"{w}x{v} in {b}", (), {"workgroup_size": w, "vecs": v, "max_blocks": b}) for w, v, b in
           ((512, 4, 264), (256, 8, 264), (256, 4, 264), (1024, 4, 132), (1024, 2, 264), (256, 8, 528), (512, 8, 132), (512, 8, 264), (512, 4, 132), (256, 4, 1056), (128, 8, 528), (256, 16, 264), (256, 8, 132), (512, 2, 264), (256, 2, 528))]
        + [(f"stride {w}x{v} in {b}", ("stride",), {"workgroup_size": w, "vecs": v, "max_blocks": b}) for w, v, b in
           ((512, 4, 264), (1024, 2, 264), (256, 8, 264), (1024, 4, 132))],
    "run lengths, runs of 1": base + [same("rows"), same("copy8"), same("rows", "copy8"), same(items="held"), same(look=2)]
        + shapes((), (256, 6), (256, 4), (128, 16)) + shapes(("copy8",), (256, 6)),
    "unique by key, runs of 1": base + [same("rows"), same("copy8"), same(ahead=0), same("early"), same("rows", "early"), same("copy8", ahead=0)] + shapes((), (256, 6)),
    "unique, runs of 8": base + [same("rows"), same("rows", "copy8"), same(ahead=32), same("early", ahead=32)],
    "unique by key, runs of 8": base + [same("rows"), same("rows", "copy8"), same("early")],
    "run lengths, runs of 8": base + [same("rows"), same("rows", "copy8")],
}
if not big:  # few items: smaller shapes, and no counting ahead
    few = [shape(512, 2), shape(256, 4), shape(256, 8), shape(512, 1), shape(256, 2)]
    for name in PLANS:
        if name != "reduce":  # few
            PLANS[name] = [each for each in PLANS[name] if "workgroup_size" not in each[2] and "early" not in each[0] and "preload" not in each[0]]
            PLANS[name] += [(f"{s['workgroup_size']}x{s['vecs']}", (), s) for s in few]

if WARM:  # fills the driver's cache of pipelines, as one of several processes
    part, parts = map(int, WARM.split("/"))
    every = [(name, each) for name in (WANTED or PLANS) for each in PLANS[name]]
    zeros = {}
    for name, (label, on, fields) in every[part::parts]:
        if time.perf_counter() > BEGIN + BUDGET: break
        make, inputs, *_, tuning = ROWS[name]
        for k in inputs:
            if k not in zeros: zeros[k] = gw.zeros(N, "u32", device=device) if hasattr(gw, "zeros") else gw.asarray(np.zeros(N, np.uint32), device)
        try:
            variants.ON.clear(); variants.ON.update(on)
            one = make(tuning(**fields)); one.execute(**{k: zeros[k] for k in inputs}); gw.synchronize(device); one.release()
        except Exception as error:
            print("warm", name, label, str(error)[:120])
    sys.exit(0)

server = None
program = next((p for p in (ROOT / "cub_peer",) if p.exists()), None)
if program is not None and not SMOKE:
    import tempfile
    server = harness.CubServer(program, Path(tempfile.mkdtemp()))

RESULTS = {}
ORDER = WANTED or list(PLANS)
weights = {name: 2 + len(PLANS[name]) * (0.4 if name == "reduce" else 1.0) for name in ORDER}
ends = dict(zip(ORDER, itertools.accumulate(weights[name] * BUDGET / sum(weights.values()) for name in ORDER)))
for number, name in enumerate(ORDER):
    make, inputs, outputs, (algorithm, of_cub, options), tuning = ROWS[name]
    begin, deadline = time.perf_counter(), BEGIN + ends[name]
    if time.perf_counter() > BEGIN + BUDGET:
        print("no time for", name); continue
    arrays = {k: data.array(v) for k, v in inputs.items()}
    sides, found, said = {}, {}, {}
    right = None
    if server is not None:
        try:
            sides["cub"] = harness.Cub(server, ["case", algorithm, "u32", N, *(f"{k}={v}" for k, v in {**of_cub, **options}.items())],
                                       {v: data.host(v) for v in of_cub.values()})
        except Exception as error:
            print("cub:", error)
    # as Sides does it in cases.py; numpy says what is right once
    first = ROWS[name][0](None)
    host = {k: data.host(v) for k, v in inputs.items()}
    if name.startswith("reduce by key"):
        starts = np.flatnonzero(np.append(True, host["keys"][1:] != host["keys"][:-1]))
        expected = (host["keys"][starts], np.add.reduceat(host["items"], starts, dtype=np.uint64).astype(np.uint32), np.array([starts.size], np.uint32))
    else:
        expected = first.reference(**host)
    expected = expected if isinstance(expected, tuple) else (expected,)
    variants.ON.clear()
    for label, on, fields in PLANS[name]:
        if time.perf_counter() > deadline - 0.3 * (deadline - begin):
            said[label] = "no time"; continue
        try:
            variants.ON.clear(); variants.ON.update(on)
            side = harness.Ours(make(tuning(**fields)), arrays)
            got = side.outputs()
            names = list(first.signature.outputs)
            wrong = [k for k, e in zip(names, expected) if k in got and not np.array_equal(np.asarray(got[k]).reshape(-1), np.asarray(e).reshape(-1)[: np.asarray(got[k]).size])]
            wrong += [k for k, e in zip(names, expected) if k in got and k != "count" and k != "counts" and np.asarray(got[k]).size not in (np.asarray(e).size,)]
            if wrong:
                said[label] = f"WRONG {wrong}"; side.release(); continue
            sides[label] = side
        except Exception as error:
            said[label] = f"{type(error).__name__}: {str(error)[:160]}"
            if SMOKE: traceback.print_exc()
    variants.ON.clear()
    rounds = 0
    launches = 3 if SMOKE else 100
    order = list(sides)
    if "base" in sides:
        warm_up(sides["base"]._call, 0.01 if SMOKE else 0.3)
    while sides and rounds < (1 if SMOKE else 9) and (rounds < 2 or time.perf_counter() < deadline):
        for label in order if rounds % 2 else order[::-1]:
            side = sides[label]
            if label == "cub":
                times = side.times(0.05, 3)["back_to_back"]
                if "base" in sides: warm_up(sides["base"]._call, 0.03)
            else:
                side._back_to_back_ns(5)
                times = [side._back_to_back_ns(launches) for _ in range(3)]
            found.setdefault(label, []).extend(times)
        rounds += 1
    table = {label: statistics.median(times) / 1e3 for label, times in found.items()}
    RESULTS[name] = {"n": N, "rounds": rounds, "us": table, "said": said, "all_ns": found,
                     "temp": {k: s.facts.get("parameters") for k, s in sides.items()}}
    for side in sides.values(): side.release()
    Path(OUT).write_text(json.dumps(RESULTS, default=str))
    cub = table.get("cub")
    print(f"== {name}, n={N}, {rounds} rounds, {time.perf_counter() - BEGIN:.0f} s" + (f", CUB {cub:.2f}" if cub else ""), flush=True)
    print("  " + "; ".join(f"{k} {v:.2f}" for k, v in sorted(table.items(), key=lambda kv: kv[1]) if k != "cub"))
    for label, text in said.items(): print(f"  {label}: {text}")
