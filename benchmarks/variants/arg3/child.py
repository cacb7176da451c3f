"""A tree's kernels, timed on demand: reads 'go ROW' from stdin, writes one JSON line. TREE is first on PYTHONPATH; EDIT names a change of its texts."""
import concurrent.futures, json, os, pathlib, shutil, sys, tempfile, time
START = time.perf_counter()
import numpy as np, wgpu
import gridwise_py as gw
import gridwise_py.planning.shaders as shaders_module
import gridwise_py.primitives.engines.operator as operator_module
from dataclasses import replace as replaced
from gridwise_py.types.expression import leaf
SMALL = os.environ.get("SMALL") == "1"
operator_module.Shapes.others = lambda self, n: ()  # no siblings: they would take time
EDITS = {
    "": [],
    "one poll": [("lib/combine_published.wgsl", "if (next < stop && next != again && ahead.flag != EMPTY) {", "if (false) {"),
                 ("lib/combine_published.wgsl", "      let ahead = state_poll(min(next + 1u, stop - 1u));  // both loads are under way at once\n", "      let ahead = published;\n")],
}
edits = EDITS[os.environ.get("EDIT", "")]
if edits:
    to = pathlib.Path(tempfile.mkdtemp()) / "shaders"; shutil.copytree(shaders_module.shader_directory(), to)
    for file, old, new in edits:
        t = (to / file).read_text(); assert old in t, (file, old); (to / file).write_text(t.replace(old, new))
    shaders_module.shader_directory = lambda: to
def say(**k): print(json.dumps(k), flush=True)
device = gw.request_device("cpu") if SMALL else gw.request_device()
helper = gw.timing_helper(device)
L = 2 if SMALL else 100
E = (lambda k: min(k, 18)) if SMALL else (lambda k: k)
CAPS = {"capabilities": replaced(gw.capabilities(device), adapter_type="DiscreteGPU")} if SMALL else {}
rng = np.random.default_rng(5)
B = 1 << E(24)
words = rng.integers(0, 1 << 32, B, dtype=np.uint32)
unit = rng.random(B, dtype=np.float32)
HOST = {"u32": words, "i32": words.view(np.int32), "unit": unit, "f16": unit.astype(np.float16), "equal": np.ones(B, np.float32), "negative": -unit - np.float32(1),
        "bytes": (words & 1).astype(np.uint8)}
