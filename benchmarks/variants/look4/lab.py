"""Look-backs of few tiles by 1, 2, 4, 8 tiles a lane. lab.py (driver): a process for each kernel and variant; they compile side by side, and are timed
in turns. Usage: lab.py JSON SECONDS [KERNEL...] (SMOKE=1 on lavapipe); children are lab.py child KERNEL VARIANT."""
import json, os, queue, re, statistics, subprocess, sys, threading, time, traceback
from pathlib import Path
SMOKE = bool(os.environ.get("SMOKE"))
CHILD = len(sys.argv) > 1 and sys.argv[1] == "child"
SG = 8 if SMOKE else 32
CUT = int(os.environ.get("CUT", 5)) if SMOKE else 0
# kernel: variants, cases (log2 of items, data); the first case is the most important
V = ["1", "2", "4"]
X = ["1", "4", "2", "8", "own4", "t4", "own1"]
SIZES = [(20, ""), (21, ""), (19, ""), (22, ""), (18, "")]
KERNELS = {
    "scan": (X, SIZES), "select": (X, SIZES),
    "by key": (["1", "4", "2", "8"], [(20, "1"), (20, "8"), (21, "1"), (22, "1"), (19, "1"), (18, "1"), (21, "8"), (22, "8")]),
    "flagged": (V, [(20, ""), (22, "")]), "partition 2": (V, [(20, ""), (22, "")]), "unique": (V, [(20, "1"), (20, "8"), (20, "one"), (22, "8")]),
    "lengths": (V, [(20, "1"), (20, "8"), (20, "one"), (22, "8")]), "scan by key": (V, [(20, "1"), (20, "8"), (22, "8")]),
    "exclusive": (V, [(20, ""), (22, "")]), "unique by key": (V, [(20, "1"), (20, "8"), (22, "8")]), "partition 3": (V, [(20, ""), (22, "")]),
    "segmented": (V, [(20, "1000"), (22, "1000")]),
}
if CHILD:
    if os.environ.get("PIPE_STATS"): os.environ["PIPE_STATS"] = f"/tmp/l4_stats_{os.getpid()}.txt"
    import numpy as np
    import gridwise_py as gw
    import gridwise_py.planning.builder as builder
    device = gw.request_device("cpu") if SMOKE else gw.request_device()
    if SMOKE:
        import gridwise_py.tuning.facts as facts
        from gridwise_py.types.capabilities import Capabilities
        facts._INTEGRATED = facts.DISCRETE
        Capabilities.is_cpu = property(lambda self: False)
    kernel, variant = sys.argv[2], sys.argv[3]
    look = int(variant[-1])
    helper = gw.timing_helper(device)
    class Missing(Exception): pass
    def sub(old, new):
        def change(text):
            if old not in text: raise Missing(old[:70])
            return text.replace(old, new)
        return change
    def rex(old, new):
        def change(text):
            out, k = re.subn(old, new, text, flags=re.S)
            if not k: raise Missing(old[:70])
            return out
        return change
    NOCOUNT = [sub("  if (is_leader() && state_count_finished(params.tiles)) { state_next_epoch(); }\n", "")] if kernel == "scan" else [
        rex(r"    if \(state_count_finished\(workgroups\)\) \{ state_next_epoch\(\); \}\n  \}\n(  emit_tile)", r"  }\n\1")]
    def own_epoch(text):  # of the word that the same tile had before
        text = sub("fn state_begin() {", "fn state_begin_of(tile: u32) {")(text)
        if "array<atomic<u64>>" in text: read = "epoch = (u32(atomicLoad(&states[tile]) >> 34u) + 1u) & 0x3fffffffu;"
        elif "states[4u +" in text: read = "epoch = atomicLoad(&states[4u + tile]) >> 31u;"
        else: read = "epoch = ((atomicLoad(&states[2u * tile]) >> 18u) + 1u) & 0x3fffu;"
        text = rex(r"epoch = atomic\w+\(&\w+\[2\][^;]*;", read)(text)
        return sub("{ state_begin(); }", "{ state_begin_of(tile); }")(text)
    def transposed(text):  # position k of a lane is tile k * size + lane: neighbouring lanes poll neighbouring words; sums in any order
        text = sub(f"let first = sg_lane * LOOK + 1u;", "let first = sg_lane + 1u;")(text)
        for k in range(look):
            text = text.replace(f"let back_{k} = window - first - {k}u;", f"let back_{k} = window - first - {k}u * sg_size;")
            text = text.replace(f"first + {k}u >= use_from", f"first + {k}u * sg_size >= use_from")
        text = re.sub(r"    done_here = [^\n]*\n", "", text); text = re.sub(r"    empty_here = [^\n]*\n", "", text)
        votes = "var done = 0u; var empty = 0u; var votes = 0u;\n"
        for k in range(look):
            for what, flag in (("done", "INCLUSIVE"), ("empty", "EMPTY")):
                votes += f"    votes = subgroupBallot(published_{k}.flag == {flag}).x; {what} = select({what}, {k}u * sg_size + 32u - countLeadingZeros(votes), votes != 0u);\n"
        text = sub("let done = look_back_max(done_here);\n", votes)(text)
        return sub("    let empty = look_back_max(empty_here);\n", "")(text)
    changes = {"own": [own_epoch, *NOCOUNT], "t": [transposed]}.get(variant[:-1], [])
    _compose = builder.compose_kernel
    def composed(*args, **kwargs):
        text = _compose(*args, **kwargs)
        if args[0] in ("scan_lookback.wgsl", "stream_lookback.wgsl", "segmented_lookback.wgsl"):
            assert f"const LOOK: u32 = {look}u;" in text
            for change in changes: text = change(text)
        return text
    builder.compose_kernel = composed
    _kernel = builder.PlanBuilder.kernel
    def only(self, *args, sibling=False, **kwargs):  # no pipelines for other lengths
        if not sibling: return _kernel(self, *args, **kwargs)
    builder.PlanBuilder.kernel = only
    x, HALF = gw.u32("x"), 1 << 31
    def inputs(log, data):
        n = 1 << (log - CUT)
        r = np.random.default_rng(5)
        items = r.integers(0, 1 << 32, n, dtype=np.uint32)
        keys = np.full(n, 7, np.uint32) if data == "one" else (np.arange(n, dtype=np.uint32) // np.uint32(int(data or 1)))
        if kernel in ("scan", "exclusive"): return {"input": items}
        if kernel in ("select", "partition 2", "partition 3"): return {"x": items}
        if kernel == "flagged": return {"input": items, "flags": r.integers(0, 2, n).astype(bool)}
        if kernel in ("unique", "lengths"): return {"keys": keys}
        if kernel == "unique by key": return {"keys": keys, "values": items}
        if kernel == "segmented": return {"items": items, "offsets": np.arange(0, n, int(data), dtype=np.uint32)}
        return {"keys": keys, "items": items}
    def primitive():
        more = {"look": look, **({"tickets": False} if SMOKE else {})}
        s, t = {"strategy": "lookback", "tuning": gw.ScanTuning(**more)}, {"strategy": "lookback", "tuning": gw.StreamTuning(**more)}
        third, two = 2**32 // 3, 2**33 // 3
        return {"scan": lambda: gw.Scan(device, "u32", **s), "exclusive": lambda: gw.Scan(device, "u32", kind="exclusive", **s),
            "select": lambda: gw.Select(device, x, where=x < HALF, **t), "flagged": lambda: gw.Select(device, "u32", **t),
            "partition 2": lambda: gw.Partition(device, x, where=x < HALF, **t), "partition 3": lambda: gw.Partition(device, x, where=[x < third, x >= two], **t),
            "unique": lambda: gw.Unique(device, "u32", **t), "unique by key": lambda: gw.Unique(device, "u32", "u32", **t),
            "lengths": lambda: gw.RunLength(device, "u32", outputs=("values", "lengths"), **t),
            "by key": lambda: gw.ReduceByKey(device, "u32", "u32", gw.Add, **s), "scan by key": lambda: gw.ScanByKey(device, "u32", "u32", gw.Add, **s),
            "segmented": lambda: gw.SegmentedScan(device, "u32", **s)}[kernel]()
    def run(steps, span=None):
        encoder = device.create_command_encoder()
        c = encoder.begin_compute_pass(timestamp_writes=span) if span else encoder.begin_compute_pass()
        for pipe, group, xyz in steps:
            c.set_pipeline(pipe); c.set_bind_group(0, group); c.dispatch_workgroups(*xyz)
        c.end(); device.queue.submit([encoder.finish()])
    def say(**kw): sys.stdout.write("@@" + json.dumps(kw) + "\n"); sys.stdout.flush()
    def flat(got): return {k: np.asarray(v).reshape(-1) for k, v in got.items()} if isinstance(got, dict) else None
    class Case:
        def __init__(self, log, data):
            self.host = inputs(log, data)
            self.primitive = p = primitive()
            begin = time.perf_counter()
            self.run = p.execute(**{k: gw.asarray(v, device) for k, v in self.host.items()})
            self.first_s = time.perf_counter() - begin
            self.call = p.bind()
            self.steps = [(s.pipeline, s.group, s.workgroups) for s in self.call.bound_plan.steps]
        def check(self):
            run(self.steps * 3)
            want = self.primitive.reference(**self.host)
            got = {k: np.array(v.to_numpy()).reshape(-1) for k, v in self.run.outputs.items()}
            if not isinstance(want, dict):
                want = dict(zip(got, want if isinstance(want, tuple) else (want,)))
            for k, w in want.items():
                w = np.asarray(w).reshape(-1)
                if not np.array_equal(w, got[k][: w.size]): return f"WRONG {k} {w.size} {got[k].size}: {int((w[: got[k].size] != got[k][: w.size]).sum())}"
            return True
    try:
        cases = []
        for log, data in KERNELS[kernel][1]:
            try: cases.append(Case(log, data))
            except Exception as error:
                if SMOKE: traceback.print_exc()
                cases.append(f"{type(error).__name__}: {str(error)[:160]}")
                if not cases[:-1]: raise
        stats = ""
        path = os.environ.get("PIPE_STATS")
        if path and os.path.exists(path):
            lines = [l for l in Path(path).read_text().splitlines() if l.startswith("pipeline")]
            if lines:
                got = dict(p.split("=", 1) for p in lines[0].split(";") if "=" in p)
                stats = "r" + next((w for k, w in got.items() if "egister" in k), "?")
        say(built=True, stats=f"{stats} {cases[0].first_s:.2f}s", first=[getattr(c, "first_s", None) for c in cases], grid=[c if isinstance(c, str) else [s[2][0] for s in c.steps] for c in cases],
            window=[c if isinstance(c, str) else c.run.plan.parameters["look_back_window"] for c in cases])
        for line in sys.stdin:
            what = line.split()
            case = cases[int(what[1])] if len(what) > 1 else None
            if isinstance(case, str): say(check=case, us=[])
            elif what[0] == "check": say(check=case.check())
            elif what[0] == "time":
                launches = int(what[2])
                session = helper.session()
                run(case.steps * (2 * launches))
                for _ in range(4): run(case.steps * launches, session.span("t"))
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
WORKERS = int(os.environ.get("WORKERS", "2" if SMOKE else "15"))
class Child:
    def __init__(self, kernel, variant):
        self.kernel, self.variant, self.stats, self.said, self.state, self.begin = kernel, variant, "", "", "building", now()
        self.p = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "child", kernel, variant], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None if SMOKE else subprocess.DEVNULL, text=True, bufsize=1)
        self.q = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
    def read(self):
        for line in self.p.stdout:
            if line.startswith("@@"): self.q.put(json.loads(line[2:]))
        self.q.put({"error": "ended"})
    def fail(self, why): self.said, self.state = why, "failed"; self.kill()
    def kill(self):
        if self.p.poll() is None: self.p.kill()
    def ask(self, what, timeout):
        try: self.p.stdin.write(what + "\n"); self.p.stdin.flush(); got = self.q.get(timeout=timeout)
        except queue.Empty: self.fail(f"HUNG in {what}"); time.sleep(1); return None
        except Exception: got = {"error": "gone"}
        if "error" in got: self.fail(got["error"]); return None
        return got
