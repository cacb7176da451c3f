"""Random gathers: where the time jumps, and what helps. us per gather of M items unless a row says otherwise."""
from lab import *
try: import cupy as cp
except Exception as e: cp = None; print("no cupy:", e)

M = 1 << (26 if not SMALL else 18)
ROUNDS = 3 if not SMALL else 1
MOST = (1 << 26) if not SMALL else (1 << 16)
MiB = 1 << 20

HASH = """
fn hash(x: u32) -> u32 { var h = x * 747796405u + 2891336453u; h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u; return (h >> 22u) ^ h; }
"""
def hash_np(x):
    x = x.astype(np.uint32)
    h = x * np.uint32(747796405) + np.uint32(2891336453)
    h = ((h >> ((h >> np.uint32(28)) + np.uint32(4))) ^ h) * np.uint32(277803737)
    return (h >> np.uint32(22)) ^ h
HASH_C = "__device__ unsigned hash(unsigned x) { unsigned h = x * 747796405u + 2891336453u; h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u; return (h >> 22u) ^ h; }\n"

FILL = HASH + """
@group(0) @binding(0) var<storage, read_write> o: array<u32>;
override MASK: u32 = 0u;
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32, @builtin(num_workgroups) n: vec3<u32>) {
  for (var i = w.x * 256u + l; i < arrayLength(&o); i += n.x * 256u) { o[i] = hash(i%s)%s; }
}"""

def gather_text(vecs, wg=256, idx="i", out="i", load="vec4"):
    """idx, out: where an invocation's quads are read and written; their place among all is i."""
    t = f"""
@group(0) @binding(0) var<storage, read> idx: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> o: array<vec4<u32>>;
@compute @workgroup_size({wg}) fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {{
"""
    for k in range(vecs): t += f"  let p{k} = (w.x + w.y * 32768u) * {wg * vecs}u + {k * wg}u + l; let q{k} = idx[{idx.replace('i', f'p{k}')}];\n"
    for k in range(vecs): t += f"  let x{k} = vec4<u32>(table[q{k}.x], table[q{k}.y], table[q{k}.z], table[q{k}.w]);\n"
    for k in range(vecs): t += f"  o[{out.replace('i', f'p{k}')}] = x{k};\n"
    return t + "}"

