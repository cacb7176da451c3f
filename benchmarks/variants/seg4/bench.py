"""The variants of a process: bench.py NUMBER FOLDER. Compiles and checks its rows, then measures in turns under a lock. Every line is a result."""
import fcntl, json, os, pathlib, re, shutil, statistics, sys, time, traceback
NUMBER, FOLDER = int(sys.argv[1]), pathlib.Path(sys.argv[2])
SMALL = os.environ.get("SMALL") == "1"
START = float(os.environ.get("START", time.time())); END = START + float(os.environ.get("SECONDS_ALL", "46"))
left = lambda: END - time.time()
HERE = pathlib.Path(__file__).resolve().parent
from variants import PACKAGES, PROCESSES, TEXTS
MINE = PROCESSES[NUMBER]
NAME = MINE[0] if len(MINE) == 1 else "texts"
edits = PACKAGES[NAME] if len(MINE) == 1 else []
tree = pathlib.Path(os.environ["MAIN_TREE" if edits is None or len(MINE) > 1 else "NEW_TREE"])
if edits:
    to = FOLDER / "tree" / str(NUMBER); to.mkdir(parents=True, exist_ok=True)
    for part in ("gridwise_py", "shaders"): shutil.copytree(tree / part, to / part, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in edits:
        path = to / file if file.startswith("gridwise_py") else to / "shaders" / file
        text = path.read_text(); assert text.count(old) == 1, (file, old, text.count(old)); path.write_text(text.replace(old, new))
    tree = to
sys.path.insert(0, str(tree))
import inspect
from dataclasses import replace
import numpy as np
import gridwise_py as gw
import gridwise_py.runtime.pipelines as pipelines_module
import gridwise_py.planning.shaders as shaders_module
from gridwise_py.primitives.segmented import SegmentedReduce
for name, method in vars(pipelines_module).items():  # nothing in the background
    if inspect.isclass(method) and "_ask" in vars(method):
        for each, f in list(vars(method).items()):
            if inspect.isfunction(f) and "make_ahead" in f.__code__.co_names: setattr(method, each, lambda self, *a, **k: [])
RECORDED, EDIT = {}, [None]
plain_module = pipelines_module.create_shader_module
def with_edit(device, *, label, code, checks): return plain_module(device, label=label, code=EDIT[0](code) if EDIT[0] else code, checks=checks)
pipelines_module.create_shader_module = with_edit
plain_add = SegmentedReduce._add_kernel
def recording_add(self, builder, label, shader, *a, **k):
    if shader == "segmented_teams.wgsl" and not k.get("sibling"): RECORDED.clear(); RECORDED.update(k["params"]); RECORDED.update(size=a[0].workgroup_size, vecs=a[0].vecs)
    return plain_add(self, builder, label, shader, *a, **k)
SegmentedReduce._add_kernel = recording_add
device = gw.request_device("cpu") if SMALL else gw.request_device()
helper = gw.timing_helper(device)
CAPS = {"capabilities": replace(gw.capabilities(device), adapter_type="DiscreteGPU")} if SMALL else {}
E = (lambda k: k) if not SMALL else (lambda k: max(10, k - 7))
L = 100 if not SMALL else 2
def say(**k): print(json.dumps({"variant": NAME, **k}, default=str), flush=True)
def stats_after(position):
    path = os.environ.get("PIPE_STATS")
    if not path or not os.path.exists(path): return None, position
    with open(path) as file:
        file.seek(position)
        lines = [dict(x.split("=", 1) for x in line.strip().split(";")[1:]) for line in file if line.startswith("pipeline")]
        return lines, file.tell()
n20, n22, n24 = 1 << E(20), 1 << E(22), 1 << E(24)
r = np.random.default_rng(5)
words = r.integers(0, 1 << 32, n24, dtype=np.uint32)
HOST = {"u32": words, "f32": (words % 5).astype(np.float32)}
DATA = {}
def items(kind, n):
    if (kind, n) not in DATA: DATA[kind, n] = gw.asarray(HOST[kind][:n], device)
    return DATA[kind, n]
SUMS = {k: np.concatenate([np.zeros(1, np.uint64), np.cumsum(v if k == "u32" else words % 5, dtype=np.uint64)]) for k, v in HOST.items()}
def offsets(kind, n):
    r = np.random.default_rng(n)
    if kind == "falling":
        bounds = np.cumsum(np.minimum(r.pareto(0.7, n // 64 + 1) * 4, n / 8).astype(np.int64)); o = np.concatenate([[0], bounds[bounds < n], [n]])
    elif kind == "half": o = np.concatenate([np.arange(0, n // 2, 64), [n // 2, n]])
    elif kind == "half of 4096": o = np.concatenate([np.arange(0, n // 2, 4096), [n // 2, n]])
    elif kind == "empty": o = np.repeat(np.append(np.arange(0, n, 4096), n), 3)
    elif kind == "all but one empty": o = np.concatenate([np.zeros(200, np.int64), np.full(56, n)])
    elif kind.startswith("random "): o = np.concatenate([[3], np.sort(r.integers(3, n - 3, max(1, n // int(kind[7:]) - 1))), [n - 5]])
    else: o = np.append(np.arange(0, n, min(n, int(kind))), n)
    return o.astype(np.uint32)
UNEVEN = ("falling", "half", "half of 4096", "empty", "all but one empty", "random 256", "random 4096", "random 16384")
TEXT_ROWS = [(k, n20, "u32") for k in ("4096", "256", "16384")]
ROWS = [("falling", n24, "u32"), *((k, n24, "u32") for k in ("16384", "4096", "1024", "256", "8192", "32768", "65536", "half", "random 4096", "random 16384"))]
ROWS += [(k, n20, "u32") for k in ("4096", "16384", "1024", "256", "falling", "64")] + [(k, n22, "u32") for k in ("falling", "1024", "16384", "random 256")]
if SMALL: ROWS = [(str(max(4, int(k) >> 4)) if k.isdigit() else k, n, t) for k, n, t in ROWS]
TEXT_ROWS = TEXT_ROWS if not SMALL else [("4096", n20, "u32"), ("64", n20, "u32"), ("8192", n20, "u32")]
JOBS = [(MINE[0], row) for row in ROWS] if len(MINE) == 1 else [(v, row) for row in TEXT_ROWS for v in MINE]
import gridwise_py.planning.builder as builder_module
plain = shaders_module.compose
def encode(dispatches, span=None):
    encoder = device.create_command_encoder()
    c = encoder.begin_compute_pass(timestamp_writes=span) if span else encoder.begin_compute_pass()
    pipe = None
    for pipeline, group, xyz in dispatches:
        if pipeline is not pipe: c.set_pipeline(pipeline)
        pipe = pipeline
        c.set_bind_group(0, group); c.dispatch_workgroups(*xyz)
    c.end()
    return encoder.finish()
PRIMS, MADE, SALT, position = {}, {}, [0], stats_after(0)[1]
for NAME, row in JOBS:
    if left() < float(os.environ.get("TURNS_S", "22")): say(variant=NAME, row=row, skipped="no time"); continue
    try:
        begin = time.time(); kind, n, t = row
        o = offsets(kind, n)
        edit, right_ = TEXTS[NAME] if len(MINE) > 1 else (None, True)
        own = edit == "own"
        shaders_module.compose, EDIT[0] = plain, None; builder_module._shader.cache_clear()
        if edit and not own:
            SALT[0] += 1; salt = f"\n// {SALT[0]}\n"
            whole = {"n": n, "capacity": n, "segments": len(o) - 1}
            EDIT[0] = lambda code, edit=edit: edit(code, {**RECORDED, **whole})
            shaders_module.compose = lambda name, salt=salt, **c: plain(name, **c) + salt
            builder_module._shader.cache_clear()
            p = gw.SegmentedReduce(device, t, gw.Add, **CAPS)
        else: p = PRIMS.setdefault(t, gw.SegmentedReduce(device, t, gw.Add, **CAPS))
        args = {"items": items(t, n), "offsets": gw.asarray(o, device)}
        want = (SUMS[t][o[1:]] - SUMS[t][o[:-1]]).astype(HOST[t].dtype)
        run = p.execute(**args); call = p.bind()
        EDIT[0] = None; shaders_module.compose = plain; builder_module._shader.cache_clear() if edit and not own else None
        if own:
            import wgpu
            from texts import raw
            head = """@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> words_1: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> words_2: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> words_3: array<u32>;
"""
            code = raw("struct Params {\n n: u32, segments: u32, pieces: u32, workgroups: u32,\n}\n" + head + f"const VECS: u32 = {RECORDED['vecs']}u\noverride WORKGROUP_SIZE: u32 = {RECORDED['size']}u", {**RECORDED, "n": n, "segments": len(o) - 1}, touch=False)
            made = device.create_compute_pipeline(layout="auto", compute={"module": plain_module(device, label="own", code=code, checks="none"), "entry_point": "main"})
            U = wgpu.BufferUsage
            uniform = device.create_buffer_with_data(data=np.array([n, len(o) - 1, 0, RECORDED["workgroups"] - RECORDED["pieces"]], np.uint32), usage=U.UNIFORM)
            its = [uniform, device.create_buffer_with_data(data=HOST[t][:n], usage=U.STORAGE), device.create_buffer_with_data(data=np.resize(o, -(-len(o) // 4) * 4), usage=U.STORAGE), device.create_buffer(size=4 * len(o), usage=U.STORAGE | U.COPY_SRC)]
            group = device.create_bind_group(layout=made.get_bind_group_layout(0), entries=[{"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}} for i, b in enumerate(its)])
        check = lambda p=p, args=args, want=want: np.array_equal(p.execute(**args).output.to_numpy(), want)
        ok = np.array_equal(run.output.to_numpy(), want) and check() and check()
        stats, position = stats_after(position)
        steps = [(s.pipeline, s.group, s.workgroups) for s in call.bound_plan.steps]
        if own: steps = [(made, group, (RECORDED["workgroups"] - RECORDED["pieces"], 1, 1))]; d = encode(steps); device.queue.submit([d]); ok = np.array_equal(np.frombuffer(device.queue.read_buffer(its[3]), np.uint32)[: len(want)], want)
        short = [{k.split()[0][:3].lower(): v for k, v in s.items() if any(w in k for w in ("egister", "inary", "hared"))} for s in stats or []]
        p2 = run.plan.parameters
        say(variant=NAME, row=row, correct=ok, made=round(time.time() - begin, 2), stats=short, shape=[p2.get("workgroup_size"), p2.get("vecs")], of=dict(RECORDED), right=right_)
        if ok or not right_: MADE[NAME, row] = (steps * L, check if right_ else None, call, run)
    except Exception as error:
        say(variant=NAME, row=row, failed=repr(error)[:300])
(FOLDER / f"ready_{NUMBER}").write_text("")
while time.time() < END - float(os.environ.get("TURNS_S", "22")) and len(list(FOLDER.glob("ready_*"))) < int(os.environ["WORKERS"]): time.sleep(0.05)
lock = open(FOLDER / "lock", "w")
times = {row: [] for row in MADE}
for turn in range(30 if not SMALL else 2):
    if left() < 2: break
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        begin = time.time()
        for k, (row, (d, *_)) in enumerate(MADE.items()):
            if left() < 1 or len(times[row]) > 3 and k > 14 and turn % 2: continue  # the first rows more often
            session = helper.session()
            ahead = [encode(d) for _ in range(6 if not k else 1)]  # the first one wakes the clock
            device.queue.submit([*ahead, encode(d, session.span("t"))]); session.submitted()
            ns = session.spans()[0].ns
            if ns is not None: times[row].append(ns / L / 1e3)
    except Exception as error:
        say(failed=repr(error)[:300]); break
    finally: fcntl.flock(lock, fcntl.LOCK_UN)
    say(times=[(*row, round(statistics.median(t), 3), len(t)) for row, t in times.items() if t], turn=turn, took=round(time.time() - begin, 2))
    time.sleep(0.02)
fcntl.flock(lock, fcntl.LOCK_EX)
for row, (d, check, *_) in MADE.items():
    try:
        if check and not check(): say(variant=row[0], row=row[1], wrong_at_the_end=True)
    except Exception as error: say(variant=NAME, row=row, failed=repr(error)[:200])
fcntl.flock(lock, fcntl.LOCK_UN)
say(end=round(time.time() - START, 1))
