"""Find adapters, make devices, and measure what they can do."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import threading
import weakref
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import wgpu

from .. import settings
from ..backend import clock
from ..backend.device_errors import device_errors, is_lost, watch_engine
from ..backend.device_state import state_of
from ..backend.engine import engine_named, engine_of
from ..backend.fork_guard import check_process, note_gpu_use
from ..backend.mapped_memory import FEATURE as MAPPABLE
from ..backend.mapped_memory import shares_memory
from ..backend.queues import TOLD_OF_COMPILING, create_shader_module, submit, tick_period_ns
from ..backend.submission_marks import read_words
from ..backend.timeout import set_timeout_s
from ..call_errors import nearest
from ..display.table import table_of
from ..errors import AdapterError, DeviceError
from ..planning.shaders import load_templates, prologue
from ..timing.queries import TimingHelper
from ..tuning.store import TuningStore
from ..types.capabilities import Capabilities
from ..warn import warn

# Every optional feature that some kernel or measurement can use.
_USEFUL_FEATURES = (
    "timestamp-query",
    "timestamp-query-inside-encoders",
    "timestamp-query-inside-passes",
    "subgroup",
    "subgroup-barrier",
    "shader-f64",
    "shader-int64",
    "shader-int64-atomic-min-max",
    "shader-int64-atomic-all-ops",
    "shader-f16",
    "immediates",
    "chromium-experimental-subgroup-matrix",
)

# By PCI vendor: NVIDIA's subgroups have 32 lanes, AMD's 32 or 64. wgpu-py 0.32 reports 4 to 128 for every adapter.
_VENDORS_SUBGROUP_MIN_SIZE = {0x10DE: 32, 0x1002: 32}
_TYPE_ORDER = ("DiscreteGPU", "IntegratedGPU", "Unknown", "CPU")


@dataclass(frozen=True)
class AdapterDescription:
    """An adapter of this machine.

    Attributes
    ----------
    index : int
        What `request_device` takes.
    name, type, backend, vendor, driver : str
    features : tuple of str
    problem : str or None
        Why it makes no device, as far as that is known without a try; else None.
    """

    index: int
    name: str
    type: str
    backend: str
    vendor: str
    driver: str
    features: tuple[str, ...]
    problem: str | None = None

    def __str__(self) -> str:
        problem = "" if self.problem is None else f": {self.problem}"
        return f"[{self.index}] {self.name} ({self.type}, {self.backend}, {self.driver}){problem}"

    def __repr__(self) -> str:
        return f"AdapterDescription({self})"

    def _repr_html_(self) -> str:
        rows = [
            ("type", self.type), ("backend", self.backend), ("vendor", self.vendor), ("driver", self.driver),
            ("features", ", ".join(self.features)), *([] if self.problem is None else [("problem", self.problem)]),
        ]  # fmt: skip
        return table_of(f"[{self.index}] {self.name}", ("", ""), rows, texts=(0, 1)).html()


def _problem_of(adapter: wgpu.GPUAdapter) -> str | None:
    """Return why an adapter makes no device; None if nothing is known. Dawn's process ends if it tries this one."""
    is_null = "null hardware" in adapter.info["device"].casefold()  # Mesa's RADV, where RADV_FORCE_FAMILY is set
    return "it is no hardware, only a compiler; unset RADV_FORCE_FAMILY" if is_null else None


def _type_rank(adapter: wgpu.GPUAdapter) -> int:
    if _problem_of(adapter) is not None:
        return len(_TYPE_ORDER)
    kind = adapter.info["adapter_type"]
    return _TYPE_ORDER.index(kind) if kind in _TYPE_ORDER else _TYPE_ORDER.index("Unknown")


_environment_lock = threading.Lock()


@contextlib.contextmanager
def _without_wayland() -> Generator[None]:
    """Let the search for adapters find no Wayland server where there cannot be one.

    The search asks for one through libwayland, which prints four lines that begin with "error:" where XDG_RUNTIME_DIR
    is unset: in containers, ssh sessions and CI. It could not connect then anyway. A socket path that cannot exist has
    the same outcome without the lines, and hides no error of a driver.

    C libraries alone see the path, and only for the time of the search. ``os.environ`` stays as it is.
    """
    if settings.has_wayland() or not sys.platform.startswith(("linux", "freebsd")):
        yield
        return
    with _environment_lock:
        before = settings.wayland_display()
        try:
            os.putenv("WAYLAND_DISPLAY", "/dev/null/no-wayland")
            yield
        finally:
            if before is None:
                os.unsetenv("WAYLAND_DISPLAY")
            else:
                os.putenv("WAYLAND_DISPLAY", before)


