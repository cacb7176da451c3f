"""From the file that a page saves to a results document: judged and summarised by the code that judges any run."""

from __future__ import annotations

import re
from dataclasses import asdict, fields, replace
from typing import Any, TypeVar

import numpy as np

from ... import STORAGE_DATATYPES, __version__
from ...internals import LookbackProbe
from ...storage.json_files import json_data
from ..calibrate.calibration import Calibration, unit_problems
from ..calibrate.canary import CanaryTime, canary_time
from ..cases.mode import Mode
from ..sampling.conditions import Conditions
from ..sampling.measurement import Measurement
from ..sampling.protocol import SamplingProtocol
from ..sampling.sampler import Block, WarmUp, looks_stationary, previous_end
from ..sampling.samples import Samples
from ..stats.series import StopReason
from .browser_calibration import PERIOD_NS, WAIT_METHOD, absolute, calibration_of_page
from .browser_file import protocol_of
from .browser_model import PageBlock, PageFile, PageResult
from .entries import result_of
from .model import Context, Device, Host, Result, Results
from .shares import calibrated, with_shares

_SOFTWARE = re.compile(r"swiftshader|llvmpipe|softpipe|basic render", re.IGNORECASE)
_TYPES = {"discrete GPU": "DiscreteGPU", "integrated GPU": "IntegratedGPU", "CPU": "CPU"}
#: Brands that every browser on Chromium names, or that no browser is.
_OTHER_BRANDS = re.compile(r"Not|Chromium|;", re.IGNORECASE)
#: The names of browsers in user agents: that of Chrome is also in Edge's, and that of Safari in all.
_AGENTS = (r"Edg\w*/([\d.]+)", "Edge"), (r"Firefox/([\d.]+)", "Firefox"), (r"Chrome/([\d.]+)", "Chrome"), (
    r"Version/([\d.]+).*Safari", "Safari",
)  # fmt: skip
_COARSE_STEP_NS = 10_000.0
_T = TypeVar("_T")


def results_of_page(file: PageFile) -> Results:
    """Return the results document of a page's file."""
    page = _Page(file)
    device = calibrated(page.device(), page.calibration)
    results = tuple(_with_shares(page.result(entry), page.calibration) for entry in file.results)
    return replace(page.head(device), results=results)


def _with_shares(result: Result, calibration: Calibration | None) -> Result:
    """Return a result with its shares of the ceilings; those of an unknown datatype have none."""
    is_known = result.datatype is None or result.datatype in STORAGE_DATATYPES
    return with_shares(result, calibration if is_known else None)


