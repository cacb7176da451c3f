"""The public API in any order: arrays, views, calls, batches, sequences, encoders, threads, timings, events, drops, …

Hypothesis draws what is done next. The model of a buffer is a numpy array, that of a view a numpy view of it, so that
what is written through one is seen through all others. After every few steps, and at the end, all arrays must hold what
the model holds.
"""

from __future__ import annotations

import gc
import os
import threading
from typing import Any, NamedTuple

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import gridwise_py as gw
from helpers import inside
from helpers.sorting import DATATYPES as SORTED
from helpers.sorting import keys_of, order_of
from helpers.strategies import MODES, assert_same, mode_for, reduce_reference, scan_reference

COMPUTED = tuple(gw.DATATYPES)
OPERATORS = ("add", "min", "max", "multiply")
#: Sums of floats below it are exact, whatever their order.
EXACT = 1 << 24
MOST_ARRAYS, MOST_ITEMS = 12, 700
#: How many sequences are tried; `make soak` sets more.
RUNS = int(os.environ.get("SOAK_MACHINES", "20"))
# What is compiled anew each time makes shrinking long: a minute finds most of what can go.
PHASES = (hypothesis.Phase.generate, hypothesis.Phase.shrink)


class Entry(NamedTuple):
    """An Array, what it must hold, and the buffers' models by identity: views of one share it."""

    array: gw.Array
    items: np.ndarray
    buffer: list[np.ndarray]


def _items(datatype: str, n: int, seed: int) -> np.ndarray:
    if datatype == "f32":
        return np.random.default_rng(seed).integers(-9, 10, n).astype(np.float32)
    return keys_of(datatype, n, seed) if n else np.empty(0, gw.STORAGE_DATATYPES[datatype].dtype)


def _is_exact(op: str, *arrays: np.ndarray) -> bool:
    """Whether results of floats do not depend on the order, and stay integers."""
    if arrays[0].dtype.kind != "f" or op in ("min", "max"):
        return True
    with np.errstate(all="ignore"):
        if not all(np.all(np.isfinite(a)) and np.all(a == np.rint(a)) for a in arrays):
            return False
        magnitude = sum(np.abs(a).astype(np.float64).sum() for a in arrays)
        if op == "multiply":
            magnitude = np.prod(np.maximum(np.abs(arrays[0]).astype(np.float64), 1.0))
    # Products make zeros of either sign, in any order the same.
    return bool(magnitude < EXACT)


