"""What lies between dispatches, and what lies within Reduce at 2^20. us per launch."""
from lab import *

L = 100 if not SMALL else 4
OWN = min(L, 40)  # launches, each with buffers of its own
N = 1 << (20 if not SMALL else 16)
ROUNDS = 7 if not SMALL else 1
raw = lambda pipe, group, x, y=1: (pipe.raw, group, (x, y, 1))

EMPTY = "@compute @workgroup_size(%d) fn main() {}"
READS = """@group(0) @binding(0) var<storage, read> a: array<u32>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) g: vec3<u32>) { if (a[g.x] == 77u) { return; } }"""
WRITES = """@group(0) @binding(0) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(%d) fn main(@builtin(global_invocation_id) g: vec3<u32>) { o[g.x] = g.x; }"""
UNWRITTEN = """@group(0) @binding(0) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) g: vec3<u32>) { if (g.x > 0x7fffffffu) { o[0] = g.x; } }"""
READ_WRITE = """@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) g: vec3<u32>) { o[g.x] = a[g.x] + 1u; }"""
def many(k): return "\n".join(f"@group(0) @binding({i}) var<storage, read_write> o{i}: array<u32>;" for i in range(k)) + """
@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) g: vec3<u32>) { o0[g.x] = g.x; }"""

def held():
    return gw.hold_clock(device)

