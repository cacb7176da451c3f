"""Pages of `gridwise browser` for tests: a small bundle, faults in it or in the browser's WebGPU, and a visit."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridwise_py.bench.cases.own_files import load_benchmarks
from gridwise_py.bench.cases.workloads import WORKLOADS
from gridwise_py.bench.sweep.axes import collect_axes
from gridwise_py.bench.sweep.suite import BENCH_PROTOCOL, DEFAULT_AXES, Sweep, own_sweeps
from gridwise_py.browser.bundle import bundle_of
from gridwise_py.browser.page import page_html
from helpers.chromium import Page

READY = "document.documentElement?.dataset.ready == 'yes'"
DONE = "document.documentElement.dataset.done == 'yes'"

_PROTOCOL = replace(
    BENCH_PROTOCOL, samples=12, timeout_s=1.0, warmup_s=0.02, max_warmup_s=0.05, block_trials=6, batch_trials=None,
    submission_trials=4, canary_passes=5,
)  # fmt: skip


def small_bundle(primitives: str, n: str = "2^12", mode: str = "batch", datatype: str = "u32") -> dict[str, Any]:
    """Return a bundle of a few quick cases."""
    axes = collect_axes((), {"n": n, "datatype": datatype, "mode": mode}, DEFAULT_AXES)
    return small((Sweep(tuple(primitives.split()), axes),))


def workloads(datatype: str) -> list[str]:
    """Return the names of all workloads of a datatype."""
    return [name for name, workload in WORKLOADS.items() if datatype in workload.datatypes]


def own_bundle(file: Path, names: Iterable[str], axes: Iterable[str], device: Any) -> dict[str, Any]:
    """Return a bundle of benchmarks of a user's file."""
    found = load_benchmarks(file)
    return small(own_sweeps([found[name] for name in names], list(axes), {}), device)


def small(sweeps: Iterable[Sweep], device: Any = None) -> dict[str, Any]:
    """Return a bundle of sweeps, whose self-test of look-back is short."""
    bundle = bundle_of(sweeps, _PROTOCOL, suite="small", device=device)
    bundle["lookback"] |= {"dispatches": 1, "stalled_dispatches": 1}
    bundle["ceilings"] = [one for one in bundle["ceilings"] if one["array_bytes"] <= 1 << 18]
    return bundle


def changed(bundle: Mapping[str, Any], change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Return a changed copy of a bundle."""
    made = copy.deepcopy(dict(bundle))
    change(made)
    return made


@dataclass(frozen=True)
class Visit:
    """A run of a page.

    Attributes
    ----------
    page : Page
        Still open.
    raw : dict or None
        The file that it would save.
    """

    page: Page
    raw: Any

    @property
    def results(self) -> dict[str, Any]:
        """Results of the file by primitive."""
        return {result["primitive"]: result for result in self.raw["results"]}

    @property
    def status(self) -> str:
        """What the page says."""
        return self.page.evaluate("document.getElementById('status').textContent")

    @property
    def notes(self) -> list[str]:
        """The notes that the page shows."""
        return self.page.evaluate("[...document.querySelectorAll('#notes li')].map(e => e.textContent)")

    def rows(self) -> list[list[str]]:
        """Return the texts of the table, by row."""
        return self.page.evaluate(
            "[...document.querySelectorAll('#table tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
        )

    def save(self, path: Path) -> Path:
        """Write the file that the page would save."""
        path.write_text(self.page.evaluate("fileText()"), encoding="utf-8")
        return path


def visit(
    new_page: Callable[[], Page],
    folder: Path,
    bundle: Mapping[str, Any],
    *,
    before: str = "",
    opened: str = "",
    fragment: str = "",
    start: bool = True,
) -> Visit:
    """Write a page, open it, and let it run.

    Parameters
    ----------
    new_page, folder, bundle
    before : str
        A script that runs before the page's own.
    opened : str
        One that runs when it is ready.
    fragment : str
        ``#`` and what follows it in the address.
    start : bool
        Whether Start is pressed, and the end waited for.
    """
    path = folder / "page.html"
    path.write_text(page_html(bundle), encoding="utf-8")
    page = new_page()
    page.look()
    if before:
        page.run_first(before)
    page.open(path, READY, fragment)
    if opened:
        page.evaluate(opened)
    if not start:
        return Visit(page, None)
    page.evaluate("document.getElementById('start').click()")
    page.wait(DONE)
    return Visit(page, json.loads(page.evaluate("JSON.stringify(view.raw)")))
