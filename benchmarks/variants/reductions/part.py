"""Reduce and segments at 2^20: old and new texts in turns, and parts left out. us per launch."""
from lab import *
import builtins, inspect, pathlib, re, shutil, tempfile, textwrap
import gridwise_py.planning.builder as builder_module
import gridwise_py.planning.shaders as shaders_module
import gridwise_py.runtime.pipelines as pipelines_module
from gridwise_py.primitives import segmented as segmented_module
from gridwise_py.primitives.segmented import SegmentedReduce

HERE = pathlib.Path(__file__).resolve().parent
L = 100 if not SMALL else 2
E = (lambda k: k) if not SMALL else (lambda k: max(0, k - 6))
ROUNDS = 9 if not SMALL else 1
print(gw.__file__, device.adapter.info.get("device") if hasattr(device, "adapter") else "")

# ---- variants of texts
NEW = shaders_module.shader_directory()
FOLDER = [NEW]
EDIT = [None]
builder_module_shader = builder_module._shader
compose_plain = shaders_module.compose
def compose(name, **context):
    return compose_plain(name, **({"team_is_workgroup": False, "team_in_memory": True} | context))
shaders_module.compose = compose
shaders_module.shader_directory = lambda: FOLDER[0]
plain_module = pipelines_module.create_shader_module
def with_edit(device, *, label, code, checks):
    if EDIT[0] is not None: code = EDIT[0](code)
    return plain_module(device, label=label, code=code, checks=checks)
pipelines_module.create_shader_module = with_edit
for name, method in vars(pipelines_module).items():
    if inspect.isclass(method) and "_ask" in vars(method):
        for each, f in list(vars(method).items()):
            if inspect.isfunction(f) and "make_ahead" in f.__code__.co_names: setattr(method, each, lambda self, *a, **k: [])
RECORDED = {}
plain_add = SegmentedReduce._add_kernel
def recording_add(self, builder, label, shader, *a, **k):
    if shader == "segmented_teams.wgsl" and not k.get("sibling"): RECORDED.clear(); RECORDED.update(k["params"])
    return plain_add(self, builder, label, shader, *a, **k)
SegmentedReduce._add_kernel = recording_add
ADD_TEAMS = SegmentedReduce._add_teams
def teams_with(old, new):
    text = textwrap.dedent(inspect.getsource(ADD_TEAMS)); assert old in text, old
    space = dict(vars(segmented_module)); exec("from __future__ import annotations\n" + text.replace(old, new), space)
    return space["_add_teams"]
RULE = "8192 if n < 2 * usual.tile_items * usual.max_blocks else 256"

def folder(name, edits=()):
    base = NEW if name == "all" else HERE / f"shaders_{name}"
    if not edits: return base
    to = pathlib.Path(tempfile.mkdtemp()) / "shaders"; shutil.copytree(base, to)
    for file, old, new in edits:
        t = (to / file).read_text(); assert old in t, (file, old); (to / file).write_text(t.replace(old, new))
    return to

class Variant:
    def __init__(self, name, base="all", edits=(), teams=None, code=None, right=True):
        self.name, self.folder, self.teams, self.code, self.right = name, folder(base, edits), teams, code, right
    def __enter__(self):
        FOLDER[0] = self.folder; shaders_module._environment.cache_clear(); builder_module._shader.cache_clear()
        EDIT[0] = self.code; SegmentedReduce._add_teams = self.teams or ADD_TEAMS
        return self
    def __exit__(self, *_): EDIT[0] = None

def old_rule(): return teams_with(RULE, "256")
def always(v): return teams_with("4 if average < most_of_4 else 8", f"{v}")

KEEP, DATA = [], {}
rng = np.random.default_rng(5)
MOST = 1 << E(24)
words = rng.integers(0, 1 << 32, MOST, dtype=np.uint32)
signs = rng.integers(0, 2, MOST).astype(np.float32) * 2 - 1
xs = {"u32": gw.asarray(words, device), "f32": gw.asarray(signs, device)}
def part(kind, n):
    if (kind, n) not in DATA: DATA[kind, n] = xs[kind] if n == MOST else gw.asarray((words if kind == "u32" else signs)[:n], device)
    return DATA[kind, n]
