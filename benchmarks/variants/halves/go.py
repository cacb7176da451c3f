"""Sorts of 16 bits: by digits, with whole words, by counts; beside CUB. Usage: go.py [--small] [--cub FILE] [--json FILE] [--seconds S]"""
import argparse, contextlib, itertools, json, shutil, statistics, sys, tempfile, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument("--small", action="store_true")
parser.add_argument("--cub", type=Path)
parser.add_argument("--json", type=Path)
parser.add_argument("--seconds", type=float, default=38)
options = parser.parse_args()
BEGIN = time.perf_counter()
left = lambda: options.seconds - (time.perf_counter() - BEGIN)
sys.path.insert(0, str(HERE / "tree/benchmarks/peers"))
from dataclasses import replace
import numpy as np
import harness
import gridwise_py as gw
from gridwise_py.bench.cases.case import warm_up
from gridwise_py.planning import accessors, builder, shaders
from gridwise_py.primitives import sort as sort_module
from gridwise_py.primitives.engines import radix_sort

device = gw.request_device()
caps = gw.capabilities(device)
cpu = caps.is_cpu
as_gpu = replace(caps, adapter_type="DiscreteGPU")
helper = gw.timing_helper(device)
out = {"adapter": str(caps.adapter), "tables": {}}
print(out["adapter"], gw.__file__, flush=True)
try:
    cub = harness.CubServer(options.cub, Path(tempfile.mkdtemp())) if options.cub else None
except Exception as error:
    cub = None; print("no CUB", error)

SHADERS, counts_of = shaders.shader_directory(), sort_module.code_counts
KEYS, COUNT, FILL = "lib/sort_write_keys.wgsl", "sort_count_codes.wgsl", "sort_fill.wgsl"
PATCHES = {
    "halves": [(KEYS, "//$ if key_bytes == 2\n", "//$ if key_bytes == 3\n")],
}


@contextlib.contextmanager
def as_variant(patches=(), least=1, shape=None, rows=None):
    folder = SHADERS
    if patches:
        folder = Path(tempfile.mkdtemp()) / "shaders"
        shutil.copytree(SHADERS, folder)
        for file, old, new in itertools.chain.from_iterable(PATCHES[p] for p in patches):
            text = (folder / file).read_text()
            assert old in text, (file, old)
            (folder / file).write_text(text.replace(old, new))
    counts = lambda c: counts_of(c)._replace(least=least, **(shape or {}))
    saved = shaders.shader_directory, radix_sort._FILL_ROWS
    shaders.shader_directory = lambda: folder
    shaders._environment.cache_clear(); builder._shader.cache_clear(); accessors.bindings.cache_clear()
    sort_module.code_counts = radix_sort.code_counts = counts
    if rows:
        radix_sort._FILL_ROWS = rows
    try:
        yield
    finally:
        shaders.shader_directory, radix_sort._FILL_ROWS = saved
        sort_module.code_counts = radix_sort.code_counts = counts_of
        shaders._environment.cache_clear(); builder._shader.cache_clear(); accessors.bindings.cache_clear()


class Ours:
    def __init__(self, name, kind, pairs=False, by_digits=False, descending=False, **variant):
        self.name, self.variant, self.pairs, self.descending = name, variant, pairs, descending
        more = {"strategy": "onesweep"} if by_digits else {}
        with as_variant(**variant):
            make = gw.SortPairs if pairs else gw.Sort
            self.sort = make(device, kind, descending=descending, capabilities=as_gpu, **more)

    def begin(self, gpu, right):
        arrays = dict(zip(("keys", "values"), gpu)) if self.pairs else {"input": gpu[0]}
        with as_variant(**self.variant):
            run = self.sort.execute(**arrays)
            self.call = self.sort.bind()
        self.call.execute()
        got = [a.to_numpy() for a in run.outputs.values()]
        self.correct = all(np.array_equal(g, r) for g, r in zip(got, right)) if right is not None else None
        self.strategy = str(run.plan.parameters["strategy"])
        self.b2b, self.one, self.kernels = [], [], {}

    def launches(self, launches, only=None):
        session = helper.session()
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass(timestamp_writes=session.span("x"))
        steps = [s for i, s in enumerate(self.call.bound_plan.steps) if only is None or i == only]
        for _, step in itertools.product(range(launches), steps):
            compute.set_pipeline(step.pipeline)
            compute.set_bind_group(0, step.group)
            compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        device.queue.submit([encoder.finish()])
        session.submitted()
        return session.spans()[0].ns / launches / 1e3

    def turn(self, parts):
        warm_up(self.call, 0.004 if cpu else 0.012)
        once = self.launches(1)
        count = max(1, min(100, int(0.007 / (once * 1e-6))))
        self.b2b += [self.launches(count) for _ in range(2)]
        self.one += [self.launches(1) for _ in range(3)]
        if parts and self.strategy == "counting":
            for only in (2, 1, 0):  # the first is repeated last: it adds to the counts
                self.kernels.setdefault(only, []).append(self.launches(max(1, count), only))
            self.call.execute()

    def row(self):
        m = lambda xs: round(statistics.median(xs), 2) if xs else None
        return {"name": self.name, "correct": self.correct, "strategy": self.strategy, "b2b": m(self.b2b), "one_pass": m(self.one),
                "kernels": [m(self.kernels[k]) for k in sorted(self.kernels)]}