def grid(quads, wg, vecs):
    n = quads // (wg * vecs)
    return (n, 1, 1) if n <= 32768 else (32768, n // 32768, 1)

def scalar_text():
    return """
@group(0) @binding(0) var<storage, read> idx: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let first = (w.x + w.y * 32768u) * 1024u + l;
  let a = idx[first]; let b = idx[first + 256u]; let c = idx[first + 512u]; let d = idx[first + 768u];
  let x = table[a]; let y = table[b]; let z = table[c]; let u = table[d];
  o[first] = x; o[first + 256u] = y; o[first + 512u] = z; o[first + 768u] = u;
}"""

def parts_text(vecs, wg, parts, shift):
    """All indices first; then part after part of the table, so that concurrent workgroups read one part at a time."""
    t = f"""
@group(0) @binding(0) var<storage, read> idx: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> o: array<vec4<u32>>;
@compute @workgroup_size({wg}) fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {{
"""
    for k in range(vecs): t += f"  let p{k} = (w.x + w.y * 32768u) * {wg * vecs}u + {k * wg}u + l; let q{k} = idx[p{k}]; var x{k} = vec4<u32>();\n"
    t += f"  for (var part = 0u; part < {parts}u; part++) {{\n"
    for k in range(vecs):
        for c in "xyzw": t += f"    if ((q{k}.{c} >> {shift}u) == part) {{ x{k}.{c} = table[q{k}.{c}]; }}\n"
    t += "    workgroupBarrier();\n  }\n"
    for k in range(vecs): t += f"  o[p{k}] = x{k};\n"
    return t + "}"

# positions by hash, sums only: nothing streams
def pure_text(position, each=16):
    return HASH + f"""
@group(0) @binding(0) var<storage, read> table: array<u32>;
@group(0) @binding(1) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(256) fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {{
  let me = w.x * 256u + l; var s = 0u;
  for (var k = 0u; k < {each}u; k += 4u) {{
""" + "".join(f"    let h{j} = hash(me * {each}u + k + {j}u); let x{j} = table[{position.replace('h', f'h{j}')}];\n" for j in range(4)) + "    s += x0 + x1 + x2 + x3;\n  }\n  o[me] = s;\n}"

def cuda_pure(position, each=16):
    return HASH_C + f"""extern "C" __global__ void f(const unsigned* __restrict__ table, unsigned* o, unsigned a, unsigned b, unsigned c, unsigned d) {{
  unsigned me = blockIdx.x * 256u + threadIdx.x, s = 0u;
  for (unsigned k = 0u; k < {each}u; k += 4u) {{
""" + "".join(f"    unsigned h{j} = hash(me * {each}u + k + {j}u), x{j} = table[{position.replace('h', f'h{j}')}];\n" for j in range(4)) + "    s += x0 + x1 + x2 + x3;\n  }\n  o[me] = s;\n}"

def cuda_us(call, rounds=ROUNDS, calls=2):
    call(); ts = []
    for _ in range(rounds):
        b, e = cp.cuda.Event(), cp.cuda.Event()
        call(); b.record()
        for _ in range(calls): call()
        e.record(); e.synchronize()
        ts.append(cp.cuda.get_elapsed_time(b, e) * 1e3 / calls)
    return round(statistics.median(ts), 1)

CU_GATHER = r'''extern "C" __global__ void g(const uint4* __restrict__ idx, const unsigned* __restrict__ table, uint4* o) {
  size_t i = blockIdx.x * (size_t)256 + threadIdx.x; uint4 q = idx[i]; o[i] = make_uint4(table[q.x], table[q.y], table[q.z], table[q.w]); }'''

with gw.hold_clock(device) as clock_held:
    print("clock held", clock_held)
    # the first buffers of the process are those of a user: a table, indices, results
    tables = {}
    fill_pipe = Pipe("fill", FILL % ("", ""), "w"); fill_wgs = (1024, 1, 1)
    def fill(binding):
        device.queue.submit([encode([(fill_pipe.raw, fill_pipe.group(binding), fill_wgs)])])
    def table(items):
        if items not in tables:
            tables[items] = buffer(4 * items); fill(tables[items])
        return tables[items]
    idx_by_size = {}
    idx, out = buffer(4 * M), buffer(4 * M)
    state = {"mask": None}
    masks = {}
    def random_indices(items):
        if state["mask"] == items: return
        if items not in masks: masks[items] = Pipe("indices", FILL % (" ^ 0x5bd1e995u", f" & {items - 1}u"), "w")
        p = masks[items]; device.queue.submit([encode([(p.raw, p.group(idx), fill_wgs)])]); state["mask"] = items
    probe = np.concatenate([np.arange(1000), M - 1000 + np.arange(1000)]).astype(np.uint32)
    def check(items, wanted=None):
        got = np.concatenate([read(out, 0, 4000), read(out, 4 * (M - 1000), 4000)])
        if wanted is None: wanted = hash_np(hash_np(probe ^ np.uint32(0x5bd1e995)) & np.uint32(items - 1))
        if not (got == wanted).all(): raise AssertionError(f"wrong items, table of {items}: {got[:4]} {wanted[:4]}")

    K4 = Pipe("gather 256 x 1", gather_text(1), "rrw")
    def one(pipe, t, vecs=1, wg=256, i=None, o=None):
        return [(pipe.raw, pipe.group(i or idx, t, o or out), grid(M // 4, wg, vecs))]

    SIZES = [1 << k for k in ((14, 18, 20, 21, 22, 23, 24, 25, 26) if not SMALL else (12, 16))]

    @section("gather by size of the table, words: ours, CUDA's same kernel, CuPy's take")
    def _():
        found = {}
        if cp: g = cp.RawKernel(CU_GATHER, "g")
        for items in SIZES:
            random_indices(items); t = table(items); d = one(K4, t)
            row = [measure({"x": (d * 2, 2)}, ROUNDS)["x"]]
            check(items)
            if cp:
                ct = cp.arange(items, dtype=cp.uint32)
                ci = (cp.random.randint(0, items, M, dtype=cp.uint32)); co = cp.empty(M, cp.uint32)
                row.append(cuda_us(lambda: g((M // 1024,), (256,), (ci, ct, co))))
                row.append(cuda_us(lambda: cp.take(ct, ci, out=co)))
                del ct, ci, co; cp.get_default_memory_pool().free_all_blocks()
            found[f"{items} ({4 * items / MiB:g} MiB)"] = row
        return found

    @section("pages: random reads in P pages of S bytes, 64 sectors of each, positions computed; [ours, CUDA] us per 2^24 reads")
    def _():
        span = 2040 * MiB if not SMALL else 8 * MiB
        big = buffer(span); small = buffer(4 << 20)
        cbig = cp.zeros(span // 4, cp.uint32) if cp else None; co = cp.zeros(1 << 20, cp.uint32) if cp else None
        reads = 1 << (24 if not SMALL else 12)
        cpages = cp.RawKernel(cuda_pure("((h & a) * b + ((h >> 16u) & 63u) * c + ((((h >> 16u) & 63u) * 7u + (h & a) * 13u) & d) * 8u)"), "f") if cp else None
        found = {}
        for S in ((64 << 10, 256 << 10, 2 << 20) if not SMALL else (64 << 10,)):
            for P in ((16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768) if not SMALL else (16, 64)):
                if P * S > span: continue
                step = S // 4 // 64  # words between the 64 sectors of a page
                position = f"((h & {P - 1}u) * {S // 4}u + ((h >> 16u) & 63u) * {step}u + ((((h >> 16u) & 63u) * 7u + (h & {P - 1}u) * 13u) & {max(1, step // 8) - 1}u) * 8u)"
                pipe = Pipe("pages", pure_text(position), "rw")
                d = [(pipe.raw, pipe.group((big, 0, span), small), (reads // 16 // 256, 1, 1))]
                row = [measure({"x": (d * 4, 4)}, ROUNDS)["x"]]
                if cp:
                    row.append(cuda_us(lambda: cpages((reads // 16 // 256,), (256,), (cbig, co, np.uint32(P - 1), np.uint32(S // 4), np.uint32(step), np.uint32(max(1, step // 8) - 1))), calls=4))
                found[f"{S >> 10} KiB x {P} ({P * S / MiB:g} MiB)"] = row
                if left() < 18: return found
        return found

    @section("no streams: random reads of a table, positions computed; [ours, CUDA] us per 2^26 reads")
    def _():
        found = {}; small = buffer(4 * M // 16); co = cp.zeros(M // 16, cp.uint32) if cp else None
        f = cp.RawKernel(cuda_pure("(h & a)"), "f") if cp else None
        for items in SIZES:
            pos = f"(h & {items - 1}u)"; p = Pipe("pure", pure_text(pos), "rw")
            d = [(p.raw, p.group(table(items), small), (M // 16 // 256, 1, 1))]
            row = [measure({"x": (d * 2, 2)}, ROUNDS)["x"]]
            if cp:
                ct = cp.arange(items, dtype=cp.uint32); z = np.uint32(0)
                row.append(cuda_us(lambda: f((M // 16 // 256,), (256,), (ct, co, np.uint32(items - 1), z, z, z))))
            found[f"{4 * items / MiB:g} MiB"] = row
        return found
    @section("16 and 64 MiB: allocations, streams, usages")
    def _():
        found = {}
        many = {}
        U = wgpu.BufferUsage
        for items in ((1 << 22, 1 << 24) if not SMALL else (1 << 14,)):
            n = 4 * items
            random_indices(items)
            v = {"own buffer": table(items)}
            def add(name, make):
                try:
                    b = make(); fill(b); v[name] = b
                except Exception as e: print("FAILED", name, repr(e)[:200])
            add("another own buffer", lambda: buffer(n))
            add("storage alone", lambda: buffer(n, usage=U.STORAGE))
            add("all usages", lambda: buffer(n, usage=USAGE | U.VERTEX | U.INDEX | U.INDIRECT | U.UNIFORM))
            for mib, offsets in ((256, (0, 128)), (1024, (0, 513)), (4093, (0, 2048))) if not SMALL else ((1, (0,)),):
                try: big = many.get(mib) or many.setdefault(mib, buffer(mib * MiB))
                except Exception as e: print("FAILED", mib, repr(e)[:200]); continue
                for at in offsets: add(f"in a buffer of {mib} MiB at {at}", lambda: (big, at * MiB, n))
            variants = {f"{n >> 20} MiB, {name}": (one(K4, b) * 2, 2) for name, b in v.items()}
            small_i = "i & 65535u" if not SMALL else "i & 1023u"
            for name, i, o in (("indices of 1 MiB again and again", small_i, "i"), ("results into 1 MiB", "i", small_i), ("both", small_i, small_i)):
                variants[f"{n >> 20} MiB, {name}"] = (one(Pipe(name, gather_text(1, 256, i, o), "rrw"), v["own buffer"]) * 2, 2)
            if many.get(1024) and many.get(4093):
                p = masks[items]; device.queue.submit([encode([(p.raw, p.group((many[1024], 0, 4 * M)), fill_wgs)])])
                variants[f"{n >> 20} MiB, indices and results in buffers of 1 and 4 GiB"] = (one(K4, v["own buffer"], i=(many[1024], 0, 4 * M), o=(many[4093], 0, 4 * M)) * 2, 2)
            found |= measure(variants, ROUNDS)
        return found

    @section("16, 64, 256 MiB: loads in flight, shapes, parts")
    def _():
        found = {}
        for items in ((1 << 22, 1 << 24, 1 << 26) if not SMALL else (1 << 14,)):
            n = 4 * items
            random_indices(items); t = table(items)
            variants = {}
            def add(name, text, vecs, wg):
                try:
                    p = Pipe(name, text, "rrw"); d = one(p, t, vecs, wg)
                    device.queue.submit([encode([(fill_pipe.raw, fill_pipe.group(out), fill_wgs)]), encode(d)]); check(items)
                    variants[f"{n >> 20} MiB, {name}"] = (d * 2, 2)
                except Exception as e: print("FAILED", name, repr(e)[:300])
            for wg, vecs in ((256, 1), (256, 2), (256, 4), (1024, 1), (64, 1), (64, 4), (256, 8)): add(f"{wg} x {vecs}", gather_text(vecs, wg), vecs, wg)
            add("scalars, 4 in flight", scalar_text(), 1, 256)
            bits = items.bit_length() - 1
            for parts in (2, 4, 8, 16):
                for wg, vecs in ((256, 4), (512, 4), (256, 8)) if parts in (4, 8) else ((256, 4),):
                    add(f"{parts} parts, {wg} x {vecs}", parts_text(vecs, wg, parts, bits - (parts.bit_length() - 1)), vecs, wg)
            found |= measure(variants, ROUNDS)
        return found

    @section("16 and 64 MiB: order of the indices; [ours, CUDA]")
    def _():
        if not cp: return "no cupy"
        found = {}
        g = cp.RawKernel(CU_GATHER, "g"); co = cp.empty(M, cp.uint32)
        for items in ((1 << 22, 1 << 24) if not SMALL else (1 << 14,)):
            ct = cp.arange(items, dtype=cp.uint32); base = cp.random.randint(0, items, M, dtype=cp.uint32)
            for name, tile in (("random", 1), ("sorted in tiles of 2^10", 1 << 10), ("2^12", 1 << 12), ("2^14", 1 << 14), ("2^16", 1 << 16), ("2^20", 1 << 20), ("sorted", M)):
                if left() < 4: return found
                ci = base if tile == 1 else cp.sort(base.reshape(-1, tile), axis=1).reshape(-1)
                upload(idx, ci.get()); state["mask"] = None
                row = [measure({"x": (one(K4, table(items)) * 2, 2)}, ROUNDS)["x"], cuda_us(lambda: g((M // 1024,), (256,), (ci, ct, co)))]
                found[f"{4 * items >> 20} MiB, {name}"] = row
        return found

save()
