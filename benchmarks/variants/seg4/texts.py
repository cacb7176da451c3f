"""Edits of the composed text of segmented_teams.wgsl: name -> function(code, params) -> code. Params: what the plan recorded."""
import re
def one(code, old, new, count=1):
    assert code.count(old) == count, (old, code.count(old)); return code.replace(old, new)
TURN = "if (number < params.pieces) { do_piece(number); } else { do_group(number - params.pieces); }"
def idle(c, p): return one(c, TURN, "if (number >= params.pieces) { do_group(number - params.pieces); }")
def no_list(c, p): return one(c, "if (params.team_items == params.piece_items) { return; }", "if (params.pieces != 0xffffffffu) { return; }")
def sg32(c, p):
    c = re.sub(r"  sg_size = lanes.size;\n", "", c); c = re.sub(r"var<private> sg_size: u32;\n", "", c)
    return re.sub(r"\bsg_size\b", "32u", c)
def sgid(c, p):  # no builtins of subgroups
    c = one(c, "sg_lane = lanes.lane;", "sg_lane = lanes.local & 31u;"); c = one(c, "sg_id = lanes.id;", "sg_id = lanes.local >> 5u;"); c = one(c, "sg_count = lanes.count;", "sg_count = WORKGROUP_SIZE / 32u;")
    c = re.sub(r"  @builtin\(subgroup_id\) id: u32,\n  @builtin\(num_subgroups\) count: u32,\n", "", c); c = re.sub(r"  @builtin\(subgroup_invocation_id\) lane: u32,\n", "", c)
    return one(c, "me = sg_id * sg_size + sg_lane;" if "me = sg_id * sg_size" in c else "me = sg_id * 32u + sg_lane;", "me = lanes.local;")
def grid(c, p):
    c = one(c, "workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z)", "workgroup.x"); return one(c, "  @builtin(num_workgroups) grid: vec3<u32>,\n", "")
def shifts(c, p):
    c = one(c, "let subgroups = team / sg_size;", "let of_lane = countTrailingZeros(sg_size);\n    let subgroups = team >> of_lane;")
    c = one(c, "let first = (me & ~(team - 1u)) / sg_size;", "let first = (me & ~(team - 1u)) >> of_lane;")
    return one(c, "let each = (subgroups + sg_size - 1u) / sg_size;", "let each = (subgroups + sg_size - 1u) >> of_lane;")
def no_tail(c, p): return one(c, "for (var i = max(x.first, 4u * quads); i < x.end; i++) { sum = combine(sum, item(i)); }", "")
def clamp(c, p):
    return re.sub(r"    var v_(\d) = quad_of\(identity\(\)\);\n    if \(q \+ (\d)u \* team < stop\) \{ v_\d = item4\(4u \* \(q \+ \du \* team\)\); \}\n", r"    let v_\1 = item4(4u * min(q + \2u * team, stop - 1u));\n", c)
def bare(c, p):  # loads without a bound: the mask takes what is behind (reads behind the items at the end: wrong)
    return re.sub(r"    var v_(\d) = quad_of\(identity\(\)\);\n    if \(q \+ (\d)u \* team < stop\) \{ v_\d = item4\(4u \* \(q \+ \du \* team\)\); \}\n", r"    let v_\1 = item4(4u * (q + \2u * team));\n", c)
def no_mask(c, p): return re.sub(r"    if \(4u \* q >= x.first && .*?\n(.*?)    \} else \{\n.*?\n    \}\n", r"\1", c, flags=re.S) if "4u * q >= x.first &&" in c else 1 / 0
def all_mask(c, p): return re.sub(r"if \(4u \* q >= x.first && .*?\{\n", "if (params.n == 0u) {\n", c)  # one path: the masked one
def once(c, p): return re.sub(r"  for \(var q = x.first / 4u \+ lane; q < stop; q \+= VECS \* team\) \{\n", "  let q = x.first / 4u + lane;\n  {\n", c)
def const(c, p):
    for k, v in {**p, "first": 0, "items_offset": 0, "offsets_offset": 0, "output_offset": 0, "identity_bits": 0}.items(): c = re.sub(rf"\bparams\.{k}\b", f"{v}u", c)
    return c
def part_const(c, p):  # team ... only, as "constants" of round 2
    for k in ("team", "team_items", "piece_items", "pieces", "workgroups"): c = re.sub(rf"\bparams\.{k}\b", f"{p[k]}u", c)
    return c