class _Page:
    """A page's file, and what its parts say together."""

    def __init__(self, file: PageFile):
        self._file = file
        self._base = int(file.tick_base)
        self._now_step_ns = float(file.context.now_step_ns)
        self._protocol: SamplingProtocol = protocol_of(file)
        found = file.calibration
        self._has_timestamps = found is not None
        self._step_ns: float | None = None if found is None else found.tick_step
        #: What the page measured first; None without timestamps.
        self.calibration: Calibration | None = (
            None if found is None else calibration_of_page(found, self._base, self._now_step_ns)
        )
        self._info = file.device.info
        self._renderer = file.device.webgl_renderer or ""
        self._is_cpu = (
            file.class_.split("/")[3:4] == ["true"]
            or bool(self._info.get("isFallbackAdapter"))
            or self._info.get("type") == "CPU"
            or _SOFTWARE.search(self._renderer) is not None
        )
        self._period_ns = PERIOD_NS if self._has_timestamps else None

    # ---- the head

    def head(self, device: Device) -> Results:
        """Return the document without results."""
        file, context = self._file, self._file.context
        versions = {"gridwise_py": file.gridwise_py, "wgpu": None, "numpy": None, "python": None}
        return Results(
            context=Context(
                time=context.time,
                versions={**versions, "browser": self._browser()},
                host=Host(system=context.platform or "", release="", machine="", cpu_count=context.cpu_count),
                byteorder="little",
                seed=self._protocol.seed,
                suite=file.suite,
                clock="not applicable" if self._is_cpu else "not held",
                unknown={
                    "user_agent": context.user_agent, "now_step_ns": self._now_step_ns, "imported_by": __version__,
                    "bundle_sha256": file.bundle_sha256,
                },
            ),
            device=device,
            protocol=json_data(self._protocol.to_dict()),
            complete=file.complete,
            planned=len(file.results) if file.planned is None else file.planned,
        )  # fmt: skip

    def device(self) -> Device:
        """Return the device, without its calibration."""
        device, info = self._file.device, self._info
        return Device(
            adapter=self._adapter(),
            adapter_type="CPU" if self._is_cpu else _TYPES.get(str(info.get("type")), "Unknown"),
            backend=f"WebGPU in {self._browser()}" + (f" on {info['backend']}" if info.get("backend") else ""),
            vendor=str(info.get("vendor") or ""),
            driver=str(info.get("driver") or "not told to pages"),
            features=device.features,
            limits={_kebab(name): limit for name, limit in device.limits.items()},
            subgroup_size=device.subgroup_size,
            tick_period_ns=self._period_ns,
            tick_period_source=None if self._period_ns is None else "WebGPU",
            tick_step_ns=self._step_ns,
            wait_method=WAIT_METHOD,
            lookback=json_data({"u32x2": asdict(self._lookback())}),
            unknown={"webgl_renderer": device.webgl_renderer, "class": self._file.class_},
        )

    def _lookback(self) -> Any:
        names = [one.name for one in fields(LookbackProbe) if one.name != "in_time"]  # a page does all dispatches
        tests = [{name: getattr(test, name) for name in names} for test in self._file.lookback.tests]
        return LookbackProbe.verdict([LookbackProbe(**test) for test in tests])

    def _adapter(self) -> str:
        """Return the name that somebody typed, else the most telling one that the browser gives."""
        told = " ".join(str(self._info[name]) for name in ("vendor", "architecture") if self._info.get(name))
        typed = (self._file.name or "").strip()
        return typed or str(self._info.get("description") or "") or self._renderer or told or "unknown GPU"

    def _browser(self) -> str:
        context = self._file.context
        for each in context.brands or ():
            if not _OTHER_BRANDS.search(each.brand):
                return f"{each.brand} {each.version}"
        for pattern, name in _AGENTS:
            found = re.search(pattern, context.user_agent)
            if found:
                return f"{name} {found[1].split('.')[0]}"
        return "an unknown browser"

    # ---- results

    def result(self, entry: PageResult) -> Result:
        """Return the result of an entry of the file."""
        found = result_of(self._measurement(entry), position=entry.position, round_number=entry.round)
        wrong = next((check.wrong for check in entry.checks if check.wrong is not None), None)
        # What the page found is a text: it compares hashes, and does not know the items.
        return found if wrong is None else replace(found, correct=False, mismatch=wrong)

    def _measurement(self, entry: PageResult) -> Measurement:
        mode = Mode(entry.mode)
        unsampled = Measurement(
            primitive=entry.primitive, mode=mode, n=entry.n, case=dict(entry.axes),
            protocol={**self._protocol.to_dict(), "mode": mode.value, "restored": []},
            error=entry.error or (None if entry.blocks else "the page was stopped before it was measured"),
        )  # fmt: skip
        if unsampled.error is not None:
            return unsampled
        plan = self._file.plans[str(entry.plan)]
        labels = [kernel.label for kernel in plan.kernels]
        samples = Samples(labels, mode, _known(entry.batch_trials), untimed_work=False, on_cpu=self._is_cpu)
        for block in entry.blocks:
            samples.add(self._block(block, len(labels), entry.canary_trials), self._period_ns)
        conditions = self._conditions(entry, mode)
        return replace(
            unsampled,
            parameters=plan.parameters,
            protocol={**unsampled.protocol, **conditions.in_force(samples)},
            kernels=samples.kernels(),
            whole=samples.whole(),
            work=entry.work.to_json(),
            shaders_sha256=tuple(sorted(plan.shaders)),
            cold_start_ns=entry.cold_start,
            stop_reason=StopReason(entry.stop_reason),
            clock_moved=samples.settled.moved,
            canary_ns=tuple(canary.median_ns for canary in samples.canaries),
            warnings=(*self._warnings(), *conditions.warnings(samples)),
            ticks=samples.ticks(),
            tick_period_ns=self._period_ns,
        )

    def _block(self, block: PageBlock, kernels: int, canary_trials: int | None) -> Block:
        submissions = tuple(i for i, count in enumerate(block.counts) for _ in range(count))
        ticks, canaries, previous_end_ticks = None, (None, None), None
        if self._has_timestamps:
            before, after = (absolute(stamps or (), self._base) for stamps in (block.before, block.after))
            canaries = (self._canary(before, canary_trials), self._canary(after, canary_trials))
            previous_end_ticks = previous_end(before)
            ticks = absolute(block.ticks or (), self._base).reshape(len(submissions), kernels, 2)
        return Block(
            ticks,
            submissions,
            tuple(map(float, block.walls)),
            tuple(map(float, block.submits)),
            tuple(map(float, block.encodes)),
            canaries,
            previous_end_ticks,
            self._now_step_ns,
        )

    def _canary(self, stamps: np.ndarray, trials: int | None) -> CanaryTime | None:
        """Return the time of one run of the canary: a pass has several where the GPU's clock is coarse."""
        found, runs = canary_time(stamps, PERIOD_NS, self._step_ns), trials or 1
        return None if found is None else CanaryTime(found.median_ns / runs, found.error_ns / runs)

    def _conditions(self, entry: PageResult, mode: Mode) -> Conditions:
        warm = WarmUp(_known(entry.warmup_s), _known(entry.trial_ns), looks_stationary(_known(entry.warmup)))
        return Conditions(
            protocol=self._protocol,
            mode=mode,
            warm=warm,
            batch_trials=_known(entry.batch_trials),
            submission_trials=_known(entry.submission_trials),
            block_samples=_known(entry.block_samples),
            sampling_s=_known(entry.sampling_s),
            wait_method=WAIT_METHOD,
            has_timestamps=self._has_timestamps,
            tick_step_ns=self._step_ns,
        )

    def _warnings(self) -> list[str]:
        """Return the warnings that hold for all results."""
        found: list[str] = []
        if self._has_timestamps and self.calibration is None:
            found.append("the unit of GPU times is not known: the check of the tick has no timestamps")
        elif self.calibration is not None:
            found += unit_problems(self.calibration.tick_check, PERIOD_NS)
        if self._file.context.hidden:
            found.append("the page was in the background for a while: times may be too long")
        if self._step_ns is not None and self._step_ns > _COARSE_STEP_NS:
            found.append(
                f"the browser rounds timestamps to {self._step_ns * 1e-3:.3g} µs: times are means over long passes"
            )
        return found


def _known(value: _T | None) -> _T:
    """Return a value that each result with samples has, as `page_of` has checked."""
    assert value is not None
    return value


def _kebab(name: str) -> str:
    """Return a limit's name as wgpu writes it: ``maxBufferSize`` is ``max-buffer-size``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z0-9])", "-", name).lower()
