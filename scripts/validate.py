"""Runs pytest under Khronos' Vulkan validation layer, and sums up what it says.

Usage: python scripts/validate.py [--json FILE] [PYTEST-ARGUMENT …]

All processes (pytest's workers, and those that tests start) write to one pipe. First a call that is known to be wrong
is made on purpose: a layer that says nothing to that would say nothing to anything. Each message is counted once per
id, with the tests that were running when it came. Exit: pytest's own, 4 if there was an error of the layer that is not
in EXPLAINED, 3 if the layer is not there.

As a plugin of pytest (``-p validate``) this file tells the pipe which test begins and ends.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import json
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


def layer_is_installed() -> bool:
    """Ask the Vulkan loader."""
    name = ctypes.util.find_library("vulkan")
    if name is None:
        return False

    class Properties(ctypes.Structure):
        _fields_ = (
            ("name", ctypes.c_char * 256),
            ("spec", ctypes.c_uint32),
            ("version", ctypes.c_uint32),
            ("description", ctypes.c_char * 256),
        )

    vulkan, count = ctypes.CDLL(name), ctypes.c_uint32()
    vulkan.vkEnumerateInstanceLayerProperties(ctypes.byref(count), None)
    found = (Properties * count.value)()
    vulkan.vkEnumerateInstanceLayerProperties(ctypes.byref(count), found)
    return LAYER.encode() in {each.name for each in found}


def run(arguments: list[str], environment: Mapping[str, str]) -> tuple[int, Listener]:
    """Run pytest under the layer; return its exit code, and what was heard."""
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
            raise SystemExit(f"{LAYER} is loaded, but says nothing to a call that is wrong: nothing can be concluded")
        listener.forget()
        code = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "validate", *arguments], env=under, check=False
        ).returncode
        listener.settle()
        return code, listener


def report(listener: Listener) -> tuple[list[str], list[dict[str, object]]]:
    """Return lines for people, and the same as data."""
    lines, rows = [], []
    for (key, severity), count in sorted(listener.counts.items(), key=lambda item: (item[0][1], -item[1])):
        why = EXPLAINED.get(key)
        tests = sorted(listener.tests[key])
        lines += [f"{severity} {key}, {count} times" + (f" — explained: {why}" if why else "")]
        lines += [f"    {listener.texts[key]}"] + [f"    in {test}" for test in tests[:5]]
        rows.append({"id": key, "severity": severity, "count": count, "text": listener.texts[key],
                     "explained": why, "tests": tests})  # fmt: skip
    return lines, rows


def main() -> int:
    """Run, and say what was heard."""
    arguments, json_path = sys.argv[1:], None
    if arguments[:1] == ["--json"]:
        json_path, arguments = Path(arguments[1]), arguments[2:]
    if not layer_is_installed():
        print(f"{LAYER} is not installed (Debian: apt-get install vulkan-validationlayers): NOTHING WAS VALIDATED.")
        return 3
    begin = time.monotonic()
    code, listener = run(arguments, os.environ)
    lines, rows = report(listener)
    bad = sum(row["severity"] == "ERROR" and not row["explained"] for row in rows)
    print(*lines, sep="\n")
    print(
        f"{LAYER}: {bad} kinds of error, {len(rows) - bad} other kinds of message, in {time.monotonic() - begin:.0f} s"
    )
    if json_path is not None:
        data = {"layer": LAYER, "arguments": arguments, "pytest_exit_code": code, "messages": rows}
        json_path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return code or (4 if bad else 0)


if __name__ == "__main__":
    sys.exit(main())
