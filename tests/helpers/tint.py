"""Compiles WGSL with Tint, the compiler of Chromium, in a headless browser.

As a program: ``PYTHONPATH=tests python -m helpers.tint FILE.wgsl …`` prints what Tint says about each file.
"""

from __future__ import annotations

import http.server
import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.chromium import NAMES, find_chromium, started

#: WebGPU on SwiftShader, with timestamps as they are.
WEBGPU_FLAGS = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-webgpu-developer-features")

# Module by module: a text that Tint refuses has an error among its messages, the next is not disturbed.
_PAGE = """<!doctype html><meta charset="utf-8"><script>
(async () => {
  const report = {};
  try {
    const adapter = await navigator.gpu.requestAdapter();
    if (!adapter) throw new Error("no WebGPU adapter");
    report.features = [...adapter.features].sort();
    const wanted = ["subgroups"].filter((f) => adapter.features.has(f));
    const device = await adapter.requestDevice({requiredFeatures: wanted});
    device.addEventListener("uncapturederror", (e) => e.preventDefault());
    const texts = await (await fetch("data")).json();
    report.messages = [];
    for (const code of texts) {
      const info = await device.createShaderModule({code}).getCompilationInfo();
      report.messages.push([...info.messages].map((m) => ({type: m.type, line: m.lineNum, message: m.message})));
    }
  } catch (error) {
    report.error = String(error);
  }
  await fetch("report", {method: "POST", body: JSON.stringify(report)});
})();
</script>
"""


class TintError(RuntimeError):
    """Chromium gave no report."""


@dataclass(frozen=True)
class Report:
    """What Tint said.

    Attributes
    ----------
    features : tuple of str
        Of the browser's adapter.
    messages : tuple of tuple of str
        For each text ``"error, line 3: …"``, ``"warning, …"`` or ``"info, …"``.
    """

    features: tuple[str, ...]
    messages: tuple[tuple[str, ...], ...]


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, page: str, data: Any):
        # Loopback only, on a port that is free.
        super().__init__(("127.0.0.1", 0), _Handler)
        self.page = page.encode()
        self.data = json.dumps(data).encode()
        self.report: dict[str, Any] | None = None
        self.reported = threading.Event()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_args: Any) -> None:
        """Stay quiet."""

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(200, "text/html; charset=utf-8", self.server.page)
        elif self.path == "/data":
            self._answer(200, "application/json", self.server.data)
        else:
            self._answer(404, "text/plain", b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, "text/plain", b"")
        self.server.report = json.loads(body)
        self.server.reported.set()

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _browse(server: _Server, chromium: str, timeout_s: float) -> None:
    with started(chromium, *WEBGPU_FLAGS, f"http://127.0.0.1:{server.server_port}/") as process:
        waited = 0.0
        while not server.reported.wait(0.25) and process.poll() is None and waited < timeout_s:
            waited += 0.25


def compile_texts(
    texts: Sequence[str], *, chromium: str | None = None, timeout_s: float = 60.0, attempts: int = 2
) -> Report:
    """Compile complete texts (prologue included) and return what Tint says about each.

    Raises
    ------
    TintError
        If there is no Chromium, or it gave no report in time.
    """
    report = ask(_PAGE, list(texts), chromium=chromium, timeout_s=timeout_s, attempts=attempts)
    return _read(report, len(texts))


def ask(
    page: str, data: Any, *, chromium: str | None = None, timeout_s: float = 60.0, attempts: int = 2
) -> dict[str, Any]:
    """Open a page that fetches "data" and posts its "report"; return the report.

    Raises
    ------
    TintError
        If there is no Chromium, it gave no report in time, or the report has an error.
    """
    chromium = chromium or find_chromium()
    if chromium is None:
        raise TintError(f"none of {', '.join(NAMES)} is on PATH")
    for _ in range(attempts):
        with _Server(page, data) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
            thread.start()
            try:
                _browse(server, chromium, timeout_s)
            finally:
                server.shutdown()
                thread.join(timeout=10)
        if server.report is not None:
            if "error" in server.report:
                raise TintError(f"the page failed: {server.report['error']}")
            return server.report
    raise TintError(f"{chromium} gave no report within {timeout_s:g} s, {attempts} times")


def _read(report: dict[str, Any], count: int) -> Report:
    if len(report["messages"]) != count:
        raise TintError(f"{count} texts, but {len(report['messages'])} answers")
    return Report(
        tuple(report["features"]),
        tuple(
            tuple(f"{m['type']}, line {m['line']}: {m['message']}" for m in messages) for messages in report["messages"]
        ),
    )


def main() -> int:
    """Compile the files that are named; return 1 if one is refused."""
    paths = sys.argv[1:]
    report = compile_texts([Path(path).read_text(encoding="utf-8") for path in paths])
    for path, messages in zip(paths, report.messages, strict=True):
        print(path, *(messages or ["fine"]), sep="\n  ")
    return int(any(m.startswith("error") for messages in report.messages for m in messages))


if __name__ == "__main__":
    sys.exit(main())
