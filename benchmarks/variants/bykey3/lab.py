"""Variants of reduce by key, unique, scan in turns. lab.py work I N DIR | lab.py table DIR; SMOKE=1, SHIFT=log2, PLANS=names, BUDGET=s.
Workers compile their own variants, then time them in turns under a lock; DIR/I.jsonl has every sample."""
import fcntl, json, os, statistics, sys, time, traceback
from pathlib import Path
BEGIN = time.perf_counter()
KIT = Path(__file__).resolve().parent; ROOT = KIT.parents[1]
SMOKE, SHIFT = bool(os.environ.get("SMOKE")), int(os.environ.get("SHIFT", "0"))
K = 1024
def e(kind, shape="", *on, stage=0, quads=0, words=0, touch=0, step=64, grid=0, **more):
    """A variant; stage in KiB, touch in tiles, step in bytes."""
    fields = dict(more)
    if shape: fields |= dict(zip(("workgroup_size", "vecs"), map(int, shape.split("x"))))
    if words: fields["stage"] = words
    num = {k: v for k, v in (("stage", int(stage * K)), ("quads", quads), ("touch", touch), ("grid", grid)) if v}
    if touch: num["step"] = step; on = (*on, *(() if {"early", "mid", "late"} & set(on) else ("mid",)))
    text = [shape or "now", *([f"@{stage:g}K"] if stage else []), *[o for o in on if o not in ("small", "early", "mid", "late")], *([f"q{quads}"] if quads else []), *([f"grid{grid}"] if grid else []),
            *([f"T{touch}/{step}{[o for o in on if o in ('early', 'mid', 'late')][0][0]}"] if touch else []), *(f"{k}={v}" for k, v in more.items()), *([f"{words}w"] if words else [])]
    return (kind, " ".join(text), tuple(on), num, fields)
def r(shape, stage, *on, **more): return e("reduce", shape, "small", *on, stage=stage, **more)
exec((KIT / "plans.py").read_text())
if os.environ.get("PLANS"): PLANS = [p for p in PLANS if p[0] in os.environ["PLANS"].split(",")]

