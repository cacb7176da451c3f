"""Sorts of pairs, second round. Usage: lab.py work I DIR (compiles its variants, then measures in turns under a lock) | lab.py cub DIR FILE | lab.py show DIR JSON.
Environment: T0 (start, s), T_COMPILE, T_ROUNDS, T_END (seconds after it), SMALL=1 (a CPU adapter)."""
import contextlib, fcntl, itertools, json, os, statistics, sys, tempfile, time
from pathlib import Path

SMALL = os.environ.get("SMALL") == "1"
if SMALL:
    os.environ["LAB_CPU"] = "1"
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import numpy as np

G, C = "guard, recount, writer", "clamp, recount, writer"
F = "free, recount, writer"
PAIRS = f"""
| 512 16 2
{G} | 512 16 2
{G}, items | 512 16 2
recount, writer | 512 16 2
{F} | 512 16 2
{G}, uniform | 512 16 2
{C} | 512 16 2
recount | 512 16 2
guard, recount | 512 16 2
uniform | 512 16 2
writer | 512 16 2
one | 512 16 2
one, {G} | 512 16 2
{F}, items, uniform | 512 16 2
{C}, items | 512 16 2
guard, recount, items | 512 16 2
{G}, items | 512 18 2
{G} | 384 24 2
{G}, loop | 512 16 2
"""
KEYS = f"| ; {G} | 512 20 2 3 ; {G}, items | 512 20 2 3 ; {F} | 512 20 2 3 ; {C} | 512 20 2 3 ; recount | 512 20 2 3 ; {G}, loop | 512 20 2 3 ; {G}, uniform | 512 20 2 3 ; one | 512 20 2 3 ; {G} | 512 22 2 3 ; guard, recount | 512 20 2 3 ; recount, writer | 512 20 2 3"
FEW = f"| ; {G}, items | ; {G} | ; {C}, items |"
U = ("u32", "u32")
OTHERS = [
    [("u32", "keys", KEYS.split(";")[0] + ";" + ";".join(KEYS.split(";")[1:4]))],
    [("u32", "keys", ";".join(KEYS.split(";")[4:8]))],
    [("u32", "keys", ";".join(KEYS.split(";")[8:]))],
    [("f32", "u32", FEW)],
    [("u32, one digit", "u32", f"| 512 16 2 ; one | 512 16 2 ; {G}, items | 512 16 2 ; {G} | 512 16 2 ; {F} | 512 16 2")],
    [("u64", "u64", FEW)],
    [("u32 & mask", "u32", FEW + f"; {G}, items | 512 16 2")],
    [("u16", "u32", FEW)],
]
PAIR_WORKERS = 7
WORKERS = PAIR_WORKERS + len(OTHERS)
PLAIN = -1
NUMBERS = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f32": np.float32}
MASK = 0xFFFFF0
T0 = float(os.environ.get("T0", time.time()))
LIMIT = {name: float(os.environ.get(name, default)) for name, default in (("T_COMPILE", 28), ("T_ROUNDS", 46), ("T_END", 58))}
past = lambda name, early=0.0: time.time() - T0 > LIMIT[name] - early


def split(text):
    """'bytes, totals | 512 20 2 3' -> the patches, and the tuning: size, items, parts, look; without numbers the model's."""
    patches, _, shape = text.partition("|")
    patches = tuple(p.strip() for p in patches.split(",") if p.strip())
    numbers = [int(x) for x in shape.split()]
    tuning = dict(zip(("workgroup_size", "items", "parts", "look"), [*numbers, 2][:4] if len(numbers) == 3 else numbers))
    if SMALL and tuning:
        tuning["workgroup_size"], tuning["items"] = 256, 2 * tuning["parts"]
    return patches, tuning


def tasks_of(worker):
    if worker < PAIR_WORKERS:
        lines = [t for t in PAIRS.strip().split("\n")]
        return [("u32", "u32", t.strip()) for t in (lines[:PAIR_WORKERS * 2] if SMALL else lines)[worker::PAIR_WORKERS]]
    return [(k, v, t.strip()) for k, v, ts in OTHERS[worker - PAIR_WORKERS] for t in ts.split(";")]


