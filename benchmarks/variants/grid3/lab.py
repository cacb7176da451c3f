"""Variants at 2^20 and 2^24, each in a process of its own. lab.py (driver): starts children, times them in turns, kills those that hang.
Usage: lab.py JSON SECONDS [ROW...] (SMOKE=1 on lavapipe); children are lab.py child ROW NUMBER."""
import json, os, queue, re, statistics, subprocess, sys, threading, time, traceback
from pathlib import Path
ROOT = Path(__file__).resolve().parents[2]; KIT = Path(__file__).resolve().parent
SMOKE = bool(os.environ.get("SMOKE"))
CHILD = len(sys.argv) > 1 and sys.argv[1] == "child"
SMS = 3 if SMOKE else 132
SG = 8 if SMOKE else 32
GAVE = 100000 if SMOKE else 64
def size(log): return 1 << (log - (4 if log == 20 else 7) if SMOKE else log)
if CHILD:
    sys.path[:0] = [str(KIT), str(ROOT / "benchmarks/peers")]
    if os.environ.get("PIPE_STATS"): os.environ["PIPE_STATS"] = f"/tmp/g3_stats_{os.getpid()}.txt"
    import numpy as np, wgpu
    import gridwise_py as gw
    import gridwise_py.planning.builder as builder
    from gridwise_py.backend.queues import create_shader_module
    import harness, gen
    CHECKS = "none"
    device = gw.request_device("cpu") if SMOKE else gw.request_device()
    if SMOKE:
        import gridwise_py.tuning.facts as facts
        from gridwise_py.types.capabilities import Capabilities
        facts._INTEGRATED = facts.DISCRETE
        Capabilities.is_cpu = property(lambda self: False)
else:
    class gw: timing_helper = u32 = staticmethod(lambda *a: 0)
    class wgpu:
        class BufferUsage: STORAGE = COPY_SRC = COPY_DST = 0
    class builder: compose_kernel = None
    device = None
helper = gw.timing_helper(device)
HALF = 1 << 31
_host, _array = {}, {}
def host(n, small):
    if (n, small) not in _host:
        _host.clear(); _array.clear()
        _host[n, small] = np.random.default_rng(5).integers(0, 512 if small else 1 << 32, n, dtype=np.uint32)
    return _host[n, small]
def array(n, small):
    h = host(n, small)
    if (n, small) not in _array: _array[n, small] = gw.asarray(h, device)
    return _array[n, small]

# ---- shipped texts, changed
CURRENT = []
_compose = builder.compose_kernel
def composed(*args, **kwargs):
    text = _compose(*args, **kwargs)
    if args[0] in ("scan_lookback.wgsl", "stream_lookback.wgsl", "segmented_lookback.wgsl"):
        for change in CURRENT: text = change(text)
    return text
builder.compose_kernel = composed
class Missing(Exception): pass
def sub(old, new, count=None):
    def change(text):
        if old not in text: raise Missing(old[:70])
        return text.replace(old, new)
    return change
def rex(old, new, flags=re.S):
    def change(text):
        out, k = re.subn(old, new, text, flags=flags)
        if not k: raise Missing(old[:70])
        return out
    return change
LEADER_COUNT = "if (is_leader() && state_count_finished(params.tiles)) { state_next_epoch(); }"
FIN = {  # the count of finished workgroups behind the stores
    "scan": [sub("  " + LEADER_COUNT + "\n  tile_store(tile, before);", "  tile_store(tile, before);\n  " + LEADER_COUNT)],
    "select": [rex(r"    if \(state_count_finished\(workgroups\)\) \{ state_next_epoch\(\); \}\n  \}\n(  emit_tile\([^\n]*\n)", r"  }\n\1  if (is_leader() && state_count_finished(workgroups)) { state_next_epoch(); }\n")],
}
NOCOUNT = {
    "scan": [sub("  " + LEADER_COUNT + "\n", "")],
    "select": [rex(r"    if \(state_count_finished\(workgroups\)\) \{ state_next_epoch\(\); \}\n  \}\n(  emit_tile)", r"  }\n\1")],
}
def own_epoch(text):  # of the word that the same tile had before
    text = sub("fn state_begin() {", "fn state_begin_of(tile: u32) {")(text)
    if "array<atomic<u64>>" in text: read = "epoch = (u32(atomicLoad(&states[tile]) >> 34u) + 1u) & 0x3fffffffu;"
    elif "states[4u +" in text: read = "epoch = atomicLoad(&states[4u + tile]) >> 31u;"
    else: read = "epoch = ((atomicLoad(&states[2u * tile]) >> 18u) + 1u) & 0x3fffu;"
    text = rex(r"epoch = atomic\w+\(&\w+\[2\][^;]*;", read)(text)
    return sub("{ state_begin(); }", "{ state_begin_of(tile); }")(text)
