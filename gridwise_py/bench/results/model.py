"""A results document, written by `gridwise bench` and read by all other commands.

docs/reference/results-file.md describes it. The names of the fields are the keys of the file, and their types say what
a file may have: `gridwise schema bench` prints that as a JSON Schema. Values that were not measured are None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np

from ...settings import ShaderChecks, strictest
from ...storage.records import Record, key, left_out, may_lack
from ...storage.schemas import Limits
from ..calibrate.canary import CanaryTime, settled
from ..calibrate.repeatability import Spread
from ..cases.mode import Mode
from ..cases.names import case_name
from ..sampling.machine_load import is_busy
from ..stats.energy import EnergyResult
from ..stats.series import Count, Difference, Positive, Series, StopReason, Summary, Time, Timed
from ..stats.statistics import together

SCHEMA: Final = "gridwise.bench"
SCHEMA_VERSION: Final = 3

Sha256 = Annotated[str, Limits(pattern="^[0-9a-f]{64}$")]
#: ns of a tick.
_Period = Annotated[float, Limits(above=0, at_most=1e9)]
_Rate = Annotated[float, Limits(above=0)]
_Bytes = Annotated[float, Limits(at_least=1)]
_Amount = Annotated[int, Limits(at_least=0, at_most=1e40)]
_Deviation = Annotated[float, Limits(at_least=0, at_most=1000)]
#: Values of axes.
_Axis = str | float | bool | None
_Floors = Mapping[str, Difference | None]
_Stamp = Annotated[int, Limits(at_least=0, at_most=(1 << 64) - 1)]


# ---- the run


@dataclass(frozen=True, kw_only=True)
class Git(Record):
    """A checkout, and whether it had changes that are in no commit."""

    commit: Annotated[str, Limits(pattern="^[0-9a-f]{40,64}$")]
    dirty: bool

    def __str__(self) -> str:
        return f"{self.commit[:12]}{', with changes' if self.dirty else ''}"


@dataclass(frozen=True, kw_only=True)
class Host(Record):
    """The machine that a device is in; its `name` is known of files of other tools only."""

    name: str | None = left_out()
    system: str
    release: str
    machine: str
    cpu_count: int | None


@dataclass(frozen=True, kw_only=True)
class Context(Record):
    """When, where and how a run was made.

    Attributes
    ----------
    time : str
        When it began, ISO 8601, UTC.
    versions : mapping
        Of gridwise_py, wgpu, numpy and Python; of a page's file, of the browser.
    host : Host
    byteorder : str or None
    git, user_git : Git or None
        The checkout that gridwise_py ran from, and the repository of the user's benchmarks or working directory.
    seed : int
        For the data and the order of cases.
    command : tuple of str or None
        The words of the command line, without folders.
    suite : str or None
    resumed : tuple of str
        Start times of the earlier runs that this run continues.
    clock : str or None
        ``"held"``, ``"not held"`` or ``"not applicable"`` (a CPU adapter): whether the run held the GPU's clock. None
        in files of earlier versions.
    settings : mapping from str to bool, or None
        What changes times, by name: ``launch_blocking``, ``shader_checks.all`` of ``GRIDWISE_SHADER_CHECKS=all``, and
        the engine's switches. None in files of earlier versions, and of pages.
    tool : str or None
        The tool that measured, such as ``"hyperfine"``; None if gridwise_py or its page did.
    """

    time: str
    versions: Annotated[Mapping[str, str | None], Limits(needs=("gridwise_py", "wgpu", "numpy", "python"))]
    host: Host
    byteorder: Literal["little", "big"] | None = left_out()
    git: Git | None = None
    user_git: Git | None = left_out()
    seed: Count = 0
    command: tuple[str, ...] | None = None
    suite: str | None = may_lack()
    resumed: tuple[str, ...] = left_out(())
    clock: Literal["held", "not held", "not applicable"] | None = left_out()
    settings: Mapping[str, bool] | None = left_out()
    tool: str | None = left_out()

    @property
    def browser(self) -> str | None:
        """The browser whose page measured; None if gridwise_py did."""
        return self.versions.get("browser")


# ---- the device


@dataclass(frozen=True, kw_only=True)
class Speed(Record):
    """How fast a copy or a triad of one size was."""

    array_bytes: _Bytes | None = left_out()
    moved_bytes: _Bytes
    gbytes_per_s: _Rate


@dataclass(frozen=True, kw_only=True)
class CalibrationData(Record):
    """A calibration, as `gridwise calibrate --format json` prints it and a results file contains it.

    Attributes
    ----------
    device : mapping or None
        Adapter, driver, backend. A results file has them elsewhere.
    tick_check : mapping or None
    floors_ns : mapping or None
        Of a kernel that does nothing. A results file has them elsewhere.
    synchronising_ns : mapping or None
    copy, triad : tuple of Speed
    cache_bytes : int or None
    fma_gflops : float or None
    peaks_gops : mapping or None
        10^9 operations per second of types other than f32; None in earlier files, and those of pages.
    """

    device: Mapping[str, Any] | None = left_out()
    tick_check: Mapping[str, Any] | None = may_lack()
    floors_ns: _Floors | None = may_lack()
    synchronising_ns: _Floors | None = may_lack()
    copy: tuple[Speed, ...] = may_lack(())
    triad: tuple[Speed, ...] = may_lack(())
    cache_bytes: Positive | None = may_lack()
    fma_gflops: _Rate | None = may_lack()
    peaks_gops: Mapping[str, Annotated[float, Limits(above=0, at_most=1e18)]] | None = left_out()

    def of_device(self, name: str) -> Any:
        """Return a value about its device; None if it has none."""
        return None if self.device is None else self.device.get(name)


@dataclass(frozen=True, kw_only=True)
class Device(Record):
    """The device of a run, and measurements of it.

    Attributes
    ----------
    adapter, adapter_type, backend, vendor, driver : str
    features : tuple of str
    limits : mapping
    subgroup_size : int or None
    subgroup_min_size : int or None
    tick_period_ns, tick_step_ns : float or None
        None where there are no timestamps.
    lookback : mapping or None
        Verdicts of the look-back self-test.
    tuning : mapping or None
        The shapes that `gridwise tune` chose.
    facts : mapping or None
        What was measured of the device for the shapes of kernels.
    tick_period_source : str or None
    wait_method : str
    floors : mapping or None
        Times of a kernel that does nothing, the unit in their names: ``empty_pass_ns``.
    calibration : CalibrationData or None
    repeatability : tuple of Spread
        Empty if it was not learnt.
    subgroup_matrices : tuple of mapping
        The `SubgroupMatrices` of its `Capabilities`.
    """

    adapter: str
    adapter_type: str
    backend: str
    vendor: str
    driver: str
    features: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    subgroup_size: int | None = None
    subgroup_min_size: int | None = may_lack()
    tick_period_ns: _Period | None = None
    tick_step_ns: float | None = None
    lookback: Mapping[str, Any] | None = may_lack()
    tuning: Mapping[str, Any] | None = may_lack()
    facts: Mapping[str, Any] | None = may_lack()
    tick_period_source: str | None = None
    wait_method: str
    floors: _Floors | None = None
    calibration: CalibrationData | None = None
    repeatability: tuple[Spread, ...] = left_out(())
    subgroup_matrices: tuple[Mapping[str, str | int], ...] = left_out(())

    @property
    def is_cpu(self) -> bool:
        """Whether the adapter is software on the CPU."""
        return self.adapter_type == "CPU"

    @property
    def title(self) -> str:
        """The name of the adapter, with a label if it is software."""
        return self.adapter + (" (software on the CPU)" if self.is_cpu else "")


# ---- a result


class CaseKey(NamedTuple):
    """The key by which results are joined: two results with equal keys are of the same case."""

    primitive: str
    n: int
    mode: Mode
    axes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Kernel(Series):
    """The times of one kernel; `name` is the key `label` in the file.

    `shader_checks` are the run-time checks of its shader; None if that is unknown, and in older files.
    `each_ns` are the least and the greatest median of many that are shown as one. A results file keeps them apart.
    """

    name: str = field(metadata=key("label"))
    gpu_ns: Time | None = field(default=None, kw_only=True)
    shader_checks: ShaderChecks | None = left_out()
    each_ns: tuple[Time, Time] | None = left_out()


@dataclass(frozen=True, kw_only=True)
class Whole(Record):
    """The times of all kernels together: the medians of two series, and the series by name."""

    gpu_span_ns: Time | None
    cpu_wall_ns: Time | None
    series: Mapping[str, Series]


@dataclass(frozen=True, kw_only=True)
class Work(Record):
    """The necessary work of a primitive: each input read once, each output written once."""

    items: _Amount
    read_bytes: _Amount
    write_bytes: _Amount
    flops: _Amount | None = may_lack()

    @property
    def moved_bytes(self) -> int:
        """Bytes that must be read or written."""
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True, kw_only=True)
class Rates(Record):
    """Work per second by the median time, in units of 10^9, and shares of the device's ceilings.

    Attributes
    ----------
    gbytes_per_s, gitems_per_s : float or None
    peak_gbytes_per_s : float or None
        The faster of copy and triad.
    share_of_peak : float or None
    share_of_fma : float or None
        Share of the measured multiply-adds.
    """

    gbytes_per_s: float | None
    gitems_per_s: float | None
    peak_gbytes_per_s: float | None = may_lack()
    share_of_peak: float | None = may_lack()
    share_of_fma: float | None = may_lack()

    def scaled(self, factor: float) -> Rates:
        """Return the rates of the same work at another speed; the peak stays, since it is the device's."""

        names = ("gbytes_per_s", "gitems_per_s", "share_of_peak", "share_of_fma")
        known = {name: rate for name in names if (rate := getattr(self, name)) is not None}
        return replace(self, **{name: factor * rate for name, rate in known.items()})


