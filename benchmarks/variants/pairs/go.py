"""Sorts of pairs and floats: variants and shapes. Usage: go.py [--small] [--cub FILE] [--json FILE] [--seconds S]"""
import argparse, itertools, json, statistics, sys, tempfile, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument("--small", action="store_true")
parser.add_argument("--cub", type=Path)
parser.add_argument("--json", type=Path)
parser.add_argument("--seconds", type=float, default=104)
options = parser.parse_args()
BEGIN = time.perf_counter()
left = lambda: options.seconds - (time.perf_counter() - BEGIN)
sys.path.insert(0, str(HERE)); sys.path.insert(0, str(HERE / "tree/benchmarks/peers"))
import numpy as np
import harness
import gridwise_py as gw
from gridwise_py.bench.cases.case import warm_up
from gridwise_py.primitives.engines.key_codes import key_codes
from gridwise_py.tuning.options import SortTuning
from variants import WRONG, applied

device = gw.request_device()
cpu = gw.capabilities(device).is_cpu
helper = gw.timing_helper(device)
out = {"adapter": str(gw.capabilities(device).adapter), "tables": {}}
print(out["adapter"], gw.__file__, flush=True)
try:
    cub = harness.CubServer(options.cub, Path(tempfile.mkdtemp())) if options.cub else None
except Exception as error:
    cub = None; print("no CUB", error)
big, mid, few = (1 << 14, 1 << 13, 1 << 12) if options.small else (1 << 28, 1 << 24, 1 << 20)


def data(kind, n, odd=False):
    rng = np.random.default_rng(n)
    dtype = np.dtype(kind.replace("u", "uint").replace("f", "float"))
    if dtype.kind == "u":
        return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).copy()
    if not odd:
        return rng.standard_normal(n, np.float32).astype(dtype)
    items = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).copy()
    which = rng.integers(0, 16, n)
    for number, item in enumerate((0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf)):
        items[which == number] = item
    return items


class Problem:
    """Keys and values on the GPU, and what is right."""

    def __init__(self, kind, n, pairs, odd, check=True):
        keys = data(kind, n, odd)
        values = np.random.default_rng(1).integers(0, 1 << 32, n, dtype=np.uint32) if pairs else None
        self.host = [x for x in (keys, values) if x is not None]
        self.gpu = [gw.asarray(x, device) for x in self.host]
        self.right, self.compare = None, n <= mid
        if check:
            order = np.argsort(key_codes(keys), kind="stable")
            self.right = [x[order] for x in self.host]

    def matches(self, run):
        got = [a.to_numpy() for a in run.outputs.values()]
        if self.right is None:
            self.right = got
            return None
        return all(np.array_equal(g.view(np.uint8), r.view(np.uint8)) for g, r in zip(got, self.right))

    def destroy(self):
        for array in self.gpu:
            array.destroy()


class Ours:
    def __init__(self, name, kind, pairs, checked, timed, patches, tuning, few_too):
        self.name, self.patches, self.tuning = name, patches, tuning
        begin = time.perf_counter()
        with applied(patches, few_too):
            self.sort = (gw.SortPairs if pairs else gw.Sort)(device, kind, tuning=SortTuning(**tuning) if tuning else None)
            names = ("keys", "values") if pairs else ("input",)
            wrong = WRONG & set(patches)
            self.correct = None
            if checked is not None:
                self.correct = checked.matches(self.sort.execute(**dict(zip(names, checked.gpu))))
            self.run = self.sort.execute(**dict(zip(names, timed.gpu)))
            if timed.compare and not wrong:
                same = timed.matches(self.run)
                self.correct = same if self.correct is None else self.correct and same is not False
            if wrong:
                self.correct = None
        self.call = self.sort.bind()
        self.parameters = {k: v for k, v in self.run.plan.parameters.items() if isinstance(v, (int, str))}
        self.b2b, self.one, self.kernels = [], [], {}
        self.made = time.perf_counter() - begin

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

    def turn(self, stamped, each_s=0.008):
        warm_up(self.call, 0.002 if cpu else 0.012)
        once = self.launches(1)
        count = max(1, min(100, int(each_s / (once * 1e-6))))
        self.b2b += [self.launches(count) for _ in range(2)]
        self.one.append(once)
        if stamped:
            for _ in range(3):
                for number, span in enumerate(self.sort.execute(enable_gpu_timing=True).get_timing_result().spans):
                    if span.ns is not None:
                        self.kernels.setdefault(f"{number} {span.label}", []).append(span.ns / 1e3)

    def row(self):
        m = lambda xs: round(statistics.median(xs), 1) if xs else None
        return {"name": self.name, "patches": self.patches, "tuning": self.tuning, "correct": self.correct, "b2b": m(self.b2b),
                "one_pass": m(self.one), "kernels": {k: m(v) for k, v in self.kernels.items()},
                "parameters": self.parameters, "all_b2b": [round(x, 2) for x in self.b2b], "made_s": round(self.made, 2)}


