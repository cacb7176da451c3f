"""Variants of unique, run lengths, unique by key in turns. lab.py work I N DIR | lab.py table DIR; SMOKE=1, SHIFT=log2, PLANS=names, BUDGET=s.
Workers compile their own variants, then time them in turns under a lock; DIR/I.jsonl has every sample."""
import fcntl, json, os, statistics, sys, time, traceback
from pathlib import Path
BEGIN = time.perf_counter()
KIT = Path(__file__).resolve().parent; ROOT = KIT.parents[1]
SMOKE, SHIFT = bool(os.environ.get("SMOKE")), int(os.environ.get("SHIFT", "0"))
def e(kind, shape="", *on, words=None, depth=0, stage=0, fake=None, pad=0, far=0, **more):
    """A variant: shape "256x8" or "", switches, words of workgroup memory, rows loaded ahead, other tuning."""
    fields = dict(more)
    if shape: fields |= dict(zip(("workgroup_size", "vecs"), map(int, shape.split("x"))))
    if fake is not None: on = ("fake", *on)
    if words is not None: fields["stage"] = words
    if {"V", "A", "U", "S", "linear"} & set(on): on = ("rowform", *on)
    text = [shape or "now", *([f"@{stage}K"] if stage else []), *[o for o in on if o != "rowform"], *([f"pad{pad}"] if pad else []), *([f"far{far}"] if far else []), *([] if fake is None else [f"F{fake}"]), *([f"d{depth}"] if depth else []), *(f"{k}={v}" for k, v in more.items()), *([f"{words}w"] if words is not None else [])]
    return (kind, " ".join(text), tuple(on), {k: v for k, v in (("depth", depth), ("stage", stage * 1024), ("pad", pad), ("far", far)) if v} | ({} if fake is None else {"fake": fake}), fields)
exec((KIT / "plans.py").read_text())
if os.environ.get("PLANS"): PLANS = [p for p in PLANS if p[0] in os.environ["PLANS"].split(",")]

def shape(f):
    p = f.get("parameters") or {}
    return f"{p.get('workgroup_size')}x{p.get('vecs')} a{p.get('ahead')} l{p.get('look_back_window')} at {f.get('at')}" if p else ""
