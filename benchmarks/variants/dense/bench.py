"""Rows of streams: old tree, new tree and variants in turns. Usage: bench.py JSON BUDGET_S; SMOKE=1, N=log2, WARM=k/8."""
import itertools, json, os, statistics, sys, time, traceback, importlib
from pathlib import Path
ROOT = Path(__file__).resolve().parents[2]; KIT = Path(__file__).resolve().parent
import numpy as np
OUT, BUDGET = sys.argv[1], float(sys.argv[2])
BEGIN = time.perf_counter()
SMOKE, WARM, SHIFT = bool(os.environ.get("SMOKE")), os.environ.get("WARM", ""), int(os.environ.get("SHIFT", "0"))

def is_own(k): return k.split(".")[0] in ("gridwise_py", "harness", "data")
class World:
    """One tree's package beside the others'."""
    def __init__(self, name):
        self.name, self.modules = name, {}
        self.enter()
        self.gw = importlib.import_module("gridwise_py")
        assert str(KIT / name) in self.gw.__file__, self.gw.__file__
        self.harness = importlib.import_module("harness")
        self.warm_up = importlib.import_module("gridwise_py.bench.cases.case").warm_up
        self.variants = importlib.import_module("gridwise_py.variants").ON if name == "exp" else set()
        if SMOKE:
            facts = importlib.import_module("gridwise_py.tuning.facts"); facts._INTEGRATED = facts.DISCRETE
            importlib.import_module("gridwise_py.types.capabilities").Capabilities.is_cpu = property(lambda s: False)
        self.device = self.gw.request_device()
        self.arrays = {}
    now = None
    def enter(self):
        """What is imported late comes from this tree."""
        if World.now is self: return
        if World.now is not None: World.now.modules = {k: m for k, m in sys.modules.items() if is_own(k)}
        for k in [k for k in sys.modules if is_own(k)]: del sys.modules[k]
        sys.modules.update(self.modules)
        sys.path[:] = [str(KIT / self.name), str(ROOT / "benchmarks/peers"), *(x for x in sys.path if not x.startswith(str(KIT)) and x not in (str(ROOT), str(ROOT / "benchmarks/peers"), ""))]
        World.now = self
    def array(self, key, host):
        if key not in self.arrays: self.arrays[key] = self.gw.asarray(host, self.device)
        return self.arrays[key]

