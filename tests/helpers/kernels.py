"""Runs notebooks in a kernel of this interpreter, wherever Jupyter looks for kernels on this machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient


def execute(notebook: nbformat.NotebookNode, folder: Path, *, timeout_s: int, cwd: Path | None = None) -> None:
    """Run a notebook and put its outputs into it; a cell that fails does not end the run.

    Parameters
    ----------
    notebook : NotebookNode
    folder : Path
        For all that the kernel writes.
    timeout_s : int
        Of a cell.
    cwd : Path, optional
        Where the notebook runs; by default `folder`.
    """
    client = NotebookClient(notebook, km=_kernel_manager(folder), timeout=timeout_s, allow_errors=True)
    client.execute(cwd=str(cwd or folder), env=_environment(folder))


def _kernel_manager(folder: Path) -> AsyncKernelManager:
    spec = folder / "kernels" / "here"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "here", "language": "python"}))
    return AsyncKernelManager(
        kernel_name="here",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(folder / "kernels")], ensure_native_kernel=False),
        connection_file=str(folder / "connection.json"),
    )


def _environment(folder: Path) -> dict[str, str]:
    """Return the kernel's environment: all that it writes goes to `folder`, and nothing is said of a CPU adapter."""
    # With this name ipykernel would keep back what drivers write to the process's stderr.
    kept = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    own = {"IPYTHONDIR": "ipython", "XDG_RUNTIME_DIR": "."}
    quiet = {"PYTHONWARNINGS": "ignore:no GPU was found"}
    return kept | {name: str(folder / part) for name, part in own.items()} | quiet