if sys.argv[1] == "table":
    found, facts = {}, {}
    for path in sorted(Path(sys.argv[2]).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try: x = json.loads(line)
            except ValueError: continue
            if "us" in x: found.setdefault((x["plan"], x["row"]), {}).setdefault(x["label"], []).append(x["us"])
            else:
                facts.setdefault((x["plan"], x["label"]), {}).update(x)
                if "rounds" in x.get("said", ""): print(x["plan"], x["label"], x["said"])
    for name, log, rows, vs in PLANS:
        print(f"== {name} 2^{log}")
        for v in vs:
            f = facts.get((name, v[1]), {})
            cells = [f"{statistics.median(found[name, row][v[1]]):8.2f}" if v[1] in found.get((name, row), {}) else "       -" for row in rows]
            print(f"  {v[1]:34s} {' '.join(cells)}  {f.get('reg', '')} {shape(f)} {f.get('said', '')}")
        print("   rows:", *rows)
    if len(sys.argv) > 3: Path(sys.argv[3]).write_text(json.dumps({"facts": [f for f in facts.values()], "us": [{"plan": k[0], "row": k[1], "us": v} for k, v in found.items()]}))
    sys.exit(0)

if sys.argv[1] == "data":  # made while the others compile
    import numpy as np
    I = N = 0
    DIR = Path(sys.argv[2])
else: I, N, DIR = int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
import numpy as np
hosts = {}
def made(name, n):
    kind, _, k = name.partition(":")
    rng = np.random.default_rng(3)
    if kind == "runs": return np.arange(n, dtype=np.uint32) // np.uint32(int(k))
    if kind == "flags": return (rng.random(n, dtype=np.float32) < 0.5).astype(np.uint8)
    if kind == "random": return np.random.default_rng(5).integers(0, 1 << 32, n, dtype=np.uint32)
    if kind == "mean": return np.cumsum(rng.random(n, dtype=np.float32) < 1 / float(k), dtype=np.uint32)
    x = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    # as many duplicates as 2^24 sorted random keys have, whatever n is
    if kind == "sorted": x = np.sort(x >> np.uint32(max(0, 24 - (n.bit_length() - 1))))
    return x
def host(name, n):
    if (name, n) not in hosts:
        path = DIR / f"data_{name.replace(':', '_')}_{n}.npy"
        with open(f"{path}.lock", "a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if not path.exists(): np.save(path, made(name, n))
        hosts[name, n] = np.load(path)
    return hosts[name, n]
def size(log): return 1 << max(12, log - SHIFT)
if sys.argv[1] == "data":
    for name in ("values", "flags", "runs:1", "sorted"): host(name, size(24))
    for _, log, rows, _ in PLANS:
        for row in rows: host(row if ":" in row or row in ("sorted", "random") else f"runs:{row}", size(log)); host("values", size(log))
    sys.exit(0)
BUDGET = float(os.environ.get("BUDGET", "50"))
TREE = os.environ["FIN_TREE"]
sys.path[:0] = [TREE, str(ROOT / "benchmarks/peers")]
import numpy as np
import gridwise_py as gw
assert TREE in gw.__file__, gw.__file__
import harness
from gridwise_py import variants
from gridwise_py.planning import accessors, builder
from gridwise_py.bench.cases.case import warm_up
if SMOKE:
    import gridwise_py.tuning.facts as facts
    facts._INTEGRATED = facts.DISCRETE
    from gridwise_py.types.capabilities import Capabilities
    Capabilities.is_cpu = property(lambda s: False)
device = gw.request_device()
out = open(DIR / f"{I}.jsonl", "a")
def say(**x): out.write(json.dumps(x, default=str) + "\n"); out.flush()
arrays = {}
def array(name, n):
    if (name, n) not in arrays: arrays[name, n] = gw.asarray(host(name, n), device)
    return arrays[name, n]
def heads(x): return np.flatnonzero(np.append(True, x[1:] != x[:-1]))
def unique(keys): return [keys[heads(keys)]]
def lengths(keys): s = heads(keys); return [keys[s], np.diff(np.append(s, keys.size)).astype(np.uint32)]
def by_key(keys, values): s = heads(keys); return [keys[s], values[s]]
def sums(keys, items): s = heads(keys); return [keys[s], np.add.reduceat(items, s, dtype=np.uint32)]
def order(keys, values): o = np.argsort(keys, kind="stable"); return [keys[o], values[o]]
KINDS = {
    "unique": (lambda t: gw.Unique(device, "u32", tuning=t), {"keys": "K"}, unique, gw.StreamTuning),
    "lengths": (lambda t: gw.RunLength(device, "u32", outputs=("values", "lengths"), tuning=t), {"keys": "K"}, lengths, gw.StreamTuning),
    "bykey": (lambda t: gw.Unique(device, "u32", "u32", tuning=t), {"keys": "K", "values": "values"}, by_key, gw.StreamTuning),
    "reduce": (lambda t: gw.ReduceByKey(device, "u32", "u32", gw.Add, tuning=t), {"keys": "K", "items": "values"}, sums, gw.ScanTuning),
    "select": (lambda t: gw.Select(device, "u32", flag_dtype="u8", tuning=t), {"input": "values", "flags": "flags"}, lambda input, flags: [input[flags != 0]], gw.StreamTuning),
    "part2": (lambda t: gw.Partition(device, "u32", flag_dtype="u8", tuning=t), {"input": "values", "flags": "flags"}, None, gw.StreamTuning),
    "scankey": (lambda t: gw.ScanByKey(device, "u32", "u32", gw.Add, tuning=t), {"keys": "K", "items": "values"}, None, gw.ScanTuning),
    "scan": (lambda t: gw.Scan(device, "u32", gw.Add, tuning=t), {"input": "values"}, lambda input: [np.cumsum(input, dtype=np.uint32)], gw.ScanTuning),
    "sort": (lambda t: gw.Sort(device, "u32", tuning=t), {"input": "values"}, lambda input: [np.sort(input)], gw.SortTuning),
    "pairs": (lambda t: gw.SortPairs(device, "u32", "u32", tuning=t), {"keys": "K", "values": "values"}, order, gw.SortTuning),
}
RIGHT_OF_ONES = {"linear"}
def names_of(kind, row):
    named = row if ":" in row or row in ("sorted", "random") else f"runs:{row}"
    return {k: named if v == "K" else v for k, v in KINDS[kind][1].items()}
def unchecked(v, row): return KINDS[v[0]][2] is None or {"no_put", "no_look", "rounds", "fake"} & set(v[2]) or (RIGHT_OF_ONES & set(v[2]) and row != "1")
def one_row(v): return bool(RIGHT_OF_ONES & set(v[2]))
stats_path = os.environ.get("PIPE_STATS"); stats_at = 0
def registers():
    global stats_at
    if not stats_path or not Path(stats_path).exists(): return ""
    text = Path(stats_path).read_text(); new = text[stats_at:]; stats_at = len(text)
    found = []
    for line in new.splitlines():
        if line.startswith("pipeline;"):
            d = dict(x.split("=") for x in line.split(";")[1:])
            found.append((int(d.get("Binary Size", 0)), f"reg={d.get('Register Count')} sha={d.get('Shared Memory Size')} loc={int(d.get('Local Memory Size', 0)) & 0xffff} bin={d.get('Binary Size')}"))
    return max(found)[1] if found else ""
wanted = {}
def wrong(ours, kind, names, n):
    key = (kind, n, tuple(names.values()))
    if key not in wanted: wanted[key] = KINDS[kind][2](**{k: host(v, n) for k, v in names.items()})
    want, got = wanted[key], ours.outputs()
    items = [np.asarray(v).reshape(-1) for k, v in got.items() if not k.startswith("count")]
    counts = [int(np.asarray(v).reshape(-1)[0]) for k, v in got.items() if k.startswith("count")]
    if len(items) != len(want) or any(c != want[0].size for c in counts): return f"WRONG counts {counts} {want[0].size}"
    for a, b in zip(items, want):
        if not np.array_equal(a[: b.size], b): return f"WRONG {a.shape} {b.shape}"
    return None
def primitive(v):
    variants.ON.clear(); variants.ON.update(v[2]); variants.NUM.clear(); variants.NUM.update(v[3])
    return KINDS[v[0]][0](KINDS[v[0]][3](**v[4]))
def clear():
    for cache in (builder._shader, accessors.bindings): cache.cache_clear()
def bound(p, v, names, n):
    clear()
    variants.ON.clear(); variants.ON.update(v[2]); variants.NUM.clear(); variants.NUM.update(v[3])
    try: return harness.Ours(p, {k: array(x, n) for k, x in names.items()})
    finally: variants.ON.clear(); variants.NUM.clear()
def arrive(name, wait_s):
    (DIR / f"{name}.{I}").write_text("")
    end = min(time.perf_counter() + wait_s, BEGIN + BUDGET)
    while time.perf_counter() < end and len(list(DIR.glob(f"{name}.*"))) < N: time.sleep(0.01)
lock = open(DIR / "lock", "a")
for p, given in ((gw.ReduceByKey(device, "u32", "u32"), {"keys": "runs:8", "items": "values"}), (gw.Unique(device, "u32"), {"keys": "runs:8"}), (gw.Scan(device, "u32"), {"input": "values"})):
    harness.Ours(p, {k: array(x, 1 << 12) for k, x in given.items()})  # the self-tests of the device, without switches
number = 0
mine = {}
for name, log, rows, vs in PLANS:
    for v in vs:
        if number % N == I: mine.setdefault(name, []).append([v, None, None])
        number += 1
# compile all, on a small input
for name, log, rows, vs in PLANS:
    for entry in mine.get(name, []):
        v = entry[0]
        if time.perf_counter() > BEGIN + float(os.environ.get("COMPILE", "24")): say(plan=name, label=v[1], said="no time"); continue
        try:
            registers()
            entry[1] = p = primitive(v)
            n = size(log)
            ours = bound(p, v, names_of(v[0], rows[0]), n)
            say(plan=name, label=v[1], reg=registers(), parameters=ours.facts.get("parameters"), at=round(time.perf_counter() - BEGIN, 1))
        except Exception as error:
            entry[1] = None; say(plan=name, label=v[1], said=f"ERROR {type(error).__name__}: {str(error)[:300]}")
            if SMOKE: traceback.print_exc()
for name, log, rows, vs in PLANS:
    n = size(log)
    for row in rows:
        if time.perf_counter() > BEGIN + BUDGET: break
        sides = []
        for v, p, _ in mine.get(name, []):
            if p is None: continue
            try:
                names = names_of(v[0], row)
                ours = bound(p, v, names, n)
                if one_row(v) and row != '1': continue
                bad = None if unchecked(v, row) or n > 1 << 25 else wrong(ours, v[0], names, n)
                if bad: say(plan=name, label=v[1], said=f"row {row}: {bad}"); continue
                sides.append((v, ours))
            except Exception as error: say(plan=name, label=v[1], said=f"ERROR {type(error).__name__}: {str(error)[:300]}")
        arrive(f"{name.replace(' ', '_')}_{row}".replace(":", "_"), 5)
        for _ in range(1 if SMOKE else 3):
            for v, ours in sides:
                if time.perf_counter() > BEGIN + BUDGET: break
                fcntl.flock(lock, fcntl.LOCK_EX)
                try:
                    if not SMOKE: ours._back_to_back_ns(40)
                    ns = ours._back_to_back_ns(2 if SMOKE else 100)
                    say(plan=name, row=row, label=v[1], us=ns / 1e3)
                    if "rounds" in v[2]:
                        w = np.asarray(ours.outputs()["output"]).reshape(-1)[: ours.facts["parameters"]["tiles"]][1:].astype(np.int64)
                        stat = lambda x: f"{x.mean():.2f}/{np.percentile(x, 50):.0f}/{np.percentile(x, 90):.0f}/{x.max()}"
                        q = len(w) // 4
                        say(plan=name, label=v[1], said=f"row {row} rounds {stat(w & 255)} waits {stat((w >> 8) & 255)} reached {stat(w >> 16)} quarters {[round(float((w[k*q:(k+1)*q] & 255).mean()), 1) for k in range(4)]} waits {[round(float(((w[k*q:(k+1)*q] >> 8) & 255).mean()), 1) for k in range(4)]}")
                except Exception as error: say(plan=name, label=v[1], said=f"ERROR {type(error).__name__}: {str(error)[:300]}")
                finally: fcntl.flock(lock, fcntl.LOCK_UN)
            time.sleep(0.001)
        sides = []
        for k in [k for k in arrays if k[1] == n and k[0] != "values"]: del arrays[k]; hosts.pop(k, None)
        wanted.clear()
