"""Drives Chromium, headless: finds it, starts it, ends it with all its helpers, and talks to it by DevTools.

As a program, it takes a picture of a report:
``python tests/helpers/chromium.py PAGE.html OUT.png [--width PIXELS] [--height PIXELS] [--dark] [--at SELECTOR]``
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser")

FLAGS = (
    "--headless",
    "--no-sandbox",  # containers
    "--disable-gpu-sandbox",
    "--no-first-run",
    "--disable-quic",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)


class ChromiumError(RuntimeError):
    """Chromium did not answer, or answered with an error."""


def find_chromium() -> str | None:
    """Return the path of Chromium, if there is one on PATH."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


# Chromium reads commands from descriptor 3 and answers on 4: put the pipes there, out of each other's way.
_PIPES = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


@contextlib.contextmanager
def started(chromium: str, *arguments: str, pipes: Sequence[int] = ()) -> Iterator[subprocess.Popen]:
    """Start Chromium with a profile of its own; end it and its helpers, which are in a process group of their own."""
    through = [sys.executable, "-I", "-S", "-c", _PIPES, *map(str, pipes)] if pipes else []
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [*through, chromium, *FLAGS, f"--user-data-dir={profile}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=pipes,
        )
        try:
            yield process
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                process.kill()
            process.wait(timeout=10)


class _Pipe:
    """DevTools over a pair of pipes: JSON messages, each ended by a NUL."""

    def __init__(self, write: int, read: int, timeout_s: float):
        self._write, self._read, self._timeout_s = write, read, timeout_s
        self._rest = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method and wait for its result; events that come meanwhile are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self._timeout_s
        while True:
            answer = self._next(until, method)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise ChromiumError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, until: float, waiting_for: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            found = os.read(self._read, 1 << 20) if ready else b""
            if not found:
                raise ChromiumError(f"no answer to {waiting_for} within {self._timeout_s:g} s")
            self._rest += found
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


class Page:
    """A page, with what it asked the network for and what it said on the console.

    Attributes
    ----------
    requests : list of str
        URLs.
    complaints : list of str
        Errors and warnings of the console, exceptions, and violations of a policy.
    """

    def __init__(self, pipe: _Pipe, timeout_s: float):
        self._pipe, self._timeout_s = pipe, timeout_s
        target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = pipe.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._target = target
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of DevTools on this page."""
        return self._pipe.call(method, self._session, **parameters)

    def look(self, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Come to the front, where a page is rendered; set its size, and which colours the reader prefers."""
        self.call("Page.bringToFront")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path, ready: str, fragment: str = "") -> None:
        """Open a file, with ``#`` and what follows it, and wait until the expression is true."""
        self.call("Page.navigate", url=path.resolve().as_uri() + fragment)
        self.wait(ready)

    def run_first(self, script: str) -> None:
        """Run a script in each page that is opened from now on, before its own."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + self._timeout_s
        while not self.evaluate(expression):
            if time.monotonic() > until:
                raise ChromiumError(f"not true within {self._timeout_s:g} s: {expression}; {self.complaints}")
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, as JSON; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        self._read_events()
        if "exceptionDetails" in answer:
            raise ChromiumError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Take a picture of what is in the window, or of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """Close it."""
        self._pipe.call("Target.closeTarget", targetId=self._target)

    def _read_events(self) -> None:
        mine = [event for event in self._pipe.events if event.get("sessionId") == self._session]
        self._pipe.events = [event for event in self._pipe.events if event.get("sessionId") != self._session]
        for event in mine:
            method, said = event["method"], event["params"]
            if method == "Network.requestWillBeSent":
                self.requests.append(said["request"]["url"])
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
                self.complaints.append(" ".join(str(a.get("value", a.get("description"))) for a in said["args"]))
            elif method == "Runtime.exceptionThrown":
                self.complaints.append(str(said["exceptionDetails"]))
            elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                self.complaints.append(said["entry"]["text"])


@contextlib.contextmanager
def browser(chromium: str, *flags: str, timeout_s: float = 30.0) -> Iterator[Callable[[], Page]]:
    """Start Chromium, with further flags; give a function that opens a page in it."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with contextlib.ExitStack() as stack:
        for end in (to_write, from_read):
            stack.callback(os.close, end)
        with started(chromium, "--remote-debugging-pipe", *flags, pipes=(to_read, from_write)):
            os.close(to_read)
            os.close(from_write)
            pipe = _Pipe(to_write, from_read, timeout_s)
            yield lambda: Page(pipe, timeout_s)


def luminance(colour: str) -> float:
    """Return the relative luminance as WCAG 2 defines it, of ``rgb(…)``."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it."""
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def main() -> int:
    """Take a picture of a page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--at", help="a CSS selector to scroll to")
    parser.add_argument("--whole", action="store_true", help="the whole page, not only the window")
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit(f"none of {', '.join(NAMES)} is on PATH")
    with browser(chromium) as new_page:
        page = new_page()
        page.look(width=options.width, height=options.height, dark=options.dark)
        page.open(options.page, "document.readyState == 'complete' && document.documentElement.dataset.drawn == 'yes'")
        if options.at:
            page.evaluate(f"document.querySelector({json.dumps(options.at)}).scrollIntoView()")
        page.picture(options.out, whole=options.whole)
    return 0


if __name__ == "__main__":
    sys.exit(main())