def cub_times(algorithm, kind, n, problem):
    if cub is None:
        return None
    try:
        words = ("keys=keys", "values=values") if len(problem.host) > 1 else ("input=keys",)
        for name, host in zip(("keys", "values"), problem.host):
            cub.load(name, host)
        cub.ask("case", algorithm, kind, n, *words)
        found = {"single": [], "b2b": []}
        for _ in range(2):
            pilot = cub.ask("time", 0.02, 1, 0)["single_ns"][0]
            answer = cub.ask("time", 0, 5, max(1, min(100, int(1e7 / pilot))))
            found["single"] += answer["single_ns"]; found["b2b"] += answer["back_to_back_ns"]
        return {k: round(statistics.median(v) / 1e3, 1) for k, v in found.items()}
    except Exception as error:
        print("CUB:", error)
        return None


def save():
    if options.json:
        options.json.write_text(json.dumps(out, indent=1))


def table(kind, n, pairs, variants, *, limit, rounds=3, stamped=False, beside=True, few_too=False):
    """Measure variants (name, patches, tuning) in turns; the first is the base. Return the best right ones."""
    title = f"{'pairs' if pairs else 'keys'} {kind} 2^{n.bit_length() - 1}"
    begin = time.perf_counter()
    if left() < 7:
        print(f"== {title}: no time left"); return []
    checked = Problem(kind, few, pairs, odd=True)
    timed = Problem(kind, n, pairs, odd=False, check=False)
    made, rows = [], []
    for name, patches, tuning in variants:
        if left() < 6 or time.perf_counter() - begin > limit:
            print(f"   {name}: left out, no time"); continue
        try:
            made.append(Ours(name, kind, pairs, checked, timed, patches, tuning, few_too))
        except Exception as error:
            print(f"   {name}: {type(error).__name__}: {str(error)[:200]}")
    theirs = cub_times("sort_pairs" if pairs else "sort", kind, n, timed) if beside and left() > 5 else None
    for number in range(rounds):
        if number and left() < 3:
            break
        for each in made if number % 2 else made[::-1]:
            try:
                each.turn(stamped)
            except Exception as error:
                print(f"   {each.name}: {type(error).__name__}: {str(error)[:200]}")
    rows = [each.row() for each in made]
    out["tables"][title] = {"rows": rows, "cub": theirs}
    print(f"== {title}: cub {theirs} ({time.perf_counter() - begin:.1f} s, {left():.0f} s left)")
    base = rows[0]["b2b"] if rows else None
    for row in rows:
        if row["b2b"] is None:
            continue
        ratio = f" cub/ours {theirs['b2b'] / row['b2b']:.3f}" if theirs else ""
        shape = row["parameters"]
        more = f" {list(row['kernels'].values())}" if row["kernels"] else ""
        print(f"   {row['name']:24} {row['b2b']:8} µs {row['b2b'] / base:.3f} of base{ratio} one pass {row['one_pass']}"
              f"{'' if row['correct'] else ' WRONG' if row['correct'] is False else ' (not checked)'} "
              f"{shape.get('workgroup_size')}x{shape.get('items_per_invocation')} made in {row['made_s']} s{more}")
    sys.stdout.flush(); save()
    for each in made:
        each.sort.release()
    checked.destroy(); timed.destroy()
    good = sorted((row for row in rows[1:] if row["correct"] and row["b2b"]), key=lambda row: row["b2b"])
    return [(row["name"], row["patches"], row["tuning"]) for row in good]


PROBE = """
var<workgroup> memory: array<u32, %d>;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3<u32>) {
  var x = data[i];
  for (var k = 0u; k < 6000u; k++) { x = x * 1664525u + 1013904223u; }
  memory[(x * 64u + i) %% %du] = x;
  workgroupBarrier();
  x = memory[(x + i) %% %du];
  if (x == 12345u) { data[i] = w.x; }
}
"""


def probe():
    """Print how many workgroups share a multiprocessor, by their workgroup memory."""
    import wgpu
    buffer = device.create_buffer(size=1024, usage=wgpu.BufferUsage.STORAGE)
    found = {}
    for kib in (8, 12, 15, 16, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 31, 32):
        words = kib * 256
        pipeline = device.create_compute_pipeline(layout="auto", compute={"module": device.create_shader_module(code=PROBE % (words, words, words)), "entry_point": "main"})
        group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": 1024}}])

        def took(groups):
            times = []
            for _ in range(4):
                session = helper.session(); encoder = device.create_command_encoder()
                compute = encoder.begin_compute_pass(timestamp_writes=session.span("x"))
                compute.set_pipeline(pipeline); compute.set_bind_group(0, group); compute.dispatch_workgroups(groups); compute.end()
                device.queue.submit([encoder.finish()]); session.submitted(); times.append(session.spans()[0].ns)
            return min(times)

        found[kib] = round(24 * took(132) / took(132 * 24), 1)
    out["resident"] = found
    print("workgroups at once by KiB:", found, flush=True)


def T(size, items, parts, look=2):
    if options.small:
        return {"workgroup_size": 256, "items": parts, "parts": parts, "look": look}
    return {"workgroup_size": size, "items": items, "parts": parts, "look": look}