@dataclass(frozen=True, kw_only=True)
class Observation(Record):
    """One observation of the GPU by its driver."""

    sm_clock_mhz: int | None = may_lack()
    max_sm_clock_mhz: int | None = may_lack()
    memory_clock_mhz: int | None = may_lack()
    power_w: float | None = may_lack()
    temperature_c: int | None = may_lack()
    memory_used_bytes: int | None = may_lack()
    throttle_reasons: tuple[str, ...] | None = may_lack()


@dataclass(frozen=True, kw_only=True)
class ObservedBlock(Record):
    """The GPU before and after a block of samples."""

    before: Observation | None = may_lack()
    after: Observation | None = may_lack()


@dataclass(frozen=True, kw_only=True)
class Observations(Record):
    """What was observed while a case was measured."""

    blocks: tuple[ObservedBlock, ...] | None = may_lack()


@dataclass(frozen=True, kw_only=True)
class TicksReference(Record):
    """The place of a result's timestamps in the second file, and the sha256 of their content."""

    array: str
    sha256: Sha256


@dataclass(frozen=True, kw_only=True)
class Sample(Record):
    """One sample: totals over its trials, and the timestamps that they are made from.

    Attributes
    ----------
    gpu_total_ns : tuple or None
        Per kernel.
    gpu_span_ns, cpu_total_ns, submit_ns, encode_ns : float or None
    ticks : tuple or None
        Begin and end per kernel; None where they are in the second file.
    """

    gpu_total_ns: tuple[Time | None, ...] | None
    gpu_span_ns: Time | None
    cpu_total_ns: Time | None
    submit_ns: Time | None
    encode_ns: Time | None
    ticks: tuple[tuple[_Stamp, _Stamp], ...] | None = left_out()


