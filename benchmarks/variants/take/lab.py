"""Raw pipelines of wgpu, timed as benchmarks/peers/harness.py does: dispatches in one pass between two timestamps."""
import json, os, statistics, sys, time, traceback
import numpy as np, wgpu
import gridwise_py as gw
from gridwise_py.backend.queues import create_shader_module

SMALL = os.environ.get("SMALL") == "1"
if not SMALL:
    device = gw.request_device()
else:
    device = gw.request_device("cpu")
helper = gw.timing_helper(device)
USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
TYPES = {"r": "read-only-storage", "w": "storage"}
START = time.perf_counter()
BUDGET = float(os.environ.get("PART_S", "50"))
RESULTS = {}
OUT = os.path.join(os.environ.get("OUT", "/tmp"), os.environ.get("PART", "part") + ".json")

def left(): return BUDGET - (time.perf_counter() - START)

def save():
    with open(OUT, "w") as f: json.dump(RESULTS, f, indent=0)

class Pipe:
    def __init__(self, label, code, access):
        """code: WGSL; access: one letter per binding, r or w."""
        self.label = label
        module = create_shader_module(device, label=label, code=code, checks="none")
        self.layout = device.create_bind_group_layout(entries=[
            {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": TYPES[a]}} for i, a in enumerate(access)
        ])
        layout = device.create_pipeline_layout(bind_group_layouts=[self.layout] if access else [])
        self.raw = device.create_compute_pipeline(layout=layout, compute={"module": module, "entry_point": "main"}, label=label)
        self.access = access
    def group(self, *buffers):
        entries = []
        for i, b in enumerate(buffers):
            b, offset, size = b if isinstance(b, tuple) else (b, 0, b.size)
            entries.append({"binding": i, "resource": {"buffer": b, "offset": offset, "size": size}})
        return device.create_bind_group(layout=self.layout, entries=entries)

def buffer(nbytes, data=None, usage=USAGE, label="b"):
    b = device.create_buffer(size=max(32, int(nbytes)), usage=usage, label=label)
    if data is not None: upload(b, data)
    return b

def upload(b, data, offset=0):
    data = np.ascontiguousarray(data)
    step = 64 << 20
    raw = data.reshape(-1).view(np.uint8)
    for at in range(0, raw.size, step):
        device.queue.write_buffer(b, offset + at, raw[at:at + step])

def read(b, offset=0, nbytes=None, dtype=np.uint32):
    size = nbytes or b.size - offset
    return np.frombuffer(device.queue.read_buffer(b, offset, size), dtype=dtype)

def encode(dispatches, span=None, passes=1):
    encoder = device.create_command_encoder()
    each = -(-len(dispatches) // passes)
    for k in range(passes):
        c = encoder.begin_compute_pass(timestamp_writes=span) if span and k == 0 else encoder.begin_compute_pass()
        last = None
        for pipe, group, xyz in dispatches[k * each:(k + 1) * each]:
            if pipe is not last: c.set_pipeline(pipe)
            last = pipe
            if group is not None: c.set_bind_group(0, group)
            c.dispatch_workgroups(*xyz)
        c.end()
    return encoder.finish()

def once(dispatches, warm=1):
    """ns of all dispatches in one pass; the same before it, untimed."""
    session = helper.session()
    commands = [encode(dispatches) for _ in range(warm)] + [encode(dispatches, session.span("t"))]
    device.queue.submit(commands)
    session.submitted()
    return session.spans()[0].ns

def measure(variants, rounds=5, warm=1):
    """variants: name -> (dispatches, launches). Returns name -> median us per launch, in turns."""
    times = {name: [] for name in variants}
    dead = set()
    for r in range(rounds):
        for name, (dispatches, launches) in variants.items():
            if name in dead: continue
            if left() < 1 and r: break
            try:
                ns = once(dispatches, warm)
                if ns is not None: times[name].append(ns / launches / 1e3)
            except Exception as e:
                dead.add(name); print("FAILED", name, repr(e)[:200])
    return {name: round(statistics.median(t), 3) for name, t in times.items() if t}

def section(name):
    def deco(f):
        if left() < 3:
            print(f"-- {name}: no time"); return f
        begin = time.perf_counter()
        try:
            RESULTS[name] = f()
        except Exception:
            traceback.print_exc(limit=3); RESULTS[name] = "failed"
        save()
        print(f"-- {name} ({time.perf_counter() - begin:.1f} s)", flush=True)
        if isinstance(RESULTS[name], dict):
            for k, v in RESULTS[name].items(): print(f"   {k:58} {v}", flush=True)
        return f
    return deco