@contextlib.contextmanager
def locked(folder):
    with open(folder / "lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def work(worker, folder):
    import gridwise_py as gw
    from gridwise_py.bench.cases.case import warm_up
    from gridwise_py.primitives.engines.key_codes import key_codes
    from gridwise_py.tuning.options import SortTuning
    from variants import WRONG, applied

    device = gw.request_device()
    helper = gw.timing_helper(device)
    cpu = gw.capabilities(device).is_cpu
    n_big, n_check = (1 << 13) + 77 if SMALL else 1 << 24, (1 << 12) + 21 if SMALL else (1 << 22) + 4321

    def data(kind, n, odd):
        rng = np.random.default_rng(n)
        dtype = np.dtype(NUMBERS[kind])
        if kind == "f32" and not odd:
            return rng.standard_normal(n, np.float32)
        items = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).copy()
        if kind == "f32":
            which = rng.integers(0, 16, n)
            for number, item in enumerate((0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf)):
                items[which == number] = item
        return items

    class Problem:
        def __init__(self, kind, values, n, right):
            self.kind, self.values, self.n = kind, values, n
            self.mask, self.bits = kind.endswith("mask"), {"end_bit": 8} if kind.endswith("digit") else {}
            keys = data(kind.replace(",", " ").partition(" ")[0], n, right)
            host = [keys] if values in (None, "keys") else [keys, data(values, n + 1, right)[:n]]
            self.gpu = [gw.asarray(x, device) for x in host]
            if right:
                codes = (keys & MASK) if self.mask else (keys & 255) if self.bits else key_codes(keys)
                order = np.argsort(codes, kind="stable")
                self.right = [order.astype(np.uint32)] if values is None else [(codes if self.mask else keys)[order], *(x[order] for x in host[1:])]

        def make(self, tuning):
            tuning = dict(tuning)
            if cpu and tuning:
                tuning["subgroups"] = True
            tuning = SortTuning(**tuning) if tuning else None
            kind = gw.u32("keys") & MASK if self.mask else self.kind.partition(",")[0]
            if self.values == "keys":
                return gw.Sort(device, kind, tuning=tuning)
            return gw.ArgSort(device, kind, tuning=tuning) if self.values is None else gw.SortPairs(device, kind, self.values, tuning=tuning, **self.bits)

        @property
        def arrays(self):
            return dict(zip(("keys", "values") if len(self.gpu) > 1 else ("input",), self.gpu))

        def matches(self, run):
            return all(np.array_equal(a.to_numpy().view(np.uint8), r.view(np.uint8)) for a, r in zip(run.outputs.values(), self.right))

    def stats(position):
        path = os.environ.get("PIPE_STATS")
        if not path or not os.path.exists(path):
            return None, position
        with open(path) as file:
            file.seek(position)
            lines = [dict(x.split("=", 1) for x in line.strip().split(";")[1:]) for line in file if line.startswith("pipeline")]
            return lines, file.tell()

    rows, position = [], 0
    _, position = stats(0)
    problems = {}
    mark = " NO ROBUST" if worker == PLAIN else ""

    def problem_of(kind, values, n, right=False):
        if (kind, values, n) not in problems:
            problems[kind, values, n] = Problem(kind, values, n, right)
        return problems[kind, values, n]

    def save():
        text = json.dumps([{k: v for k, v in row.items() if k not in ("sort", "call", "patches")} for row in rows])
        (folder / f"{worker}.tmp").write_text(text)
        (folder / f"{worker}.tmp").rename(folder / f"{worker}.json")

    def launches(call, count):
        session = helper.session()
        encoder = device.create_command_encoder()
        compute = encoder.begin_compute_pass(timestamp_writes=session.span("x"))
        for _, step in itertools.product(range(count), call.bound_plan.steps):
            compute.set_pipeline(step.pipeline)
            compute.set_bind_group(0, step.group)
            compute.dispatch_workgroups(*step.workgroups)
        compute.end()
        device.queue.submit([encoder.finish()])
        session.submitted()
        return session.spans()[0].ns / count / 1e3

    def turn(call, into, warm_s=0.004):
        warm_up(call, warm_s)
        once = launches(call, 1)
        into.setdefault("one", []).append(round(once, 2))
        for _ in range(2):
            into.setdefault("b2b", []).append(round(launches(call, max(1, min(100, int(1e4 / once)))), 2))

    for kind, values, name in tasks_of(worker):
        if past("T_COMPILE", 2.0):
            print(f"left out: {kind} + {values} {name}{mark}", flush=True); continue
        patches, tuning = split(name)
        row = {"kind": kind, "values": values, "name": name + mark, "worker": worker, "patches": patches, "times": {}}
        begin = time.perf_counter()
        try:
            with applied(patches):
                problem = problem_of(kind, values, n_check, True)
                sort = problem.make(tuning)
                run = sort.execute(**problem.arrays)
                row["correct"] = None if WRONG & set(patches) and not kind.endswith("digit") else problem.matches(run)
                row["made_s"] = round(time.perf_counter() - begin, 2)
                found, position = stats(position)
                row["pass"] = max(found or [], key=lambda s: float(s.get("Binary Size", 0)), default=None)
                run = sort.execute(**problem_of(kind, values, n_big).arrays)
                row["shape"] = [run.plan.parameters.get(x) for x in ("workgroup_size", "items_per_invocation", "look_back_window")]
                row["call"], row["sort"] = sort.bind(), sort
                row["both_s"] = round(time.perf_counter() - begin, 2)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {str(error)[:300]}"
            print(kind, values, name, row["error"], flush=True)
        rows.append(row); save()
    (folder / f"{worker}.ready").touch()
    while sum((folder / f"{i}.ready").exists() for i in range(WORKERS)) < WORKERS and not past("T_COMPILE"):
        time.sleep(0.05)
    good = [row for row in rows if "call" in row]
    for number in range(4):
        if past("T_ROUNDS"):
            break
        with locked(folder):
            if good:
                warm_up(good[0]["call"], 0.005 if cpu else 0.04)
            for row in good if number % 2 else good[::-1]:
                if past("T_ROUNDS", -2.0):
                    break
                try:
                    turn(row["call"], row["times"].setdefault(str(n_big.bit_length() - 1), {}))
                except Exception as error:
                    row["error"] = f"{type(error).__name__}: {str(error)[:300]}"
        if number == 0:
            for row in good:
                print(line(row, str(n_big.bit_length() - 1)), flush=True)
        save()
        # nobody begins a round before all have done the last one
        (folder / f"{worker}.round{number}").touch()
        while sum((folder / f"{i}.round{number}").exists() for i in range(WORKERS)) < WORKERS and not past("T_ROUNDS"):
            time.sleep(0.02)
    # the best ones at other lengths
    pairs = sorted((r for r in read(folder) if (r["kind"], r["values"]) == U and r.get("correct") and median(r, str(n_big.bit_length() - 1))),
                   key=lambda r: median(r, str(n_big.bit_length() - 1)))
    plain = [r["name"] for r in pairs if "NO ROBUST" not in r["name"]]
    wanted = {*plain[:3], "| 512 16 2", "guard, recount, writer | 512 16 2", "free, recount, writer | 512 16 2"}
    mine = [row for row in good if row["name"] in wanted and (row["kind"], row["values"]) == U]
    for bits in (28, 20, 22):
        n = (1 << 13) + bits if SMALL else 1 << bits
        if not mine or past("T_END", 3.0):
            break
        try:
            base = problem_of("u32", "u32", n_big).gpu
            arrays = [gw.empty(n, "u32", device=device) for _ in base]
            with locked(folder):
                encoder = device.create_command_encoder()
                for source, target in zip(base, arrays):
                    for first in range(0, n, n_big):
                        encoder.copy_buffer_to_buffer(source.buffer, 0, target.buffer, 4 * first, 4 * min(n_big, n - first) // 4 * 4)
                device.queue.submit([encoder.finish()])
                for row in mine:
                    with applied(row["patches"]):
                        row["sort"].execute(keys=arrays[0], values=arrays[1])
                        call = row["sort"].bind()
                    for _ in range(2):
                        turn(call, row["times"].setdefault(str(bits), {}), 0.02)
                    print(line(row, str(bits)), flush=True)
            save()
            for array in arrays:
                array.destroy()
        except Exception as error:
            print("sizes:", bits, type(error).__name__, str(error)[:300], flush=True)
    print(f"worker {worker} ends at {time.time() - T0:.0f} s", flush=True)


def median(row, bits):
    found = row.get("times", {}).get(bits, {}).get("b2b")
    return statistics.median(found) if found else None


def line(row, bits, base=None):
    time_us, p = median(row, bits), row.get("pass") or {}
    if time_us is None:
        return f"   {row['name']:44} {row.get('error', 'not measured')}"
    mark = {True: "", False: " WRONG", None: " (parts left out)"}[row.get("correct")]
    local = int(p.get("Local Memory Size", 1 << 36)) - (1 << 36)
    ratio = f"{time_us / base:6.3f}" if base else ""
    return (f"   {row['kind']}+{row['values']} 2^{bits} {row['name']:44} {time_us:8.1f} {ratio} one {statistics.median(row['times'][bits]['one']):.1f}{mark}"
            f" reg {p.get('Register Count')} spill {local} mem {p.get('Shared Memory Size')} bin {p.get('Binary Size')} {row.get('shape')} made {row.get('made_s')}")


def read(folder):
    rows = []
    for path in sorted(folder.glob("[0-9]*.json")):
        with contextlib.suppress(Exception):
            rows += json.loads(path.read_text())
    return rows


def show(folder, target):
    rows = read(folder)
    cub = json.loads((folder / "cub.txt").read_text()) if (folder / "cub.txt").exists() else {}
    Path(target).write_text(json.dumps({"cub": cub, "rows": rows}))
    print("CUB", cub)
    for kind, values in dict.fromkeys((r["kind"], r["values"]) for r in rows):
        for bits in sorted({b for r in rows if (r["kind"], r["values"]) == (kind, values) for b in r.get("times", {})}):
            these = [r for r in rows if (r["kind"], r["values"]) == (kind, values) and median(r, bits)]
            base = next((median(r, bits) for r in these if r["name"] in ("|", "| 512 16 2")), None)
            print(f"== {kind} + {values} 2^{bits}, base {base}")
            for row in sorted(these, key=lambda r: median(r, bits)):
                print(line(row, bits, base))
    print("failed:", [(r["name"], r["error"][:80]) for r in rows if "error" in r], "wrong:", [r["name"] for r in rows if r.get("correct") is False])


def cub(folder, binary):
    """CUB's times, once all have compiled; holds the clock until the end."""
    import gridwise_py as gw
    with gw.hold_clock(gw.request_device()) as held:
        print("clock held:", held, flush=True)
        try:
            cub_times(folder, binary)
        except Exception as error:
            print("no CUB:", type(error).__name__, str(error)[:200], flush=True)
        while not past("T_END"):
            time.sleep(0.1)


def cub_times(folder, binary):
    sys.path.insert(0, str(HERE.parent.parent / "benchmarks/peers"))
    import harness
    server = harness.CubServer(Path(binary), Path(tempfile.mkdtemp()))
    found, rng = {}, np.random.default_rng(1)
    for name, host in zip(("keys", "values"), rng.integers(0, 1 << 32, (2, 1 << 24), np.uint32)):
        server.load(name, host)
    while sum((folder / f"{i}.ready").exists() for i in range(WORKERS)) < WORKERS and not past("T_COMPILE"):
        time.sleep(0.05)
    for case, bits in (("sort_pairs", 24), ("sort_pairs", 20), ("sort_pairs", 22), ("sort", 24)):
        with locked(folder):
            try:
                words = ("keys=keys", "values=values") if case == "sort_pairs" else ("input=keys",)
                server.ask("case", case, "u32", 1 << bits, *words)
                times = []
                for _ in range(2):
                    pilot = server.ask("time", 0.03, 1, 0)["single_ns"][0]
                    times += server.ask("time", 0, 3, max(1, min(100, int(1e7 / pilot))))["back_to_back_ns"]
                found[f"{case} 2^{bits}"] = round(statistics.median(times) / 1e3, 1)
            except Exception as error:
                found[f"{case} 2^{bits}"] = str(error)[:200]
        (folder / "cub.txt").write_text(json.dumps(found))
    server.close()


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(int(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1] == "cub":
        cub(Path(sys.argv[2]), sys.argv[3])
    elif sys.argv[1] == "workers":
        print(WORKERS)
    else:
        show(Path(sys.argv[2]), sys.argv[3])