@dataclass(frozen=True, kw_only=True)
class BaselineCase(Record):
    """The case that a user's benchmark is shown relative to; n and mode are the same.

    Attributes
    ----------
    primitive : str
    case : mapping
        The axes apart from primitive, n and mode.
    """

    primitive: str
    case: Mapping[str, _Axis]


@dataclass(frozen=True, kw_only=True)
class Result(Record):
    """One visit of one case.

    Attributes
    ----------
    primitive : str
    n : int
        Items; 0 of another tool's benchmarks, which have none.
    mode : Mode
    datatype, op : str or None
    case : mapping
        The axes apart from primitive, n and mode.
    position : int
        Place in the order that was asked for.
    process : int
        The number of the process in which it was measured. Results of a case in the same process share what is fixed
        for a process, such as where its memory lies.
    round : int
        The number of the visit to the case, in its process.
    checked : bool
        Whether its results were compared with the reference; false for all processes but the first.
    correct : bool
        Whether no result was found wrong.
    mismatch : str or None
        The first wrong item.
    error : str or None
        Why there is no measurement.
    trials : int
        Dispatches per sample.
    kernels : tuple of Kernel
        In dispatch order.
    whole : Whole
    cold_start_ns : float or None
    work : Work or None
    rates : Rates
    parameters, protocol : mapping
        The choices of the plan; the sampling settings.
    shaders_sha256 : tuple of str
    code : mapping from str to str, or None
        Digests of what it asks of the GPU: ``kernels``, ``launches``, ``uniforms`` and, where they are known,
        ``inputs``. None where nobody sees that, and in earlier files.
    stop_reason : StopReason or None
    clock_moved : bool
        Whether the clock moved during every block of samples.
    canary_ns : tuple of float
        Before and after each block, also of those that were left out.
    warnings : tuple of str
    observations : Observations
    energy : EnergyResult or None
        Of a trial; None if it was not asked for.
    baseline : BaselineCase or None
        What its times are shown relative to; None if nothing was named, or it is the baseline.
    other_load : float or None
        The share of all processors of the machine that other processes used meanwhile, from 0 to 1.
    tick_period_ns : float or None
    ticks : TicksReference or None
        None where the timestamps are in the samples.
    samples : tuple of Sample
    """

    primitive: str
    n: Annotated[int, Limits(at_least=0, at_most=1 << 64)]
    mode: Mode
    datatype: str | None = None
    op: str | None = None
    case: Mapping[str, _Axis]
    position: Count
    process: Count = may_lack(0)
    round: Count = may_lack(0)
    checked: bool = left_out(True)
    correct: bool
    mismatch: str | None = None
    error: str | None = None
    trials: Positive
    kernels: tuple[Kernel, ...] = ()
    whole: Whole
    cold_start_ns: Time | None = None
    work: Work | None = None
    rates: Rates = Rates(gbytes_per_s=None, gitems_per_s=None)
    parameters: Mapping[str, Any] | None = None
    protocol: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shaders_sha256: tuple[Sha256, ...] = ()
    code: Mapping[str, Sha256] | None = left_out()
    stop_reason: StopReason | None = None
    clock_moved: bool = False
    canary_ns: tuple[Annotated[float, Limits(above=0, at_most=1e24)], ...] = ()
    warnings: tuple[str, ...] = ()
    observations: Observations = Observations()
    energy: EnergyResult | None = left_out()
    baseline: BaselineCase | None = left_out()
    other_load: Annotated[float, Limits(at_least=0, at_most=1)] | None = left_out()
    tick_period_ns: _Period | None = None
    ticks: TicksReference | None = None
    samples: tuple[Sample, ...] = ()

    def __repr__(self) -> str:
        return f"Result({self.name_with_n}: {'no time' if self.timed is None else self.timed.text()})"

    # ---- the case

    @property
    def axes(self) -> dict[str, str]:
        """Datatype, operator and every other axis, as text."""
        axes = {"datatype": self.datatype, "op": self.op, **self.case}
        return {name: str(value) for name, value in axes.items() if value is not None}

    @property
    def key(self) -> CaseKey:
        """The key of its case."""
        return CaseKey(self.primitive, self.n, self.mode, tuple(sorted(self.axes.items())))

    @property
    def baseline_key(self) -> CaseKey | None:
        """The key of its baseline; None if it has none."""
        if self.baseline is None:
            return None
        axes = {name: str(value) for name, value in self.baseline.case.items() if value is not None}
        return CaseKey(self.baseline.primitive, self.n, self.mode, tuple(sorted(axes.items())))

    @property
    def name(self) -> str:
        """The name of its case, without n."""
        return case_name(self.primitive, self.axes, self.mode)

    @property
    def name_with_n(self) -> str:
        """The name of its case."""
        return case_name(self.primitive, self.axes, self.mode, self.n or None)

    # ---- whether it counts

    @property
    def is_wrong(self) -> bool:
        """Whether it ran and its result was wrong."""
        return self.error is None and not self.correct

    # ---- times

    @property
    def gpu_span(self) -> Series | None:
        """The times from the begin of the first kernel to the end of the last, on the GPU's clock."""
        return self.whole.series.get("gpu_span")

    @property
    def cpu_wall(self) -> Series | None:
        """The times on the CPU's clock."""
        return self.whole.series.get("cpu_wall")

    @property
    def gaps(self) -> Series | None:
        """The times between kernels, on the GPU's clock; None where one kernel has none."""
        return self.whole.series.get("gaps")

    @property
    def time_ns(self) -> float | None:
        """The median GPU span, or the CPU wall if there are no timestamps."""
        return self.whole.gpu_span_ns or self.whole.cpu_wall_ns

    @property
    def timed(self) -> Summary | None:
        """The statistics that rates use: of the GPU span, or of the CPU wall if there is none."""
        for series in (self.gpu_span, self.cpu_wall):
            if series is not None and series.summary is not None and series.summary.time_ns > 0:
                return series.summary
        return None

    @property
    def is_timed_by_gpu(self) -> bool:
        """Whether `timed` is of the GPU span."""
        return self.timed is not None and self.gpu_span is not None and self.timed is self.gpu_span.summary

    def positive_ns(self, name: str) -> list[float]:
        """Return the positive samples of a series of the whole."""
        series = self.whole.series.get(name)
        return [] if series is None else series.positive_ns

    @property
    def shader_checks(self) -> ShaderChecks | None:
        """The strictest run-time checks of its kernels; None if that is unknown."""
        levels: list[ShaderChecks | None] = [kernel.shader_checks for kernel in self.kernels]
        return None if None in levels else strictest(levels)

    @property
    def labelled_kernels(self) -> dict[str, Kernel]:
        """Its kernels by unique names: many of one label are one, else the second one has a number."""
        found: dict[str, Kernel] = {}
        for label, (kernel, many) in together(self.kernels).items():
            medians = [one.time_ns for one in many if one.time_ns is not None]
            each_ns = (min(medians), max(medians)) if medians and len(many) > 1 else None
            found[label] = kernel if each_ns is None else replace(kernel, gpu_ns=kernel.time_ns, each_ns=each_ns)
        return found

    @property
    def shown_kernels(self) -> tuple[Kernel, ...]:
        """Its kernels; none for a single one, which is the whole: its row would repeat the result's."""
        return self.kernels if len(self.kernels) > 1 or any(one.each_ns for one in self.kernels) else ()

    # ---- what was seen meanwhile

    @property
    def is_loaded(self) -> bool:
        """Whether other processes used so much of the machine that the times of a CPU are theirs, too."""
        return is_busy(self.other_load)

    @property
    def moved_bytes(self) -> int | None:
        """Bytes that must be read or written."""
        return None if self.work is None else self.work.moved_bytes

    @property
    def settled_canary_ns(self) -> list[float]:
        """The canary's times, without those of blocks that were left out."""
        pairs = list(zip(self.canary_ns[::2], self.canary_ns[1::2], strict=False))
        kept = settled([(CanaryTime(before), CanaryTime(after)) for before, after in pairs]).kept
        return [time for pair, keep in zip(pairs, kept, strict=True) if keep for time in pair]

    @property
    def power_w(self) -> float | None:
        """The mean power at the ends of the blocks of samples, under load."""
        blocks = self.observations.blocks or ()
        seen = [block.after.power_w for block in blocks if block.after is not None and block.after.power_w]
        return float(np.mean(seen)) if seen else None


