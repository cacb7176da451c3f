"""``gridwise info``: the adapters, and the measured capabilities of the chosen one."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from .options import adapter_option, format_option
from .output import table_console


@click.command(short_help="List the adapters, and the capabilities of the chosen one.")
@adapter_option
@format_option
def info(adapter: str | None, form: str) -> None:
    """List the adapters, and measure the capabilities of the chosen one."""
    import gridwise_py as gw

    from ..bench.report.text_table import TextTable
    from ..display.table import Column
    from ..internals import LookbackProbe, context_of

    adapters = gw.list_adapters()
    device = gw.request_device(adapter)
    engine, capabilities = context_of(device).engine, gw.capabilities(device)
    scan = gw.Scan(device)
    strategy = scan.choose_strategy(in_place=False)
    verdict = LookbackProbe.verdict_on(device, scan.state)
    if form == "json":
        document = {
            "adapters": [asdict(a) for a in adapters],
            "device": capabilities.to_dict(),
            "scan": {"strategy": strategy, "state": scan.state, "subgroups": str(scan.mode)},
            "lookback": {"state": scan.state, "safe": verdict.safe, **asdict(verdict)},
        }
        click.echo(json.dumps(document, indent=1))
        return
    console = table_console(120)
    columns = [Column("index", right=True), Column("adapter"), Column("type"), Column("backend", priority=1)]
    table = TextTable([*columns, Column("driver", prose=True)], "Adapters")
    for a in adapters:
        table.add_row(str(a.index), a.name, a.type, a.backend, a.driver if a.problem is None else a.problem)
    console.print(table)
    console.print()
    limits = capabilities.limits
    rows = {
        "name": capabilities.adapter + (" (software on the CPU)" if capabilities.is_cpu else ""),
        "engine": f"{engine.name} {engine.version}",
        "subgroup size, measured": capabilities.subgroup_size or "no subgroups",
        "timestamps": "none"
        if capabilities.tick_period_ns is None
        else f"{capabilities.tick_period_ns:g} ns a tick, steps of {_optional(capabilities.tick_step_ns)} ns",
        "largest storage binding": f"{limits['max-storage-buffer-binding-size']:,} bytes",
        "largest buffer": f"{limits['max-buffer-size']:,} bytes",
        "workgroup memory": f"{limits['max-compute-workgroup-storage-size']:,} bytes",
        "invocations per workgroup": f"{limits['max-compute-invocations-per-workgroup']:,}",
        "look-back, self-tested": f"{verdict} (state {scan.state}{_duration(verdict.duration_ns)})",
        "scan": f"{strategy}, state {scan.state}, subgroups {scan.mode}",
        "shapes of kernels": "default"
        if capabilities.tuning is None
        else f"tuned ({', '.join(capabilities.tuning)}; gridwise tune --show)",
        "features": ", ".join(sorted(capabilities.features)) or "none",
    }
    details = TextTable([Column("chosen adapter"), Column("", prose=True)])
    for key, value in rows.items():
        details.add_row(key, str(value))
    console.print(details)


def _duration(duration_ns: float | None) -> str:
    return "" if duration_ns is None else f", in {duration_ns * 1e-6:.0f} ms when tested"


def _optional(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"
