"""take: new against old against cupy.take; then structures of the kernel, raw. us per call unless a row says otherwise."""
import sys; sys.path.insert(0, __file__.rsplit("/", 1)[0])
from lab import *
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from gridwise_py.primitives.take import Take
from gridwise_py.tuning.rows import Shape
try: import cupy as cp
except Exception as e: cp = None; print("no cupy:", e)

M = 1 << (26 if not SMALL else 14)
FEW = 1 << (20 if not SMALL else 10)
MiB = (1 << 20) if not SMALL else (1 << 8)   # lavapipe: everything by 4,096
ROUNDS = 5 if not SMALL else 1
CAPS = replace(gw.capabilities(device), adapter_type="DiscreteGPU")
POOL = ThreadPoolExecutor(os.cpu_count())
print(gw.__file__, "cupy" if cp else "")

def kind(name, part_mib=4, shape=(256, 4), least=8, most=1024, rounds=0):
    return type("Take", (Take,), {
        "_tables_bytes": (int(least * MiB), most * MiB), "_part_bytes": int(part_mib * MiB), "_least_rounds": rounds, "_shape_of_parts": Shape(*shape),
        "__doc__": name, "__module__": "trial"})
OLD = type("Take", (Take,), {"_tables_bytes": (1 << 60, 1 << 61), "shader": "take_old"})
NEW = {"new 256x4, 4 MiB": kind("a", 4), "new 256x4, 2 MiB": kind("b", 2), "new 256x8, 4 MiB": kind("c", 4, (256, 8)), "new 512x4, 4 MiB": kind("d", 4, (512, 4))}
ALL_SIZES = {"new 256x4, 4 MiB, at 4": kind("e", 4, least=2)}

def steps(cls, name, iname, x, i, out, clip=True):
    t = cls(device, name, iname, outer=1, length=x.size, count=i.size, inner=1, clip=clip, capabilities=CAPS)
    r = t.execute(input=x, indices=i, output=out); b = t.bind(); KEEP.append((t, r, b))
    return [(s.pipeline, s.group, s.workgroups) for s in b.bound_plan.steps]
KEEP = []