def V(patches, size, items, parts, look=2):
    patches = tuple(patches.split())
    return (f"{' '.join(patches) or 'now'} {size}x{items}/{parts}{'' if look == 2 else f' look {look}'}", patches, T(size, items, parts, look))


slow = 10 if options.small else 1
small_cut = (lambda xs: xs[:3] + xs[3::5]) if options.small else (lambda xs: xs)
with gw.hold_clock(device):
    warm = gw.Copy(device, "u32"); a = gw.asarray(np.zeros(1 << 20, np.uint32), device)
    warm.execute(input=a); warm_up(warm.bind(), 0.05 if cpu else 0.8)
    try:
        if not cpu:
            probe()
    except Exception as error:
        print("probe:", type(error).__name__, str(error)[:300])
    best = table("u32", mid, True, small_cut([
        V("", 512, 18, 2), V("kf", 512, 18, 2), V("kfe", 512, 14, 2), V("kfl", 512, 18, 2), V("kf", 512, 20, 2), V("kf", 512, 16, 2),
        V("kfe", 512, 16, 2), V("kfe", 512, 18, 2), V("kf", 512, 22, 2), V("kf", 512, 21, 3), V("kf", 384, 24, 2), V("kfe", 384, 18, 2),
        V("kfe", 384, 22, 2), V("kfe", 256, 20, 2), V("kf", 256, 24, 2), V("early", 512, 14, 2), V("early", 384, 20, 2),
        V("early", 256, 24, 2), V("", 256, 18, 2), V("", 256, 24, 2), V("", 384, 18, 2), V("", 384, 24, 2), V("", 640, 14, 2),
        V("", 512, 18, 3), V("", 512, 20, 2), V("if", 512, 18, 2), V("kf read", 512, 18, 2), V("kf totals", 512, 18, 2), V("kf", 512, 18, 2, 3),
        V("kf", 512, 18, 3), V("kfe", 256, 16, 2), V("kfe", 256, 16, 1), V("kf", 256, 18, 1), V("kf", 640, 16, 2),
    ]), limit=26 * slow, rounds=2)
    best_floats = table("f32", mid, True, small_cut([
        V("old", 512, 14, 2), V("", 512, 18, 2), V("kf", 512, 18, 2), V("", 512, 14, 2), V("", 512, 16, 2), V("kf", 512, 16, 2),
        V("kf", 512, 20, 2), V("kfe", 512, 14, 2), V("zeros kf", 512, 18, 2), V("kf", 384, 24, 2), V("kfe", 384, 20, 2),
        V("old", 512, 18, 2),
    ]), limit=16 * slow, rounds=2)
    table("f32", mid, False, small_cut([
        V("old", 512, 20, 2), V("", 512, 20, 2), V("unfixed", 512, 20, 2), V("zeros", 512, 20, 2), V("", 512, 20, 2, 3),
        V("", 512, 18, 2), V("", 384, 24, 2), V("", 512, 16, 2), V("", 512, 21, 3), V("", 512, 24, 3),
    ]), limit=12 * slow, rounds=2)
    # large
    mine = [V("", 512, 18, 2), *best[:3]]
    if not any("kf" in name.split() and "512x18" in name for name, *_ in mine):
        mine.append(V("kf", 512, 18, 2))
    table("u32", big, True, mine, limit=14 * slow, rounds=2)
    table("f32", big, True, [V("old", 512, 14, 2), *best_floats[:2]], limit=14 * slow, rounds=1, beside=False)
    # medium and small: what is made without a tuning, and these texts with 8 keys
    for n in (few, 4 * few):
        table("u32", n, True, [("model", (), {}), ("kf", ("kf",), {}), V("kf", 512, 8, 1), V("kfe", 512, 8, 1), *best[:1]], limit=8 * slow, rounds=2)
        table("f32", n, False, [("old", ("old",), {}), ("new", (), {})], limit=6 * slow, rounds=2)
    table("u64", mid, False, [V("", 512, 12, 3), V("", 512, 12, 2), V("", 384, 15, 3), V("", 256, 15, 3), V("", 512, 9, 3), V("", 256, 12, 2)], limit=8 * slow, rounds=2)
    table("u64", mid, True, [("model", (), {}), ("kf model", ("kf",), {}), V("kf", 512, 12, 3), V("kf", 384, 12, 3), V("kfe", 256, 12, 2)], limit=8 * slow, rounds=2)
    table("u32", mid, False, [V("", 512, 20, 2, 3), V("", 384, 24, 2, 3), V("", 512, 22, 2, 3), V("", 512, 21, 3, 3), V("", 512, 24, 3, 3), V("totals", 512, 22, 2, 3),
                             V("", 256, 24, 2, 3), V("", 256, 20, 2, 3), V("", 640, 16, 2, 3)], limit=9 * slow, rounds=2)
save()
if cub:
    cub.close()
print(f"{time.perf_counter() - BEGIN:.0f} s")
