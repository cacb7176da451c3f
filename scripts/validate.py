"""Runs pytest under Khronos' Vulkan validation layer, and sums up what it says.

Usage: python scripts/validate.py [PYTEST-ARGUMENT …]

All processes (pytest's workers, and those that tests start) write to one pipe. First a call that is known to be wrong
is made on purpose: a layer that says nothing to that would say nothing to anything. Each message is counted once per
id, with the tests that were running when it came. Exit: pytest's own, 4 if there was an error of the layer that is not
in EXPLAINED, 3 if the layer is not there, or says nothing.

As a plugin of pytest (``-p validate``) this file tells the pipe which test begins and ends.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

LAYER = "VK_LAYER_KHRONOS_validation"
PIPE = "VALIDATION_LAYER_PIPE"
#: Messages that are not this library's fault, by id: who causes them, and why.
EXPLAINED: dict[str, str] = {}

_SETTINGS = """khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.log_filename = {pipe}
"""
# The first line of a message: its id, severity and kind, its text behind the last bar.
_HEAD = re.compile(r"^(?P<id>[\w.-]+)\((?P<severity>[A-Z]+) / [A-Z]+\): msgNum: -?\d+ - (?P<text>.*)$")
_MARK = "gridwise-test "


def _plugin_says(what: str, nodeid: str) -> None:
    pipe = os.environ.get(PIPE)
    if pipe:
        with open(pipe, "a", encoding="utf-8") as opened:
            opened.write(f"{_MARK}{what} {nodeid}\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Pytest's hook: a test begins. With workers the process that started them says so."""
    _plugin_says("begins", nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Pytest's hook: a test has ended."""
    _plugin_says("ends", nodeid)


class Listener:
    """Reads the pipe, in a thread, from before anybody writes to it."""

    def __init__(self, path: Path):
        os.mkfifo(path)
        # Also a writer, so that it never comes to an end, and nobody who opens it waits.
        self._end = os.open(path, os.O_RDWR)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.texts: dict[str, str] = {}
        self.tests: dict[str, set[str]] = defaultdict(set)
        self._running: set[str] = set()
        self._lines = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with os.fdopen(self._end, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._take(line.rstrip("\n"))
                self._lines += 1

    def _take(self, line: str) -> None:
        if line.startswith(_MARK):
            what, _, nodeid = line.removeprefix(_MARK).partition(" ")
            (self._running.add if what == "begins" else self._running.discard)(nodeid)
        elif found := _HEAD.match(line):
            key = found["id"]
            self.counts[key, found["severity"]] += 1
            self.texts.setdefault(key, found["text"].rsplit(" | ", 1)[-1])
            self.tests[key] |= self._running

    def settle(self) -> None:
        """Wait until nothing has come for a moment."""
        seen = -1
        while seen != self._lines:
            seen = self._lines
            time.sleep(0.3)

    def forget(self) -> None:
        """Restart the count."""
        self.counts.clear()
        self.texts.clear()
        self.tests.clear()


# In a process of its own, since layers are loaded with the first instance: an instance whose application has a wrong
# structure type.
_WRONG_CALL = """
import ctypes, ctypes.util
vulkan = ctypes.CDLL(ctypes.util.find_library("vulkan") or "libvulkan.so.1")
class Application(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("next", ctypes.c_void_p), ("name", ctypes.c_char_p), ("v", ctypes.c_uint32),
                ("engine", ctypes.c_char_p), ("ev", ctypes.c_uint32), ("api", ctypes.c_uint32)]
class Create(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("next", ctypes.c_void_p), ("flags", ctypes.c_uint32),
                ("app", ctypes.POINTER(Application)), ("layers", ctypes.c_uint32), ("names", ctypes.c_void_p),
                ("extensions", ctypes.c_uint32), ("extension_names", ctypes.c_void_p)]
application = Application(type=7, api=1 << 22)
instance = ctypes.c_void_p()
vulkan.vkCreateInstance(ctypes.byref(Create(type=1, app=ctypes.pointer(application))), None, ctypes.byref(instance))
"""


def run(arguments: list[str], environment: Mapping[str, str]) -> tuple[int, Listener] | None:
    """Run pytest under the layer; return its exit code, and what was heard; None where the layer says nothing."""
    with tempfile.TemporaryDirectory(prefix="gridwise-validation-") as folder:
        pipe = Path(folder) / "pipe"
        listener = Listener(pipe)
        (Path(folder) / "vk_layer_settings.txt").write_text(_SETTINGS.format(pipe=pipe), encoding="utf-8")
        here = os.path.dirname(os.path.abspath(__file__))
        under = {
            **environment,
            "VK_INSTANCE_LAYERS": LAYER,
            "VK_LAYER_SETTINGS_PATH": folder,
            PIPE: str(pipe),
            "PYTHONPATH": os.pathsep.join(filter(None, [here, environment.get("PYTHONPATH", "")])),
        }
        subprocess.run([sys.executable, "-c", _WRONG_CALL], env=under, check=False)
        listener.settle()
        if not any(severity == "ERROR" for _, severity in listener.counts):
            return None
        listener.forget()
        command = [sys.executable, "-m", "pytest", "-p", "validate", *arguments]
        code = subprocess.run(command, env=under, check=False).returncode
        listener.settle()
        return code, listener


def report(listener: Listener) -> tuple[list[str], int]:
    """Return lines for people, and how many kinds of error are not explained."""
    lines, errors = [], 0
    for (key, severity), count in sorted(listener.counts.items(), key=lambda item: (item[0][1], -item[1])):
        why = EXPLAINED.get(key)
        errors += severity == "ERROR" and why is None
        lines += [f"{severity} {key}, {count} times" + (f" — explained: {why}" if why else "")]
        lines += [f"    {listener.texts[key]}", *(f"    in {test}" for test in sorted(listener.tests[key])[:5])]
    return lines, errors


def main() -> int:
    """Run, and say what was heard."""
    begin = time.monotonic()
    found = run(sys.argv[1:], os.environ)
    if found is None:
        print(f"{LAYER} says nothing to a call that is wrong. Is it installed (Debian: apt-get install "
              "vulkan-validationlayers)? NOTHING WAS VALIDATED.")  # fmt: skip
        return 3
    code, listener = found
    lines, errors = report(listener)
    others = len(listener.counts) - errors
    print(*lines, sep="\n")
    print(f"{LAYER}: {errors} kinds of error, {others} other kinds of message, in {time.monotonic() - begin:.0f} s")
    return code or (4 if errors else 0)


if __name__ == "__main__":
    sys.exit(main())