OWN = {k: [own_epoch, *NOCOUNT[k]] for k in FIN}
def late_epoch(text):
    line = re.search(r"  if \(look_back_enter\(\)\) \{ state_begin[^\n]*\n", text)[0]
    if "tile >= used_tiles()" in text: text = rex(r"  if \(tile >= used_tiles\(\)\) \{.*?return;\n  \}\n", "")(text)
    return sub("  tile_load(tile);\n", "  tile_load(tile);\n" + line)(text.replace(line, ""))
POLLS = r"    var published_(\d) = Published\(INCLUSIVE, identity\(\)\);  // before tile 0\n    if \([^\n]*\) \{\n      published_\d = state_poll\([^\n]*\n    \}\n"
def together(text):  # polls without branches between them
    n = len(re.findall(POLLS, text))
    if not n: raise Missing("polls")
    lines = "".join(f"    let back_{j} = window - first - {j}u;\n    let polled_{j} = state_poll(nearest - min(back_{j}, nearest));\n" for j in range(n))
    lines += "".join(f"    let published_{j} = Published(select(polled_{j}.flag, INCLUSIVE, back_{j} > nearest), select(polled_{j}.value, identity(), back_{j} > nearest));\n" for j in range(n))
    first = [True]
    def put(m):
        if first[0]: first[0] = False; return lines
        return ""
    return re.sub(POLLS, put, text)
ONEBAR = [sub("let found = workgroupUniformLoad(&look_back_result);", "workgroupBarrier(); let found = look_back_result;"),
          rex(r"(fn wg_scan\(x: Acc\) -> WorkgroupScan \{\n)  workgroupBarrier\(\);\n", r"\1")]
NOINC = [rex(r"    if \(is_leader\(\)\) \{ state_publish\(tile, INCLUSIVE, combine\(before, (total|count.total)\)\); \}\n", "")]
SMALL = [sub("var<workgroup> wg_totals: array<Acc, WORKGROUP_SIZE>;", f"var<workgroup> wg_totals: array<Acc, {64 if SMOKE else 32}>;")]
def small_select(text): return sub("wg_totals[select(sg_count + local - sg_id - 1u, sg_id, sg_lane == 0u)] = x;", "if (sg_lane == 0u) { wg_totals[sg_id] = x; }")(SMALL[0](text))
NOLOOK = [rex(r"  if \(tile > 0u\) \{\n    before = look_back_from\(tile\);\n[^\n]*\n  \}\n", "")]
NOPUB = [rex(r"  if \(is_leader\(\)\) \{ state_publish\(tile, select\(TOTAL[^\n]*\n", "")]
def baked(n, tiles, **offsets):
    def change(text):
        for k, v in {"n": n, **({} if SMOKE else {"tiles": tiles}), "flags": 0, "first": 0, "capacity": n, "room": n}.items(): text = re.sub(rf"\bparams\.{k}\b", f"{v}u", text)
        text = re.sub(r"\bparams\.\w+_offset\b", "0u", text)
        return re.sub(r"\bparams\.identity_bits\b", "0u", text)
    return change
EMPTY = [sub("  enter(lanes);\n", "  if (params.n != 0u) { return; }\n  enter(lanes);\n")]
COPY = [rex(r"  let sum = tile_sum\(\);.*?(  tile_store)", r"  let before = params.identity_bits;\n\1")]
LOADS = [rex(r"  let sum = tile_sum\(\);.*\}\n$", "  var x = tile_items[0];\n" + "%s" + "  if (all(x == vec4<u32>(77u))) { store_output(tile, x.y); }\n}\n")]
def loads_only(text):
    vecs = int(re.search(r"const VECS: u32 = (\d+)u", text)[1])
    return rex(r"  let sum = tile_sum\(\);.*\}\n$", "  var x = tile_items[0];\n" + "".join(f"  x ^= tile_items[{k}];\n" for k in range(1, vecs)) + "  if (all(x == vec4<u32>(77u))) { store_output(tile, x.y); }\n}\n")(text)
def stores_only(text):
    return rex(r"  tile_load\(tile\);\n  let sum = tile_sum\(\);.*?(  tile_store)", r"  let before = params.n;\n\1")(text)
STALE = {"scan": [lambda t: re.sub(r"let ready = tag == \(high >> 16u\)[^\n]*", "let ready = true;", t) if "let ready" in t else sub("select(EMPTY, tag & 3u, (tag >> 2u) == epoch)", "tag & 3u")(t)],
         "select": [sub("let is_of_epoch = (word_0 >> 31u) == (epoch ^ 1u);", "let is_of_epoch = true;")]}