DATA = {}
def host(kind, n): return HOST[kind][:n] if n <= B else np.tile(HOST[kind], n // B)
def data(kind, n):
    if (kind, n) not in DATA: DATA[kind, n] = gw.asarray(host(kind, n), device)
    return DATA[kind, n]
def nasty(n):
    r = np.random.default_rng(n)
    a = r.choice(np.float32([-2, -0.0, 0.0, 2, 1e-30, 1e-42, -1e-42, np.inf, -np.inf]), n)
    neg = -np.abs(a[a != 0][:n // 3]); zeros = np.where(r.random(n // 2) < .5, np.float32(-0.0), np.float32(0)); low = np.concatenate([neg, zeros, neg])
    out = [a, neg, zeros, low, -low]
    for bits in (0x7F800001, 0xFFFFFFFF):
        b = a.copy(); b[r.integers(200, n, 2)] = np.uint32(bits).view(np.float32); out.append(b)
        c = neg.copy(); c[r.integers(200, c.size, 2)] = np.uint32(bits).view(np.float32); out.append(c)
    return out + [np.full(n, -np.inf, np.float32), np.full(n, np.inf, np.float32), np.full(n, np.nan, np.float32)]
def made(what, kind):
    t = {"unit": "f32", "equal": "f32", "negative": "f32", "bytes": "u8"}.get(kind, kind)
    x = leaf("input", t)
    if what in ("argmax", "argmin"): return gw.Reduce(device, gw.struct(value=x, index=gw.index), {"argmax": gw.ArgMax, "argmin": gw.ArgMin}[what], **CAPS)
    if what == "argminmax": return gw.Reduce(device, gw.struct(min=x, argmin=gw.index, max=x, argmax=gw.index), gw.ArgMinMax, **CAPS)
    if what == "count": return gw.Reduce(device, gw.where(x != 0, gw.u32(1), gw.u32(0)), gw.Add, **CAPS)
    if what == "fixed": return gw.Reduce(device, t, gw.Add, deterministic=True, **CAPS)
    if what == "var": return gw.Reduce(device, gw.struct(count=gw.u32(1), mean=x, m2=gw.f32(0)), gw.Moments, **CAPS)
    return gw.Reduce(device, t, {"reduce": gw.Add, "max": gw.Max}[what], **CAPS)
def right(what, a, got):
    if what in ("argmax", "argmin"): return int(got["index"]) == int(getattr(np, what)(a))
    if what == "argminmax": return (int(got["argmin"]), int(got["argmax"])) == (int(a.argmin()), int(a.argmax()))
    if what == "count": return int(got) == np.count_nonzero(a)
    if what == "max": return got == a.max()
    if what == "var": return int(got["count"]) == a.size and abs(float(got["m2"]) / a.size - a.var(dtype=np.float64)) < 1e-3
    if a.dtype.kind in "iu": return int(got) & 0xffffffff == int(a.sum(dtype=np.int64)) & 0xffffffff
    return abs(float(got) / float(a.sum(dtype=np.float64)) - 1) < 1e-4
READY = {}
def prepare(row):
    what, kind, k = row.split(); n = 1 << E(int(k))
    p = made(what, kind)
    r = p.execute(input=data(kind, n)); b = p.bind()
    a = host(kind, n)
    if not right(what, a, r.output.to_numpy()[0]): return f"wrong: {r.output.to_numpy()[0]}"
    for _ in range(3):
        if not right(what, a, p.execute(input=data(kind, n)).output.to_numpy()[0]): return "wrong again"
    b = p.bind()
    READY[row] = ([(s.pipeline, s.group, s.workgroups) for s in b.bound_plan.steps] * L, p, r, b)
    return ""
def encode(dispatches, span=None):
    encoder = device.create_command_encoder()
    c = encoder.begin_compute_pass(timestamp_writes=span) if span else encoder.begin_compute_pass()
    last = None
    for pipe, group, xyz in dispatches:
        if pipe is not last: c.set_pipeline(pipe)
        last = pipe; c.set_bind_group(0, group); c.dispatch_workgroups(*xyz)
    c.end()
    return encoder.finish()
def once(row):
    d = READY[row][0]; session = helper.session()
    device.queue.submit([encode(d), encode(d, session.span("t"))]); session.submitted()
    return session.spans()[0].ns / L / 1e3
if "REGISTERS" in os.environ:
    for row in os.environ["REGISTERS"].split(";"):
        what, kind, k = row.split(); n = 1 << E(int(k))
        t = {"unit": "f32"}.get(kind, kind)
        os.environ["PIPE_STATS"] = path = tempfile.mktemp()
        try: made(what, kind).execute(input=gw.zeros(n, t, device)).output.to_numpy()
        except Exception as e: print(row, repr(e)[:200]); continue
        seen = [dict(f.split("=") for f in line.strip().split(";")[1:]) for line in open(path)] if os.path.exists(path) else []
        print(f"{row:20}", " | ".join(f"{s.get('Register Count')} registers, {s.get('Binary Size')} bytes of code, {s.get('Shared Memory Size')} shared" for s in seen if "Register Count" in s), flush=True)
    sys.exit()
with gw.hold_clock(device) as held:
    say(tree=gw.__file__, held=held, s=time.perf_counter() - START)
    for line in sys.stdin:
        todo, _, row = line.strip().partition(" ")
        if todo == "prepare":
            rows = row.split(";")
            for r in rows: data(r.split()[1], 1 << E(int(r.split()[2])))
            until = time.perf_counter() + float(os.environ.get("PREPARE_S", "22"))
            def one(r):
                if time.perf_counter() > until: return r, "no time"
                try: return r, prepare(r)
                except Exception as e: return r, repr(e)[:300]
            with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("THREADS", "6"))) as pool: found = dict(pool.map(one, rows))
            say(failed={r: why for r, why in found.items() if why}, s=time.perf_counter() - START)
        elif todo == "go":
            try: say(us=once(row))
            except Exception as e: say(us=None, error=repr(e)[:200])
        elif todo == "nasty":
            bad = []
            for what, kind in (("argmax", "unit"), ("argmin", "unit"), ("argminmax", "unit")):
                p = made(what, kind)
                for n in (20003, 2**20 + 77, 3 * 2**20):
                    if SMALL and n > 2**20 + 77: continue
                    for k, a in enumerate(nasty(n)):
                        got = p.execute(input=gw.asarray(a, device)).output.to_numpy()[0]
                        if not right(what, a, got): bad.append(f"{what} {n} {k}: {got}")
            x = words[:100003]
            p, q = made("argmax", "f16"), made("argmin", "u32")
            h = x.astype(np.float16); h[[777, 5000]] = np.nan
            if not right("argmax", h, p.execute(input=gw.asarray(h, device)).output.to_numpy()[0]): bad.append("f16")
            for a in (x, x | 0x80000000, np.zeros(5, np.uint32), np.full(70000, 0xffffffff, np.uint32)):
                if not right("argmin", a, q.execute(input=gw.asarray(a, device)).output.to_numpy()[0]): bad.append("argmin u32")
            say(bad=bad, s=time.perf_counter() - START)
        elif todo == "end": break