def cub_times(algorithm, kind, n, keys, values):
    if cub is None:
        return None
    try:
        cub.load("keys", keys)
        if values is not None:
            cub.load("values", values)
        words = ("keys=keys", "values=values") if values is not None else ("input=keys",)
        cub.ask("case", algorithm, kind, n, *words)
        found = {"single": [], "b2b": []}
        for _ in range(2):
            pilot = cub.ask("time", 0.015, 1, 0)["single_ns"][0]
            answer = cub.ask("time", 0, 5, max(1, min(100, int(8e6 / pilot))))
            found["single"] += answer["single_ns"]; found["b2b"] += answer["back_to_back_ns"]
        return {k: round(statistics.median(v) / 1e3, 2) for k, v in found.items()}
    except Exception as error:
        print("CUB:", error)
        return None


NUMBERS = {"u16": np.uint16, "i16": np.int16}


def data(kind, n, spread):
    items = np.frombuffer(np.random.default_rng(n).bytes(2 * n), NUMBERS[kind]).copy()
    if spread == "equal":
        items[:] = 12345
    if spread == "few":
        items = items[:16][np.random.default_rng(7).integers(0, 16, n, dtype=np.uint8)]
    if spread == "two":
        items = items[:2][np.random.default_rng(7).integers(0, 2, n, dtype=np.uint8)]
    if spread == "sorted":
        items.sort()
    if spread == "small":
        items &= 255
    return items


def table(kind, n, spread, variants, rounds=2, parts=False, pairs=False, beside=True, least_left=5):
    title = f"{'pairs' if pairs else 'keys'} {kind} 2^{n.bit_length() - 1} {spread}"
    if left() < least_left:
        print(f"== {title}: no time left"); return
    begin = time.perf_counter()
    keys = data(kind, n, spread)
    values = np.random.default_rng(1).integers(0, 1 << 32, n, dtype=np.uint32) if pairs else None
    gpu = [gw.asarray(x, device) for x in (keys, values) if x is not None]
    made = []
    for each in variants:
        try:
            if callable(each):
                each = each()
            if pairs:
                order = np.argsort(keys, kind="stable"); right = [keys[order], values[order]]
            else:
                right = [np.sort(keys)[::-1] if each.descending else np.sort(keys)]
            each.begin(gpu, right)
            made.append(each)
        except Exception as error:
            print(f"   {getattr(each, 'name', each)}: {type(error).__name__}: {str(error)[:300]}")
    theirs = cub_times("sort_pairs" if pairs else "sort", kind, n, keys, values) if beside else None
    for number in range(rounds):
        for each in made if number % 2 else made[::-1]:
            try:
                each.turn(parts)
            except Exception as error:
                print(f"   {each.name}: {type(error).__name__}: {str(error)[:300]}")
    rows = [each.row() for each in made]
    out["tables"][title] = {"rows": rows, "cub": theirs}
    print(f"== {title}: cub {theirs} ({time.perf_counter() - begin:.1f} s, {left():.0f} s left)")
    for row in rows:
        ratio = f" cub/ours {theirs['b2b'] / row['b2b']:.2f} single {theirs['single'] / row['one_pass']:.2f}" if theirs and row["b2b"] else ""
        print(f"   {row['name']:26} {row['b2b']} µs (one {row['one_pass']}){ratio} {'' if row['correct'] else 'WRONG' if row['correct'] is False else '(unchecked)'} "
              f"{row['strategy']} {row['kernels'] or ''}")
    sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps(out, indent=1))
    for array in gpu:
        array.destroy()


cut = 9 if options.small else 0
N = lambda bits: 1 << max(bits - cut, 13)
with gw.hold_clock(device):
    a = gw.asarray(np.zeros(1 << 20, np.uint32), device)
    warm = gw.Copy(device, "u32"); warm.execute(input=a); warm_up(warm.bind(), 0.05 if cpu else 0.6)
    made = {}
    def of(name, *args, **more):
        def make():
            if name not in made:
                made[name] = Ours(name, *args, **more)
            return made[name]
        return make
    digits = of("by digits, halves", "u16", by_digits=True, patches=("halves",))
    words = of("by digits, whole words", "u16", by_digits=True)
    counted = of("counted", "u16")
    few = [digits, words, counted]
    shapes = [of("counted, 512 lanes", "u16", shape={"workgroup_size": 512}),
              of("counted, 528 workgroups", "u16", shape={"workgroups": 2 * counts_of(as_gpu).workgroups}),
              of("counted, 8 ranges", "u16", shape={"ranges": 8}),
              of("counted, fill by 8 rows", "u16", rows=8),
              of("counted, fill by 2 rows", "u16", rows=2)]
    table("u16", N(24), "uniform", few + shapes, rounds=3, parts=True)
    table("u16", N(20), "uniform", few, parts=True)
    table("u16", N(22), "uniform", few, parts=True)
    table("u16", N(21), "uniform", few)
    table("u16", N(24), "equal", few, parts=True)
    table("u16", N(24), "few", few, parts=True)
    table("u16", N(24), "sorted", few, parts=True)
    table("u16", N(28), "uniform", few + shapes[1:2] + shapes[3:4], parts=True, least_left=8)
    table("u16", N(24), "pairs", [lambda: Ours("pairs, halves", "u16", pairs=True, patches=("halves",)), lambda: Ours("pairs, whole words", "u16", pairs=True)], pairs=True)
    table("u16", N(24), "two", few[1:], parts=True)
    table("u16", N(24), "small", few[1:], parts=True)
    table("i16", N(24), "uniform", [lambda: Ours("i16 counted", "i16"), lambda: Ours("i16 down, counted", "i16", descending=True)])
    table("u16", N(26), "uniform", few[1:])
    table("u16", N(19), "uniform", few[1:])
if cub:
    cub.close()
print(f"{time.perf_counter() - BEGIN:.0f} s")