@dataclass(frozen=True, kw_only=True)
class CaseLevels(Record):
    """At which level the times of a case vary, and the interval that its processes reached.

    Standard deviations are of logarithms, so 0.01 is 1 %.

    Attributes
    ----------
    position : int
        Of its results.
    series : str
        ``"gpu_span"``, or ``"cpu_wall"`` without timestamps.
    processes, visits, samples : int
        Processes; visits in all of them; samples of a visit (median).
    process_std, round_std : float or None
        Between processes, and between rounds of a process; None with one of them.
    sample_std : float
        Between samples of a visit.
    dominant : str or None
        ``"process"`` or ``"round"``: which adds more to the interval.
    half_interval : float or None
        Half of the 95 % interval of the time, as a share.
    rounds_advised, samples_advised : int
        Rounds of a process and samples of a round that spend time best.
    """

    position: Count
    series: Timed
    processes: Annotated[int, Limits(at_least=2)]
    visits: Annotated[int, Limits(at_least=2)]
    samples: Positive
    process_std: _Deviation | None
    round_std: _Deviation | None
    sample_std: _Deviation
    dominant: Literal["process", "round"] | None
    half_interval: Annotated[float, Limits(at_least=0)] | None
    rounds_advised: Positive
    samples_advised: Positive


# ---- the document