def taken(x, i):
    out = np.empty(i.size, x.dtype); step = max(1, i.size // 16)
    def one(a): np.take(x, i[a:a + step], out=out[a:a + step], mode="clip")
    list(POOL.map(one, range(0, i.size, step))); return out

def cuda_round(f, calls):
    b, e = cp.cuda.Event(), cp.cuda.Event()
    f(); b.record()
    for _ in range(calls): f()
    e.record(); e.synchronize()
    return cp.cuda.get_elapsed_time(b, e) * 1e3 / calls

def graphed(f, calls):
    """f, so many times in one graph: the host's launches do not count."""
    try:
        s = cp.cuda.Stream(non_blocking=True)
        with s:
            f(); s.synchronize(); s.begin_capture()
            for _ in range(calls): f()
            g = s.end_capture()
        g.launch(); cp.cuda.Device().synchronize()
        return g.launch
    except Exception as e:
        print("no graph", repr(e)[:100]); return None

def compare(classes, name, iname, x, i, cx, ci, clip=True, calls=None):
    """Median us of each class and of CuPy, in turns; results checked first."""
    calls = calls or (2 if i.size == M else 20)
    gx, gi, out = gw.asarray(x, device), gw.asarray(i, device), gw.empty(i.size, name, device)
    want = taken(x, i); times = {}; runs = {}
    for label, cls in classes.items():
        try:
            out.fill(0); runs[label] = steps(cls, name, iname, gx, gi, out, clip) * calls
            got = out.to_numpy().view(x.dtype)
            if not np.array_equal(got, want): print("WRONG", label, name, x.size, i.size); del runs[label]
        except Exception as e: print("FAILED", label, repr(e)[:200])
    if cp is not None:
        co = cp.empty(i.size, x.dtype); f = lambda: cp.take(cx, ci, out=co)
        g = graphed(f, calls) if i.size < M else None
    for r in range(ROUNDS):
        for label, d in runs.items():
            ns = once(d)
            if ns is not None: times.setdefault(label, []).append(ns / calls / 1e3)
        if cp is not None:
            times.setdefault("cupy", []).append(cuda_round(g, 1) / calls if g else cuda_round(f, calls))
    KEEP.clear()
    row = {k: round(statistics.median(v), 1) for k, v in times.items()}
    if "cupy" in row: row["mark"] = round(row["cupy"] / min(v for k, v in row.items() if k.startswith("new")), 3) if any(k.startswith("new") for k in row) else None
    return row

def order(base, tile):
    if tile == 1: return base
    if cp is not None: return cp.sort(base.reshape(-1, tile), axis=1).reshape(-1)
    return np.sort(base.reshape(-1, tile), axis=1).reshape(-1)
xp = cp or np
host = (lambda a: a.get()) if cp else (lambda a: a)
def words(items, dtype="u4", seed=1): return xp.arange(items, dtype=np.uint64).astype(np.uint32).__mul__(np.uint32(2654435761)).astype(dtype)
def places(items, count=None):
    if cp: return cp.random.randint(0, items, count or M, dtype=cp.uint32)
    return np.random.default_rng(3).integers(0, items, count or M).astype(np.uint32)
def show(title, row):
    RESULTS.setdefault("take", {})[title] = row; save()
    print(f"{title:34}", "  ".join(f"{k} {v}" for k, v in row.items()), flush=True)

HASH = ""
def raw_text(vecs, wg, barrier=True, reuse=False, hint=False, skip=True, plain=False):
    """As take.wgsl's run_tile, but that indices are loaded by quads; part: items of a part, from a buffer, so that nothing is unrolled."""
    n = 4 * vecs
    t = f"""
@group(0) @binding(0) var<storage, read> idx: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> o: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> p: array<u32>;
@group(0) @binding(4) var<storage, read_write> h: array<atomic<u32>>;
var<workgroup> begin: u32;
@compute @workgroup_size({wg}) fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {{
  let part = p[0]; let parts = p[1];
"""
    for k in range(vecs): t += f"  let p{k} = (w.x + w.y * 32768u) * {wg * vecs}u + {k * wg}u + l; var q{k} = idx[p{k}];\n"
    if not reuse: t += "".join(f"  var x{k} = vec4<u32>();\n" for k in range(vecs))
    all_ = [f"{k}.{c}" for k in range(vecs) for c in "xyzw"]
    if reuse: t += "  var done = 0u;\n"
    if plain:
        return t + "".join(f"  let y{k} = vec4<u32>(" + ", ".join(f"table[q{k}.{c}]" for c in "xyzw") + ");\n" for k in range(vecs)) + "".join(f"  o[p{k}] = y{k};\n" for k in range(vecs)) + "  if (part == 0u && parts == 0u) { begin = 0u; }\n}"
    if skip:
        t += "  var least = q0.x; var most = q0.x;\n" + "".join(f"  least = min(least, q{a}); most = max(most, q{a});\n" for a in all_)
    if hint:
        t += "  if (l == 0u) { begin = atomicLoad(&h[0]) % parts; }\n  let from_ = workgroupUniformLoad(&begin);\n"
    t += "  for (var k = 0u; k < parts; k++) {\n"
    t += ("    var me = from_ + k; if (me >= parts) { me -= parts; }\n    if (l == 0u) { atomicStore(&h[0], me); }\n" if hint else "    let me = k;\n") + "    let first = me * part;\n"
    guard = skip
    if guard: t += "    if (most >= first && least < first + part) {\n"
    for j, a in enumerate(all_):
        if reuse and not hint: t += f"    if ((done & {1 << j}u) == 0u && q{a} < first + part) {{ q{a} = table[q{a}]; done |= {1 << j}u; }}\n"
        elif reuse: t += f"    if ((done & {1 << j}u) == 0u && q{a} - first < part) {{ q{a} = table[q{a}]; done |= {1 << j}u; }}\n"
        else: t += f"    if (q{a} - first < part) {{ x{a} = table[q{a}]; }}\n"
    if guard: t += "    }\n"
    if barrier: t += "    workgroupBarrier();\n"
    t += "  }\n"
    for k in range(vecs): t += f"  o[p{k}] = {'q' if reuse else 'x'}{k};\n"
    return t + "}"

def grid(wg, vecs):
    n = M // (4 * wg * vecs)
    return (n, 1, 1) if n <= 32768 else (32768, n // 32768, 1)

with gw.hold_clock(device) as held:
    print("clock held", held)
    settle = gw.Copy(device, "u32"); settle.execute(input=gw.asarray(np.arange(1 << (24 if not SMALL else 12), dtype=np.uint32), device)); call = settle.bind()
    t = time.perf_counter() + (0.6 if not SMALL else 0.01)
    while time.perf_counter() < t: call.execute(trials=20); gw.synchronize(device)

    base = {}
    def table_row(mib, tile, few=False):
        items = int(mib * MiB) // 4
        if items not in base: base.clear(); base[items] = (words(items), places(items))
        cx, cb = base[items]
        ci = order(cb, tile)
        if few: ci = ci[:FEW].copy()
        classes = {"old": OLD, "now": Take} if SMALL else {"old": OLD}
        classes |= {"shipped": Take} if not SMALL else {}
        classes |= NEW if tile == 1 or (tile == M and mib in (16, 64)) or few else {"new 256x4, 4 MiB": NEW["new 256x4, 4 MiB"]}
        show(f"{mib} MiB, " + ("2^20 alone" if few else {1: "random", M: "sorted"}.get(tile, f"sorted in tiles of {tile}")), compare(classes, "u32", "u32", host(cx), host(ci), cx, ci))
    plan = [(64, 1), (16, 1), (64, M), (32, 1), (128, 1), (8, 1), (64, 1, True), (16, M), (16, 1, True), (256, 1), (4, 1), (64, 1 << 16), (8, M), (256, M), (64, 1 << 12), (16, 1 << 16), (8, 1, True), (4, M)]
    plan.sort(key=lambda row: (64, 16, 32, 128, 8, 256, 4).index(row[0]))
    END = time.perf_counter() + (float(os.environ.get("COMPARE_S", "26")))
    for mib, tile, *few in plan:
        if time.perf_counter() > END: print("no time:", mib, tile); continue
        try: table_row(mib, tile if not SMALL else min(tile, M), bool(few))
        except Exception: traceback.print_exc(limit=3)
    base.clear()

    # other kinds of items and indices, random
    for name, dtype, mib, iname, idtype, clip in (("u64", "u8", 64, "u32", "u4", True), ("u8", "u1", 64, "u32", "u4", True), ("u32", "u4", 64, "i64", "i8", False), ("u16", "u2", 32, "u32", "u4", True)):
        if time.perf_counter() > END + 6: print("no time:", name); continue
        try:
            items = mib * MiB // np.dtype(dtype).itemsize
            cx, ci = words(items, dtype), places(items).astype(idtype)
            show(f"{name}, {mib} MiB, {iname}, random", compare({"old": OLD, "new 256x4": kind("f", 4), "new 256x2": kind("g", 4, (256, 2)), "new 256x4, 2 MiB": kind("h", 2)}, name, iname, host(cx), host(ci), cx, ci, clip))
            del cx, ci
        except Exception: traceback.print_exc(limit=3)

    # structures of the kernel, raw: u32, indices by quads
    try:
        found = {}
        o, pbuf, hbuf = buffer(4 * M), {}, buffer(64, np.zeros(16, np.uint32))
        ibuf = buffer(4 * M); made = {}
        def pipe(key):
            if key not in made:
                wg, vecs, form = key
                o_ = {"base": {}, "plain": {"plain": True}, "no barrier": {"barrier": False}, "no skip": {"skip": False}, "reuse": {"reuse": True}, "reuse, no barrier": {"reuse": True, "barrier": False},
                      "hint": {"hint": True}, "hint, no barrier": {"hint": True, "barrier": False}, "reuse, hint": {"reuse": True, "hint": True}}[form]
                text = raw_text(vecs, wg, **o_)
                made[key] = Pipe(str(key), text, "rrwrw" if "hint" in form else "rrwr")
            return made[key]
        def sweep(mib, keys, rounds, in_order=False):
            items = int(mib * MiB) // 4
            x, i = host(words(items)), host(order(places(items), M) if in_order else places(items)); tb = buffer(4 * items, x); upload(ibuf, i)
            at = np.concatenate([np.arange(min(M, 5000)), M - 3000 + np.arange(3000)]) if M > 5000 else np.arange(M)
            variants = {}
            for wg, vecs, form, parts in keys:
                if left() < 4: break
                try:
                    pipe_ = pipe((wg, vecs, form)); name = f"{mib} MiB, {parts} parts, {wg}x{vecs}, {form}" + (", sorted" if in_order else "")
                    pk = (items, parts)
                    if pk not in pbuf: pbuf[pk] = buffer(32, np.array([items // parts, parts] + [0] * 6, np.uint32))
                    g = pipe_.group(ibuf, tb, o, pbuf[pk], *([hbuf] if "hint" in form else []))
                    d = [(pipe_.raw, g, grid(wg, vecs))]
                    e = device.create_command_encoder(); e.clear_buffer(o); device.queue.submit([e.finish(), encode(d)])
                    got = np.concatenate([read(o, 0, 4 * min(M, 5000)), read(o, 4 * (M - 3000), 12000)]) if M > 5000 else read(o)
                    if not np.array_equal(got, x[i[at]]): print("WRONG", name); continue
                    variants[name] = (d * 2, 2)
                except Exception as e: print("FAILED", wg, vecs, form, parts, repr(e)[:200])
            r = measure(variants, rounds); found.update(r); return r
        shapes = ((256, 4), (256, 8), (512, 4), (128, 8), (1024, 4), (512, 8))
        keys = [(256, 1, "plain", 1)] + [(wg, v, "base", p) for p in (16, 32) for wg, v in shapes] + [(wg, v, "base", p) for p in (8, 64) for wg, v in ((256, 4), (256, 8))]
        keys += [(wg, v, f, p) for f in ("no barrier", "reuse", "hint", "reuse, no barrier", "reuse, hint", "no skip", "hint, no barrier") for p in (16, 32) for wg, v in ((256, 4), (256, 8))]
        keys += [(512, 8, "reuse", p) for p in (16, 32)] + [(1024, 8, "reuse", 32), (512, 4, "reuse", 16), (512, 4, "hint", 16), (1024, 4, "hint", 16)]
        r = sweep(64, keys, 3)
        best = {}
        for (wg, v, f, p), us in ((next(k for k in keys if n == f"64 MiB, {k[3]} parts, {k[0]}x{k[1]}, {k[2]}"), us) for n, us in r.items()):
            if (wg, v, f) not in best or us < best[wg, v, f]: best[wg, v, f] = us
        top = [k for k in sorted(best, key=best.get) if k[2] != "plain"][:4] + [(256, 4, "base")]
        sweep(64, [(256, 1, "plain", 1)] + [(*k, 16) for k in dict.fromkeys([*top, (256, 4, "no barrier"), (256, 8, "reuse"), (256, 8, "base")])], 3, True)
        for mib, parts in ((16, (4, 8)), (128, (32, 64)), (32, (8, 16)), (256, (64, 128))):
            if left() < 6: break
            sweep(mib, [(*k, p) for k in dict.fromkeys(top) for p in parts], 3)
        RESULTS["raw"] = found; save()
        print("-- raw structures, us per 2^26 items")
        for n, us in found.items(): print(f"   {n:50} {us}")
    except Exception: traceback.print_exc(limit=4)
save()
print("time used", round(BUDGET - left(), 1))