def no_short(c, p): return one(c, "let is_short = length_of(here) <= select(params.piece_items, params.team_items, k == 0u);", "let is_short = true;")
def scalar_offsets(c, p):
    c = one(c, "var<storage, read> words_2: array<vec4<u32>>;", "var<storage, read> words_2: array<u32>;"); c = one(c, "return words_2[k >> 2u][k & 3u];", "return words_2[k];")
    return one(c, "return words_2[(params.offsets_offset + i) >> 2u];", "let k = params.offsets_offset + i; return vec4<u32>(words_2[k], words_2[k + 1u], words_2[k + 2u], words_2[k + 3u]);")
def native_sum(c, p):  # subgroupAdd for teams of subgroups
    c = one(c, "for (var d = 1u; d < min(team, sg_size); d <<= 1u) { y = combine(y, subgroupShuffleDown(y, d)); }", "if (team >= sg_size) { y = subgroupAdd(y); } else { for (var d = 1u; d < team; d <<= 1u) { y = combine(y, subgroupShuffleDown(y, d)); } }")
    return one(c, "for (var d = 1u; d < sg_size; d <<= 1u) { y = combine(y, subgroupShuffleDown(y, d)); }\n  }\n  return y;", "y = subgroupAdd(y);\n  }\n  return y;")
def unrolled(c, p):  # shuffles up to 16 apart without a loop: what lies behind the team counts only for its later lanes
    f = lambda lanes: "\n".join(f"if ({d}u < {lanes}) {{ y = combine(y, subgroupShuffleDown(y, {d}u)); }}" for d in (1, 2, 4, 8, 16))
    c = one(c, "for (var d = 1u; d < min(team, sg_size); d <<= 1u) { y = combine(y, subgroupShuffleDown(y, d)); }", f("team"))
    return one(c, "for (var d = 1u; d < sg_size; d <<= 1u) { y = combine(y, subgroupShuffleDown(y, d)); }\n  }\n  return y;", f("32u") + "\n  }\n  return y;")
def one_barrier(c, p): return one(c, "  workgroupBarrier();\n  if (sg_lane == 0u) { wg_totals[sg_id] = y; }", "  if (sg_lane == 0u) { wg_totals[sg_id] = y; }")  # right only where the workgroup has one segment
def no_loop_k(c, p):  # the loop over the list is not there: k == 0 is known
    c = one(c, "for (var k = 0u; ; k++) {\n    let here", "let k = 0u;\n  {\n    let here")
    return re.sub(r"    workgroupBarrier\(\);\n    if \(is_first && !is_short.*?s = long_segments\[k\];\n", "", c, flags=re.S)
def skip_empty(c, p): return c
def uniform_team(c, p):  # the first step apart from the list's loop: two copies of part_of, each with known k
    return c
HEAD = re.compile(r"^struct Params \{.*?\n\}\n(@group.*?\n)+", re.S | re.M)
def raw(c, p, uniform=True, add=True, touch=True):
    head = HEAD.search(c).group(0); vecs = int(re.search(r"const VECS: u32 = (\d+)u", c).group(1)); size = int(re.search(r"override WORKGROUP_SIZE: u32 = (\d+)u", c).group(1))
    size, vecs, team = p["size"], p["vecs"], p["team"]; per = size // team
    side = min(8, per)
    loads = "\n".join(f"  let v_{k} = words_1[q + {k * team}u]; " for k in range(vecs))
    masked = "\n".join(f"  if (q + {k * team}u < stop) {{ sums += words_1[q + {k * team}u]; }}" for k in range(vecs))
    reduce = "  y = subgroupAdd(y);" if add and team >= 32 else "\n".join(f"  y += subgroupShuffleDown(y, {d}u);" for d in (1, 2, 4, 8, 16) if d < team)
    late = f"""
  if (lane == 0u) {{ wg[id] = y; }}
  workgroupBarrier();
  y = 0u;
  if (me < {size // 32}u) {{ y = wg[me]; }}
  if (id == 0u) {{ {'y = subgroupAdd(y);' if add else ' '.join(f'y += subgroupShuffleDown(y, {d}u);' for d in (1, 2, 4, 8, 16))} }}
""" if team > 32 else ""
    assert team <= 32 or team == size
    n, segs, pieces, groups = ("params.n", "params.segments", "params.pieces", "(params.workgroups - params.pieces)") if uniform else (f"{p['n']}u", f"{p['segments']}u", f"{p['pieces']}u", f"{p['workgroups'] - p['pieces']}u")
    return f"""{head}
override WORKGROUP_SIZE: u32 = {size}u;
override EPOCH_BITS: u32 = 30u;
override STALL_EVERY: u32 = 0u;
override SPIN_LIMIT: u32 = 256u;
var<workgroup> wg: array<u32, 32>;
@compute @workgroup_size(WORKGROUP_SIZE)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) me: u32) {{
  let lane = me & 31u; let id = me >> 5u;
  {'_ = &control; _ = &states; _ = &arrived;' if touch else ''}
  if (w.x < {pieces}) {{ return; }}
  let number = me / {team}u;
  let s = ((number / {side}u) * {groups} + (w.x - {pieces})) * {side}u + number % {side}u;
  if (s >= {segs}) {{ return; }}
  let first = min(words_2[s >> 2u][s & 3u], {n}); let end = min(words_2[(s + 1u) >> 2u][(s + 1u) & 3u], {n});
  let stop = end / 4u;
  let q = first / 4u + (me & {team - 1}u);
  var sums = vec4<u32>();
{masked}
  var y = sums.x + sums.y + sums.z + sums.w;
{reduce}{late}
  if ((me & {team - 1}u) == 0u) {{ words_3[s] = y; }}
}}
"""
def chain(*steps):
    def f(c, p):
        for step in steps: c = step(c, p)
        return c
    return f
