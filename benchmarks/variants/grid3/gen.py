"""Texts of persistent kernels that look back over the words of the last `grid` tiles: no chain of inclusive sums.

before(t) = before(t - grid) + words[t - grid] + ... + words[t - 1], each word the total of one tile, polled by all lanes at once.
The epoch is one bit, that of the workgroup's own first word turned over: no counter of finished workgroups.
order: simple  load, count, publish, poll, write
       ahead   polls of a tile, then the next tile's loads, then the wait; early: loads before the polls
       hold2   load and count the next tile, publish it, then poll for this one and write it (both in registers)
       reread  the same, but the items of this one are read again
"""

def select_text(T, V, grid, order="simple", rr=2, sg=32, limit=256, noPoll=False, noStage=False, noStore=False, lastbar=False, partition=False):
    S = T // sg; K = -(-grid // T); Q = -(-S // 4)
    hold2, reread, ahead = order == "hold2", order == "reread", order in ("ahead", "early")
    two = hold2 or reread or ahead
    R = range(V)
    rr = min(rr, V)
    W = (V + 7) // 8
    G4 = -(-V // 4)
    o = []
    a = o.append
    a(f"""struct P {{ n: u32, tiles: u32, grid: u32, bound: u32 }}
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read> inp: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> outp: array<u32>;
@group(0) @binding(3) var<storage, read_write> cnt: array<u32>;
@group(0) @binding(4) var<storage, read_write> st: array<atomic<u32>>;
{"@group(0) @binding(5) var<storage, read_write> rest: array<u32>;" if partition else ""}
const M: u32 = 0x3fffffffu;
var<workgroup> ep: u32;
var<workgroup> tot: array<vec4<u32>, {Q}>;
var<workgroup> bef: array<vec4<u32>, {Q}>;
var<workgroup> stage: array<u32, {T * 4 * rr}>;
fn recount(t: u32) -> u32 {{
  var c = 0u;
  for (var k = 0u; k < {T * V}u; k++) {{ let m = inp[t * {T * V}u + k] < vec4<u32>(p.bound); c += dot(select(vec4<u32>(), vec4<u32>(1u), m), vec4<u32>(1u)); }}
  return c;
}}
fn bits(x: vec4<u32>) -> u32 {{
  let m = select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), x < vec4<u32>(p.bound));
  return m.x | m.y | m.z | m.w;
}}
fn packed(marks: u32) -> u32 {{
  var x = marks & 0xffffu;
  x = (x | (x << 8u)) & 0x00ff00ffu;
  x = (x | (x << 4u)) & 0x0f0f0f0fu;
  x -= (x >> 1u) & 0x05050505u;
  return (x & 0x03030303u) + ((x >> 2u) & 0x03030303u);
}}
fn bytes(x: u32) -> u32 {{ return (x & 255u) + ((x >> 8u) & 255u) + ((x >> 16u) & 255u) + (x >> 24u); }}
@compute @workgroup_size({T})
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) local: u32, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) s: u32) {{
  let own = w.x;
  if (own >= p.tiles) {{ return; }}
  if (local == 0u) {{ ep = 1u - (atomicLoad(&st[own]) >> 31u); }}
  let at = s * {V * sg}u + lane;
  let sb = s * {sg * 4 * rr}u;
  var before = 0u;
  var tile = own;
""")
    names = lambda n: [f"{n}{r}" for r in R]
    def load(n, t, decl="  "):
        for r in R: a(f"{decl}{n}{r} = inp[({t}) * {T * V}u + at + {r * sg}u];")
    def count(n, pre):
        """Marks, ranks, row counts, the subgroup's total: to vars pre_m, pre_k, pre_c; pre_sub, pre_total."""
        for wd in range(W):
            a(f"  {pre}m{wd} = " + " | ".join(f"(bits({n}{r}) << {4 * (r % 8)}u)" for r in range(8 * wd, min(V, 8 * wd + 8))) + ";")
        for g in range(G4):
            a(f"  {{ let c = packed({pre}m{g // 2} >> {16 * (g % 2)}u); var y = c;")
            d = 1
            while d < sg:
                a(f"    {{ let l = subgroupShuffleUp(y, {d}u); if (lane >= {d}u) {{ y += l; }} }}"); d *= 2
            a(f"    {pre}k{g} = y - c; {pre}c{g} = subgroupShuffle(y, {sg - 1}u); }}")
        a("  if (lane == 0u) { tot[s >> 2u][s & 3u] = " + " + ".join(f"bytes({pre}c{g})" for g in range(G4)) + "; }")
        a("  workgroupBarrier();")
        a(f"  {pre}sub = 0u; {pre}total = 0u;")
        for q in range(Q):
            a(f"  {{ let x = tot[{q}]; let i = vec4<u32>({4*q}u, {4*q+1}u, {4*q+2}u, {4*q+3}u);")
            a(f"    let y = select(vec4<u32>(), x, i < vec4<u32>(s)); {pre}sub += y.x + y.y + y.z + y.w; {pre}total += x.x + x.y + x.z + x.w; }}")
    def declare(pre):
        for wd in range(W): a(f"  var {pre}m{wd} = 0u;")
        for g in range(G4): a(f"  var {pre}k{g} = 0u; var {pre}c{g} = 0u;")
        a(f"  var {pre}sub = 0u; var {pre}total = 0u;")
    def publish(t, pre): a(f"  if (local == 0u) {{ atomicStore(&st[{t}], (ep << 31u) | {pre}total); }}")
    def poll_issue():
        a(f"  let lim = min(tile, {grid}u);")
        for j in range(K):
            a(f"  let v{j} = local + {j * T}u < lim; let i{j} = select(0u, tile - 1u - local - {j * T}u, v{j});")
            a(f"  var w{j} = atomicLoad(&st[i{j}]);" if not noPoll else f"  var w{j} = i{j};")
    def poll_wait():
        a("  { let e = ep;")
        if not noPoll:
            need = " || ".join(f"(v{j} && (w{j} >> 31u) != e)" for j in range(K))
            a("  var spins = 0u;")
            a(f"  while (({need}) && spins < {limit}u) {{ spins++; " + " ".join(f"w{j} = atomicLoad(&st[i{j}]);" for j in range(K)) + " }")
            for j in range(K): a(f"  if (v{j} && (w{j} >> 31u) != e) {{ w{j} = recount(i{j}); }}")
        a("  var y = " + " + ".join(f"select(0u, w{j} & M, v{j})" for j in range(K)) + ";")
        d = sg // 2
        while d: a(f"  y += subgroupShuffleXor(y, {d}u);"); d //= 2
        a("  if (lane == 0u) { bef[s >> 2u][s & 3u] = y; }")
        a("  workgroupBarrier();")
        for q in range(Q): a(f"  {{ let x = bef[{q}]; before += x.x + x.y + x.z + x.w; }}")
        a("  }")
    def emit(n, pre):
        a(f"  if (tile == p.tiles - 1u && local == 0u) {{ cnt[0] = before + {pre}total; }}")
        a(f"  var dst = before + {pre}sub;")
        if partition: a(f"  var dstr = tile * {T * V * 4}u + s * {V * sg * 4}u - dst;")
        for r0 in range(0, V, rr):
            rows = range(r0, min(V, r0 + rr))
            cnts = [f"(({pre}c{r // 4} >> {8 * (r % 4)}u) & 255u)" for r in rows]
            if noStage:
                a(f"  {{ let len = {' + '.join(cnts)};")
                for q in range(4 * len(rows)):
                    a(f"    if (lane + {q * sg}u < len) {{ outp[dst + lane + {q * sg}u] = {n}{r0 + q // 4}.{'xyzw'[q % 4]}; }}")
                a("    dst += len; }"); continue
            a("  {")
            prev = "sb"
            for k, r in enumerate(rows):
                rank = f"(({pre}k{r // 4} >> {8 * (r % 4)}u) & 255u)"
                a(f"    let b{k} = {prev};")
                a(f"    {{ var q = b{k} + {rank}; let m = {pre}m{r // 8} >> {4 * (r % 8)}u;")
                if partition: a(f"      var f = sb + {len(rows) * 4 * sg}u - 1u - ({k * 4 * sg}u + lane * 4u - (q - sb));")
                for j, c in enumerate("xyzw"):
                    if partition: a(f"      if ((m & {1 << j}u) != 0u) {{ stage[q] = {n}{r}.{c}; q++; }} else {{ stage[f] = {n}{r}.{c}; f--; }}")
                    else: a(f"      if ((m & {1 << j}u) != 0u) {{ stage[q] = {n}{r}.{c}; q++; }}")
                a("    }")
                prev = f"b{k} + {cnts[k]}"
            a(f"    let len = {prev} - sb;")
            a("    subgroupBarrier();")
            if noStore: a("    if (len == 0xffffffffu) { outp[0] = stage[sb + lane]; }")
            else:
                if partition:
                    L = len(rows) * 4 * sg
                    for q in range(4 * len(rows)): a(f"    let x{q} = stage[sb + lane + {q * sg}u];")
                    for q in range(4 * len(rows)):
                        a(f"    if (lane + {q * sg}u < len) {{ outp[dst + lane + {q * sg}u] = x{q}; }} else {{ rest[dstr + {L - 1}u - lane - {q * sg}u] = x{q}; }}")
                    a(f"    dstr += {L}u - len;")
                else:
                    for k in range(len(rows)):
                        a(f"    if (len > {4 * k * sg}u) {{")
                        for q in range(4 * k, 4 * k + 4): a(f"      let x{q} = stage[sb + lane + {q * sg}u];")
                        for q in range(4 * k, 4 * k + 4): a(f"      if (lane + {q * sg}u < len) {{ outp[dst + lane + {q * sg}u] = x{q}; }}")
                        a("    }")
            if r0 + rr < V or lastbar: a("    subgroupBarrier();")
            a("    dst += len;")
            a("  }")
    declare("a")
    if two: declare("b")
    for r in R: a(f"  var a{r} = vec4<u32>();")
    if two:
        for r in R: a(f"  var b{r} = vec4<u32>();")
    def swap(items=True):
        if items:
            for r in R: a(f"  a{r} = b{r};")
        for wd in range(W): a(f"  am{wd} = bm{wd};")
        for g in range(G4): a(f"  ak{g} = bk{g}; ac{g} = bc{g};")
        a("  asub = bsub; atotal = btotal;")
    if not two:
        a("  loop {")
        load("a", "tile"); count("a", "a"); publish("tile", "a"); poll_issue(); poll_wait(); emit("a", "a")
        a(f"  tile += {grid}u; if (tile >= p.tiles) {{ break; }}\n  }}")
    elif ahead:
        load("a", "tile"); count("a", "a"); publish("tile", "a")
        a(f"  loop {{ let next = tile + {grid}u; let more = next < p.tiles;")
        if order == "early":
            a("  if (more) {"); load("b", "next"); a("  }")
            poll_issue()
        else:
            poll_issue()
            a("  if (more) {"); load("b", "next"); a("  }")
        poll_wait(); emit("a", "a")
        a("  if (!more) { break; }")
        count("b", "b"); publish("next", "b"); swap()
        a("  tile = next;\n  }")
    else:
        load("a", "tile"); count("a", "a"); publish("tile", "a")
        if order in ("hold2", "reread"): a("  workgroupBarrier();  // tot is written again")
        a(f"  loop {{ let next = tile + {grid}u; let more = next < p.tiles;")
        a("  if (more) {"); load("b", "next")
        a("  }")
        if reread: load("a", "tile")
        poll_issue()
        count("b", "b"); a("  if (more) {"); publish("next", "b"); a("  }")
        poll_wait(); emit("a", "a")
        a("  if (!more) { break; }")
        swap(items=hold2)
        a("  tile = next;\n  }")
    a("}")
    return "\n".join(o)


def scan_text(T, V, grid, order="simple", sg=32, limit=256, wide=True, noPoll=False, mid=False, exclusive=False):
    """wide: words of 64 bits; else of 32, for small sums. mid: rows scanned between publishing and the wait (else before)."""
    S = T // sg; K = -(-grid // T); Q = -(-S // 4)
    two = order in ("ahead", "early", "hold2")
    R = range(V); o = []; a = o.append
    word = "u64" if wide else "u32"
    a(f"""struct P {{ n: u32, tiles: u32, grid: u32, bound: u32 }}
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read> inp: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> outp: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> cnt: array<u32>;
@group(0) @binding(4) var<storage, read_write> st: array<atomic<{word}>>;
var<workgroup> ep: u32;
var<workgroup> tot: array<vec4<u32>, {Q}>;
var<workgroup> bef: array<vec4<u32>, {Q}>;
fn epoch_of(w: {word}) -> u32 {{ return {"u32(w >> 63u)" if wide else "w >> 31u"}; }}
fn value_of(w: {word}) -> u32 {{ return {"u32(w & 0xfffffffflu)" if wide else "w & 0x3fffffffu"}; }}
fn word_of(e: u32, v: u32) -> {word} {{ return {"(u64(e) << 63u) | u64(v)" if wide else "(e << 31u) | v"}; }}
fn recount(t: u32) -> u32 {{
  var c = vec4<u32>();
  for (var k = 0u; k < {T * V}u; k++) {{ c += inp[t * {T * V}u + k]; }}
  return c.x + c.y + c.z + c.w;
}}
fn bfly(x: u32) -> u32 {{ var y = x; for (var d = 1u; d < {sg}u; d <<= 1u) {{ y += subgroupShuffleXor(y, d); }} return y; }}
@compute @workgroup_size({T})
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) local: u32, @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_id) s: u32) {{
  let own = w.x;
  if (own >= p.tiles) {{ return; }}
  if (local == 0u) {{ ep = 1u - epoch_of(atomicLoad(&st[own])); }}
  let at = s * {V * sg}u + lane;
  var before = 0u;
  var tile = own;
""")
    def load(n, t):
        for r in R: a(f"  {n}{r} = inp[({t}) * {T * V}u + at + {r * sg}u];")
    def count(n, pre):
        a("  { let v = " + " + ".join(f"{n}{r}" for r in R) + "; let y = bfly(v.x + v.y + v.z + v.w);")
        a("  if (lane == 0u) { tot[s >> 2u][s & 3u] = y; } }")
        a("  workgroupBarrier();")
        a(f"  {pre}sub = 0u; {pre}total = 0u;")
        for q in range(Q):
            a(f"  {{ let x = tot[{q}]; let i = vec4<u32>({4*q}u, {4*q+1}u, {4*q+2}u, {4*q+3}u);")
            a(f"    let y = select(vec4<u32>(), x, i < vec4<u32>(s)); {pre}sub += y.x + y.y + y.z + y.w; {pre}total += x.x + x.y + x.z + x.w; }}")
    def publish(t, pre): a(f"  if (local == 0u) {{ atomicStore(&st[{t}], word_of(ep, {pre}total)); }}")
    def poll_issue():
        a(f"  let lim = min(tile, {grid}u);")
        for j in range(K):
            a(f"  let v{j} = local + {j * T}u < lim; let i{j} = select(0u, tile - 1u - local - {j * T}u, v{j});")
            a(f"  var w{j} = atomicLoad(&st[i{j}]);" if not noPoll else f"  var w{j} = {word}(i{j});")
    def poll_wait():
        a("  { let e = ep;")
        if not noPoll:
            need = " || ".join(f"(v{j} && epoch_of(w{j}) != e)" for j in range(K))
            a("  var spins = 0u;")
            a(f"  while (({need}) && spins < {limit}u) {{ spins++; " + " ".join(f"w{j} = atomicLoad(&st[i{j}]);" for j in range(K)) + " }")
            for j in range(K): a(f"  if (v{j} && epoch_of(w{j}) != e) {{ w{j} = word_of(e, recount(i{j})); }}")
        a("  let y = bfly(" + " + ".join(f"select(0u, value_of(w{j}), v{j})" for j in range(K)) + ");")
        a("  if (lane == 0u) { bef[s >> 2u][s & 3u] = y; }")
        a("  workgroupBarrier();")
        for q in range(Q): a(f"  {{ let x = bef[{q}]; before += x.x + x.y + x.z + x.w; }}")
        a("  }")
    def rows(n):
        a("  { var c = asub;")
        for r in R:
            a(f"    {n}{r}.y += {n}{r}.x; {n}{r}.z += {n}{r}.y; {n}{r}.w += {n}{r}.z;")
            a(f"    {{ let x = subgroupExclusiveAdd({n}{r}.w); q{r} = c + x; c += subgroupShuffle(x + {n}{r}.w, {sg - 1}u); }}")
        a("  }")
    def emit(n):
        for r in R: a(f"  outp[tile * {T * V}u + at + {r * sg}u] = {n}{r} + vec4<u32>(before + q{r});")
    a("  var asub = 0u; var atotal = 0u; var bsub = 0u; var btotal = 0u;")
    for r in R: a(f"  var a{r} = vec4<u32>(); var q{r} = 0u;")
    if two:
        for r in R: a(f"  var b{r} = vec4<u32>();")
    if not two:
        a("  loop {")
        load("a", "tile"); count("a", "a"); publish("tile", "a")
        if not mid: rows("a")
        poll_issue()
        if mid: rows("a")
        poll_wait(); emit("a")
        a(f"  tile += {grid}u; if (tile >= p.tiles) {{ break; }}\n  }}")
    else:
        load("a", "tile"); count("a", "a"); publish("tile", "a")
        if order in ("hold2", "reread"): a("  workgroupBarrier();  // tot is written again")
        a(f"  loop {{ let next = tile + {grid}u; let more = next < p.tiles;")
        def ahead():
            a("  if (more) {"); load("b", "next"); a("  }")
        if order == "early": ahead(); poll_issue()
        elif order == "ahead": poll_issue(); ahead()
        else:
            ahead(); poll_issue()
            count("b", "b"); a("  if (more) {"); publish("next", "b"); a("  }")
        rows("a"); poll_wait(); emit("a")
        a("  if (!more) { break; }")
        if order != "hold2": count("b", "b"); publish("next", "b")
        for r in R: a(f"  a{r} = b{r};")
        a("  asub = bsub; atotal = btotal;")
        a("  tile = next;\n  }")
    a("}")
    return "\n".join(o)
