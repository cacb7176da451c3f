"""The program that measures one side of `gridwise ab`; it runs in the interpreter and with the packages of that side.

It is started by its path and imports nothing of the package that it lies in: ``gridwise_py`` is the one of its side,
which may be much older. So it uses only what has been public since the first release: ``request_device``, ``asarray``,
``timing_helper``, the primitives' classes, ``execute`` with its timing options, ``outputs`` and ``get_timing_result``.
Benchmarks of users, and workloads that are no public class, are made by `gridwise_py.bench`, where the side has it.

It reads commands as lines of JSON and answers each with one line. Between commands it waits for the next line, and
leaves CPU and GPU alone.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import platform
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

_CHUNK_S = 0.004  # of untimed work in a submission
_MOST_TRIALS = 4096
_FLUSH_ITEMS = 1 << 25  # 128 MiB are read, and as many written; no larger binding is sure to be allowed
_ADAPTER_FACTS = ("device", "vendor", "vendor_id", "description", "adapter_type", "backend_type")


class _Subject:
    """A primitive with its arguments."""

    def __init__(self, primitive: Any, arrays: dict[str, Any]):
        self.primitive = primitive
        self.arrays = arrays

    def run(self, **options: Any) -> Any:
        """Submit it."""
        return self.primitive.execute(**self.arrays, **options)


class _Worker:
    def __init__(self) -> None:
        self._gw: Any = importlib.import_module("gridwise_py")
        self._device: Any = None
        self._subject: Any = None  # a _Subject, or an OwnRun of the library
        self._files: dict[str, Any] = {}
        self._flush: _Subject | None = None
        self._works: dict[str, str] = {}

    # ---- commands

    def hello(self, adapter: str | None) -> dict[str, Any]:
        """Make the device; return the versions and the adapter."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a software adapter, which the command names
            self._device = self._gw.request_device(adapter)
        info, engine = self._device.adapter.info, type(self._device).__module__.partition(".")[0]
        return {
            "versions": {
                "gridwise_py": self._gw.__version__,
                engine: importlib.import_module(engine).__version__,
                "numpy": importlib.import_module("numpy").__version__,
                "python": platform.python_version(),
            },
            "package": str(Path(self._gw.__file__).resolve().parent),
            "adapter": {name: info[name] for name in _ADAPTER_FACTS if name in info},
            "pci": self._pci(),
            "has_timestamps": "timestamp-query" in self._device.features,
        }

    def _pci(self) -> str | None:
        """Return the PCI address of the device's GPU; None if it is not certain, or this version does not know."""
        try:
            gpu = importlib.import_module("gridwise_py.internals").gpu_of(self._device)
            return None if gpu is None else gpu.pci
        except (ImportError, AttributeError):
            return None

    def prepare(
        self,
        primitive: str,
        workload: str,
        datatype: str,
        options: dict[str, Any],
        inputs: dict[str, str],
        outputs_to: str | None,
    ) -> dict[str, Any]:
        """Make a primitive, upload its inputs, run it once; save the outputs for a check where wanted."""
        numpy = importlib.import_module("numpy")
        made = self._class(primitive, workload)(self._device, datatype, **options)
        arrays = {
            name: self._gw.asarray(numpy.load(path, allow_pickle=False), self._device) for name, path in inputs.items()
        }
        run = made.execute(**arrays, enable_cpu_timing=True)  # waits for its end
        arrays.update(run.outputs)
        self._subject = _Subject(made, arrays)
        saved: dict[str, str] = {}
        for name, array in run.outputs.items() if outputs_to is not None else ():
            saved[name] = os.path.join(str(outputs_to), f"{name}.npy")
            numpy.save(saved[name], array.to_numpy())
        plan = getattr(run, "plan", None)
        return {"outputs": saved, "plan": None if plan is None or outputs_to is None else self._data(plan)}

    def _data(self, plan: Any) -> dict[str, Any]:
        """Return a plan as `Code` takes it."""
        data: dict[str, Any] = json.loads(plan.to_json())
        for key, shader in plan.shaders.items():
            data["shaders"][key]["checks"] = getattr(shader, "shader_checks", None)
        return data

    def plan(
        self,
        primitive: str,
        workload: str,
        datatype: str,
        options: dict[str, Any],
        lengths: dict[str, int],
        capabilities: list[dict[str, Any]],
    ) -> dict[str, Any]:
        """Plan a primitive for some devices that need not be there; `tell` has what digests stand for."""
        kind, found = self._class(primitive, workload), list[dict[str, Any]]()
        self._works.clear()
        for one in capabilities:
            try:
                made = kind(None, datatype, capabilities=self._capabilities(one), **options)
                plan = self._planned(made, datatype, lengths)
            except importlib.import_module("gridwise_py.errors").GridwiseError as error:
                found.append({"refused": f"{type(error).__name__}: {error}"})
                continue
            found.append(self._kept({"plans": [self._data(plan)], "inputs": {}}))
        return {"works": found}

    def _kept(self, work: dict[str, Any]) -> dict[str, Any]:
        """Keep what a device would be asked to do, and return its digest: mostly both sides have the same one."""
        text = json.dumps(work)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self._works[digest] = text
        return {"digest": digest}

    def tell(self, digests: list[str]) -> dict[str, Any]:
        """Return what digests of the last answer stand for."""
        return {"works": [json.loads(self._works[digest]) for digest in digests]}

    def _capabilities(self, fields: dict[str, Any]) -> Any:
        """Return capabilities with those of the fields that this version has."""
        known = {name: value for name, value in fields.items() if name in self._gw.Capabilities.__dataclass_fields__}
        return self._gw.Capabilities(**known | {"lookback": self._gw.LookbackVerdict(**fields["lookback"])})

    def _planned(self, primitive: Any, datatype: str, lengths: dict[str, int]) -> Any:
        signature = primitive.signature
        lengths = {**lengths, **{name: signature.output_length(name, lengths) for name in signature.outputs}}
        known = {name: signature.datatype(name) or self._gw.DATATYPES.get(datatype) for name in lengths}
        sizes = {name: 4 if one is None else one.element_bytes for name, one in known.items()}
        counted = {name: n * (1 if known[name] is None else known[name].elements) for name, n in lengths.items()}
        return primitive.plan(self._gw.Layout.separate(sizes, **counted))

    def record(self, capabilities: list[dict[str, Any]], **case: Any) -> dict[str, Any]:
        """Have devices that need not be there note what a benchmark of a user's file asks of them."""
        try:
            codes: Any = importlib.import_module("gridwise_py.bench.sampling.codes")
        except ImportError as error:
            raise RuntimeError("its gridwise_py has no devices that record: it is older than these are") from error
        self._works.clear()
        works = [codes.record_case(self._capabilities(one), **case) for one in capabilities]
        return {"works": [work if "plans" not in work else self._kept(work) for work in works]}

    def _class(self, name: str, workload: str) -> Any:
        """Return a public class; else the one that this version's ``gridwise bench`` runs under the name."""
        if hasattr(self._gw, name):
            return getattr(self._gw, name)
        try:
            return importlib.import_module("gridwise_py.bench.cases.workloads").WORKLOADS[workload].kind
        except (ImportError, LookupError) as error:
            raise RuntimeError(f"its gridwise_py measures no {workload}: {error}") from error

    def prepare_own(
        self, file: str, name: str, n: int, mode: str, axes: dict[str, str], seed: int, check: bool
    ) -> dict[str, Any]:
        """Make a benchmark of a user's file, run it once, and compare its result with its own reference."""
        try:
            files: Any = importlib.import_module("gridwise_py.bench.cases.own_files")
            own: Any = importlib.import_module("gridwise_py.bench.sampling.own_run")
        except ImportError as error:
            raise RuntimeError("its gridwise_py measures no files of users: it is older than these are") from error
        if file not in self._files:
            self._files[file] = files.load_benchmarks(file)
        if name not in self._files[file]:
            raise LookupError(
                f"{os.path.basename(file)} has no benchmark {name!r}; it has {', '.join(self._files[file])}"
            )
        found = own.OwnRun(self._device, self._files[file][name], n, mode, axes, seed, check=check)
        self._subject = found
        told = {"checked": getattr(found, "checked", True), "shader_checks": getattr(found, "shader_checks", "all")}
        told["code"] = getattr(found, "code", None)
        return {"wrong": found.wrong, **told}  # older ones do not tell

    def release(self) -> dict[str, Any]:
        """Free the arguments."""
        self._subject = None
        gc.collect()
        return {}

    def warm(self, seconds: float) -> dict[str, Any]:
        """Keep the GPU busy; return about how long a trial takes."""
        return {"trial_ns": self._busy(seconds)}

    def turn(self, mode: str, trials: int, samples: int, lead_s: float) -> dict[str, Any]:
        """Take samples after some untimed work; return their times in ns, for all trials of a sample."""
        was_on = gc.isenabled()
        gc.disable()
        try:
            self._busy(lead_s)
            results = self._results(mode, trials, samples)
        finally:
            if was_on:
                gc.enable()
        return {
            "gpu_span": [result.gpu_span_ns for result in results],
            "cpu_wall": [result.cpu_total_time_ns for result in results],
            "labels": list(results[0].labels),
            "kernels": [result.gpu_total_time_ns for result in results],
        }

    # ---- work

    def _results(self, mode: str, trials: int, samples: int) -> list[Any]:
        assert self._subject is not None, "prepare comes first"
        subject = self._subject
        if "timestamp-query" not in self._device.features:
            runs = [subject.run(enable_cpu_timing=True, trials=trials) for _ in range(samples)]
        elif mode == "latency":
            runs = [subject.run(enable_gpu_timing=True, enable_cpu_timing=True) for _ in range(samples)]
        else:
            flush = self._flush_subject() if mode == "cold" else None
            runs: list[Any] = []
            for _ in range(samples):
                if flush is not None:
                    flush.run()
                runs.append(subject.run(enable_gpu_timing=True, trials=trials))
            helper = self._gw.timing_helper(self._device)
            if hasattr(helper, "collect"):  # the first revisions have none, and read one session after the other
                helper.collect()
        return [run.get_timing_result() for run in runs]

    def _busy(self, seconds: float) -> float:
        """Run the primitive untimed for so long, in submissions of some ms; return about how long a trial takes."""
        assert self._subject is not None, "prepare comes first"
        end = time.perf_counter() + seconds
        trials = 1
        while True:
            wall_ns = self._subject.run(enable_cpu_timing=True, trials=trials).get_timing_result().cpu_total_time_ns
            if time.perf_counter() >= end:
                return wall_ns / trials
            if wall_ns < _CHUNK_S * 1e9 and trials < _MOST_TRIALS:
                trials *= 2

    def _flush_subject(self) -> _Subject:
        if self._flush is None:
            numpy = importlib.import_module("numpy")
            copy = self._gw.Copy(self._device, "u32")
            source = self._gw.asarray(numpy.arange(_FLUSH_ITEMS, dtype=numpy.uint32), self._device)
            run = copy.execute(input=source)
            self._flush = _Subject(copy, {"input": source, **run.outputs})
        return self._flush


def _answer(worker: _Worker, command: dict[str, Any]) -> dict[str, Any]:
    method: Callable[..., dict[str, Any]] = getattr(worker, command.pop("do"))
    try:
        return method(**command)
    except Exception as error:
        kind = type(error).__name__
        return {"error": (str(error) if kind == "OwnCodeError" else f"{kind}: {error}")[:2000]}


def _serve(commands: TextIO, answers: TextIO) -> None:
    worker = _Worker()
    for line in commands:
        answers.write(json.dumps(_answer(worker, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent is interrupted, too, and says so
    # What drivers and libraries print goes to stderr: stdout is for answers.
    private = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _serve(sys.stdin, private)