with held() as clock_held:
    print("clock held", clock_held, "launches", L)
    settle = gw.Copy(device, "u32"); xs = gw.asarray(np.arange(1 << (24 if not SMALL else 16), dtype=np.uint32), device)
    settle.execute(input=xs); call = settle.bind()
    t = time.perf_counter() + (1.0 if not SMALL else 0.05)
    while time.perf_counter() < t:
        call.execute(trials=50 if not SMALL else 1); gw.synchronize(device)

    words = 1 << 16

    @section("dispatches: what wgpu puts between them")
    def _():
        e32, e256 = Pipe("empty 32", EMPTY % 32, ""), Pipe("empty 256", EMPTY % 256, "")
        rd, wr, wr32, uw, rw = Pipe("reads", READS, "r"), Pipe("writes", WRITES % 256, "w"), Pipe("writes 32", WRITES % 32, "w"), Pipe("unwritten", UNWRITTEN, "w"), Pipe("rw", READ_WRITE, "rw")
        wr_b = Pipe("writes, again", WRITES % 256 + "\n//", "w")
        a = buffer(4 * words, np.arange(words, dtype=np.uint32))
        outs = [buffer(4 * words) for _ in range(max(L, 8))]
        big = [buffer(64 * words) for _ in range(2)]
        w_groups = [wr.group(o) for o in outs]
        rw_groups = [rw.group(a, o) for o in outs]
        o1 = outs[0]
        v = {}
        for wgs in (1, 132, 1024):
            v[f"a empty, no bindings, {wgs} x 32"] = [raw(e32, None, wgs)] * L
        v["a empty, no bindings, 132 x 256"] = [raw(e256, None, 132)] * L
        v["a empty, two pipelines in turns, 1"] = [raw(e32, None, 1), raw(e256, None, 1)] * (L // 2)
        for wgs in (1, 132): v[f"b reads only, {wgs} x 256"] = [raw(rd, rd.group(a), wgs)] * L
        g = wr.group(o1); g32 = wr32.group(o1)
        v["c writes one buffer, 1 x 32"] = [raw(wr32, g32, 1)] * L
        for wgs in (1, 132, 256): v[f"c writes one buffer, {wgs} x 256"] = [raw(wr, g, wgs)] * L
        v["c read_write binding that is not written, 1 x 256"] = [raw(uw, uw.group(o1), 1)] * L
        v["c two pipelines in turns write one buffer, 1 x 256"] = [raw(wr, g, 1), raw(wr_b, wr_b.group(o1), 1)] * (L // 2)
        v["c writes one buffer, none of its workgroups (0)"] = [raw(wr, g, 0)] * L
        for k in (2, 4): v[f"d {k} outputs in turns, 1 x 256"] = [raw(wr, w_groups[i % k], 1) for i in range(L)]
        v["d 2 outputs in turns, two parts of one buffer, 1 x 256"] = [raw(wr, wr.group((o1, 0, 1024)) if i % 2 else wr.group((o1, 1024, 1024)), 1) for i in range(L)]
        v["e own output each, 1 x 256"] = [raw(wr, w_groups[i], 1) for i in range(L)]
        v["e own output each, 132 x 256"] = [raw(wr, w_groups[i], 132) for i in range(L)]
        v["e read-only input, own output each, 1 x 256"] = [raw(rw, rw_groups[i], 1) for i in range(L)]
        v["e read-only input, own output each, 132 x 256"] = [raw(rw, rw_groups[i], 132) for i in range(L)]
        v["e as before, one shared output, 132 x 256"] = [raw(rw, rw_groups[0], 132)] * L
        for k in (4, 8):
            p = Pipe(f"{k} writable", many(k), "w" * k)
            v[f"c {k} writable bindings, 1 x 256"] = [raw(p, p.group(*outs[:k]), 1)] * L
        # a pair that alternates writer and reader (a chain)
        v["c a writes x, b reads x and writes y, 1 x 256"] = [raw(wr, w_groups[0], 1), raw(rw, rw.group(outs[0], outs[1]), 1)] * (L // 2)
        found = measure({k: (d, len(d)) for k, d in v.items()}, ROUNDS)
        return found

    @section("time within kernels: one dispatch that loops k times, 1 x 256 (slopes are latencies)")
    def _():
        CHASE = """@group(0) @binding(0) var<storage, %s> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) g: vec3<u32>) { var x = g.x; for (var k = 0u; k < %du; k++) { x = a[x]; } o[g.x] = x; }"""
        ATOMIC = """@group(0) @binding(0) var<storage, read_write> a: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3<u32>) { if (l != 0u) { return; } var x = w.x; for (var k = 0u; k < %du; k++) { x = %s; } o[w.x] = x; }"""
        n = 1 << 20 if not SMALL else 1 << 14
        rng = np.random.default_rng(1)
        perm = rng.permutation(n).astype(np.uint32)
        a, o, z = buffer(4 * n, perm), buffer(1 << 16), buffer(4 * n)
        v = {}
        for k in (0, 4, 16):
            p = Pipe(f"chase {k}", CHASE % ("read", k), "rw"); v[f"loads, read, {k}"] = [raw(p, p.group(a, o), 1)] * L
            p = Pipe(f"chase rw {k}", CHASE % ("read_write", k), "ww"); v[f"loads, read_write, {k}"] = [raw(p, p.group(a, o), 1)] * L
            p = Pipe(f"atomic {k}", ATOMIC % (k, "atomicAdd(&a[x & 1u], 1u)"), "ww"); v[f"atomicAdd, {k}"] = [raw(p, p.group(z, o), 1)] * L
            p = Pipe(f"atomic load {k}", ATOMIC % (k, "atomicLoad(&a[x & 4095u])"), "ww"); v[f"atomicLoad, {k}"] = [raw(p, p.group(z, o), 1)] * L
        p = Pipe("atomic 1", ATOMIC % (1, "atomicAdd(&a[0], 1u)"), "ww")
        for w in (1, 256, 1024): v[f"one atomicAdd to one word from each of {w} workgroups"] = [raw(p, p.group(z, o), w)] * L
        return measure({k: (d, len(d)) for k, d in v.items()}, ROUNDS)

    rng = np.random.default_rng(2)
    items = rng.integers(0, 1 << 32, N, dtype=np.uint32)
    data = buffer(4 * N, items)
    total = np.uint32(items.sum(dtype=np.uint64) & 0xffffffff)

    @section("copy of 2^20: one dispatch that copies k times (slope: a copy without its launch)")
    def _():
        v = {}
        o = buffer(4 * N)
        blocks = N // 4 // 256
        for k in (0, 1, 2, 4, 8):
            code = f"""@group(0) @binding(0) var<storage, read> a: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> o: array<vec4<u32>>;
@compute @workgroup_size(256) fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3<u32>) {{
  for (var k = 0u; k < {k}u; k++) {{ let i = ((w.x + k * 37u) % {blocks}u) * 256u + l; o[i] = a[i]; }}
}}"""
            p = Pipe(f"copy {k}", code, "rw"); v[f"copies in one dispatch: {k}"] = [raw(p, p.group(data, o), blocks)] * L
        p = Pipe("quarter", """@group(0) @binding(0) var<storage, read> a: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> o: array<vec4<u32>>;
@compute @workgroup_size(512) fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3<u32>) {
  let i = w.x * 2048u + l; let x = a[i]; let y = a[i + 512u]; let z = a[i + 1024u]; let u = a[i + 1536u]; o[i] = x; o[i + 512u] = y; o[i + 1024u] = z; o[i + 1536u] = u; }""", "rw")
        v["raw 512 x 4, 128 workgroups"] = [raw(p, p.group(data, o), N // 4 // 2048)] * L
        return measure({k: (d, len(d)) for k, d in v.items()}, ROUNDS)

    def reduce_text(kind, wg, vecs):
        quads = N // 4
        blocks = max(1, quads // (wg * vecs))
        loads = "\n".join(f"  let v{i} = a[first + {i * wg}u];" for i in range(vecs))
        sums = "+".join(f"v{i}" for i in range(vecs))
        head = f"""
@group(0) @binding(0) var<storage, read> a: array<vec4<u32>>;
const WG = {wg}u; const BLOCKS = {blocks}u;
var<workgroup> parts: array<u32, 256>;
var<workgroup> flag: u32;
struct P {{ @builtin(local_invocation_index) local: u32, @builtin(workgroup_id) w: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) sg: u32, @builtin(num_subgroups) sgs: u32 }}
fn total_of(p: P, x: u32) -> u32 {{
  let s = subgroupAdd(x);
  workgroupBarrier();
  if (p.lane == 0u) {{ parts[p.sg] = s; }}
  workgroupBarrier();
  var t = 0u;
  for (var i = 0u; i < p.sgs; i++) {{ t += parts[i]; }}
  return t;
}}
fn mine(p: P) -> u32 {{
  let first = p.w.x * {wg * vecs}u + p.local;
{loads}
  let s = {sums};
  return total_of(p, s.x + s.y + s.z + s.w);
}}
"""
        out = "@group(0) @binding(1) var<storage, read_write> out: array<u32>;\n"
        main = f"@compute @workgroup_size({wg}) fn main(p: P) {{\n"
        if kind == "launch":  # nothing is read
            return head + out + main + "if (p.local == 0u) { out[p.w.x] = p.w.x; } }", "rw", blocks
        if kind == "totals":
            return head + out + main + "let t = mine(p); if (p.local == 0u) { out[p.w.x] = t; } }", "rw", blocks
        if kind == "ticket":
            return head + out + """@group(0) @binding(2) var<storage, read_write> c: array<atomic<u32>>;
""" + main + """let t = mine(p); if (p.local == 0u) { out[p.w.x + 1u] = t; if (atomicAdd(&c[0], 1u) == BLOCKS - 1u) { atomicStore(&c[0], 0u); out[0] = t; } } }""", "rww", blocks
        if kind == "sum and count in u64":
            return head + out + """@group(0) @binding(2) var<storage, read_write> c: array<atomic<u64>>;
""" + main + """let t = mine(p); if (p.local == 0u) { let old = atomicAdd(&c[0], (u64(t) << 32u) | 1lu);
 if (u32(old & 0xfffffffflu) == BLOCKS - 1u) { out[0] = u32(old >> 32u) + t; atomicStore(&c[0], 0lu); } } }""", "rww", blocks
        if kind == "sum, then count, u32":
            return head + out + """@group(0) @binding(2) var<storage, read_write> c: array<atomic<u32>>;
""" + main + """let t = mine(p); if (p.local == 0u) { let old = atomicAdd(&c[0], t); let n = atomicAdd(&c[32], select(1u, 0u, old == 0x12345678u && t == 0x9abcdef0u));
 if (n == BLOCKS - 1u) { out[0] = atomicLoad(&c[0]); atomicStore(&c[0], 0u); atomicStore(&c[32], 0u); } } }""", "rww", blocks
        if kind == "sum alone (no end)":
            return head + """@group(0) @binding(1) var<storage, read_write> c: array<atomic<u32>>;
""" + main + "let t = mine(p); if (p.local == 0u) { atomicAdd(&c[0], t); } }", "rw", blocks
        states = """@group(0) @binding(2) var<storage, read_write> c: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> states: array<atomic<u64>>;
fn word(epoch: u32, x: u32) -> u64 { return (u64((epoch << 2u) | 1u) << 32u) | u64(x); }
fn poll(p: P, epoch: u32) -> u32 {
  var sum = 0u;
  for (var i = p.local; i < BLOCKS; i += WG) {
    for (var spins = 0u; spins < 4096u; spins++) {
      let w = atomicLoad(&states[i]);
      if (u32(w >> 32u) == ((epoch << 2u) | 1u)) { sum += u32(w & 0xfffffffflu); break; }
    }
  }
  return total_of(p, sum);
}
"""
        if kind == "last to finish reads (as shipped)":
            return head + out + states + main + """let epoch = atomicLoad(&c[2]); let t = mine(p);
  if (p.local == 0u) { atomicStore(&states[p.w.x], word(epoch, t)); flag = select(0u, 1u, atomicAdd(&c[1], 1u) == BLOCKS - 1u); }
  if (workgroupUniformLoad(&flag) == 0u) { return; }
  let all = poll(p, epoch);
  if (p.local == 0u) { atomicStore(&c[1], 0u); atomicStore(&c[2], (epoch + 1u) & 0x3fffffffu); out[0] = all; } }""", "rwww", blocks
        if kind == "one block polls, others count":
            return head + out + states + main + """let epoch = atomicLoad(&c[2]); let t = mine(p);
  if (p.local == 0u) { atomicStore(&states[p.w.x], word(epoch, t));
    if (atomicAdd(&c[1], 1u) == BLOCKS - 1u) { atomicStore(&c[1], 0u); atomicStore(&c[2], (epoch + 1u) & 0x3fffffffu); } }
  if (p.w.x != BLOCKS - 1u) { return; }
  let all = poll(p, epoch);
  if (p.local == 0u) { out[0] = all; } }""", "rwww", blocks
        if kind == "first block polls, others count":
            return reduce_text("one block polls, others count", wg, vecs)[0].replace("p.w.x != BLOCKS - 1u", "p.w.x != 0u"), "rwww", blocks
        raise KeyError(kind)

    KINDS = ("launch", "totals", "ticket", "sum alone (no end)", "sum and count in u64", "sum, then count, u32", "last to finish reads (as shipped)", "one block polls, others count", "first block polls, others count")

    def reduce_variant(kind, wg, vecs, own=False):
        code, access, blocks = reduce_text(kind, wg, vecs)
        pipe = Pipe(f"{kind} {wg} x {vecs}", code, access)
        def group():
            bufs = [data, buffer(4 * (blocks + 64)), buffer(4096), buffer(8 * (blocks + 64))]
            return bufs, pipe.group(*bufs[:len(access)])
        bufs, g = group()
        d = [raw(pipe, g, blocks)]
        device.queue.submit([encode(d * 3)])
        if kind not in ("launch", "totals", "ticket", "sum alone (no end)"):
            got = read(bufs[1], 0, 32)[0]
            if got != total: raise AssertionError(f"{kind} {wg} {vecs}: {got} is not {total}")
        elif kind == "totals":
            assert np.uint32(read(bufs[1], 0, 4 * blocks).sum(dtype=np.uint64) & 0xffffffff) == total
        if not own: return d * L
        return [raw(pipe, group()[1], blocks) for _ in range(OWN)]

    def collect(wanted):
        v = {}
        for name, make in wanted.items():
            try: v[name] = make()
            except Exception as e: print("FAILED", name, repr(e)[:300])
        return measure({k: (d, len(d)) for k, d in v.items()}, ROUNDS)

    def shipped(make, arrays, own=False):
        """One primitive L times; or L of them, each with own scratch and outputs."""
        out = []
        for _ in range(OWN if own else 1):
            p = make(); r = p.execute(**arrays()); b = p.bind(); plan = b.bound_plan
            if own: plan = b._context.executor.apart(plan)
            KEEP.append((p, r, b, plan))
            for s in plan.steps: out.append((s.pipeline, s.group, s.workgroups))
        return out if own else out * L
    KEEP = []
    x = gw.asarray(items, device)
    made = gw.Copy(device, "u32")

    @section("reduce of 2^20 u32: forms at 256 x 4")
    def _():
        w = {k: (lambda k=k: reduce_variant(k, 256, 4)) for k in KINDS}
        w |= {k + ", own scratch and output": (lambda k=k: reduce_variant(k, 256, 4, True)) for k in ("launch", "totals", "sum and count in u64", "last to finish reads (as shipped)", "one block polls, others count")}
        w["gw.Reduce"] = lambda: shipped(lambda: gw.Reduce(device, "u32"), lambda: {"input": x})
        w["gw.Reduce, own scratch and output"] = lambda: shipped(lambda: gw.Reduce(device, "u32"), lambda: {"input": x, "output": gw.empty(1, "u32", device)}, True)
        return collect(w)

    @section("shipped, shared and own scratch")
    def _():
        w = {}
        argmax = lambda: gw.Reduce(device, gw.struct(value=gw.u32("input"), index=gw.index), gw.ArgMax)
        w["gw.Copy"] = lambda: shipped(lambda: gw.Copy(device, "u32"), lambda: {"input": x})
        w["gw.Copy, own output"] = lambda: shipped(lambda: gw.Copy(device, "u32"), lambda: {"input": x}, True)
        w["argmax"] = lambda: shipped(argmax, lambda: {"input": x})
        w["argmax, own scratch and output"] = lambda: shipped(argmax, lambda: {"input": x}, True)
        for length in (4096, 16384):
            off = gw.asarray(np.arange(0, N + 1, length, dtype=np.uint32), device)
            seg = lambda t=None: gw.SegmentedReduce(device, "u32", gw.Add, **({"tuning": t} if t else {}))
            w[f"segments of {length}"] = lambda off=off, seg=seg: shipped(seg, lambda: {"items": x, "offsets": off})
            w[f"segments of {length}, own output"] = lambda off=off, seg=seg: shipped(seg, lambda: {"items": x, "offsets": off}, True)
        return collect(w)

    @section("cuda: the same launches as a graph, us")
    def _():
        import cupy as cp
        code = r'''extern "C" __global__ void empty() {}
extern "C" __global__ void writes(unsigned* o) { unsigned i = blockIdx.x * blockDim.x + threadIdx.x; o[i] = i; }'''
        m = cp.RawModule(code=code); e, wk = m.get_function("empty"), m.get_function("writes")
        o = cp.zeros(1 << 20, cp.uint32); found = {}
        st = cp.cuda.Stream(non_blocking=True)
        for name, f, grid, block, args in (("empty 1 x 32", e, 1, 32, ()), ("empty 132 x 256", e, 132, 256, ()), ("writes 1 x 256", wk, 1, 256, (o,)), ("writes 132 x 256", wk, 132, 256, (o,))):
            with st:
                f((grid,), (block,), args); st.synchronize()
                st.begin_capture()
                for _ in range(L): f((grid,), (block,), args)
                graph = st.end_capture()
                ts = []
                for _ in range(10):
                    graph.launch(st)
                    b, en = cp.cuda.Event(), cp.cuda.Event(); b.record(st); graph.launch(st); en.record(st); en.synchronize()
                    ts.append(cp.cuda.get_elapsed_time(b, en) * 1e3 / L)
            found[name] = round(statistics.median(ts), 3)
        return found
    @section("segments of 2^12 and 2^14 items, raw: a workgroup each (2^14: or several)")
    def _():
        w = {}
        for length in (4096, 16384):
            segs = max(1, N // length)
            off = buffer(4 * (segs + 1), np.arange(0, N + 1, length, dtype=np.uint32))
            wanted = items[:segs * length].reshape(segs, -1).sum(axis=1, dtype=np.uint64).astype(np.uint32)
            for known in (False, True):
                for wg in (256, 512, 1024):
                    vecs = length // 4 // wg
                    if vecs > 16: continue
                    bounds = f"let begin = p.w.x * {length}u; let end = begin + {length}u;" if known else "let begin = off[p.w.x]; let end = off[p.w.x + 1u];"
                    loads = "\n".join(f"var v{i} = vec4<u32>(); if (4u * (q + {i * wg}u) < end) {{ v{i} = a[q + {i * wg}u]; }}" for i in range(vecs))
                    sums = "+".join(f"v{i}" for i in range(vecs))
                    code = f"""
@group(0) @binding(0) var<storage, read> a: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> off: array<u32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
var<workgroup> parts: array<u32, 256>;
struct P {{ @builtin(local_invocation_index) local: u32, @builtin(workgroup_id) w: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) sg: u32, @builtin(num_subgroups) sgs: u32 }}
@compute @workgroup_size({wg}) fn main(p: P) {{
  {bounds}
  let q = begin / 4u + p.local;
  {loads}
  let s = {sums};
  let t = subgroupAdd(s.x + s.y + s.z + s.w);
  if (p.lane == 0u) {{ parts[p.sg] = t; }}
  workgroupBarrier();
  if (p.local == 0u) {{ var all = 0u; for (var i = 0u; i < p.sgs; i++) {{ all += parts[i]; }} out[p.w.x] = all; }}
}}"""
                    def make(code=code, segs=segs, off=off, wanted=wanted, wg=wg):
                        pipe = Pipe("seg", code, "rrw"); o = buffer(4 * segs); g = pipe.group(data, off, o)
                        d = [raw(pipe, g, segs)]
                        device.queue.submit([encode(d)])
                        assert (read(o, 0, 4 * segs) == wanted).all()
                        return d * L
                    w[f"{length}, {wg} x {vecs}, {'length known' if known else 'offsets'}"] = make
        return collect(w)

    @section("reduce: forms by shape")
    def _():
        w = {}
        for k in ("totals", "sum and count in u64", "last to finish reads (as shipped)", "one block polls, others count"):
            for wg, vecs in ((128, 4), (256, 2), (256, 8), (512, 2), (512, 4), (1024, 1), (1024, 2), (1024, 4)):
                if N // 4 >= wg * vecs: w[f"{k}, {wg} x {vecs}, {N // 4 // (wg * vecs)} blocks"] = lambda k=k, wg=wg, vecs=vecs: reduce_variant(k, wg, vecs)
        return collect(w)

    @section("sweeps by tuning, 2^20")
    def _():
        w = {}
        argmax = lambda t: gw.Reduce(device, gw.struct(value=gw.u32("input"), index=gw.index), gw.ArgMax, tuning=t)
        for wg, vecs in ((128, 4), (256, 2), (256, 4), (256, 8), (512, 2), (512, 4), (1024, 1), (1024, 2), (1024, 4)):
            w[f"reduce {wg} x {vecs}"] = lambda wg=wg, vecs=vecs: shipped(lambda: gw.Reduce(device, "u32", tuning=gw.ReduceTuning(workgroup_size=wg, vecs=vecs)), lambda: {"input": x})
            w[f"argmax {wg} x {vecs}"] = lambda wg=wg, vecs=vecs: shipped(lambda: argmax(gw.ReduceTuning(workgroup_size=wg, vecs=vecs)), lambda: {"input": x})
        for wg, vecs in ((256, 1), (256, 2), (512, 1), (512, 2), (1024, 1), (1024, 2), (128, 1)):
            w[f"copy {wg} x {vecs}"] = lambda wg=wg, vecs=vecs: shipped(lambda: gw.Copy(device, "u32", tuning=gw.ElementwiseTuning(workgroup_size=wg, vecs=vecs)), lambda: {"input": x})
        for length in (4096, 16384):
            off = gw.asarray(np.arange(0, N + 1, length, dtype=np.uint32), device)
            for wg, vecs in ((256, 2), (256, 4), (512, 2), (512, 4), (512, 8), (1024, 2), (1024, 4)):
                w[f"segments of {length}, {wg} x {vecs}"] = lambda off=off, wg=wg, vecs=vecs: shipped(
                    lambda: gw.SegmentedReduce(device, "u32", gw.Add, tuning=gw.ScanTuning(workgroup_size=wg, vecs=vecs)), lambda: {"items": x, "offsets": off})
        return collect(w)

save()
