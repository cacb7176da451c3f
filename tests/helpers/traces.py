"""A judge of Chrome traces, by the Trace Event Format and by what Perfetto's importer asks of it."""

import json
from collections import defaultdict


def load(path):
    """Read a trace; raise AssertionError where it would not load, or not be shown as meant."""
    text = path.read_text(encoding="utf-8")
    trace = json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(AssertionError(name)))
    assert trace["displayTimeUnit"] in ("ns", "ms")
    assert "approximate" in trace["otherData"]["clock_alignment"]
    processes, lanes, slices, flows = {}, {}, defaultdict(list), defaultdict(list)
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["name"], str)
        kind = event["ph"]
        if kind == "M":
            if event["name"] == "process_name":
                assert event["pid"] not in processes
                processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                assert (event["pid"], event["tid"]) not in lanes
                lanes[event["pid"], event["tid"]] = event["args"]["name"]
            continue
        assert isinstance(event["ts"], (int, float))
        assert event["ts"] >= 0
        if kind == "X":
            assert event["dur"] >= 0
            slices[event["pid"], event["tid"]].append(event)
        else:
            assert kind in ("s", "f")
            flows[event["id"]].append(event)
    assert set(slices) <= set(lanes), "a lane without a name"
    assert {pid for pid, _ in lanes} == set(processes)
    for found in slices.values():
        _nested(found)
    for pair in flows.values():
        assert sorted(event["ph"] for event in pair) == ["f", "s"]
        for event in pair:
            around = slices[event["pid"], event["tid"]]
            assert any(s["ts"] <= event["ts"] <= s["ts"] + s["dur"] for s in around), "an arrow from or to nothing"
    times = [event["ts"] for event in trace["traceEvents"] if event["ph"] != "M"]
    assert times == sorted(times)
    return trace, {lanes[lane]: found for lane, found in slices.items()}


def _nested(slices):
    """Slices of one lane lie side by side or inside of each other, to the nanosecond."""
    open_until = []
    for event in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
        begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1], f"{event['name']} overlaps the slice that it begins in"
        open_until.append(end)