def give_up(text):  # after 4 tiles that were computed anew: wrong results, but an end
    if "  var gave = 0u;" in text: return text
    m = re.search(r"(fn look_back_from\([^\n]*\n.*?  loop \{\n)(.*?\n\}\n)", text, re.S)
    if not m: return text
    part = m[0].replace(m[1], m[1].replace("  loop {\n", "  var gave = 0u;\n  loop {\n    gave += 1u; if (gave > %du) { break; }\n" % GAVE))
    return text.replace(m[0], part)
def wide(spin=False, subs=0, early=False, own=False, noinc=False):
    """Every lane of (subs subgroups of) the workgroup polls a tile; spin: until no word that it needs is empty."""
    def change(text):
        m = re.search(r"fn look_back_from\(tile: u32(, own: (\w+), is_known: bool)?\) -> (\w+) \{", text)
        if not m: raise Missing("look_back_from")
        T = m[3]; by_key = bool(m[1])
        combine, identity, posted, ends, carry = ("chain_combine", "chain_identity()", "posted(total)", "", "") if by_key else ("combine", "identity()", "total", "", "")
        N = f"min({subs}u, WORKGROUP_SIZE / {SG}u)" if subs else f"(WORKGROUP_SIZE / {SG}u)"
        if own:
            text = re.sub(r"if \(look_back_enter\(\)\) \{ (state_begin_of\(tile\);) \}", r"if (is_leader()) { \1 lb_epoch = epoch; }", text)
            if "lb_epoch = epoch" not in text: raise Missing("own")
        else: text = re.sub(r"if \(look_back_enter\(\)\) \{ (state_begin\(\);) \}", r"\1", text)
        i = text.index("fn look_back_from("); j = text.index("\n}\n", i) + 3
        poll = f"""if (back <= next) {{ published = {"lb_first(next - back, again)" if early else "state_poll(next - back)"}; }}
      {"again = true;" if early else ""}
"""
        spinning = """      for (var k = 0u; k < 48u; k++) {
        let nearest = lb_last(lb_key(published.flag));
        if (nearest == 0u || (nearest & 1u) == 1u) { break; }
        if (published.flag == EMPTY && back <= next) { published = state_poll(next - back); }
      }
""" if spin else ""
        joined = f"""    for (var k = 1u; k <= {N}; k++) {{
      let x = lb_sums[{N} - k];
      let stop = lb_stops[{N} - k];
      before = select(before, {combine}(x, before), ended == 0u);
      moved += select(0u, sg_size - (stop >> 1u), ended == 0u);
      ended = select(ended, select(1u + (stop & 1u), 0u, stop == 0u), ended == 0u);
    }}
"""
        Acc_reduce = "var y = x; for (var d = 1u; d < sg_size; d <<= 1u) { y = combine(y, subgroupShuffleXor(y, d)); } return y;" if not by_key else "return look_back_reduce(x);"
        new = f"""var<workgroup> lb_sums: array<{T}, 64>;
var<workgroup> lb_stops: array<u32, 64>;
var<workgroup> lb_epoch: u32;
fn lb_reduce(x: {T}) -> {T} {{ {Acc_reduce} }}
fn lb_key(flag: u32) -> u32 {{ return select(2u * sg_lane + select(2u, 3u, flag == INCLUSIVE), 0u, flag == TOTAL); }}
fn lb_last(x: u32) -> u32 {{
  let last = 32u - countLeadingZeros(subgroupBallot(x != 0u).x);
  return select(subgroupShuffle(x, max(last, 1u) - 1u), 0u, last == 0u);
}}
{"var<private> lb_word: Published;" if early else ""}
{"fn lb_first(tile: u32, again: bool) -> Published { if (again) { return state_poll(tile); } return lb_word; }" if early else ""}
fn look_back_from(tile: u32{f", own: {T}, is_known: bool" if by_key else ""}) -> {T} {{
  var before = {identity};
  var next = tile - 1u;
  var spins = 0u;
  var gave = 0u;
  {"var again = false;" if early else ""}
  {"epoch = lb_epoch;" if own else ""}
  let back = {N} * sg_size - 1u - (sg_id * sg_size + sg_lane);
  for (var round = 0u; round < 4096u; round++) {{
    if (sg_id < {N}) {{
      var published = Published(INCLUSIVE, {identity});
      {poll}{spinning}      let stop = lb_last(lb_key(published.flag));
      let sum = lb_reduce(select({identity}, published.value, published.flag != EMPTY && 2u * sg_lane + 3u >= stop));
      if (sg_lane == 0u) {{ lb_sums[sg_id] = sum; lb_stops[sg_id] = stop; }}
    }}
    workgroupBarrier();
    var ended = 0u;
    var moved = 0u;
{joined}    if (ended == 2u) {{ break; }}
    workgroupBarrier();
    next -= moved;
    if (moved > 0u) {{ continue; }}
    spins += 1u;
    if (spins >= SPIN_LIMIT) {{
      let total = tile_total(next);
      before = {combine}({posted}, before);
      gave += 1u;
      if (gave > {GAVE}u || next == 0u) {{ break; }}
      next -= 1u;
    }}
  }}
  {f"if (is_leader() && !is_known) {{ state_publish(tile, INCLUSIVE, {combine}(before, own)); }}" if by_key else ""}
  return before;
}}
"""
        text = text[:i] + new + text[j:]
        if early:
            text = sub("  tile_load(tile);\n  let count = tile_count(tile);", f"  {{ let next = max(tile, 1u) - 1u; let back = {N} * sg_size - 1u - (sg_id * sg_size + sg_lane); lb_word = Published(INCLUSIVE, identity()); if (sg_id < {N} && back <= next) {{ lb_word = state_poll(next - back); }} }}\n  tile_load(tile);\n  let count = tile_count(tile);")(text)
        return text
    return change
