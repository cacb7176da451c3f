"""Trees in turns: rounds.py SECONDS JSON NAME=PATH[:EDIT] …; each a process of child.py. µs per dispatch, medians."""
import json, os, statistics, subprocess, sys, time
START = time.perf_counter(); BUDGET = float(sys.argv[1]); HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = """argmax unit 24;reduce u32 24;argmax unit 20;reduce u32 20;reduce unit 24;reduce unit 20;argmax u32 24;argmax u32 20;max unit 24;argmax unit 22;reduce u32 22;reduce unit 22;
argmax unit 28;reduce u32 28;reduce unit 28;argmax unit 16;reduce u32 16;reduce unit 16;argmin unit 24;argmax f16 24;argminmax unit 24;argmax equal 24;argmax equal 22;argmax negative 24;
reduce i32 24;max unit 20;argmin unit 20;argmax f16 20;argminmax unit 20;argmax equal 20;argmax u32 28;argmin i32 24;count bytes 24;count bytes 20;fixed unit 24;fixed unit 20;var unit 24;var unit 20""".replace("\n", "").split(";")
children = {}
for arg in sys.argv[3:]:
    name, path = arg.split("="); path, _, edit = path.partition(":")
    env = os.environ | {"PYTHONPATH": os.environ["SITE"] + ":" + path, "EDIT": edit}
    children[name] = subprocess.Popen([sys.executable, "-W", "ignore", HERE + "/child.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
registers = {}
if not os.environ.get("SMALL"):
    for arg in sys.argv[3:5]:
        name, path = arg.split("=")
        env = os.environ | {"PYTHONPATH": os.environ["SITE"] + ":" + path, "EDIT": "", "REGISTERS": "argmax unit 24;reduce u32 24;reduce unit 24;argmax u32 24;argminmax unit 24;max unit 24", "VK_LAYER_PATH": HERE, "VK_INSTANCE_LAYERS": "VK_LAYER_pipestats"}
        registers[name] = subprocess.Popen([sys.executable, "-W", "ignore", HERE + "/child.py"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
def ask(name, line):
    c = children[name]; c.stdin.write(line + "\n"); c.stdin.flush()
def hear(name):
    while True:
        line = children[name].stdout.readline()
        if not line: raise SystemExit(f"{name} has ended")
        if line.startswith("{"): return json.loads(line)
left = lambda: BUDGET - (time.perf_counter() - START)
for n in children: ask(n, "prepare " + ";".join(ROWS))
failed = {}
for n in children:
    print(n, hear(n)); got = hear(n); failed[n] = got["failed"]
    print(n, "ready", round(got["s"], 1), "s", got["failed"], flush=True)
first = list(children)
for n in first[1:2]: ask(n, "nasty"); print(n, "nasty:", hear(n), flush=True)
for name, p in registers.items():
    try: out = p.communicate(timeout=8)[0]
    except subprocess.TimeoutExpired: p.kill(); out = p.communicate()[0]
    print(f"{name}:\n{out[-1500:]}", flush=True)
found = {r: {n: [] for n in children} for r in ROWS}
rounds = 0
while left() > 2 and rounds < (15 if not os.environ.get("SMALL") else 1):
    for r in ROWS:
        for n in children:
            if r in failed[n] or left() < 1: continue
            ask(n, "go " + r); got = hear(n)
            if got["us"] is not None: found[r][n].append(got["us"])
            elif not rounds: print(n, r, got)
    rounds += 1
for n in children: ask(n, "end")
table = {r: {n: round(statistics.median(t), 2) for n, t in by.items() if t} for r, by in found.items()}
print(f"{rounds} rounds, {time.perf_counter() - START:.0f} s\n{'':20}" + " ".join(f"{n:>10}" for n in children))
for r, by in table.items(): print(f"{r:20}" + " ".join(f"{by.get(n, float('nan')):10.2f}" for n in children), flush=True)
json.dump({"rounds": rounds, "failed": failed, "table": table, "all": found}, open(sys.argv[2], "w"))