RESULTS, children = {}, {}
kernels = WANTED or list(KERNELS)
jobs = [(k, v) for k in kernels for v in KERNELS[k][0]]
def poll():
    for c in list(children.values()):
        if c.state != "building": continue
        try: got = c.q.get_nowait()
        except queue.Empty:
            if now() - c.begin > (90 if SMOKE else 20): c.fail("no pipeline in 20 s")
            continue
        if "built" in got: c.info, c.stats, c.state, c.took = got, got["stats"], "built", now() - c.begin
        else: c.fail(got.get("error", "?"))
def starter():
    todo = list(jobs)
    while now() < SECONDS - 2:
        poll()
        if todo and sum(c.state == "building" for c in children.values()) < WORKERS:
            job = todo.pop(0); children[job] = Child(*job)
        elif not todo and all(c.state != "building" for c in children.values()): return
        else: time.sleep(0.02)
threading.Thread(target=starter, daemon=True).start()
for kernel in kernels:
    variants, cases = KERNELS[kernel]
    while now() < SECONDS - 2 and not all((kernel, v) in children and children[kernel, v].state != "building" for v in variants): time.sleep(0.02)
    cs = [children[kernel, v] for v in variants if (kernel, v) in children]
    waited = now()
    built = [c for c in cs if c.state == "built"]
    print(f"== {kernel}: built by {waited:.0f} s (children {max([getattr(c, 'took', 0) for c in cs], default=0):.1f} s); " + ", ".join(f"{c.variant}: {c.stats}" for c in built), flush=True)
    for i, (log, data) in enumerate(cases):
        if now() > SECONDS - 1: break
        good = []
        for c in built:
            if c.state != "built": continue
            got = c.ask(f"check {i}", 60 if SMOKE else 5)
            if got is None: continue
            if got["check"] is True: good.append(c)
            else: print(f"  !! 2^{log} {data} {c.variant}: {got['check']}", flush=True)
        launches, want = (2, 1) if SMOKE else (100, 8 if i == 0 else 6)
        times, rounds, begin = {c.variant: [] for c in good}, 0, now()
        while rounds < want and (rounds < 2 or now() - begin < 1.5) and now() < SECONDS - 0.7:
            for c in good if rounds % 2 else good[::-1]:
                if c.state != "built": continue
                got = c.ask(f"time {i} {launches if rounds or SMOKE else 2 * launches}", 60 if SMOKE else 4)
                if got and (rounds or SMOKE): times[c.variant].extend(got["us"])
            rounds += 1
        us = {v: round(statistics.median(t), 2) for v, t in times.items() if t}
        grid = next((c.info["grid"][i] for c in built), "")
        print(f"  2^{log} {data or '-':4} {grid} tiles, {rounds} rounds: " + "  ".join(f"{v}: {t:.2f}" for v, t in us.items()), flush=True)
        RESULTS[f"{kernel}, {data}, 2^{log}"] = {"us": us, "grid": grid, "all": {v: [round(t, 3) for t in ts] for v, ts in times.items()}}
    for c in cs:
        if c.said: print(f"  !! {c.variant}: {c.said}", flush=True)
    RESULTS[f"{kernel}, made"] = {c.variant: getattr(c, "info", c.said) for c in cs}
    Path(OUT).write_text(json.dumps(RESULTS))
    for c in cs: c.kill()
for c in list(children.values()): c.kill()
os._exit(0)