def offsets(kind, n):
    key = ("off", kind, n)
    if key not in DATA:
        if kind == "falling":
            r = np.random.default_rng(n); lengths = np.minimum(r.pareto(0.7, n // 64 + 1) * 4, n / 8).astype(np.int64)
            bounds = np.cumsum(lengths); o = np.concatenate([[0], bounds[bounds < n], [n]])
        elif kind == "half":
            o = np.concatenate([np.arange(0, n // 2, 64), [n // 2, n]])
        else: o = np.append(np.arange(0, n, int(kind)), n)
        o = o.astype(np.uint32)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words[:n], dtype=np.uint64)])
        DATA[key] = gw.asarray(o, device), (sums[o[1:]] - sums[o[:-1]]).astype(np.uint32)
    return DATA[key]

CAPS = {}
if SMALL:
    from dataclasses import replace
    CAPS = {"capabilities": replace(gw.capabilities(device), adapter_type="DiscreteGPU")}
SALT = [0]
def dispatches(variant, row):
    kind, what, n = row
    if kind == "reduce":
        p = gw.Reduce(device, what); args = {"input": part(what, n)}
        want = np.array([words[:n].sum(dtype=np.uint64) & 0xffffffff]).astype(np.uint32) if what == "u32" else signs[:n].sum(dtype=np.float64, keepdims=True)
        right = lambda r: np.array_equal(r.output.to_numpy(), want)
    elif kind == "argmax":
        p = gw.Reduce(device, gw.struct(value=getattr(gw, what)("input"), index=gw.index), gw.ArgMax); args = {"input": part(what, n)}
        want = int(np.argmax(words[:n] if what == "u32" else signs[:n]))
        right = lambda r: int(r.output.to_numpy()["index"][0]) == want
    else:
        o, want = offsets(what, n); p = gw.SegmentedReduce(device, "u32", gw.Add, **CAPS); args = {"items": part("u32", n), "offsets": o}
        right = lambda r: np.array_equal(r.output.to_numpy(), want)
    plain = None
    if variant.code:
        recorded = RECORDED; SALT[0] += 1; salt = f"\n// {variant.name} {SALT[0]}\n"
        plan_compose = shaders_module.compose
        shaders_module.compose = lambda name, **c: compose(name, **c) + salt  # another text, so another pipeline
        builder_module._shader.cache_clear()
    try: r = p.execute(**args); b = p.bind()
    finally: shaders_module.compose = compose
    KEEP.append((p, r, b))
    got = right(r)
    if variant.right and not got: raise AssertionError(f"{variant.name} {row}: wrong")
    if variant.right:  # again, since the state of the first call is there now
        for _ in range(2): assert right(p.execute(**args)), f"{variant.name} {row}: wrong again"
    d = [(s.pipeline, s.group, s.workgroups) for s in b.bound_plan.steps]
    return d * L

def table(title, variants, rows):
    @section(title)
    def _():
        lists = {}
        for v in variants:
            with v:
                for row in rows:
                    if left() < 8: print("no time:", v.name, row); continue
                    try: lists.setdefault(row, {})[v.name] = dispatches(v, row)
                    except Exception as e: print("FAILED", v.name, row, repr(e)[:300], flush=True)
        found = {}
        for row, by in lists.items():
            got = measure({k: (d, L) for k, d in by.items()}, ROUNDS)
            found[" ".join(map(str, row[:2])) + f" 2^{row[2].bit_length() - 1}"] = got
        names = list(dict.fromkeys(n for got in found.values() for n in got))
        print(" " * 26 + " ".join(f"{i:>7}" for i in range(len(names))), *(f"   {i} = {n}" for i, n in enumerate(names)), sep="\n")
        for row, got in found.items(): print(f"   {row:22} " + " ".join(f"{got[n]:7.2f}" if n in got else "      -" for n in names), flush=True)
        return found

def constants(values=None):
    def edit(code):
        for k, v in (values if values is not None else RECORDED).items(): code = re.sub(rf"\bparams\.{k}\b", f"{v}u", code)
        return code
    return edit

with gw.hold_clock(device) as clock_held:
    print("clock held", clock_held)
    settle = gw.Copy(device, "u32"); settle.execute(input=xs["u32"]); call = settle.bind()
    t = time.perf_counter() + (1.0 if not SMALL else 0.05)
    while time.perf_counter() < t:
        call.execute(trials=50 if not SMALL else 1); gw.synchronize(device)
    sets = lambda: [Variant("old", "old", teams=old_rule()), Variant("total", "total", teams=old_rule()), Variant("teams", "teams"), Variant("all")]
    n20 = 1 << E(20)
    table("main at 2^20", sets(), [("reduce", "u32", n20), ("reduce", "f32", n20), ("argmax", "u32", n20), ("argmax", "f32", n20)] +
          [("segments", str(max(1, 1 << E(k))), n20) for k in (12, 14, 16, 10, 8)] + [("segments", "falling", n20), ("segments", "half", n20)])
    one = dict(n=n20, tiles=256, tiles_per_block=1, blocks=256, identity_bits=0, input_offset=0, output_offset=0, flags=0)
    table("why: reduce and argmax at 2^20", [
        Variant("old", "old"), Variant("all"),
        Variant("old, loop of known length", "old", [("lib/subgroup.wgsl", "sg_count = lanes.count;", "sg_count = WORKGROUP_SIZE / sg_size;")]),
        Variant("all, size of subgroups 32", "all", [("lib/subgroup.wgsl", "sg_size = lanes.size;", "sg_size = 32u;")]),
        Variant("all, butterfly", "all", [("lib/subgroup.wgsl", "  return sg_last{{ of }}(sg_scan{{ of }}(x).inclusive);\n//$ endif\n}\n//$ endfor\nfn look_back_enter",
            "  var y = x;\n  for (var d = 1u; d < sg_size; d <<= 1u) { y = {{ kind.combine }}(y, subgroupShuffleXor(y, d)); }\n  return y;\n//$ endif\n}\n//$ endfor\nfn look_back_enter")]),
        Variant("all, no end (wrong)", "all", [("reduce.wgsl", "let end = workgroupUniformLoad(&finish);", "let end = vec2<u32>(select(0u, 1u, params.n == 77u), 0u);")], right=False),
        Variant("all, nothing published (wrong)", "all", [("reduce.wgsl", "  if (params.blocks > 1u) {\n    if (is_leader", "  if (params.blocks > 1u) { if (local == 0u) { put(0u, total); } return; }\n  if (params.blocks > 1u) {\n    if (is_leader")], right=False),
    ], [("reduce", "u32", n20), ("reduce", "f32", n20), ("argmax", "u32", n20)])
    if not SMALL: table("why: constants for parameters", [Variant("all"), Variant("all, constants", code=constants(one))], [("reduce", "u32", n20)])
    no_pieces = ("segmented_teams.wgsl", "if (number < params.pieces) { do_piece(number); }", "if (number < params.pieces) { return; }")
    no_groups = ("segmented_teams.wgsl", "else { do_group(number - params.pieces); }", "")
    table("why: segments at 2^20", [
        Variant("old", "old", teams=old_rule()), Variant("old, no pieces", "old", [no_pieces], teams=old_rule()),
        Variant("all"), Variant("all, no pieces", "all", [no_pieces]), Variant("all, no groups (wrong)", "all", [no_groups], right=False),
        Variant("all, neither (wrong)", "all", [no_pieces, no_groups], right=False),
        Variant("all, rule as old", teams=old_rule()),
        *[Variant(f"all, {v} vec4", teams=teams_with("vecs = 2 if", f"vecs = {v} if True else 2 if")) for v in (2, 4, 8)],
        Variant("all, constants", code=constants()),
    ], [("segments", str(max(1, 1 << E(k))), n20) for k in (12, 14, 10, 8)])
    table("by size", sets(), [(k, t, 1 << E(e)) for e in (24, 22, 18, 16) for k, t in (("reduce", "u32"), ("reduce", "f32"), ("argmax", "u32"))])
    two = lambda: [v for v in sets() if v.name in ("old", "all")]
    table("segments at 2^24 and 2^22", two(), [("segments", str(max(1, 1 << E(k))), 1 << E(24)) for k in (10, 14, 16, 8, 12)] + [("segments", w, 1 << E(24)) for w in ("falling", "half")]
          + [("segments", str(max(1, 1 << E(k))), 1 << E(22)) for k in (8, 10, 12, 14)] + [("segments", str(max(1, 1 << E(k))), 1 << E(21)) for k in (8, 10, 12)])
    table("more segments at 2^20", two(), [("segments", str(max(1, 1 << E(k))), n20) for k in (9, 11, 13, 15, 6, 7, 5)])
save()