if sys.argv[1] == "table":
    found, facts = {}, {}
    for path in sorted(Path(sys.argv[2]).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try: x = json.loads(line)
            except ValueError: continue
            if "us" in x: found.setdefault((x["plan"], x["row"]), {}).setdefault(x["label"], []).append(x["us"])
            else: facts.setdefault((x["plan"], x["label"]), {}).update(x)
    for name, log, rows, vs in PLANS:
        print(f"== {name} 2^{log}")
        for v in vs:
            f = facts.get((name, v[1]), {})
            cells = [f"{statistics.median(found[name, row][v[1]]):8.2f}" if v[1] in found.get((name, row), {}) else "       -" for row in rows]
            print(f"  {v[1]:34s} {' '.join(cells)}  {f.get('reg', '')} {f.get('said', '')}")
        print("   rows:", *rows)
    if len(sys.argv) > 3: Path(sys.argv[3]).write_text(json.dumps({"facts": [f for f in facts.values()], "us": [{"plan": k[0], "row": k[1], "us": v} for k, v in found.items()]}))
    sys.exit(0)

I, N, DIR = int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
BUDGET = float(os.environ.get("BUDGET", "50"))
TREE = os.environ["BYKEY_TREE"]
sys.path[:0] = [TREE, str(ROOT / "benchmarks/peers")]
import numpy as np
import gridwise_py as gw
assert TREE in gw.__file__, gw.__file__
import harness
from gridwise_py import variants
from gridwise_py.bench.cases.case import warm_up
if SMOKE:
    import gridwise_py.tuning.facts as facts
    facts._INTEGRATED = facts.DISCRETE
    from gridwise_py.types.capabilities import Capabilities
    Capabilities.is_cpu = property(lambda s: False)
device = gw.request_device()
out = open(DIR / f"{I}.jsonl", "a")
def say(**x): out.write(json.dumps(x, default=str) + "\n"); out.flush()
arrays, hosts = {}, {}
def host(name, n):
    if (name, n) not in hosts:
        kind, _, k = name.partition(":")
        rng = np.random.default_rng(3)
        if kind == "runs": x = np.arange(n, dtype=np.uint32) // np.uint32(int(k))
        elif kind == "runs8": x = np.arange(n, dtype=np.uint64) // np.uint64(int(k))
        elif kind == "mean": x = np.cumsum(rng.random(n, dtype=np.float32) < 1 / float(k), dtype=np.uint32)
        elif kind == "flags": x = (rng.random(n, dtype=np.float32) < 0.5).astype(np.uint8)
        else: x = rng.integers(0, 1 << 32, n, dtype=np.uint32)
        hosts[name, n] = x
    return hosts[name, n]
def array(name, n):
    if (name, n) not in arrays: arrays[name, n] = gw.asarray(host(name, n), device)
    return arrays[name, n]
def heads(x): return np.flatnonzero(np.append(True, x[1:] != x[:-1]))
def runs(x, lengths=False, values=None):
    s = heads(x)
    if lengths: return [x[s], np.diff(np.append(s, x.size)).astype(np.uint32)]
    if values is not None: return [x[s], np.add.reduceat(values, s, dtype=np.uint32)]
    return [x[s]]
KINDS = {
    "reduce": (lambda t: gw.ReduceByKey(device, "u32", "u32", gw.Add, tuning=t), {"keys": "K", "items": "values"}, lambda keys, items: runs(keys, values=items), gw.ScanTuning),
    "unique": (lambda t: gw.Unique(device, "u32", tuning=t), {"keys": "K"}, lambda keys: runs(keys), gw.StreamTuning),
    "unique u64": (lambda t: gw.Unique(device, "u64", tuning=t), {"keys": "K8"}, lambda keys: runs(keys), gw.StreamTuning),
    "lengths": (lambda t: gw.RunLength(device, "u32", outputs=("values", "lengths"), tuning=t), {"keys": "K"}, lambda keys: runs(keys, True), gw.StreamTuning),
    "select": (lambda t: gw.Select(device, "u32", flag_dtype="u8", tuning=t), {"input": "values", "flags": "flags"}, lambda input, flags: [input[flags != 0]], gw.StreamTuning),
    "scan": (lambda t: gw.Scan(device, "u32", gw.Add, tuning=t), {"input": "values"}, lambda input: [np.cumsum(input, dtype=np.uint32)], gw.ScanTuning),
}
UNCHECKED = {"no_stage", "no_put", "linear", "no_bar", "no_scan", "no_look"}
def names_of(kind, row):
    named = row if ":" in row else f"runs:{row}"
    return {k: {"K": named, "K8": named.replace("runs", "runs8")}.get(v, v) for k, v in KINDS[kind][1].items()}
def size(log): return 1 << max(12, log - SHIFT)
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
def bound(p, v, names, n):
    variants.ON.clear(); variants.ON.update(v[2]); variants.NUM.clear(); variants.NUM.update(v[3])
    try: return harness.Ours(p, {k: array(x, n) for k, x in names.items()})
    finally: variants.ON.clear(); variants.NUM.clear()
def arrive(name, wait_s):
    (DIR / f"{name}.{I}").write_text("")
    end = min(time.perf_counter() + wait_s, BEGIN + BUDGET)
    while time.perf_counter() < end and len(list(DIR.glob(f"{name}.*"))) < N: time.sleep(0.01)
lock = open(DIR / "lock", "a")
warm = host("values", size(22))
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
        if time.perf_counter() > BEGIN + float(os.environ.get("COMPILE", "22")): say(plan=name, label=v[1], said="no time"); continue
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
                bad = None if UNCHECKED & set(v[2]) else wrong(ours, v[0], names, n)
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
                except Exception as error: say(plan=name, label=v[1], said=f"ERROR {type(error).__name__}: {str(error)[:300]}")
                finally: fcntl.flock(lock, fcntl.LOCK_UN)
            time.sleep(0.001)
        sides = []
    for k in [k for k in arrays if k[1] == n and k[0] != "values"]: del arrays[k]
