"""Variants of the sort's kernels as changes of their templates; for measurements."""
import contextlib, dataclasses, shutil, tempfile
from pathlib import Path

from gridwise_py.planning import accessors, builder, shaders
from gridwise_py.primitives.engines import radix_sort
from gridwise_py.primitives import sort as sort_module

OLD = shaders.shader_directory()                                   # main's: texts for fixed and unfixed floats
NEW = Path(__file__).resolve().parent / "new_shaders"              # floats always fixed
RANK, LATE, PASS, PAIRS = "lib/sort_rank.wgsl", "lib/sort_stage_late.wgsl", "sort_pass_lookback.wgsl", "lib/sort_write_pairs.wgsl"
CODE1 = "lib/key_code_1.wgsl"

# A part's keys are written while those of the next parts are in registers; then all values are loaded, once, into the
# registers that the keys leave.
_KEYS = """fn write_{{ place }}(tile: u32, source: u32{{ ", last: bool" if decodes }}) {
  let valid = min(TILE, {{ used.n }} - tile * TILE);
//$ for part in range(parts)
//$ if part > 0
  workgroupBarrier();
  stage_keys({{ part }}u);
//$ endif
READ_HERE//$ for K in range(part * (items // parts), (part + 1) * (items // parts))
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    let key = staged_keys({{ K % (items // parts) }}u * WORKGROUP_SIZE + lane);
    let to = atomicLoad(&run_offsets[ranked_digit(key)]) + {{ K }}u * WORKGROUP_SIZE + lane;
    store_keys_{{ place }}(to, {{ stored }});
    destinations[{{ K }}] = to;
  }
//$ endfor
//$ endfor
READ_LATE//$ for part in range(parts)
  workgroupBarrier();
  stage_values({{ part }}u);
//$ for K in range(part * (items // parts), (part + 1) * (items // parts))
  if ({{ K }}u * WORKGROUP_SIZE + lane < valid) {
    store_values_{{ place }}(destinations[{{ K }}], staged_values({{ K % (items // parts) }}u * WORKGROUP_SIZE + lane));
  }
//$ endfor
//$ endfor
}
"""
_READ = "  read_values(tile, source);\n"
_ALL = [("lib/sort_write.wgsl", "array<u32, ITEMS / PARTS>", "array<u32, ITEMS>")]
_HELD = [(PAIRS, "stage_values({{ part }}u, tile, source);", "stage_values({{ part }}u);")]
_EARLY = [(PASS, "  stage_keys(0u);\n  let before", "  stage_keys(0u);\n//$ if held | length > 1\n  read_values(tile, place);\n//$ endif\n  let before")]
P = {
    "old": [],
    # keys of all parts first, then the values; they are loaded as soon as the last keys have left their registers
    "kf": [*_ALL, (PAIRS, None, _KEYS.replace("READ_HERE", "//$ if loop.last\n" + _READ + "//$ endif\n").replace("READ_LATE", ""))],
    # … when all keys are written
    "kfl": [*_ALL, (PAIRS, None, _KEYS.replace("READ_HERE", "").replace("READ_LATE", _READ))],
    # … before the look-back waits
    "kfe": [*_ALL, *_EARLY, (PAIRS, None, _KEYS.replace("READ_HERE", "").replace("READ_LATE", ""))],
    # the order of now, all values loaded before the look-back waits, and held
    "early": [*_EARLY, *_HELD],
    # the order of now, values loaded only where they move
    "if": [(LATE, "  let item_{{ k }} = {{ load }}(select(first, from_{{ k }}, moves_{{ k }}));",
            "  var item_{{ k }}: {{ 'u32' if items_of.words == 1 else 'vec2<u32>' }};\n  if (moves_{{ k }}) { item_{{ k }} = {{ load }}(from_{{ k }}); }")],
    # zeros only, as CUB does: NaNs by their bits (wrong order of NaNs)
    "zeros": [(CODE1, "  return select(number, LAST_CODE, code - {{ lowest }} > {{ highest }} - {{ lowest }});", "  return number;")],
    # floats as if none needed to be fixed (wrong)
    "unfixed": [(CODE1, "  return select(number, LAST_CODE, code - {{ lowest }} > {{ highest }} - {{ lowest }});", "  return code;")],
    # the totals of subgroups need a word for each subgroup only
    "totals": [("lib/workgroup.wgsl", "array<{{ kind.type }}, WORKGROUP_SIZE>;", "array<{{ kind.type }}, {{ '128' if subgroups == 'native' else 'WORKGROUP_SIZE' }}>;")],
    "read": [(RANK, """  var first = 0u;
  if (before == 0u) {
    // No other lane accesses this counter meanwhile; a load and a store are faster than an atomic addition.
    first = atomicLoad(&stage[row * BINS + digit]);
    atomicStore(&stage[row * BINS + digit], first + countOneBits(lanes));
  }
  return sg_shuffle(first, leader_of(lanes)) + before;
""", """  let first = atomicLoad(&stage[row * BINS + digit]);
  if ((lanes >> rank_lane()) == 1u) { atomicStore(&stage[row * BINS + digit], first + before + 1u); }
  return first + before;
"""), (RANK, "if (step == turn && before == 0u) { first = atomicAdd(&stage[row * BINS + digit], countOneBits(lanes)); }",
        "if (step == turn && (lanes >> rank_lane()) == 1u) { first = atomicAdd(&stage[row * BINS + digit], before + 1u); }"),
        (RANK, "countTrailingZeros(lanes)", "firstLeadingBit(lanes)")],
}
HOLD = {"kf", "kfl", "kfe", "early"}
WRONG = {"zeros", "unfixed"}

_tile_context = radix_sort.SortConfig.tile_context
_small = radix_sort._Sort.small


@contextlib.contextmanager
def applied(names, few=False):
    """Compose with these changes; without `few` no kernel for one workgroup is made."""
    folder = Path(tempfile.mkdtemp()) / "shaders"
    shutil.copytree(OLD if "old" in names else NEW, folder)
    for name in names:
        for file, old, new in P[name]:
            text = (folder / file).read_text()
            assert old is None or old in text, (name, file, old)
            (folder / file).write_text(new if old is None else text.replace(old, new))

    def tile_context(self, *, all_held, **more):
        if HOLD & set(names) and "look" in more and self.value_words:
            all_held = True
        return _tile_context(self, all_held=all_held, **more)

    saved = shaders.shader_directory
    shaders.shader_directory = lambda: folder
    shaders._environment.cache_clear(); builder._shader.cache_clear(); accessors.bindings.cache_clear()
    radix_sort.SortConfig.tile_context = tile_context
    if not few:
        radix_sort._Sort.small = lambda self: None
    try:
        yield
    finally:
        shaders.shader_directory = saved
        shaders._environment.cache_clear(); builder._shader.cache_clear(); accessors.bindings.cache_clear()
        radix_sort.SortConfig.tile_context = _tile_context
        radix_sort._Sort.small = _small
        shutil.rmtree(folder.parent, ignore_errors=True)
