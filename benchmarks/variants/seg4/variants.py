"""TEXTS: name -> (edit of the composed text, or None; right). PACKAGES: name -> edits of files. PROCESSES: what each process measures."""
from texts import *
wrong = chain(idle, no_list)
STEPS = [("shifts, unrolled", chain(shifts, unrolled)), ("sg 32", sg32), ("ids by shifts", sgid), ("no grid", grid), ("always short", no_short), ("constants", const), ("no tail", no_tail), ("no mask", no_mask), ("no list's loop", no_loop_k), ("one round", once), ("bare loads", bare), ("one barrier", one_barrier)]
TEXTS = {"built": (None, True)}
TEXTS["0 idle, no list"] = (wrong, False)
so_far = [wrong]
for i, (name, step) in enumerate(STEPS): so_far.append(step); TEXTS[f"{i + 1} and {name}"] = (chain(*so_far), False)
TEXTS |= {
    "raw in the plan's group": (raw, False),
    "raw, shuffles": (lambda c, p: raw(c, p, add=False), False),
    "raw, constants": (lambda c, p: raw(c, p, uniform=False), False),
    "raw, own buffers": ("own", False),
    "raw, 200 instructions more": (pad(False), False),
    "raw, the same by a loop": (pad(True), False),
    "built: idle pieces": (idle, False),
    "0, no offsets read": (chain(wrong, no_offsets), False),
    "0, no items read": (chain(wrong, no_items), False),
    "0, no team_total": (chain(wrong, no_team), False),
    "0, no offsets, no team_total": (chain(wrong, no_offsets, no_team), False),
    "0, none of the three": (chain(wrong, no_offsets, no_items, no_team), False),
    "built: leaves at once": (nothing, False),
    "built: first subgroup only": (first_only, True),
    "built: few shuffles": (few, True),
    "built: shifts, first only, few": (chain(few, shifts, first_only), True),
    "built: ..., fast path first": (chain(few, shifts, first_only, fast_first), True),
    "built: ..., tail under one condition": (chain(few, shifts, first_only, fast_first, tail_if), True),
    "built: fast path first": (fast_first, True),
    "built: tail under one condition": (tail_if, True),
    "built: shifts": (shifts, True),
    "built: sg 32": (sg32, True),
    "built: sg 32, ids by shifts, no grid": (chain(sg32, sgid, grid), True),
    "built: no grid": (grid, True),
    "built: unrolled": (unrolled, True),
    "built: unrolled, shifts": (chain(unrolled, shifts), True),
    "built: subgroupAdd, shifts": (chain(native_sum, shifts), True),
    "built: clamped loads": (clamp, True),
    "built: bare loads": (bare, False),
    "built: one path, masked": (all_mask, True),
    "built: clamped, masked": (chain(clamp, all_mask), True),
    "built: one round": (once, False),
    "built: no tail": (no_tail, False),
    "built: constants": (const, True),
    "built: offsets by words": (scalar_offsets, True),
    "built: no list's loop": (no_loop_k, False),
    "built: idle, no list's loop": (chain(idle, no_loop_k), False),
    "built: idle, no list, sg 32, shifts, unrolled": (chain(wrong, unrolled, sg32), False),
    "built: shifts, unrolled, clamped, masked": (chain(shifts, unrolled, clamp, all_mask), True),
    "built: all of these, sg 32, no grid": (chain(shifts, unrolled, clamp, all_mask, sg32, sgid, grid), True),
}
# Packages are made from the branch seg4 (tree.tar.xz: what differs from main), or main.
SEG = "gridwise_py/primitives/segmented.py"
FIRST = "(average > 16 * size and segments < 2 * blocks)]"
HALF = "(at_once << (n > _ITEMS_OF_TEAMS))"
def form4(factor, vecs): return [
    (SEG, "every, size, blocks = 3 * [usual]", "every, size, blocks = 4 * [usual]"), (SEG, "(min(2 * size, most), 8)\n", f"(min(2 * size, most), 8), (min({factor} * size, most), {vecs})\n"),
    (SEG, FIRST, "(average > 16 * size) * (1 + (segments >= 2 * blocks))]")]
def teams(text): return (SEG, HALF, f"({text})")
ROUNDS = (SEG, "8 * team * at_once", "(8 << (n > 1 << 22)) * team * at_once")
FAST = """    if (4u * q >= x.first && 4u * (q + {{ vecs - 1 }}u * team) + 4u <= x.end) {
      sums = combine4(sums, item4(4u * (q + {{ k }}u * team)));  //$ for k in range(vecs)
      continue;
    }
"""
MASKED = "    sums = combine4(sums, masked4(v_{{ k }}, 4u * (q + {{ k }}u * team), x.first, x.end));  //$ for k in range(vecs)\n"
BACK = [("segmented_teams.wgsl", FAST, ""), ("segmented_teams.wgsl", MASKED, """    if (4u * q >= x.first && 4u * (q + {{ vecs - 1 }}u * team) + 4u <= x.end) {
      sums = combine4(sums, v_{{ k }});  //$ for k in range(vecs)
    } else {
      sums = combine4(sums, masked4(v_{{ k }}, 4u * (q + {{ k }}u * team), x.first, x.end));  //$ for k in range(vecs)
    }
""")]
PACKAGES = {
    "main": None,
    "branch": [],
    "branch, loads as in main": BACK,
    "branch, team as in main": [teams("at_once")],
    "many 512 x 4; 16 rounds at 2^24": [*form4(2, 4), ROUNDS],
    "many 256 x 8; teams half always": [*form4(1, 8), teams("2 * at_once")],
    "many from 1024; a quarter at 2^24": [(SEG, FIRST, FIRST.replace("2 * blocks", "4 * blocks")), teams("at_once << 2 * (n > 1 << 22)"), ROUNDS],
    "256 x 8 at 2^24 from 4096 down, team of at_once": [(SEG, "(size, 2), (size, 4),", "(size, 2), (size, 8 if n > 1 << 22 else 4),"), teams("at_once")],
}
names = [n for n in TEXTS if n != "built"]
PROCESSES = [["built", *names[i::8]] for i in range(8)] + [[p] for p in PACKAGES]
