"""Sorts beside CUB, parts of a pass, variants. Usage: go.py [--small] [--cub FILE] [--json FILE] [--seconds S]"""
import argparse, itertools, json, statistics, sys, tempfile, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument("--small", action="store_true")
parser.add_argument("--cub", type=Path)
parser.add_argument("--json", type=Path)
parser.add_argument("--seconds", type=float, default=125)
options = parser.parse_args()
BEGIN = time.perf_counter()
left = lambda: options.seconds - (time.perf_counter() - BEGIN)
sys.path.insert(0, str(HERE)); sys.path.insert(0, str(HERE / "tree/benchmarks/peers"))
import numpy as np
import harness
import gridwise_py as gw
from gridwise_py.bench.cases.case import warm_up
from gridwise_py.tuning.options import SortTuning
from variants import applied

device = gw.request_device()
cpu = gw.capabilities(device).is_cpu
helper = gw.timing_helper(device)
out = {"adapter": str(gw.capabilities(device).adapter), "tables": {}}
print(out["adapter"], gw.__file__, flush=True)
try:
    cub = harness.CubServer(options.cub, Path(tempfile.mkdtemp())) if options.cub else None
except Exception as error:
    cub = None; print("no CUB", error)

DTYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f32": np.float32}


def data(kind, n):
    kind, _, spread = kind.partition(":")
    rng = np.random.default_rng(n + len(spread))
    if kind == "f32":
        items = rng.standard_normal(n, np.float32)
    else:
        dtype = np.dtype(DTYPES[kind])
        items = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).copy()
    if spread == "sorted":
        items.sort()
    if spread == "nearly":  # a hundredth is elsewhere
        items.sort(); places = rng.integers(0, n, n // 100); items[places] = items[places[::-1]]
    if spread == "few":
        items = items[:16][rng.integers(0, 16, n)]
    return items


class Ours:
    def __init__(self, name, kind, keys, values, gpu, patches=(), counting=None, right=None, **tuning):
        self.name = name
        made = {"subgroups": True} if cpu and tuning else {}
        tuning = SortTuning(**tuning) if tuning else None
        with applied(patches, counting):
            if values is None:
                self.sort, arrays = gw.Sort(device, kind, tuning=tuning), {"input": gpu[0]}
            else:
                self.sort, arrays = gw.SortPairs(device, kind, tuning=tuning), dict(zip(("keys", "values"), gpu))
            self.run = self.sort.execute(**arrays)
        self.call = self.sort.bind()
        self.correct = None
        if right is not None:
            got = [a.to_numpy() for a in self.run.outputs.values()]
            self.correct = all(np.array_equal(g.view(np.uint8), r.view(np.uint8)) for g, r in zip(got, right))
        self.parameters = dict(self.run.plan.parameters)
        self.b2b, self.one, self.stamped, self.kernels, self.events, self.idle = [], [], [], {}, [], []

    def launches(self, launches):
        session = helper.session()
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass(timestamp_writes=session.span("x"))
        for _, step in itertools.product(range(launches), self.call.bound_plan.steps):
            compute.set_pipeline(step.pipeline)
            compute.set_bind_group(0, step.group)
            compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        device.queue.submit([encoder.finish()])
        session.submitted()
        return session.spans()[0].ns / launches / 1e3

    def turn(self, singles=False, each_s=0.008):
        warm_up(self.call, 0.004 if cpu else 0.015)
        once = self.launches(1)
        count = max(1, min(100, int(each_s / (once * 1e-6))))
        self.b2b += [self.launches(count) for _ in range(2)]
        self.one += [self.launches(1) for _ in range(3)]
        if singles:
            for _ in range(5):
                timing = self.sort.execute(enable_gpu_timing=True).get_timing_result()
                self.stamped.append(timing.gpu_span_ns / 1e3)
                for number, span in enumerate(timing.spans):
                    if span.ns is not None:
                        self.kernels.setdefault(f"{number} {span.label}", []).append(span.ns / 1e3)
                first, last = gw.Event(device), gw.Event(device)
                self.call.execute()  # the GPU is busy while the host records what is timed
                first.record(); self.call.execute(); last.record(); last.synchronize()
                self.events.append(first.elapsed_ns(last) / 1e3)
                first, last = gw.Event(device), gw.Event(device)
                first.record(); self.call.execute(); last.record(); last.synchronize()
                self.idle.append(first.elapsed_ns(last) / 1e3)

    def row(self):
        m = lambda xs: round(statistics.median(xs), 2) if xs else None
        return {"name": self.name, "correct": self.correct, "b2b": m(self.b2b), "one_pass": m(self.one), "stamped": m(self.stamped),
                "events": m(self.events), "events_idle": m(self.idle), "kernels": {k: m(v) for k, v in self.kernels.items()},
                "parameters": {k: v for k, v in self.parameters.items() if isinstance(v, (int, str))}, "all_b2b": [round(x, 2) for x in self.b2b]}


def cub_times(algorithm, kind, n, keys, values, rounds=2):
    if cub is None:
        return None
    try:
        cub.load("keys", keys)
        if values is not None:
            cub.load("values", values)
        words = ("keys=keys", "values=values") if values is not None else ("input=keys",)
        cub.ask("case", algorithm, kind, n, *words)
        found = {"single": [], "b2b": []}
        for _ in range(rounds):
            pilot = cub.ask("time", 0.02, 1, 0)["single_ns"][0]
            answer = cub.ask("time", 0, 5, max(1, min(100, int(1e7 / pilot))))
            found["single"] += answer["single_ns"]; found["b2b"] += answer["back_to_back_ns"]
        return {k: round(statistics.median(v) / 1e3, 2) for k, v in found.items()}
    except Exception as error:
        print("CUB:", error)
        return None


def save():
    if options.json:
        options.json.write_text(json.dumps(out, indent=1))


def table(kind, n, pairs, variants, singles=False, rounds=3, beside=True, check=True):
    """Measure variants: (name, patches, fields of shapes, tuning) in turns; the first is the base."""
    title = f"{'pairs' if pairs else 'keys'} {kind} 2^{n.bit_length() - 1}"
    begin = time.perf_counter()
    if left() < 12:
        print(f"== {title}: no time left"); return
    real = kind.partition(":")[0]
    keys = data(kind, n)
    values = np.random.default_rng(1).integers(0, 1 << 32, n, dtype=np.uint32) if pairs else None
    gpu = [gw.asarray(x, device) for x in (keys, values) if x is not None]
    right = None
    if check:
        if pairs:
            order = np.argsort(keys, kind="stable") if n < 1 << 26 else None
            right = [keys[order], values[order]] if order is not None else None
        else:
            right = [np.sort(keys)]
    made = []
    for name, patches, counting, tuning in variants:
        if left() < 8 or time.perf_counter() - begin > 40:
            print(f"   {name}: left out, no time"); continue
        try:
            wrong = any(p.startswith("no ") or p == "linear write" for p in patches)
            made.append(Ours(name, real, keys, values, gpu, patches, counting, None if wrong else right, **tuning))
        except Exception as error:
            print(f"   {name}: {type(error).__name__}: {str(error)[:300]}")
    theirs = cub_times("sort_pairs" if pairs else "sort", real, n, keys, values) if beside else None
    for number in range(rounds):
        for each in made if number % 2 else made[::-1]:
            try:
                each.turn(singles)
            except Exception as error:
                print(f"   {each.name}: {type(error).__name__}: {str(error)[:300]}")
    rows = [each.row() for each in made]
    out["tables"][title] = {"rows": rows, "cub": theirs}
    print(f"== {title}: cub {theirs} ({time.perf_counter() - begin:.1f} s, {left():.0f} s left)")
    base = rows[0]["b2b"] if rows else None
    for row in rows:
        ratio = f" cub/ours {theirs['b2b'] / row['b2b']:.2f}" if theirs and row["b2b"] else ""
        more = ""
        if singles and row["stamped"]:
            against = [f"{theirs['single'] / row[k]:.2f}" for k in ("one_pass", "events", "events_idle", "stamped")] if theirs else ""
            more = f" | one pass {row['one_pass']} events {row['events']} idle {row['events_idle']} stamped {row['stamped']} single ratios {against} {list(row['kernels'].values())}"
        shape = row["parameters"]
        print(f"   {row['name']:34} {row['b2b']} µs {row['b2b'] / base:.3f} of base{ratio} "
              f"{'' if row['correct'] else 'WRONG' if row['correct'] is False else '(unchecked)'} "
              f"{shape.get('strategy')} {shape.get('workgroup_size')}x{shape.get('items_per_invocation')}{more}")
    sys.stdout.flush(); save()
    for each in made:
        each.sort.release()
    for array in gpu:
        array.destroy()


def T(size, items, parts, look):
    return {"workgroup_size": size, "items": items, "parts": parts, "look": look, **({"subgroups": True} if cpu else {})}


BASE = ("base", (), None, {})
C4 = {"count_copies": 4, "count_blocks": 528 if not cpu else 8}
big, mid, few = (1 << 14, 1 << 13, 1 << 12) if options.small else (1 << 28, 1 << 24, 1 << 20)
S = (lambda t: {**t, "workgroup_size": 256, "items": max(t["parts"], t["items"] // 4 // t["parts"] * t["parts"])}) if options.small else (lambda t: t)
K, KF, V, VF = (S(T(512, 20, 2, 3)), S(T(512, 20, 2, 2)), S(T(512, 18, 2, 2)), S(T(512, 14, 2, 2)))
step = 256 if options.small else 512

with gw.hold_clock(device):
    warm = gw.Copy(device, "u32"); a = gw.zeros(1 << 20, "u32", device) if hasattr(gw, "zeros") else gw.asarray(np.zeros(1 << 20, np.uint32), device)
    warm.execute(input=a); warm_up(warm.bind(), 0.05 if cpu else 1.0)
    # 1. keys and pairs of 32 bits at 2^24: parts of a pass, ranking, shapes
    table("u32", mid, False, [
        BASE, ("last lane leads", ("last",), None, K), ("all lanes read", ("read",), None, K), ("read, barriers", ("readbar",), None, K),
        ("atomic add", ("add",), None, K), ("xor votes", ("xor",), None, K), ("if votes", ("if",), None, K), ("read, xor", ("read", "xor"), None, K),
        ("histogram in 4 banks", ("banks",), C4, K), ("2 banks", ("banks",), {"count_copies": 2}, K), ("4 banks, all blocks", ("banks",), {"count_copies": 4}, K),
        ("4 banks, 512", ("banks",), {"count_copies": 4, "count_blocks": 528, "count_workgroup_size": 512}, K),
        ("8 banks, 512", ("banks",), {"count_copies": 8, "count_blocks": 264, "count_workgroup_size": 512}, K),
        ("528 blocks count", (), {"count_blocks": 528}, K), ("792 blocks count", (), {"count_blocks": 792}, K), ("short scan", ("short",), None, K),
        ("18 in 2", (), None, S(T(512, 18, 2, 3))), ("16 in 2", (), None, S(T(512, 16, 2, 3))), ("14 whole", ("totals",), None, S(T(512, 14, 1, 3))),
        ("read, banks, 18", ("read", "banks"), C4, S(T(512, 18, 2, 3))), ("read, banks, 14 whole", ("read", "banks", "totals"), C4, S(T(512, 14, 1, 3))),
        ("no look-back", ("no look-back",), None, K), ("no ballots", ("no ballots",), None, K), ("linear write", ("linear write",), None, K),
        ("linear, no conflicts", ("linear write", "no conflicts"), None, K),
        ("no ballots, no look-back", ("no ballots", "no look-back"), None, K),
    ], singles=True)
    table("u32", mid, True, [
        BASE, ("last lane leads", ("last",), None, V), ("all lanes read", ("read",), None, V), ("read, banks", ("read", "banks"), C4, V),
        ("14 whole", ("totals",), None, S(T(512, 14, 1, 2))), ("12 whole", (), None, S(T(512, 12, 1, 2))),
        ("14 whole early", ("totals", "early"), None, S(T(512, 14, 1, 2))), ("13 whole early", ("early",), None, S(T(512, 13, 1, 2))),
        ("12 whole early", ("early",), None, S(T(512, 12, 1, 2))), ("16 in 2", (), None, S(T(512, 16, 2, 2))),
        ("14 early, read, banks", ("totals", "early", "read", "banks"), C4, S(T(512, 14, 1, 2))),
        ("12 early, read, banks", ("early", "read", "banks"), C4, S(T(512, 12, 1, 2))),
        ("no look-back", ("no look-back",), None, V), ("no value loads", ("no value loads",), None, V), ("linear write", ("linear write",), None, V),
        ("no ballots", ("no ballots",), None, V),
    ], singles=True)
    table("f32", mid, False, [
        BASE, ("no unfixed", ("no unfixed",), None, KF), ("no unfixed, look 3", ("no unfixed",), None, K), ("18 in 2", (), None, S(T(512, 18, 2, 2))),
        ("16 in 2", (), None, S(T(512, 16, 2, 2))), ("14 whole", ("totals",), None, S(T(512, 14, 1, 2))), ("read", ("read",), None, KF),
        ("read, banks, 18", ("read", "banks"), C4, S(T(512, 18, 2, 2))), ("read, banks, 14 whole", ("read", "banks", "totals"), C4, S(T(512, 14, 1, 2))),
    ])
    table("u16", mid, False, [BASE, ("whole words", ("words",), None, K), ("words, read, banks", ("words", "read", "banks"), C4, K)], rounds=2)
    # 2. the rest beside CUB
    table("f32", mid, True, [
        BASE, ("14 whole early", ("totals", "early"), None, S(T(512, 14, 1, 2))), ("12 early, read, banks", ("early", "read", "banks"), C4, S(T(512, 12, 1, 2))),
        ("no unfixed", ("no unfixed",), None, VF)], rounds=2)
    table("u8", mid, False, [BASE], rounds=2)
    table("u64", mid, False, [BASE, ("read, banks", ("read", "banks"), C4, S(T(512, 12, 3, 2))), ("read, 7 whole", ("read", "banks", "totals"), C4, S(T(512, 7, 1, 2)))], rounds=2)
    # 16 bits by counts: what the parts take
    try:
        for n in (mid, big):
            x = gw.asarray(data("u16", n), device); counts = gw.empty(1 << 16, "u32", device)
            for what, made, arrays in (("histogram of 65,536", gw.Histogram(device, "u16", 1 << 16), {"input": x, "output": counts}),
                                       ("scan of 65,536", gw.Scan(device, "u32", kind="exclusive"), {"input": counts}),
                                       ("u8 sort of as many bytes", gw.Sort(device, "u8"), {"input": gw.asarray(data("u8", min(2 * n, 1 << 28)), device)})):
                one = Ours.__new__(Ours); one.sort = made; one.run = made.execute(**arrays); one.call = made.bind()
                warm_up(one.call, 0.01); one.launches(3)
                took = statistics.median(one.launches(max(1, min(20, int(0.02 / (one.launches(1) * 1e-6))))) for _ in range(3))
                out["tables"][f"{what}, {n}"] = took; print(f"   {what}, 2^{n.bit_length() - 1}: {took:.1f} µs", flush=True)
            x.destroy()
    except Exception as error:
        print("counts:", type(error).__name__, str(error)[:300])
    for kind, pairs in (("u32", False), ("u32", True), ("f32", False), ("u64", False), ("u16", False), ("u8", False)):
        own = {"u32": S(T(512, 8, 1, 2)), "f32": S(T(512, 8, 1, 2))}.get(kind)
        table(kind, few, pairs, [BASE] + ([("read, banks", ("read", "banks"), C4, own), ("read, banks, 6", ("read", "banks"), C4, {**own, "items": 6 if not options.small else 2})] if own else []),
              singles=True, rounds=2)
    # 3. large
    table("u32", big, False, [BASE, ("read, banks", ("read", "banks"), C4, K), ("14 whole", ("read", "banks", "totals"), C4, S(T(512, 14, 1, 3)))], rounds=2)
    table("u32", big, True, [BASE, ("read, banks", ("read", "banks"), C4, V), ("14 early, read, banks", ("totals", "early", "read", "banks"), C4, S(T(512, 14, 1, 2))),
                            ("12 early, read, banks", ("early", "read", "banks"), C4, S(T(512, 12, 1, 2)))], rounds=2)
    table("u16", big, False, [BASE, ("words, read, banks", ("words", "read", "banks"), C4, K)], rounds=1)
    for kind in ("u32:few", "u32:nearly"):
        table(kind, mid, False, [BASE, ("read, banks", ("read", "banks"), C4, K)], rounds=2)
save()
if cub:
    cub.close()
print(f"{time.perf_counter() - BEGIN:.0f} s")