def _adapters(include_opengl: bool, engine_name: str | None = None) -> list[wgpu.GPUAdapter]:
    check_process()
    engine = engine_named(engine_name or settings.engine())
    note_gpu_use()
    with _without_wayland():  # which Dawn asks for as it is loaded
        engine.prepare()
        adapters = engine.adapters()
    watch_engine(engine)
    # OpenGL shows the same hardware again, without subgroups and with worse timestamps.
    visible = [a for a in adapters if include_opengl or a.info["backend_type"] not in ("OpenGL", "OpenGLES")]
    return sorted(visible, key=_type_rank)


def _describe(index: int, adapter: wgpu.GPUAdapter) -> AdapterDescription:
    info = adapter.info
    return AdapterDescription(
        index,
        info["device"],
        info["adapter_type"],
        info["backend_type"],
        info["vendor"],
        info["description"],
        tuple(sorted(engine_of(adapter).features_of(adapter))),
        _problem_of(adapter),
    )


def list_adapters(*, include_opengl: bool = False, engine: str | None = None) -> list[AdapterDescription]:
    """Return the adapters of this machine: discrete GPUs first, then integrated ones, CPUs last.

    Parameters
    ----------
    include_opengl : bool, default False
        Also those of OpenGL, which mostly repeat the others.
    engine : {"wgpu", "dawn"}, optional
        As in `request_device`.
    """
    return [_describe(i, a) for i, a in enumerate(_adapters(include_opengl, engine))]


def _choose(adapters: list[wgpu.GPUAdapter], wanted: int | str | None) -> wgpu.GPUAdapter:
    listing = "\n".join(f"  {_describe(i, a)}" for i, a in enumerate(adapters))
    if not adapters:
        raise AdapterError(
            "no GPU adapter was found. Install a Vulkan driver (a software one on Debian and Ubuntu: "
            "apt-get install mesa-vulkan-drivers), or look at adapters of the OpenGL backend with "
            "list_adapters(include_opengl=True)"
        )
    if wanted is None:
        return adapters[0]
    if isinstance(wanted, str) and len(wanted) < 99 and wanted.strip().lstrip("-").isdecimal():
        wanted = int(wanted)
    if isinstance(wanted, bool) or not isinstance(wanted, (int, str)):
        raise AdapterError(f"adapter={wanted!r} must be an index or a part of a name; there are:\n{listing}")
    if isinstance(wanted, int):
        if 0 <= wanted < len(adapters):
            return adapters[wanted]
        raise AdapterError(f"adapter {wanted} does not exist; there are:\n{listing}")
    needle = wanted.strip().casefold()
    for i, adapter in enumerate(adapters):
        if needle and needle in str(_describe(i, adapter)).casefold():
            return adapter
    raise AdapterError(f"no adapter has {wanted!r} in its name; there are:\n{listing}")