# parts of a select
NOSTAGE = [rex(r"fn stage1\(at: u32, item: u32\) \{[^\n]*\n", "fn stage1(at: u32, item: u32) {}\n")]
NOSTORE = [sub("  if (at < params.room) {\n", "  if (at == 0xfffffff0u) {\n")]
NOREAD2 = [sub("  held_input[r] = load4_input(i);\n  keep_marks(r, row_marks(i));", "  held_input[r] = vec4<u32>(i, i + 1u, i + 2u, i + 3u);\n  keep_marks(r, (i * 2654435761u) >> 28u);")] if False else [
    rex(r"  held_(\w+)\[r\] = load4_\w+\(i\);\n  keep_marks\(r, row_marks\(i\)\);", r"  held_\1[r] = vec4<u32>(i, i + 1u, i + 2u, i + 3u);\n  keep_marks(r, (i * 2654435761u) >> 28u);")]
NOREAD1 = [rex(r"let total = tile_total_ahead\(counted\);", "let total = tile_size() / 2u;")]
COUNTONLY = [rex(r"  tile_load\(tile\);\n  let count = tile_count\(tile\);.*\}\n$", "  if (is_leader() && state_count_finished(workgroups)) { state_next_epoch(); }\n}\n")]
SEL_LOADS = [rex(r"  let count = tile_count\(tile\);.*\}\n$", "  if (marks[0] == 0xdeadbeefu) { store_count(0u, 1u); }\n}\n")]

x = gw.u32("x")
class Sub:
    """A primitive of the package with its text changed."""
    def __init__(self, kind, n, changes, tuning, checked):
        self.kind, self.n, self.changes, self.tuning, self.checked = kind, n, changes, tuning, checked
    def make(self):
        T = gw.StreamTuning if self.kind in ("select", "partition") else gw.ScanTuning
        tuning = dict(self.tuning)
        if SMOKE:
            tuning["tickets"] = False
            if self.kind in ("select", "partition") and self.n == size(24): tuning = {"ahead": 4, **({"items": "held"} if self.kind == "select" else {}), **tuning}
        t = T(**tuning) if tuning else None
        if self.kind == "copy": return gw.Copy(device, "u32"), {"input": array(self.n, False)}
        if self.kind == "scan": return gw.Scan(device, "u32", strategy="lookback", tuning=t), {"input": array(self.n, False)}
        if self.kind == "select": return gw.Select(device, x, where=x < HALF, strategy="lookback", tuning=t), {"x": array(self.n, False)}
        if self.kind == "partition": return gw.Partition(device, x, where=x < HALF, strategy="lookback", tuning=t), {"x": array(self.n, False)}
        if self.kind == "bykey": return gw.ReduceByKey(device, "u32", "u32", gw.Add, strategy="lookback", tuning=t), {"keys": gw.asarray(np.arange(self.n, dtype=np.uint32), device), "items": array(self.n, False)}
    def build(self):
        CURRENT[:] = self.changes
        builder._shader.cache_clear()
        try:
            primitive, inputs = self.make()
            self.ours = harness.Ours(primitive, inputs)
        finally:
            CURRENT.clear(); builder._shader.cache_clear()
        self.call = self.ours._call
        self.steps = [(s.pipeline, s.group, s.workgroups) for s in self.call.bound_plan.steps]
    def check(self):
        if not self.checked: return True
        run([*self.steps] * 3)
        got = {k: v.to_numpy().reshape(-1) for k, v in self.ours.run.outputs.items()}
        if self.kind == "bykey":
            h, k = host(self.n, False), np.arange(self.n, dtype=np.uint32)
            got = list(got.values())
            for want_, g in ((k, got[0]), (h, got[1])):
                if not np.array_equal(want_, g[: self.n]): return f"WRONG {g.shape}, {int((want_[: g.size] != g[: self.n]).sum())} of {self.n}"
            return True
        return right(self.kind, self.n, list(got.values()), False)

