"""What a page of `gridwise browser` measured: raw timestamps, walls and what its checks found.

The names of the fields are the keys of the file; their types say what a file may have, since such files come from
strangers. Times are in ns. A timestamp is relative to `PageFile.tick_base`, in ns; None was never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from ...storage.records import Record, key, left_out
from ...storage.schemas import Limits
from .model import Sha256

BROWSER_SCHEMA: Final = "gridwise.browser"

_Time = Annotated[float, Limits(at_least=0, at_most=1e18)]
_Seconds = Annotated[float, Limits(at_least=0, at_most=1e6)]
_Trials = Annotated[int, Limits(at_least=1, at_most=1 << 31)]
_Word = Annotated[int, Limits(at_least=0, at_most=1 << 32)]
#: Beyond these, JavaScript's numbers are not whole.
_Whole = Annotated[int, Limits(at_least=0, at_most=1 << 53)]
_Stamp = Annotated[int, Limits(at_least=-(1 << 53), at_most=1 << 53)]
_Million = Annotated[int, Limits(at_least=0, at_most=1_000_000)]
_Bytes = Annotated[int, Limits(at_least=4, at_most=1 << 40)]
_Text40 = Annotated[str, Limits(most=40)]
_Text100 = Annotated[str, Limits(most=100)]
_Text200 = Annotated[str, Limits(most=200)]
_Text500 = Annotated[str, Limits(most=500)]
_Text1000 = Annotated[str, Limits(most=1000)]
_Times = Annotated[tuple[_Time, ...], Limits(most=100_000)]
#: Begin and end of each pass, in the order in which the GPU ran them.
_Stamps = Annotated[tuple[tuple[_Stamp | None, _Stamp | None], ...], Limits(most=100_000)]
_Features = Annotated[tuple[_Text100, ...], Limits(most=200)]


@dataclass(frozen=True, kw_only=True)
class Passes(Record):
    """Passes of one submission, each of `trials` dispatches of each kernel, and the wall of the submission."""

    trials: _Trials
    wall: Annotated[float, Limits(at_least=0, above=0, at_most=1e18)]
    ticks: _Stamps


@dataclass(frozen=True, kw_only=True)
class FmaPasses(Passes):
    """Passes of multiply-adds."""

    workgroups: _Trials


@dataclass(frozen=True, kw_only=True)
class Ceiling(Record):
    """Passes of a copy or a triad of arrays of one size."""

    name: Literal["copy", "triad"]
    array_bytes: _Bytes
    passes: Annotated[tuple[Passes, ...], Limits(fewest=1, most=100)]


@dataclass(frozen=True, kw_only=True)
class PageFloors(Record):
    """Times of a kernel that does nothing.

    Attributes
    ----------
    one, many : Passes
        Of one dispatch, and of many.
    submissions : tuple of tuple
        Submitting, waiting.
    """

    one: Passes
    many: Passes
    submissions: Annotated[tuple[tuple[_Time, _Time], ...], Limits(most=10_000)]


@dataclass(frozen=True, kw_only=True)
class PageCalibration(Record):
    """What was measured first.

    Attributes
    ----------
    tick_step : float or None
        The largest step of which all differences between timestamps are multiples.
    """

    tick_step: Annotated[float, Limits(above=0, at_most=1e9)] | None
    tick_checks: Annotated[tuple[Passes, ...], Limits(fewest=1, most=20)]
    floors: PageFloors
    ceilings: Annotated[tuple[Ceiling, ...], Limits(most=100)]
    fma: Annotated[tuple[FmaPasses, ...], Limits(most=100)]


@dataclass(frozen=True, kw_only=True)
class Brand(Record):
    """A name of the browser."""

    brand: _Text200
    version: _Text40


@dataclass(frozen=True, kw_only=True)
class PageContext(Record):
    """When and where the page ran.

    Attributes
    ----------
    time : str
        When the run began, ISO 8601, UTC.
    now_step_ns : float
        The step of the CPU's clock.
    hidden : bool
        Whether the tab was in the background for a while.
    isolated : bool or None
        Whether the page is isolated from other origins, which makes the CPU's clock finer.
    """

    time: _Text40
    user_agent: _Text1000
    now_step_ns: _Time
    hidden: bool
    platform: _Text200 | None = left_out()
    cpu_count: Annotated[int, Limits(at_least=1, at_most=1 << 16)] | None = left_out()
    isolated: bool | None = left_out()
    brands: Annotated[tuple[Brand, ...], Limits(most=20)] | None = left_out()


@dataclass(frozen=True, kw_only=True)
class PageDevice(Record):
    """The device, as the browser describes it; `info` is its GPUAdapterInfo."""

    info: Annotated[Mapping[str, Annotated[str | bool | float | None, Limits(most=500)]], Limits(most=60)]
    limits: Annotated[Mapping[_Text100, _Whole], Limits(most=200)]
    features: _Features
    webgl_renderer: _Text500 | None
    subgroup_size: Annotated[int, Limits(at_least=1, at_most=1024)] | None
    adapter_features: _Features | None = left_out()


@dataclass(frozen=True, kw_only=True)
class PageTest(Record):
    """What a test of look-back counted."""

    tickets: bool
    stalled: bool
    dispatches: _Trials
    wrong: _Word
    again: _Word
    finished: _Word


@dataclass(frozen=True, kw_only=True)
class PageLookback(Record):
    """The verdict on look-back, and the tests that it follows from."""

    verdict: Literal["safe", "tickets", "no"]
    tests: Annotated[tuple[PageTest, ...], Limits(fewest=2, most=3)]


@dataclass(frozen=True, kw_only=True)
class PageKernel(Record):
    """A kernel of a plan."""

    label: _Text200
    workgroups: tuple[_Trials, _Trials, _Trials] | None = left_out()


@dataclass(frozen=True, kw_only=True)
class PagePlan(Record):
    """A plan that ran, with the sha256 of its shaders."""

    primitive: _Text100
    parameters: Annotated[Mapping[str, Any], Limits(most=100)]
    kernels: Annotated[tuple[PageKernel, ...], Limits(most=1000)]
    shaders: Annotated[tuple[Sha256, ...], Limits(most=1000)]


@dataclass(frozen=True, kw_only=True)
class PageWork(Record):
    """The necessary work of a case."""

    items: _Whole
    read_bytes: _Whole
    write_bytes: _Whole
    flops: _Whole


@dataclass(frozen=True, kw_only=True)
class PageCheck(Record):
    """What is wrong with an output; None: nothing."""

    output: _Text100
    wrong: _Text1000 | None


@dataclass(frozen=True, kw_only=True)
class PageBlock(Record):
    """A block of samples.

    Attributes
    ----------
    counts : tuple of int
        Samples of each submission.
    walls, submits, encodes : tuple of float
        Of each submission.
    before, ticks, after : tuple or None
        Timestamps of the samples, and of the canary before and after them; None without timestamps.
    """

    counts: Annotated[tuple[_Trials, ...], Limits(fewest=1, most=100_000)]
    walls: _Times
    submits: _Times
    encodes: _Times
    before: _Stamps | None = left_out()
    after: _Stamps | None = left_out()
    ticks: _Stamps | None = left_out()


@dataclass(frozen=True, kw_only=True)
class PageResult(Record):
    """One visit of one case.

    Attributes
    ----------
    error : str or None
        Why it was not measured.
    checks : tuple of PageCheck
        Of each output of the first run, then of each output of the last one.
    cold_start : float or None
    warmup : tuple of float or None
        Times of a trial, by chunks of the warm-up. This and what follows is None if there are no samples.
    canary_trials : int or None
        Dispatches of the canary in a pass.
    """

    primitive: _Text100
    n: Annotated[int, Limits(at_least=0, at_most=1 << 40)]
    axes: Annotated[Mapping[_Text100, _Text100 | None], Limits(most=30)]
    mode: Literal["hot", "batch", "latency"]
    position: _Million
    round: _Million
    plan: Annotated[int | str, Limits(most=20)]
    error: Annotated[str, Limits(most=4000)] | None
    work: PageWork
    checks: Annotated[tuple[PageCheck, ...], Limits(most=1000)]
    blocks: Annotated[tuple[PageBlock, ...], Limits(most=100_000)]
    cold_start: _Time | None = left_out()
    warmup: _Times | None = left_out()
    warmup_s: _Seconds | None = left_out()
    trial_ns: _Time | None = left_out()
    batch_trials: _Trials | None = left_out()
    submission_trials: _Trials | None = left_out()
    block_samples: _Trials | None = left_out()
    canary_trials: _Trials | None = left_out()
    sampling_s: _Seconds | None = left_out()
    stop_reason: Literal["count", "timeout"] | None = left_out()


@dataclass(frozen=True, kw_only=True)
class PageFile(Record):
    """The file that a page saves.

    Attributes
    ----------
    name : str or None
        What the GPU is called, as somebody typed it.
    class_ : str
        The class of devices whose plans ran.
    tick_base : str
        The timestamp that the others are relative to: a JSON number could not hold it.
    protocol : mapping
        The fields of SamplingProtocol.
    calibration : PageCalibration or None
        None without timestamps.
    """

    schema: Literal["gridwise.browser"]
    schema_version: Literal[1]
    bundle_sha256: Sha256
    gridwise_py: _Text40
    suite: _Text200 | None
    name: Annotated[str, Limits(most=120)] | None
    class_: Annotated[str, Limits(most=60)] = field(metadata=key("class"))
    complete: bool
    tick_base: Annotated[str, Limits(pattern="^[0-9]{1,20}$")]
    protocol: Mapping[str, Any]
    context: PageContext
    device: PageDevice
    lookback: PageLookback
    calibration: PageCalibration | None
    plans: Annotated[Mapping[str, PagePlan], Limits(most=10_000)]
    results: Annotated[tuple[PageResult, ...], Limits(most=10_000)]
    planned: _Million | None = left_out()