def request_device(
    adapter: int | str | wgpu.GPUAdapter | None = None,
    *,
    include_opengl: bool = False,
    label: str = "gridwise",
    timeout_s: float | None = None,
    engine: Literal["wgpu", "dawn"] | None = None,
    toggles: Mapping[str, bool] | None = None,
) -> wgpu.GPUDevice:
    """Make a device with all features that this library can use, and the adapter's limits.

    Parameters
    ----------
    adapter : int, str or wgpu.GPUAdapter, optional
        An index of `list_adapters`, a part of its line, or an adapter. By default ``GRIDWISE_ADAPTER``, else the first;
        a CPU gives a `GridwiseWarning`.
    include_opengl : bool, default False
        Whether adapters of OpenGL can be chosen, and count.
    label : str
    timeout_s : float, optional
        How long to wait for the GPU before `DeviceTimeoutError`. By default ``GRIDWISE_TIMEOUT_S``, else without end.
    engine : {"wgpu", "dawn"}, optional
        The implementation of WebGPU; ``"dawn"`` needs the extra of that name. By default ``GRIDWISE_ENGINE``, else
        ``"wgpu"``.
    toggles : mapping from str to bool, optional
        Switches of Dawn, such as ``{"disable_robustness": True}``. By default ``GRIDWISE_TOGGLES``.

    Returns
    -------
    wgpu.GPUDevice

    Raises
    ------
    AdapterError
        If there is no such adapter; the message lists what there is. If there is no such engine, or its package is not
        installed. If the engine has no such toggle.
    DeviceError
        If the adapter makes no device.
    ArgumentError
        If `timeout_s` or an environment variable has no such value.
    ForkError
        If the process was forked from one that had used the GPU.

    See Also
    --------
    default_device : the device that calls without ``device=`` use.

    Examples
    --------
    >>> import gridwise_py as gw
    >>> device = gw.request_device()
    >>> gw.sum(gw.ones(3, "u32", device=device)).item()
    3
    >>> gw.request_device(adapter="no such GPU")
    Traceback (most recent call last):
    gridwise_py.errors.AdapterError: no adapter has 'no such GPU' in its name; there are:
    ...
    """
    check_process()
    _warn_of_variables()
    holds_clock, maps_arrays = settings.hold_clock(), settings.map_arrays()
    limit_s = settings.checked_timeout_s(timeout_s, "timeout_s")
    if not isinstance(adapter, wgpu.GPUAdapter):
        wanted = adapter if adapter is not None else settings.adapter()
        adapter = _choose(_adapters(include_opengl, engine), wanted)
        if wanted is None and adapter.info["adapter_type"] == "CPU":
            _warn_of_software(adapter)
    useful = (*_USEFUL_FEATURES, MAPPABLE) if maps_arrays and shares_memory(adapter) else _USEFUL_FEATURES
    own = engine_of(adapter)
    if engine is not None and own is not engine_named(engine):
        raise AdapterError(f"the adapter is of the engine {own.NAME!r}, and engine={engine!r} was asked for; omit one")
    if toggles is None:
        toggles = settings.toggles() if own.NAME == "dawn" else {}
    has = own.features_of(adapter)
    features = [f for f in useful if f in has]
    name = adapter.info["device"]
    if (problem := _problem_of(adapter)) is not None:
        raise DeviceError(f"adapter {name!r} makes no device: {problem}")
    try:
        with _templates_meanwhile():
            device = own.request_device(adapter, label, features, toggles)
    except (wgpu.GPUError, RuntimeError) as error:  # what wgpu-py raises; our own errors are neither
        raise DeviceError(
            f"adapter {name!r} is listed, but makes no device ({error}); update its driver, or take another of "
            f"gw.list_adapters()"
        ) from error
    missing = set(features) - set(device.features)
    if missing:
        raise AdapterError(f"adapter {name!r} refused features it lists: {sorted(missing)}")
    state_of(device)  # takes note of a destroy() from here on
    if timeout_s is not None:
        set_timeout_s(device, limit_s)
    if holds_clock:
        _hold_clock_of(device)
    return device


@contextlib.contextmanager
def _templates_meanwhile() -> Generator[None]:
    """Have a thread load what the first plan needs, 30 ms, while the driver is at work.

    It has ended when the block is left: a fork would leave the locks of imports held.
    """
    thread = threading.Thread(target=load_templates, name="gridwise templates", daemon=True)
    with contextlib.suppress(RuntimeError):  # the system has no thread left: the first plan loads them
        thread.start()
    try:
        yield
    finally:
        if thread.ident is not None:
            thread.join()


_told_of_software: list[str] = []  # once per process


def expect_software() -> None:
    """Have this process not be warned of a software adapter: it says by itself what it computes on."""
    for told in (_told_of_software, TOLD_OF_COMPILING):
        told.append("by itself")


def _warn_of_software(adapter: wgpu.GPUAdapter) -> None:
    """Warn that nobody has asked for a CPU."""
    if _told_of_software:
        return
    name = adapter.info["device"]
    _told_of_software.append(name)
    warn(
        f"no GPU was found, so that {name} computes on the CPU, where numpy is faster. If this "
        f"machine has a GPU, install its Vulkan driver (gw.list_adapters() shows what is found). To compute on the CPU "
        f"without this warning, ask for it: GRIDWISE_ADAPTER=cpu, or gw.request_device('cpu')"
    )


def _hold_clock_of(device: wgpu.GPUDevice) -> None:
    """Hold the clock of a device's GPU until the device is destroyed or goes."""
    held = clock.hold(device.adapter.info)
    if held is not None:
        state_of(device).end.afterwards.append(held.release)
        weakref.finalize(device, held.release)


_default_lock = threading.Lock()
_default: list[wgpu.GPUDevice] = []


def default_device() -> wgpu.GPUDevice:
    """Return the device that functions on numpy arrays use.

    It is made at the first call, and again after it was lost.
    """
    check_process()  # before the lock, which may be held for ever by a thread that the fork left behind
    with _default_lock:
        if not _default or is_lost(_default[0]):
            _default[:] = [request_device()]
        return _default[0]


@dataclass(frozen=True)
class EngineDescription:
    """The implementation of WebGPU that a device is of.

    Attributes
    ----------
    name : {"wgpu", "dawn"}
    version : str
    switches : mapping from str to bool
        Which of the engine's own switches were set for the device, by the engine's names.
    has_ticks : bool
        Whether timestamps are ticks of a period that the queue tells; otherwise they are nanoseconds.
    """

    name: str
    version: str
    switches: Mapping[str, bool]
    has_ticks: bool