_want = {}
def want(kind, n, small):
    if (kind, n, small) not in _want:
        _want.clear(); h = host(n, small)
        _want[kind, n, small] = {"scan": lambda: [np.cumsum(h, dtype=np.uint32)], "select": lambda: [h[h < HALF]], "copy": lambda: [h],
                          "partition": lambda: [h[h < HALF], h[h >= HALF]]}[kind]()
    return _want[kind, n, small]
def right(kind, n, got, small):
    w = want(kind, n, small)
    for a, b in zip(got, w):
        if a.size < b.size or not np.array_equal(a[: b.size], b):
            bad = np.flatnonzero(a[: b.size] != b[: a.size])
            return f"WRONG {a.shape} {b.shape} first {bad[:3].tolist()} of {bad.size}"
    return True

def run(steps, span=None):
    encoder = device.create_command_encoder()
    c = encoder.begin_compute_pass(timestamp_writes=span) if span else encoder.begin_compute_pass()
    for pipe, group, xyz in steps:
        c.set_pipeline(pipe); c.set_bind_group(0, group); c.dispatch_workgroups(*xyz)
    c.end(); device.queue.submit([encoder.finish()])
USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
_raw = {}
def scratch(name, nbytes):
    """Buffers that raw kernels share; 0 bytes of name clears."""
    if name not in _raw or _raw[name].size < nbytes: _raw[name] = device.create_buffer(size=nbytes, usage=USAGE)
    return _raw[name]