def first_only(c, p): return one(c, "  if (team > sg_size) {\n", "  if (team > sg_size && (me & (team - 1u)) < sg_size) {\n")
def few(c, p): return one(c, "    for (var d = 1u; d < sg_size; d <<= 1u) { y = combine(y, subgroupShuffleDown(y, d)); }\n  }\n  return y;", "    for (var d = 1u; d < min(subgroups, sg_size); d <<= 1u) { y = combine(y, subgroupShuffleDown(y, d)); }\n  }\n  return y;")
def fast_first(c, p):
    loads = re.search(r"(    var v_\d = quad_of.*?)    if \(4u \* q >= x.first && (.*?)\) \{\n(.*?)    \} else \{\n(.*?)    \}\n", c, re.S)
    fast = re.sub(r"v_(\d)\)", r"item4(4u * (q + \1u * team)))", loads.group(3))
    return c[:loads.start()] + f"    if (4u * q >= x.first && {loads.group(2)}) {{\n{fast}      continue;\n    }}\n{loads.group(1)}{loads.group(4)}" + c[loads.end():]
def tail_if(c, p): return one(c, "if (lane == team - 1u) {\n    for (var i = max(x.first, 4u * quads)", "if (x.end > 4u * quads && lane == team - 1u) {\n    for (var i = max(x.first, 4u * quads)")
def pad(loop):
    step = " ".join(f"z{k} ^= z{k} << 13u; z{k} ^= z{k} >> 17u; z{k} ^= z{k} << 5u;" for k in range(4))
    def f(c, p):
        c = raw(c, p)
        start = "  " + " ".join(f"var z{k} = me + {k}u;" for k in range(4)) + "\n"
        body = f"  for (var i = 0u; i < (params.capacity >> 17u); i++) {{ {step} }}\n" if loop else f"  {step}\n" * 8
        c = one(c, "  let lane = me & 31u;", start + body + "  let lane = me & 31u;")
        return one(c, "words_3[s] = y;", "words_3[s] = y + select(0u, 1u, (z0 ^ z1 ^ z2 ^ z3) == 0x12345u);")
    return f

def no_offsets(c, p): a = max(1, p["n"] // p["segments"]); return one(c, "return Range(min(load_offsets(s), item_count()), min(end_of(s), item_count()));", f"return Range(min(s * {a}u, item_count()), min(s * {a}u + {a}u, item_count()));")
def no_items(c, p): return re.sub(r"item4\(4u \* \(q \+ (\d)u \* team\)\)", r"quad_of(q + \1u)", c)
def no_team(c, p): return re.sub(r"(fn team_total\(x: Acc, team: u32\) -> Acc \{\n).*?\n\}\n", r"\1  return x;\n}\n", c, flags=re.S)
def nothing(c, p): return one(c, TURN, "if (params.n == 0u) { do_group(number); }")
