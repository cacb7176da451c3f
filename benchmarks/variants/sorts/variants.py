"""Variants of the sort's kernels as changes of their templates; for measurements."""
import contextlib, dataclasses, shutil, tempfile
from pathlib import Path

import gridwise_py as gw
from gridwise_py.planning import accessors, builder, shaders
from gridwise_py.primitives.engines import radix_sort
from gridwise_py.primitives import sort as sort_module
from gridwise_py.tuning import sort_shapes

BASE = shaders.shader_directory()
RANK, COUNTERS, LATE, HELD = "lib/sort_rank.wgsl", "lib/sort_counters.wgsl", "lib/sort_stage_late.wgsl", "lib/sort_stage_held.wgsl"
PASS, KEYS, PAIRS = "sort_pass_lookback.wgsl", "lib/sort_write_keys.wgsl", "lib/sort_write_pairs.wgsl"

IN_STEP = """  var first = 0u;
  if (before == 0u) {
    // No other lane accesses this counter meanwhile; a load and a store are faster than an atomic addition.
    first = atomicLoad(&stage[row * BINS + digit]);
    atomicStore(&stage[row * BINS + digit], first + countOneBits(lanes));
  }
  return sg_shuffle(first, leader_of(lanes)) + before;
"""
TURN = ("if (step == turn && before == 0u) { first = atomicAdd(&stage[row * BINS + digit], countOneBits(lanes)); }",
        "if (step == turn && (lanes >> rank_lane()) == 1u) { first = atomicAdd(&stage[row * BINS + digit], before + 1u); }")
LEADER = ("countTrailingZeros(lanes)", "firstLeadingBit(lanes)")
VOTE = "  lanes &= select(~votes, votes, (digit & {{ 2 ** bit }}u) != 0u);"
P = {
    # the last lane leads: one count of bits, one search of a bit
    "last": [(RANK, IN_STEP, """  var first = 0u;
  if ((lanes >> rank_lane()) == 1u) {
    first = atomicLoad(&stage[row * BINS + digit]);
    atomicStore(&stage[row * BINS + digit], first + before + 1u);
  }
  return sg_shuffle(first, leader_of(lanes)) + before;
"""), (RANK, *TURN), (RANK, *LEADER)],
    # every lane reads its counter: no shuffle
    "read": [(RANK, IN_STEP, """  let first = atomicLoad(&stage[row * BINS + digit]);
  if ((lanes >> rank_lane()) == 1u) { atomicStore(&stage[row * BINS + digit], first + before + 1u); }
  return first + before;
"""), (RANK, *TURN), (RANK, *LEADER)],
    "readbar": [(RANK, IN_STEP, """  let first = atomicLoad(&stage[row * BINS + digit]);
  subgroupBarrier();
  if ((lanes >> rank_lane()) == 1u) { atomicStore(&stage[row * BINS + digit], first + before + 1u); }
  subgroupBarrier();
  return first + before;
"""), (RANK, *TURN), (RANK, *LEADER)],
    "add": [(RANK, IN_STEP, """  var first = 0u;
  if ((lanes >> rank_lane()) == 1u) { first = atomicAdd(&stage[row * BINS + digit], before + 1u); }
  return sg_shuffle(first, leader_of(lanes)) + before;
"""), (RANK, *TURN), (RANK, *LEADER)],
    "xor": [(RANK, VOTE, "  lanes &= votes ^ select(0xffffffffu, 0u, (digit & {{ 2 ** bit }}u) != 0u);")],
    "if": [(RANK, VOTE, "  if ((digit & {{ 2 ** bit }}u) != 0u) { lanes &= votes; } else { lanes &= ~votes; }")],
    # copies of the histogram's counters side by side, so that lanes of different copies use different banks
    "banks": [
        (COUNTERS, "(lane & (COPIES - 1u)) * DIGITS * BINS;", "lane & (COPIES - 1u);"),
        (COUNTERS, "counters[copy + {{ d * constants.BINS }}u + key_digit(code)]",
         "counters[copy + COPIES * ({{ d * constants.BINS }}u + key_digit(code))]"),
        (COUNTERS, "counters[{{ (c * digits + d) * constants.BINS }}u + lane]",
         "counters[{{ c }}u + COPIES * ({{ d * constants.BINS }}u + lane)]"),
    ],
    # values are loaded before the look-back waits, into the registers that the keys leave; for one part
    "early": [
        (PASS, "  stage_keys(0u);\n  let before", "  stage_keys(0u);\n//$ if held | length > 1\n  read_values(tile, place);\n//$ endif\n  let before"),
        (PAIRS, "stage_values({{ part }}u, tile, source);", "stage_values({{ part }}u{{ ', tile, source' if held | length == 1 }});"),
    ],
    # the totals of subgroups need a word for each subgroup only
    "totals": [("lib/workgroup.wgsl", "array<{{ kind.type }}, WORKGROUP_SIZE>;", "array<{{ kind.type }}, {{ '128' if subgroups == 'native' else 'WORKGROUP_SIZE' }}>;")],
    # only the subgroups of the bins have counts to scan (subgroups of 32)
    "short": [("lib/workgroup.wgsl", "for (var s = 0u; s < sg_count; s++) {\n    if (s == sg_id) { before = total; }",
               "for (var s = 0u; s < {{ '8u' if subgroups == 'native' else 'sg_count' }}; s++) {\n    if (s == sg_id) { before = total; }")],
    # ---- wrong results, to see what a part costs
    "no look-back": [
        (PASS, "  look_back_early(tile, base, count);\n", ""),
        (PASS, "let before = look_back(tile, place, base);", "let before = min(base + tile * (TILE / BINS), {{ used.n }} - TILE);"),
    ],
    "no ballots": [(RANK, "  votes = sg_ballot((digit & {{ 2 ** bit }}u) != 0u);\n" + VOTE, "  lanes = 1u << rank_lane();")],
    "linear write": [(f, "atomicLoad(&run_offsets[key_digit({{ \"key_fixed(key)\" if fixed else \"key\" }})]) + {{ K }}u * WORKGROUP_SIZE + lane",
                      "tile * TILE + {{ K }}u * WORKGROUP_SIZE + lane") for f in (KEYS, PAIRS)],
    "no conflicts": [(HELD, "stage_one_{{ items_of.name }}(rank_of({{ k }}u){{ \" - part * PART\" if parts > 1 }},",
                      "stage_one_{{ items_of.name }}(({{ k }}u * WORKGROUP_SIZE + lane) % PART,"),
                     (LATE, "stage_one_{{ items_of.name }}(to_{{ k }}, item_{{ k }})",
                      "stage_one_{{ items_of.name }}(({{ k }}u * WORKGROUP_SIZE + lane) % PART, item_{{ k }})")],
    "no value loads": [(LATE, "{{ load }}(select(first, from_{{ k }}, moves_{{ k }}))", "select(first, from_{{ k }}, moves_{{ k }})")],
    "no unfixed": [],
}
STORE = "    store_keys_{{ place }}(to, {{ stored }});\n"
WORDS = """//$ if key_bytes == 2
    let i = {{ K % (items // parts) }}u * WORKGROUP_SIZE + lane;
//$ set digit_of = "key_digit(key_fixed(%s))" if fixed else "key_digit(%s)"
    let digit = {{ digit_of % "key" }};
    let next = staged_keys(min(i + 1u, PART - 1u));
    let joins = i + 1u < PART && {{ K }}u * WORKGROUP_SIZE + lane + 1u < valid && {{ digit_of % "next" }} == digit;
    if (odd_keys_{{ place }}(to) == 0u) {
      if (joins) {
        store_word_keys_{{ place }}(to, ({{ stored }}) | (({{ stored | replace("(key)", "(next)") }}) << 16u));
      } else {
        store_keys_{{ place }}(to, {{ stored }});
      }
    } else if (i == 0u || {{ digit_of % "staged_keys(max(i, 1u) - 1u)" }} != digit) {
      store_keys_{{ place }}(to, {{ stored }});
    }
//$ else
""" + STORE + "//$ endif\n"
P["words"] = [(KEYS, STORE, WORDS), (PAIRS, STORE, WORDS)]