class Raw:
    def __init__(self, kind, n, T, V, H, opts, checked=True, grid=None):
        self.kind, self.n, self.T, self.V, self.opts, self.checked = kind, n, T, V, dict(opts), checked
        if SMOKE: self.T = T = max(SG, T // 4)
        self.tiles = n // (T * V * 4); assert self.tiles
        self.grid = min(grid or (SMS * H if H else self.tiles), self.tiles)
        if SMOKE and self.grid == self.tiles and H: self.grid = max(1, self.tiles // 3)
    def build(self):
        scan = self.kind == "scan"
        f = gen.scan_text if scan else gen.select_text
        more = {"wide": not SMOKE} if scan else {}
        if self.kind == "partition": more["partition"] = True
        code = f(self.T, self.V, self.grid, sg=SG, **more, **self.opts)
        module = create_shader_module(device, label="raw", code=code, checks=CHECKS)
        kinds = ["uniform", "read-only-storage", "storage", "storage", "storage"] + (["storage"] if self.kind == "partition" else [])
        layout = device.create_bind_group_layout(entries=[{"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": k}} for i, k in enumerate(kinds)])
        pipe = device.create_compute_pipeline(layout=device.create_pipeline_layout(bind_group_layouts=[layout]), compute={"module": module, "entry_point": "main"})
        small = SMOKE and scan
        uniform = device.create_buffer(size=16, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST)
        device.queue.write_buffer(uniform, 0, np.array([self.n, self.tiles, self.grid, HALF], np.uint32))
        src = scratch(("in", self.n, small), 4 * self.n)
        if _raw.get("of") is not src:
            h = host(self.n, small)
            for at in range(0, h.size, 1 << 24): device.queue.write_buffer(src, 4 * at, h[at: at + (1 << 24)])
            _raw["of"] = src
        self.out, self.count = scratch("out", 4 * self.n), scratch("count", 64)
        self.rest = scratch("rest", 4 * self.n) if self.kind == "partition" else None
        self.state = device.create_buffer(size=max(64, 8 * self.tiles), usage=USAGE)
        buffers = [uniform, src, self.out, self.count, self.state] + ([self.rest] if self.rest else [])
        group = device.create_bind_group(layout=layout, entries=[{"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size if i == 0 or b is self.state or b is self.count else 4 * self.n}} for i, b in enumerate(buffers)])
        self.steps = [(pipe, group, (self.grid, 1, 1))]
    def check(self):
        if not self.checked: return True
        small, scan = SMOKE and self.kind == "scan", self.kind == "scan"
        e = device.create_command_encoder(); e.clear_buffer(self.out); device.queue.submit([e.finish()])
        run(self.steps * 3)
        w = want(self.kind, self.n, small)
        got = [np.frombuffer(device.queue.read_buffer(self.out, 0, 4 * w[0].size), np.uint32)]
        if self.rest: got.append(np.frombuffer(device.queue.read_buffer(self.rest, 0, 4 * w[1].size), np.uint32))
        ok = right(self.kind, self.n, got, small)
        if ok is True and not scan:
            c = int(np.frombuffer(device.queue.read_buffer(self.count, 0, 4), np.uint32)[0])
            if c != w[0].size: ok = f"WRONG count {c} of {w[0].size}"
        return ok


def s(kind, log, name, changes=(), checked=True, **tuning): return (name, lambda: Sub(kind, size(log), [*changes, *([] if name == "base" else [give_up])], tuning, checked))
def r(kind, log, T, V, H, checked=True, **opts):
    name = f"G {T}x{V}" + (f" H{H}" if H else "") + "".join(f" {k if v is True else v if k == 'order' else f'{k}={v}'}" for k, v in opts.items())
    return (name, lambda: Raw(kind, size(log), T, V, H, opts, checked))
FIN["bykey"] = [sub("  " + LEADER_COUNT + "\n  emit_open(tile, before, sum);", "  emit_open(tile, before, sum);\n  " + LEADER_COUNT)]
NOCOUNT["bykey"] = [sub("  " + LEADER_COUNT + "\n  emit_open(tile, before, sum);", "  emit_open(tile, before, sum);")]
def count_at(text):
    at = re.search(r"fn state_count_finished[^\n]*atomicAdd\((&\w+\[1\])", text)
    return f"var finished = 0u;\n  if (is_leader()) {{ finished = atomicAdd({at[1]}, 1u) + 1u; }}\n"
SPLIT = {  # counted before the stores, the answer used behind them
    "scan": [lambda t: sub("  " + LEADER_COUNT + "\n  tile_store(tile, before);", "  " + count_at(t) + "  tile_store(tile, before);\n  if (finished == params.tiles) { state_next_epoch(); }")(t)],
    "select": [lambda t: rex(r"    if \(state_count_finished\(workgroups\)\) \{ state_next_epoch\(\); \}\n  \}\n(  emit_tile\([^\n]*\n)", lambda m: "  }\n  " + count_at(t) + m[1] + "  if (finished == workgroups) { state_next_epoch(); }\n")(t)],
    "bykey": [lambda t: sub("  " + LEADER_COUNT + "\n  emit_open(tile, before, sum);", "  " + count_at(t) + "  emit_open(tile, before, sum);\n  if (finished == params.tiles) { state_next_epoch(); }")(t)],
}
NOLOOK_K = [rex(r"  if \(tile > 0u\) \{ before = chain_of_posted\(look_back_from[^\n]*\n", "  before = chain_of(tile * tile_size(), params.identity_bits);\n")]
LAST_LOOK4 = [together]
A = 4 if SMOKE else 32
ROWS = {
 "scan 2^20": [s("scan", 20, "base"), s("scan", 20, "fin last", FIN["scan"]), s("scan", 20, "fin split", SPLIT["scan"]), s("scan", 20, "own", OWN["scan"]), s("scan", 20, "wide", [wide()]), s("scan", 20, "wide spin", [wide(spin=True)]),
   s("scan", 20, "own look4 uncond", [*OWN["scan"], together], look=4), s("scan", 20, "look4 uncond", [together], look=4), s("scan", 20, "wide spin subs4 fin", [*FIN["scan"], wide(spin=True, subs=4)]),
   s("scan", 20, "-nolook", NOLOOK, False), s("scan", 20, "-nolook nocount", [*NOLOOK, *NOCOUNT["scan"]], False), s("scan", 20, "-nolook nopub nocount", [*NOLOOK, *NOPUB, *NOCOUNT["scan"]], False), s("scan", 20, "-copy", COPY, False), s("scan", 20, "-empty", EMPTY, False), s("scan", 20, "wide spin own", [*OWN["scan"], wide(spin=True, own=True)])],
 "select 2^20": [s("select", 20, "base"), s("select", 20, "fin last", FIN["select"]), s("select", 20, "fin split", SPLIT["select"]), s("select", 20, "own", OWN["select"]), s("select", 20, "wide", [wide()]), s("select", 20, "wide spin", [wide(spin=True)]), s("select", 20, "own look4 uncond", [*OWN["select"], together], look=4), s("select", 20, "wide spin subs4 fin", [*FIN["select"], wide(spin=True, subs=4)]),
   s("select", 20, "-nolook", NOLOOK, False), s("select", 20, "-nolook nocount", [*NOLOOK, *NOCOUNT["select"]], False), s("select", 20, "-empty", EMPTY, False), s("select", 20, "wide spin own", [*OWN["select"], wide(spin=True, own=True)])],
 "select 2^24": [s("select", 24, "base"), s("select", 24, "fin last", FIN["select"]), s("select", 24, "fin split", SPLIT["select"]), s("select", 24, "wide", [wide()]), s("select", 24, "wide spin", [wide(spin=True)]), s("select", 24, "wide split", [*SPLIT["select"], wide()]), s("select", 24, "wide subs4", [wide(subs=4)]), s("select", 24, "wide early", [wide(early=True)]), s("select", 24, "look1 uncond", [together]),
   s("select", 24, "-nolook", NOLOOK, False), s("select", 24, "-count only", COUNTONLY, False), s("select", 24, "-nolook nostore", [*NOLOOK, *NOSTORE], False)],
 "by key 2^20": [s("bykey", 20, "base"), s("bykey", 20, "fin last", FIN["bykey"]), s("bykey", 20, "fin split", SPLIT["bykey"]), s("bykey", 20, "wide", [wide()]), s("bykey", 20, "wide spin", [wide(spin=True)]), s("bykey", 20, "wide spin subs4 fin", [*FIN["bykey"], wide(spin=True, subs=4)]), s("bykey", 20, "-nolook", NOLOOK_K, False)],
 "by key 2^24": [s("bykey", 24, "base"), s("bykey", 24, "fin last", FIN["bykey"]), s("bykey", 24, "fin split", SPLIT["bykey"]), s("bykey", 24, "wide", [wide()]), s("bykey", 24, "wide spin", [wide(spin=True)]), s("bykey", 24, "wide subs2 fin", [*FIN["bykey"], wide(subs=2)]), s("bykey", 24, "-nolook", NOLOOK_K, False)],
 "scan 2^24": [s("scan", 24, "base"), s("scan", 24, "fin last", FIN["scan"]), s("scan", 24, "fin split", SPLIT["scan"]), s("scan", 24, "wide", [wide()]), s("scan", 24, "wide spin", [wide(spin=True)]), s("scan", 24, "own", OWN["scan"]), s("scan", 24, "-nolook", NOLOOK, False), s("scan", 24, "-copy", COPY, False)],
 "partition 2^24": [s("partition", 24, "base"), s("partition", 24, "fin last", FIN["select"]), s("partition", 24, "fin split", SPLIT["select"]), s("partition", 24, "wide", [wide()]), s("partition", 24, "wide fin subs4", [*FIN["select"], wide(subs=4)]), s("partition", 24, "-nolook", NOLOOK, False)],
 "G scan 2^20": [s("scan", 20, "base"), r("scan", 20, 512, 4, 0), r("scan", 20, 1024, 2, 0)],
 "G select 2^24": [s("select", 24, "base")] + [r("select", 24, T, V, H, order=o) for T, V, H, o in ((512, 4, 1, "simple"), (512, 4, 1, "ahead"), (256, 4, 2, "ahead"), (512, 4, 2, "simple"), (256, 4, 4, "ahead"), (1024, 4, 1, "ahead"))] + [r("select", 24, 512, 4, 1, False, order="ahead", noPoll=True)],
}

if CHILD:
    def say(**kw): sys.stdout.write("@@" + json.dumps(kw) + "\n"); sys.stdout.flush()
    try:
        name, make = ROWS[sys.argv[2]][int(sys.argv[3])]
        v = make(); v.build()
        stats = ""
        path = os.environ.get("PIPE_STATS")
        if path and os.path.exists(path):
            lines = [l for l in Path(path).read_text().splitlines() if l.startswith("pipeline")]
            if lines:
                got = dict(p.split("=", 1) for p in lines[-1].split(";") if "=" in p)
                stats = "r" + next((w for k, w in got.items() if "egister" in k), "?") + " m" + next((w for k, w in got.items() if "hared" in k), "?")
        say(built=True, stats=stats, grid=[s[2] for s in v.steps])
        for line in sys.stdin:
            if line.strip() == "check": say(check=v.check())
            elif line.startswith("time"):
                launches = int(line.split()[1])
                session = helper.session()
                run(v.steps * (3 * launches))
                for _ in range(4): run(v.steps * launches, session.span("t"))
                session.submitted()
                say(us=[sp.ns / launches / 1e3 for sp in session.spans() if sp.ns is not None])
            else: break
    except Exception as error:
        if SMOKE: traceback.print_exc()
        say(error=f"{type(error).__name__}: {str(error)[:160]}")
    os._exit(0)

OUT, SECONDS, WANTED = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
BEGIN = time.perf_counter()
def now(): return time.perf_counter() - BEGIN
WORKERS = int(os.environ.get("WORKERS", "2" if SMOKE else "14"))
LIVE = int(os.environ.get("LIVE", "99" if SMOKE else "48"))
class Child:
    def __init__(self, row, k):
        self.row, self.k, self.name, self.stats, self.said, self.times, self.state = row, k, ROWS[row][k][0], "", "", [], "building"
        self.begin = time.perf_counter()
        self.p = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "child", row, str(k)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None if SMOKE else subprocess.DEVNULL, text=True, bufsize=1)
        self.q = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
    def read(self):
        for line in self.p.stdout:
            if line.startswith("@@"): self.q.put(json.loads(line[2:]))
        self.q.put({"error": "ended"})
    def answer(self, timeout):
        try: return self.q.get(timeout=timeout)
        except queue.Empty: return None
    def fail(self, why): self.said, self.state = why, "failed"; self.kill()
    def kill(self):
        if self.p.poll() is None: self.p.kill()
    def ask(self, what, timeout):
        try: self.p.stdin.write(what + "\n"); self.p.stdin.flush()
        except Exception: pass
        got = self.answer(timeout)
        if got is None: self.fail(f"HUNG in {what.split()[0]}"); time.sleep(2)
        elif "error" in got: self.fail(got["error"]); got = None
        return got
RESULTS, HELD = {}, []
jobs = [(row, k) for row in (WANTED or ROWS) for k in range(len(ROWS[row]))]
children, LOCK = {}, threading.Lock()
def starter():
    for row, k in jobs:
        while now() < SECONDS - 3:
            live = [c for c in list(children.values()) if c.state != "done" and c.p.poll() is None]
            building = [c for c in live if c.state == "building"]
            for c in building:
                try: got = c.q.get_nowait()
                except queue.Empty:
                    if time.perf_counter() - c.begin > (60 if SMOKE else 16): c.fail("no pipeline in 16 s")
                    continue
                if "built" in got: c.stats, c.state = f"{got['stats']} {got['grid'][-1][0]}", "built"; c.took = time.perf_counter() - c.begin
                else: c.fail(got.get("error", "?"))
            if k is not None and sum(c.state == "building" for c in live) < WORKERS and len(live) < LIVE: break
            time.sleep(0.02)
        else: return
        children[row, k] = Child(row, k)
    while now() < SECONDS - 3:  # the last ones
        left = [c for c in children.values() if c.state == "building"]
        for c in left:
            try: got = c.q.get_nowait()
            except queue.Empty:
                if time.perf_counter() - c.begin > (60 if SMOKE else 16): c.fail("no pipeline in 16 s")
                continue
            if "built" in got: c.stats, c.state = f"{got['stats']} {got['grid'][-1][0]}", "built"; c.took = time.perf_counter() - c.begin
            else: c.fail(got.get("error", "?"))
        if not left: return
        time.sleep(0.02)
threading.Thread(target=starter, daemon=True).start()
def save(): Path(OUT).write_text(json.dumps(RESULTS))
for row in (WANTED or list(ROWS)):
    mine = [(row, k) for k in range(len(ROWS[row]))]
    while now() < SECONDS - 2.5 and not all(m in children and children[m].state != "building" for m in mine): time.sleep(0.02)
    cs = [children[m] for m in mine if m in children]
    built = [c for c in cs if c.state == "built"]
    waited = now()
    for c in built:
        if c.name.startswith("G ") or c.name.startswith("-") or True:
            got = c.ask("check", 30 if SMOKE else 6)
            if got is not None and got["check"] is not True: c.said, c.state = got["check"], "wrong"
    good = [c for c in built if c.state == "built"]
    launches = 2 if SMOKE else 100
    n, rounds, begin = size(int(row[-2:])), 0, now()
    want = 1 if SMOKE else 7 if row.endswith("20") else 5
    while rounds < want and (rounds < 2 or now() - begin < 4) and now() < SECONDS - 1:
        for c in good if rounds % 2 else good[::-1]:
            if c.state != "built": continue
            got = c.ask(f"time {launches if rounds or SMOKE else 4 * launches}", 30 if SMOKE else 4)
            if got is not None:
                if rounds or SMOKE: c.times.extend(got["us"])
        rounds += 1
    us = {c.name: round(statistics.median(c.times), 2) for c in good if c.times}
    print(f"== {row}, n={n}, built by {waited:.0f} s (children {max([getattr(c, 'took', 0) for c in cs], default=0):.1f} s), {rounds} rounds, {now():.0f} s; base {us.get('base')}", flush=True)
    stats = {c.name: c.stats for c in cs}
    for group in ([k for k in us if not k.startswith("-")], [k for k in us if k.startswith("-")]):
        if group: print("  " + "; ".join(f"{k} {us[k]:.2f} ({stats[k]})" for k in sorted(group, key=us.get)), flush=True)
    for c in cs:
        if c.said: print(f"  !! {c.name}: {c.said}", flush=True)
    RESULTS[row] = {"n": n, "rounds": rounds, "us": us, "stats": stats, "said": {c.name: c.said for c in cs if c.said}, "all": {c.name: [round(t, 3) for t in c.times] for c in cs}}
    save()
    for c in cs: c.state = "done"; c.kill()
for c in list(children.values()): c.kill()
os._exit(0)
