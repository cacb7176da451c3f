"""A table of what the workers wrote: show.py FOLDER OUT.json"""
import json, pathlib, statistics, sys
folder, out = pathlib.Path(sys.argv[1]), sys.argv[2]
from variants import PACKAGES, TEXTS
lines = [{"process": f.name, **json.loads(l)} for f in sorted(folder.glob("w*.txt")) for l in f.read_text().splitlines() if l.startswith("{")]
times, last = {}, {}
for l in lines:
    if (l.get("correct") is False and l.get("right")) or "failed" in l or "wrong_at_the_end" in l or "skipped" in l: print("NOT RIGHT", json.dumps(l)[:260])
    if "times" in l: last[l["process"]] = l
for process, l in last.items():
    for v, row, t, n in l["times"]: times.setdefault((v, tuple(row)), []).append((t, n, process))
made = {(l["variant"], tuple(l["row"])): l for l in lines if "correct" in l}
def stat(v, row):
    l = made.get((v, row)); s = [x for x in (l or {}).get("stats", []) if x.get("sha") not in (None, "0") or x.get("reg") != "16"]
    return (f"{l['of'].get('size')} x {l['of'].get('vecs')} team {l['of'].get('team')} grid {l['of'].get('workgroups')}" + (f" regs {s[-1].get('reg')} code {s[-1].get('bin')}" if s else "")) if l else ""
rows = list(dict.fromkeys(row for v, row in times if v in TEXTS))
print("texts at 2^20 (us): median; built of each process:", {f"{r[0]}": [t for t, _, _ in times.get(("built", r), [])] for r in rows})
print(f"{'':48}", *(f"{r[0]:>7}" for r in rows))
for v in TEXTS: print(f"{v:48}", *(f"{statistics.median(t for t, _, _ in times[v, r]):7.2f}" if (v, r) in times else "      -" for r in rows), " ", "; ".join(x for x in (stat(v, r).partition("regs ")[2] for r in rows[::2]) if x), f"x{times[v, rows[0]][0][1]}" if (v, rows[0]) in times else "")
names = list(PACKAGES); rows = list(dict.fromkeys(row for v, row in times if v in PACKAGES))
print("packages:", *(f"{i}={n}" for i, n in enumerate(names)))
for r in rows: print(f"{r[0]:>18} 2^{r[1].bit_length() - 1:<3}", *(f"{times[n, r][0][0]:7.2f}" if (n, r) in times else "      -" for n in names), " | ".join(stat(n, r).split(" regs")[0] for n in names[:1]), f"x{max(times[n, r][0][1] for n in names if (n, r) in times)}")
for n in names: print(n, "| checked", sum(bool(l["correct"]) for (v, _), l in made.items() if v == n), "regs", sorted({stat(n, r).partition("regs ")[2] for r in rows}))
json.dump(lines, open(out, "w"))