_part = accessors.Accessors._store_part
def _store_part(self):
    yield from _part(self)
    if self.item_bytes == 2:
        yield from self._function(f"odd_{self.name}(i: u32) -> u32", "return k & 1u;")
        yield from self._function(f"store_word_{self.name}(i: u32, word: u32)", f"{self.place.write('k >> 1u', 'word')};")

_tile_context = radix_sort.SortConfig.tile_context
_shapes = sort_module.sort_shapes_for


@contextlib.contextmanager
def applied(names, counting=None):
    """Compose with these changes; `counting` are fields of the shapes."""
    folder = Path(tempfile.mkdtemp()) / "shaders"
    shutil.copytree(BASE, folder)
    for name in names:
        for file, old, new in P[name]:
            text = (folder / file).read_text()
            assert old in text, (name, file, old)
            (folder / file).write_text(text.replace(old, new))

    def tile_context(self, *, all_held, **more):
        if "early" in names and "look" in more and self.value_words and self.shape.parts == 1:
            all_held = True
        if "no unfixed" in names and "fixes" in more:
            more["fixes"] = [""]
        return _tile_context(self, all_held=all_held, **more)

    def shapes(*args, **more):
        found = _shapes(*args, **more)
        return type(found)(tuple((n, dataclasses.replace(s, **(counting or {}))) for n, s in found.rows), found.source, found.tuned)

    saved = shaders.shader_directory
    shaders.shader_directory = lambda: folder
    shaders._environment.cache_clear(); builder._shader.cache_clear(); accessors.bindings.cache_clear()
    radix_sort.SortConfig.tile_context = tile_context
    sort_module.sort_shapes_for = shapes
    if "words" in names:
        accessors.Accessors._store_part = _store_part
    try:
        yield
    finally:
        shaders.shader_directory = saved
        shaders._environment.cache_clear(); builder._shader.cache_clear(); accessors.bindings.cache_clear()
        radix_sort.SortConfig.tile_context = _tile_context
        sort_module.sort_shapes_for = _shapes
        accessors.Accessors._store_part = _part
        shutil.rmtree(folder.parent, ignore_errors=True)