class AnyOrder(RuleBasedStateMachine):
    """What a user may do with one device."""

    device: Any = None
    #: A second device of the same adapter, which has its own batches.
    other: Any = None
    elsewhere_scan: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self.primitives: dict[Any, gw.Primitive] = {}
        self.encoder: Any = None
        self.recorded: list[Any] = []
        self.timed: list[gw.Run] = []
        self.events: list[gw.Event] = []
        self.profile: gw.Profile | None = None
        self.batch: Any = None
        self.sequences: list[tuple[gw.Sequence, list[Any]]] = []
        self.elsewhere = np.arange(50, dtype=np.uint32)
        self.elsewhere_array = gw.asarray(self.elsewhere, self.other)
        self.elsewhere_batch: Any = None

    # ---- choosing ----

    def _pick(self, data: Any, *datatypes: str) -> Entry:
        found = [e for e in self.entries if not datatypes or e.array.datatype.name in datatypes]
        if not found:
            self._add(_items(datatypes[0] if datatypes else "u32", 40, 0))
            found = self.entries[-1:]
        return found[data.draw(st.integers(0, len(found) - 1), label="array")]

    def _add(self, items: np.ndarray) -> Entry:
        model = items.copy()
        self.entries.append(Entry(gw.asarray(items, self.device), model, [model]))
        del self.entries[:-MOST_ARRAYS]
        return self.entries[-1]

    def _keep(self, array: gw.Array, items: np.ndarray) -> None:
        model = np.array(items)
        self.entries.append(Entry(array, model, [model]))
        del self.entries[:-MOST_ARRAYS]

    def _output_for(self, data: Any, datatype: str, n: int, *inputs: Entry) -> Entry:
        """An array of exactly n items that shares no buffer with the inputs."""
        for entry in self.entries:
            fits = entry.array.datatype.name == datatype and entry.array.size == n
            if fits and all(entry.buffer is not i.buffer for i in inputs) and data.draw(st.booleans(), label="reuse"):
                return entry
        return self._add(_items(datatype, n, 1))

    def _primitive(self, cls: type, *key: Any, **options: Any) -> Any:
        name = (cls, key, tuple(options.items()))
        if name not in self.primitives:
            self.primitives[name] = cls(self.device, *key, **options)
        return self.primitives[name]

    def _call(self, data: Any, primitive: Any, arrays: dict[str, Entry], wanted: dict[str, np.ndarray]) -> None:
        """Execute or record, into new outputs or given ones."""
        datatypes = {name: primitive.signature.datatype(name).name for name in wanted}
        given = {k: e.array for k, e in arrays.items()}
        later = ["capture", *(["record"] if self.encoder is not None else []), "now", "now", "now"]
        when = data.draw(st.sampled_from(later), label="when") if self._may_wait(primitive) else "now"
        if when != "now":
            outputs = {k: self._output_for(data, datatypes[k], w.size, *arrays.values()) for k, w in wanted.items()}
            if len({id(e.buffer) for e in outputs.values()}) < len(outputs):
                outputs = {k: self._add(_items(datatypes[k], w.size, 2)) for k, w in wanted.items()}
            if any(e.buffer is o.buffer for o in outputs.values() for e in arrays.values()):
                return
            given |= {k: e.array for k, e in outputs.items()}
            # Not the arrays: those that are dropped before the submission must keep what the commands need.
            call = (primitive, [e.items for e in arrays.values()], [e.items for e in outputs.values()])
            if when == "record":
                primitive.record(self.encoder, **given)
                self.recorded.append(call)
            else:
                self._capture(data, primitive, given, call)
            return
        how = data.draw(st.sampled_from(["plain", "gpu timing", "cpu timing", "trials"]), label="how")
        options: dict[str, Any] = {
            "plain": {}, "gpu timing": {"enable_gpu_timing": "timestamp-query" in self.device.features, "trials": 2},
            "cpu timing": {"enable_cpu_timing": True}, "trials": {"trials": 3},
        }[how]  # fmt: skip
        if data.draw(st.booleans(), label="given output"):
            outputs = {k: self._output_for(data, datatypes[k], w.size, *arrays.values()) for k, w in wanted.items()}
            if len({id(e.buffer) for e in outputs.values()}) == len(outputs):
                run = primitive.execute(**given, **{k: e.array for k, e in outputs.items()}, **options)
                for k, entry in outputs.items():
                    entry.items[:] = wanted[k]
                self._look_at(run, how)
                return
        run = primitive.execute(**given, **dict.fromkeys(wanted), **options)
        for k, want in wanted.items():
            self._keep(run.outputs[k], want)
        self._look_at(run, how)

    def _capture(self, data: Any, primitive: Any, given: dict[str, gw.Array], call: Any) -> None:
        """Capture a call, perhaps after a replay of what was captured before, as a new sequence."""
        before = self.sequences[-1:] if data.draw(st.booleans(), label="with the last") else []
        with gw.capture(self.device) as sequence:
            for earlier, _ in before:
                earlier.execute()
            primitive.execute(**given)
            with pytest.raises(gw.ArgumentError, match="capture"):
                gw.synchronize(self.device)
        self.sequences.append((sequence, [step for _, steps in before for step in steps] + [call]))
        del self.sequences[:-3]

    @staticmethod
    def _may_wait(primitive: Any) -> bool:
        """Whether results are exact, whatever the inputs hold by the time of the submission."""
        rounds = primitive.signature.datatype(primitive.arguments[0].name).dtype.kind == "f"
        if isinstance(primitive, (gw.Scan, gw.Reduce)):
            return not rounds or primitive.op.name in ("min", "max")
        return not isinstance(primitive, gw.MatMul)

    def _look_at(self, run: gw.Run, how: str) -> None:
        if how == "gpu timing" and "timestamp-query" in self.device.features:
            self.timed.append(run)
            del self.timed[:-5]
        elif how == "cpu timing":
            assert run.get_timing_result().cpu_total_time_ns > 0
        else:
            with pytest.raises(gw.TimingUnavailable):
                run.get_timing_result()

    # ---- arrays and views ----

    @initialize(seed=st.integers(0, 9))
    def begin(self, seed: int) -> None:
        for datatype in COMPUTED:
            whole = self._add(_items(datatype, 60 + seed, seed))
            part = slice(5, 40 + seed)
            self.entries.append(Entry(whole.array[part], whole.items[part], whole.buffer))

    @rule(datatype=st.sampled_from([*gw.STORAGE_DATATYPES]), n=st.integers(0, MOST_ITEMS), seed=st.integers(0, 99))
    def make(self, datatype: str, n: int, seed: int) -> None:
        self._add(_items(datatype, n, seed))

    @rule(data=st.data(), ends=st.tuples(st.integers(0, MOST_ITEMS), st.integers(0, MOST_ITEMS)))
    def view(self, data: Any, ends: tuple[int, int]) -> None:
        entry = self._pick(data)
        part = slice(*sorted(end % (entry.array.size + 1) for end in ends))
        self.entries.append(Entry(entry.array[part], entry.items[part], entry.buffer))
        del self.entries[:-MOST_ARRAYS]

    @rule(data=st.data(), seed=st.integers(0, 99))
    def upload(self, data: Any, seed: int) -> None:
        entry = self._pick(data)
        items = _items(entry.array.datatype.name, entry.array.size, seed)
        assert entry.array.copy_from(items) is entry.array
        entry.items[:] = items

    @rule(data=st.data())
    def download(self, data: Any) -> None:
        entry = self._pick(data)
        assert_same(entry.array.to_numpy(), entry.items)

    # ---- primitives ----

    @rule(data=st.data(), kind=st.sampled_from(["inclusive", "exclusive"]), op=st.sampled_from(OPERATORS),
          strategy=st.sampled_from([None, "lookback", "reduce_then_scan"]), mode=st.sampled_from(MODES))  # fmt: skip
    def scan(self, data: Any, kind: str, op: str, strategy: str | None, mode: str) -> None:
        entry = self._pick(data, *COMPUTED)
        if mode == "native" and "subgroup" not in self.device.features:
            mode = "none"
        op = op if _is_exact(op, entry.items) else "max"
        tuning = gw.ScanTuning(state="u32x2" if strategy == "lookback" else None, subgroups=mode_for(self.device, mode))
        scan = self._primitive(gw.Scan, entry.array.datatype.name, op, kind, strategy=strategy, tuning=tuning)
        self._call(data, scan, {"input": entry}, {"output": scan_reference(op, entry.items, kind)})

    @rule(data=st.data(), op=st.sampled_from(OPERATORS))
    def reduce(self, data: Any, op: str) -> None:
        entry = self._pick(data, *COMPUTED)
        op = op if _is_exact(op, entry.items) else "min"
        reduce = self._primitive(gw.Reduce, entry.array.datatype.name, op)
        if not entry.array.size and op in ("min", "max"):
            with pytest.raises(gw.EmptyReductionError):
                reduce.execute(input=entry.array)
            return
        self._call(data, reduce, {"input": entry}, {"output": reduce_reference(op, entry.items)})

    @rule(data=st.data())
    def add(self, data: Any) -> None:
        one = self._pick(data, *COMPUTED)
        same = [e for e in self.entries if e.array.datatype == one.array.datatype]
        other = same[data.draw(st.integers(0, len(same) - 1), label="other")]
        add = self._primitive(gw.VectorAdd, one.array.datatype.name)
        if one.array.size != other.array.size:
            with pytest.raises(gw.LengthError):  # None: what it was given before may be destroyed
                add.execute(a=one.array, b=other.array, output=None)
            return
        if _is_exact("add", one.items, other.items):
            self._call(data, add, {"a": one, "b": other}, {"output": one.items + other.items})

    @rule(data=st.data())
    def copy(self, data: Any) -> None:
        entry = self._pick(data, *COMPUTED)
        copy = self._primitive(gw.Copy, entry.array.datatype.name)
        self._call(data, copy, {"input": entry}, {"output": entry.items.copy()})

    @rule(data=st.data(), descending=st.booleans(), positions=st.booleans())
    def sort(self, data: Any, descending: bool, positions: bool) -> None:
        entry = self._pick(data, *SORTED)
        order = order_of(entry.items, descending)
        cls = gw.ArgSort if positions else gw.Sort
        sort = self._primitive(cls, entry.array.datatype.name, descending=descending)
        want = order.astype(np.uint32) if positions else entry.items[order]
        self._call(data, sort, {"input": entry}, {"output": want})

    @rule(data=st.data())
    def sort_pairs(self, data: Any) -> None:
        keys, values = self._pick(data, *SORTED), self._pick(data, *COMPUTED)
        sort = self._primitive(gw.SortPairs, keys.array.datatype.name, values.array.datatype.name)
        if keys.array.size != values.array.size:
            with pytest.raises(gw.LengthError):
                sort.execute(keys=keys.array, values=values.array)
            return
        order = order_of(keys.items)
        wanted = {"output_keys": keys.items[order], "output_values": values.items[order]}
        self._call(data, sort, {"keys": keys, "values": values}, wanted)

    @rule(data=st.data(), m=st.integers(0, 9), n=st.integers(0, 9), k=st.integers(0, 9))
    def multiply_matrices(self, data: Any, m: int, n: int, k: int) -> None:
        a, b = self._add(_items("f32", m * k, m)), self._add(_items("f32", k * n, n))
        product = (a.items.reshape(m, k) @ b.items.reshape(k, n)).ravel()
        self._call(data, self._primitive(gw.MatMul, m=m, n=n, k=k), {"a": a, "b": b}, {"output": product})

    @rule(data=st.data())
    def in_place(self, data: Any) -> None:
        """A scan into its own input, and the repetition that this forbids."""
        entry = self._pick(data, "u32", "i32")
        scan = self._primitive(gw.Scan, entry.array.datatype.name, strategy="reduce_then_scan")
        want = scan_reference("add", entry.items)
        if entry.array.size:
            with pytest.raises(gw.OverlapError):
                scan.execute(input=entry.array, output=entry.array, trials=2)
        scan.execute(input=entry.array, output=entry.array)
        entry.items[:] = want

    @rule(data=st.data())
    def one_shot(self, data: Any) -> None:
        entry = self._pick(data, "u32", "i32")
        assert_same(gw.scan(entry.items, device=self.device), scan_reference("add", entry.items))
        chunks = np.array_split(entry.items, 3)
        if entry.items.size >= 3:
            scan = self._primitive(gw.Scan, entry.array.datatype.name, strategy="reduce_then_scan")
            assert_same(np.concatenate(list(gw.stream(scan, chunks))), scan_reference("add", entry.items))

    # ---- encoders ----

    @precondition(lambda self: self.encoder is None)
    @rule()
    def open_encoder(self) -> None:
        self.encoder, self.recorded = self.device.create_command_encoder(), []

    @precondition(lambda self: self.encoder is not None)
    @rule(times=st.integers(0, 1))
    def submit(self, times: int) -> None:
        """What was recorded is done now, with what the arrays hold now; or thrown away."""
        commands = self.encoder.finish()
        if times:
            self.device.queue.submit([commands])
            self._replay(self.recorded)
        self.encoder, self.recorded = None, []

    def _results(self, primitive: Any, found: list[np.ndarray]) -> list[np.ndarray]:
        if isinstance(primitive, gw.Scan):
            return [scan_reference(primitive.op.name, found[0], primitive.kind)]
        if isinstance(primitive, gw.Reduce):
            return [reduce_reference(primitive.op.name, found[0])]
        if isinstance(primitive, gw.VectorAdd):
            return [found[0] + found[1]]
        if isinstance(primitive, gw.Copy):
            return [found[0]]
        order = order_of(found[0], primitive.descending)
        return [order.astype(np.uint32)] if isinstance(primitive, gw.ArgSort) else [items[order] for items in found]

    # ---- batches, sequences, threads, another device ----

    @rule()
    def begin_or_end_a_batch(self) -> None:
        if self.batch is None:
            self.batch = gw.batch(self.device)
            self.batch.__enter__()
        else:
            self.batch.__exit__(None, None, None)
            self.batch = None

    @precondition(lambda self: self.sequences)
    @rule(data=st.data(), how=st.sampled_from(["plain", "timed", "recorded", "in a batch"]))
    def replay(self, data: Any, how: str) -> None:
        sequence, steps = self.sequences[data.draw(st.integers(0, len(self.sequences) - 1), label="sequence")]
        if how == "recorded" and self.encoder is not None:
            sequence.record(self.encoder)
            self.recorded += steps
            return
        timed = how == "timed" and "timestamp-query" in self.device.features
        if how == "in a batch":
            with gw.batch(self.device):
                sequence.execute()
                sequence.execute()
            self._replay(steps)
        else:
            run = sequence.execute(enable_gpu_timing=timed)
            if timed:
                times = run.get_timing_result()
                assert len(times.spans) == len(times.labels)
        self._replay(steps)

    def _replay(self, steps: list[Any]) -> None:
        for primitive, inputs, outputs in steps:
            wanted = self._results(primitive, [items.copy() for items in inputs])
            for items, want in zip(outputs, wanted, strict=True):
                items[:] = want

    @rule(data=st.data(), in_batch=st.booleans())
    def in_another_thread(self, data: Any, in_batch: bool) -> None:
        """A thread that is waited for comes after what was called before, and before what is called next."""
        entry = self._pick(data, "u32", "i32")
        scan = self._primitive(gw.Scan, entry.array.datatype.name, strategy="reduce_then_scan")

        def work() -> None:
            if in_batch:
                with gw.batch(self.device):
                    scan.execute(input=entry.array, output=entry.array)
            else:
                scan.execute(input=entry.array, output=entry.array)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        entry.items[:] = scan_reference("add", entry.items)

    @rule(what=st.sampled_from(["call", "call", "batch", "read"]))
    def on_another_device(self, what: str) -> None:
        if what == "call":
            self.elsewhere_scan.execute(input=self.elsewhere_array, output=self.elsewhere_array)
            self.elsewhere = np.cumsum(self.elsewhere, dtype=np.uint32)
        elif what == "read":
            assert_same(self.elsewhere_array.to_numpy(), self.elsewhere)
        elif self.elsewhere_batch is None:
            self.elsewhere_batch = gw.batch(self.other)
            self.elsewhere_batch.__enter__()
        else:
            self.elsewhere_batch.__exit__(None, None, None)
            self.elsewhere_batch = None

    # ---- the stopwatch ----

    @precondition(lambda self: self.timed)
    @rule()
    def read_times(self) -> None:
        for run in self.timed:
            times = run.get_timing_result()
            assert len(times.spans) == len(run.plan.kernels)
        self.timed.clear()

    @precondition(lambda self: "timestamp-query" in self.device.features)
    @rule()
    def event(self) -> None:
        event = gw.Event(self.device)
        event.record()
        self.events.append(event)
        if len(self.events) > 3:
            first = self.events.pop(0)
            event.synchronize()
            assert first.query()
            assert np.isfinite(first.elapsed_ns(event))

    @rule()
    def profiles(self) -> None:
        if self.profile is None:
            self.profile = gw.profile(self.device)
            self.profile.__enter__()
        else:
            self.profile.__exit__(None, None, None)
            str(self.profile.key_averages())
            self.profile = None

    # ---- wrong calls, which change nothing ----

    @rule(data=st.data())
    def wrong_calls(self, data: Any) -> None:
        entry = self._pick(data)
        with pytest.raises(gw.DatatypeError):
            entry.array.copy_from(np.zeros(entry.array.size + 1, entry.array.dtype))
        other = "f32" if entry.array.datatype.name != "f32" else "u32"
        with pytest.raises(gw.DatatypeError):
            self._primitive(gw.Scan, other).execute(input=entry.array)
        with pytest.raises(gw.ArgumentError):
            self._primitive(gw.Copy, "u32").execute(nonsense=entry.array)
        with pytest.raises(gw.ImplicitConversionError):
            np.asarray(entry.array)

    # ---- ends ----

    @rule(data=st.data(), collect=st.booleans())
    def drop(self, data: Any, collect: bool) -> None:
        if self.entries:
            self.entries.pop(data.draw(st.integers(0, len(self.entries) - 1), label="dropped"))
        if collect:
            gc.collect()

    @precondition(lambda self: self.encoder is None)
    @rule(data=st.data())
    def destroy(self, data: Any) -> None:
        entry = self._pick(data)
        entry.array.destroy()
        for each in [e for e in self.entries if e.buffer is entry.buffer]:
            with pytest.raises(gw.BufferUsageError, match="destroyed"):
                each.array.to_numpy()
            with pytest.raises(gw.BufferUsageError, match="destroyed"):
                self._primitive(gw.Sort, each.array.datatype.name).execute(input=each.array)
        for sequence, steps in [*self.sequences]:
            if any(np.shares_memory(items, entry.buffer[0]) for _, *used in steps for each in used for items in each):
                with pytest.raises(gw.BufferUsageError, match="destroyed"):
                    sequence.execute()
                self.sequences.remove((sequence, steps))
        self.entries = [e for e in self.entries if e.buffer is not entry.buffer]

    @rule(caches=st.integers(0, 5))
    def forget(self, caches: int) -> None:
        """Primitives go, and with them what they hold; so do the executor's caches, whatever a recording needs."""
        for primitive in self.primitives.values():
            primitive.release()
        if not caches:
            self.primitives.clear()
            inside.forget_plans(self.device)

    @rule(empties=st.booleans())
    def look_at_memory(self, empties: bool) -> None:
        """No two arrays have one memory, and what is free can go."""
        memory: dict[int, set[int]] = {}
        for entry in self.entries:
            memory.setdefault(id(entry.array.lease.buffer), set()).add(id(entry.buffer))
        assert all(len(models) == 1 for models in memory.values())
        if empties:
            assert gw.empty_cache(self.device) >= 0
            assert gw.memory_stats(self.device).cached_bytes == 0
        stats = gw.memory_stats(self.device)
        assert stats.in_use_bytes >= sum({id(e.buffer): e.array.nbytes for e in self.entries}.values())

    def teardown(self) -> None:
        for batch in (self.batch, self.elsewhere_batch):
            if batch is not None:
                batch.__exit__(None, None, None)
        assert_same(self.elsewhere_array.to_numpy(), self.elsewhere)
        if self.profile is not None:
            self.profile.__exit__(None, None, None)
        for entry in self.entries:
            assert_same(entry.array.to_numpy(), entry.items)


@pytest.mark.filterwarnings("ignore::gridwise_py.GridwiseWarning")  # once per device, where it has no timestamps
@pytest.mark.parametrize(("runs", "steps"), [(4, 8), pytest.param(RUNS, 40, marks=pytest.mark.slow)])
def test_whatever_is_done_in_whatever_order_equals_numpy(device, runs, steps):
    other = gw.request_device(device.adapter)
    of_other = {"other": other, "elsewhere_scan": gw.Scan(other, strategy="reduce_then_scan")}
    machine = type("AnyOrderOnDevice", (AnyOrder,), {"device": device, **of_other})
    settings = hypothesis.settings(
        max_examples=runs, stateful_step_count=steps, derandomize=runs <= 20, deadline=None, database=None,
        suppress_health_check=list(hypothesis.HealthCheck), phases=PHASES,
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=settings)