worlds = {name: World(name) for name in ("old", "new", "exp")}
rng = np.random.default_rng(3)
hosts = {}
def host(name, n):
    """words, values, runs:K, mean:K (random lengths), and runs8:K of u64."""
    key = (name, n)
    if key not in hosts:
        kind, _, k = name.partition(":")
        if kind == "runs": hosts[key] = (np.arange(n, dtype=np.uint32) // np.uint32(int(k)))
        elif kind == "mean": hosts[key] = np.cumsum(rng.random(n, dtype=np.float32) < 1 / float(k), dtype=np.uint32)
        elif kind == "runs8": hosts[key] = (np.arange(n, dtype=np.uint64) // np.uint64(int(k)))
        else: hosts[key] = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    return hosts[key]

def heads(x): return np.flatnonzero(np.append(True, x[1:] != x[:-1]))
H = 1 << 31
def runs(x, lengths=False, values=None, op=False):
    s = heads(x)
    if lengths: return [x[s], np.diff(np.append(s, x.size)).astype(np.uint32)]
    if op: return [x[s], np.add.reduceat(values, s, dtype=np.uint32)]
    return [x[s]] + ([values[s]] if values is not None else [])
def select(g, d, t): x = g.u32("x"); return g.Select(d, x, where=x < H, tuning=t)
def part2(g, d, t): x = g.u32("x"); return g.Partition(d, x, where=x < H, tuning=t)
def part3(g, d, t): x = g.u32("x"); return g.Partition(d, x, where=[x < (1 << 30), x < (3 << 30)], parts=3, tuning=t)
A, B = 1 << 30, 3 << 30
KINDS = {  # make, inputs, numpy's outputs, tuning
    "select": (select, {"x": "words"}, lambda x: [x[x < H]]),
    "partition 2": (part2, {"x": "words"}, lambda x: [x[x < H], x[x >= H]]),
    "partition 3": (part3, {"x": "words"}, lambda x: [x[x < A], x[(x >= A) & (x < B)], x[x >= B]]),
    "unique": (lambda g, d, t: g.Unique(d, "u32", tuning=t), {"keys": "K"}, lambda keys: runs(keys)),
    "unique u64": (lambda g, d, t: g.Unique(d, "u64", tuning=t), {"keys": "K8"}, lambda keys: runs(keys)),
    "lengths": (lambda g, d, t: g.RunLength(d, "u32", outputs=("values", "lengths"), tuning=t), {"keys": "K"}, lambda keys: runs(keys, True)),
    "by key": (lambda g, d, t: g.Unique(d, "u32", "u32", tuning=t), {"keys": "K", "values": "values"}, lambda keys, values: runs(keys, values=values)),
    "reduce by key": (lambda g, d, t: g.ReduceByKey(d, "u32", "u32", g.Add, tuning=t), {"keys": "K", "items": "values"}, lambda keys, items: runs(keys, values=items, op=True)),
}
both = [("old", (), {}), ("new", (), {})]
def e(*on, **more): return [("exp", on, more)]
R = ("rows", "lrows")
PLAN = [  # kind, log2 n, runs, variants; the most valuable first
    ("select", 24, "", both + e("one", "banks") + e("one", ahead=32) + e("one", ahead=128) + e("banks")),
    ("partition 2", 24, "", both + e(ahead=32) + e("one", "banks", ahead=32) + e("one", ahead=64) + e("one", ahead=32, items="late")),
    ("unique", 24, "1", both + e("rows", "banks") + e("rows", "r1") + e("rows", "banks", "r1") + e("rows", "noahead")),
    ("unique", 24, "8", both + e("rows", "banks") + e("rows", "r1") + e("rows", "banks", "r1")),
    ("lengths", 24, "1", both + e(*R) + e(*R, "banks") + e(*R, "first") + e(*R, "r1") + e(*R, "noahead") + e(*R, "banks", "r1") + e("banks")),
    ("lengths", 24, "8", both + e(*R) + e(*R, "banks") + e(*R, "first") + e(*R, "r1") + e(*R, "noahead") + e(*R, "banks", "r1") + e("banks")),
    ("partition 3", 24, "", both + e(ahead=32) + e("one", "banks", ahead=32)),
    ("by key", 24, "1", both + e("one", "banks")), ("by key", 24, "8", both + e("one", "banks")),
    ("select", 25, "", both), ("partition 2", 25, "", both), ("partition 3", 25, "", both),
    ("unique", 24, "2", both), ("unique", 24, "mean:2", both), ("unique", 24, "1000", both), ("unique u64", 24, "1", both), ("unique u64", 24, "8", both),
    ("lengths", 24, "2", both), ("lengths", 24, "1000", both), ("by key", 24, "2", both), ("by key", 24, "1000", both),
    ("reduce by key", 24, "1", both), ("reduce by key", 24, "8", both),
    ("select", 23, "", both), ("select", 22, "", both), ("partition 2", 23, "", both), ("partition 2", 22, "", both),
    ("partition 3", 23, "", both), ("partition 3", 22, "", both),
    *[(k, 20, r, both) for k in ("unique", "lengths", "by key", "reduce by key") for r in ("1", "2", "8", "1000")],
    ("reduce by key", 24, "2", both), ("reduce by key", 24, "1000", both),
    # ablations: UNCHECKED ones write wrong values
    ("reduce by key", 24, "1", e() + e("no_look") + e("no_scan") + e("no_look", "no_scan") + e("no_stage") + e("no_put") + e("no_stage", "no_put") + e("no_look", "no_scan", "no_stage", "no_put")),
    ("unique", 24, "1", e("rows") + e("rows", "no_look") + e("rows", "banks", "no_look")),
    ("lengths", 24, "1", e("no_look") + e(*R, "no_look")),
]
UNCHECKED = {"no_stage", "no_put"}
def label(side):
    world, on, more = side
    return " ".join([world, *on, *(f"{k}={v}" for k, v in more.items())])
def build(row, side):
    kind, log, r, _ = row
    world, on, more = side
    w, n = worlds[world], 1 << max(10, log - SHIFT)
    w.enter()
    make, inputs, expect = KINDS[kind]
    named = r if ":" in r else f"runs:{r}"
    names = {k: {"K": named, "K8": f"runs8:{r}"}.get(v, v) for k, v in inputs.items()}
    tuning = (w.gw.ScanTuning if kind == "reduce by key" else w.gw.StreamTuning)(**more)
    w.variants.clear(); w.variants.update(on)
    ours = w.harness.Ours(make(w.gw, w.device, tuning), {k: w.array((v, n), host(v, n)) for k, v in names.items()})
    w.variants.clear()
    return ours, names, n, expect

if WARM:
    part, parts = map(int, WARM.split("/"))
    seen = {}
    for row in PLAN:
        for side in row[3]:
            kind, log, r, _ = row
            key = (kind, log, label(side))  # a text does not depend on its runs
            seen.setdefault(key, (row, side))
    for row, side in list(seen.values())[part::parts]:
        if time.perf_counter() > BEGIN + BUDGET: break
        try:
            ours, *_ = build(row, side); ours.release(); worlds[side[0]].arrays.clear(); hosts.clear()
        except Exception as error: print("warm", row[:3], label(side), str(error)[:150])
    sys.exit(0)

RESULTS, wanted_cache = [], {}
for number, row in enumerate(PLAN):
    kind, log, r, variants_ = row
    if time.perf_counter() > BEGIN + BUDGET: print("no time for", *row[:3]); continue
    for w in worlds.values():  # arrays of other sizes go
        for k in [k for k in w.arrays if k[1] != 1 << max(10, log - SHIFT)]: del w.arrays[k]
    sides, said = {}, {}
    for side in variants_:
        try:
            ours, names, n, expect = build(row, side)
            if not UNCHECKED & set(side[1]):
                key = (kind, n, tuple(names.values()))
                if key not in wanted_cache:
                    wanted_cache.clear(); wanted_cache[key] = expect(**{k: host(v, n) for k, v in names.items()})
                worlds[side[0]].enter()
                got = [np.asarray(v).reshape(-1) for k, v in ours.outputs().items() if not k.startswith("count")]
                counts = {k: int(np.asarray(v).reshape(-1)[0]) for k, v in ours.outputs().items() if k == "count"}
                want = wanted_cache[key]
                if len(got) != len(want) or not all(np.array_equal(a, b) for a, b in zip(got, want)) or any(c != want[0].size for c in counts.values()):
                    said[label(side)] = f"WRONG {[a.shape for a in got]} {[b.shape for b in want]} {counts}"; ours.release(); continue
            sides[label(side)] = (side[0], ours)
        except Exception as error:
            said[label(side)] = f"{type(error).__name__}: {str(error)[:200]}"
            if SMOKE: traceback.print_exc()
    times = {k: [] for k in sides}
    order = list(sides)
    launches = 2 if SMOKE else 100
    deadline = min(BEGIN + BUDGET + 2, time.perf_counter() + (0.9 if len(order) <= 3 else 0.25 * len(order)))
    if order:
        world, first = sides[order[0]]
        worlds[world].enter(); worlds[world].warm_up(first._call, 0.01 if SMOKE else 0.15)
    rounds = 0
    while order and rounds < (1 if SMOKE else 9) and (rounds < 3 or time.perf_counter() < deadline):
        for k in order if rounds % 2 else order[::-1]:
            ours = sides[k][1]; worlds[sides[k][0]].enter()
            if not SMOKE: ours._back_to_back_ns(10)
            times[k] += [ours._back_to_back_ns(launches) for _ in range(2)]
        rounds += 1
    us = {k: statistics.median(v) / 1e3 for k, v in times.items()}
    RESULTS.append({"row": row[:3], "rounds": rounds, "us": us, "said": said, "all_ns": times, "shape": {k: s[1].facts.get("parameters") for k, s in sides.items()}})
    for name, ours in sides.values(): worlds[name].enter(); ours.release()
    Path(OUT).write_text(json.dumps(RESULTS, default=str))
    print(f"{kind:14s} 2^{log} {r:6s} {rounds} " + "; ".join(f"{k} {v:.2f}" for k, v in us.items()) + ("  !! " + str(said) if said else ""), flush=True)
print(f"bench: {time.perf_counter() - BEGIN:.0f} s")