#: Of a device, what `Results.machine` has.
_OF_DEVICE = ("adapter", "adapter_type", "backend", "driver")


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the facts in which two machines differ, of those that both have: each with its value of both."""
    return [(name, fact, new[name]) for name, fact in old.items() if new.get(name, fact) != fact]


@dataclass(frozen=True, kw_only=True)
class Results(Record):
    """A results document.

    Attributes
    ----------
    schema, schema_version
    context : Context
    device : Device
    protocol : mapping
        The sampling settings that were asked for.
    complete : bool
        False during a run, and after an interrupted one.
    ticks_file : str or None
        The second file, with the timestamps that are not in this one.
    planned : int or None
        How many results a complete run has.
    levels : tuple of CaseLevels
        Of each case that was measured in several processes.
    results : tuple of Result
        In the order in which they were measured.
    """

    schema: Literal["gridwise.bench"] = SCHEMA
    schema_version: Literal[3] = SCHEMA_VERSION
    context: Context
    device: Device
    protocol: Mapping[str, Any]
    complete: bool = True
    ticks_file: Annotated[str, Limits(pattern=r"^(?!\.{1,2}$)[^/\\\u0000]+$")] | None = None
    planned: Count | None = left_out()
    levels: tuple[CaseLevels, ...] = left_out(())
    results: tuple[Result, ...] = ()

    def __repr__(self) -> str:
        count, cases = len(self.results), len({result.key for result in self.results})
        return f"Results({count} result{'s' * (count != 1)} of {cases} case{'s' * (cases != 1)}, {self.device.adapter})"

    @property
    def machine(self) -> dict[str, str]:
        """What identifies the machine and what runs on it, by name, as far as the file tells."""
        context, device = self.context, self.device
        python = ".".join((context.versions.get("python") or "").split(".")[:2])
        host = {"host": context.host.name, "CPUs": context.host.cpu_count, "Python": python}
        host |= {"system": context.host.system, "architecture": context.host.machine}
        host |= {"debug build": (context.settings or {}).get("debug_build")}
        known = {name: str(fact) for name, fact in host.items() if fact not in (None, "")}
        return {**{name: str(getattr(device, name)) for name in _OF_DEVICE}, **known}

    def in_order(self) -> list[Result]:
        """Return the results in the order in which they were asked for, visits to a case one after the other."""
        return sorted(self.results, key=lambda result: (result.position, result.process, result.round))

    def tick_step_ns(self, result: Result) -> float:
        """Return the step of the GPU's clock divided by the dispatches of a sample."""
        return (self.device.tick_step_ns or 0.0) / (result.trials if result.mode is Mode.BATCH else 1)