def device_key(device: wgpu.GPUDevice) -> dict[str, str]:
    """Return what findings about a device hold for: adapter, driver, backend, and the versions that drive them."""
    from .._version import __version__

    info: Any = device.adapter.info
    engine, checks = engine_of(device), state_of(device).shader_checks
    return {
        "adapter": str(info["device"]),
        "adapter_type": str(info["adapter_type"]),
        "backend": str(info["backend_type"]),
        "vendor": str(info["vendor"]),
        "driver": str(info["description"]),
        engine.NAME: engine.version(),
        "gridwise_py": __version__,
        **{f"{engine.NAME}.{name}": str(is_on) for name, is_on in engine.switches(device).items()},
        **({} if checks == engine.checks_of_all(device, None) else {"shader_checks": str(checks)}),
    }


#: Writes how many lanes a subgroup has.
SUBGROUP_PROBE = """
@group(0) @binding(0) var<storage, read_write> sizes: array<u32>;
@compute @workgroup_size(128)
fn main(@builtin(subgroup_size) size: u32, @builtin(local_invocation_index) i: u32) {
  if (i == 0u) { sizes[0] = size; }
}
"""


def _probe_subgroup_size(device: wgpu.GPUDevice) -> int | None:
    """Run a kernel that says how large its subgroups are; what the adapter says is not to be believed."""
    if "subgroup" not in device.features:
        return None
    size = int(words_of_probe(device, "subgroup", SUBGROUP_PROBE, np.zeros(1, np.uint32))[0])
    return size if 4 <= size <= 128 else None


def words_of_probe(device: wgpu.GPUDevice, name: str, text: str, words: np.ndarray) -> np.ndarray:
    """Return what a kernel of one workgroup makes of some words, its one binding."""
    label, code = f"gridwise {name} probe", prologue(state_of(device).engine.LANGUAGE, text) + text
    module = create_shader_module(device, label=label, code=code, checks="all")
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    buffer = device.create_buffer_with_data(label=label, data=words, usage=usage)
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": words.nbytes}}],
    )
    encoder = device.create_command_encoder(label=label)
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(1)
    compute.end()
    return read_words(device, [buffer], encoder)


def _probe_tick_step_ns(helper: TimingHelper) -> float | None:
    """Return the largest step of which all differences between some timestamps are multiples."""
    session = helper.session()
    encoder = helper.device.create_command_encoder(label="gridwise tick probe")
    for _ in range(32):
        encoder.begin_compute_pass(timestamp_writes=session.span("empty")).end()
    submit(helper.device, [encoder.finish()], "tick probe")
    session.submitted()
    ticks = np.sort(session.ticks(), axis=None)  # np.unique would import numpy.ma: 20 ms
    differences = [int(d) for d in np.diff(ticks) if d]
    return math.gcd(*differences) * helper.tick_period_ns if differences else None


def measure_capabilities(device: wgpu.GPUDevice, helper: TimingHelper | None) -> Capabilities:
    """Measure what a device can do; a few milliseconds.

    Parameters
    ----------
    device : wgpu.GPUDevice
        Any, also one that was not made by `request_device`.
    helper : TimingHelper or None
        The device's, if it has timestamps.
    """
    info: Any = device.adapter.info
    timed = helper is not None
    store = TuningStore(device_key(device))
    with device_errors("measuring the device", device):
        subgroup_size = _probe_subgroup_size(device)
        tick_step_ns = _probe_tick_step_ns(helper) if helper is not None else None
    return Capabilities(
        adapter=info["device"],
        adapter_type=info["adapter_type"],
        backend=info["backend_type"],
        vendor=info["vendor"],
        driver=info["description"],
        features=frozenset(device.features),
        limits=dict(device.limits),
        subgroup_size=subgroup_size,
        subgroup_matrices=tuple(engine_of(device).subgroup_matrices(device)),
        subgroup_min_size=_VENDORS_SUBGROUP_MIN_SIZE.get(info["vendor_id"], 4),
        tick_period_ns=tick_period_ns(device) if timed else None,
        tuning=store.findings(),
        facts=store.facts(),
        tick_step_ns=tick_step_ns,
    )


@functools.cache
def _warn_once(message: str) -> None:
    warn(message)


def _warn_of_variables() -> None:
    """Warn of environment variables that have no effect, each once per process."""
    known = [name.removeprefix(settings.PREFIX) for name in settings.VARIABLES]
    for name in settings.unknown_variables():
        if question := nearest(name.upper().removeprefix(settings.PREFIX), known):
            _warn_once(f"the environment variable {name} has no effect{question}")
    folder = settings.cache_dir()
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        problem = "" if os.access(folder, os.W_OK) or any(folder.iterdir()) else "it cannot be written"
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        _warn_once(f"GRIDWISE_CACHE_DIR={folder}: {problem}, so each process tests and compiles again; name another")
