"""scripts/setup.sh: what it does, when it does nothing, and what it says where it may not do it.

The interpreter in .venv is played by a script that writes down its calls: nothing is installed or downloaded.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT

PROGRAMS = ("sh", "dirname", "find", "cat", "ls", "grep", "env", "mktemp", "rm", "head", "true", "chmod")
STAND_IN = """#!/bin/sh
echo "$*" | head -n 1 >>"{calls}"
case $* in
*list_adapters*) echo "{adapter}" ;;
*version_info\\[:2\\]*) echo 3.11 ;;
*tomllib*) exec {python} "$@" ;;
*"-m pip install"*) echo "WARNING: pip warns" >&2 ;;
esac
"""

pytestmark = [pytest.mark.needs("posix"), pytest.mark.slow]


class Machine:
    """A folder with the project's set-up files, and only the programs that are named."""

    def __init__(self, folder: Path):
        self.project, self.programs, self.calls_file = (
            folder / "a project",
            folder / "programs",
            folder / "calls",
        )
        (self.project / "scripts").mkdir(parents=True)
        (self.project / ".venv" / "bin").mkdir(parents=True)
        self.programs.mkdir()
        for name in ("pyproject.toml", "constraints.txt", "scripts/setup.sh"):
            shutil.copyfile(ROOT / name, self.project / name)
        for name in PROGRAMS:
            (self.programs / name).symlink_to(shutil.which(name))
        self.has_adapter("gpu Some GPU")

    def has(self, path: Path | str, text: str) -> None:
        """Add a program: a path, or a name for the search path."""
        file = self.programs / path
        file.write_text(text)
        file.chmod(0o755)

    def has_adapter(self, adapter: str) -> None:
        """Let .venv's interpreter find this adapter: "gpu NAME", "cpu NAME" or "none"."""
        text = STAND_IN.format(calls=self.calls_file, adapter=adapter, python=sys.executable)
        self.has(self.project / ".venv" / "bin" / "python", text)

    def setup(self, *parts: str, **variables: str) -> tuple[int, str, list[str]]:
        """Run the script; the exit status, what it says, and the calls of .venv's interpreter."""
        self.calls_file.write_text("")
        run = subprocess.run(
            ["sh", str(self.project / "scripts" / "setup.sh"), *parts],
            env={"PATH": str(self.programs)} | variables,
            capture_output=True,
            text=True,
        )
        return run.returncode, run.stderr, self.calls_file.read_text().splitlines()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_it_installs_pinned_versions_and_then_does_nothing(machine):
    status, said, calls = machine.setup("dev", "adapter")
    assert status == 0, said
    (install,) = [call for call in calls if "-e .[bench]" in call]
    assert all("-c constraints.txt" in call for call in calls if call.startswith("-m pip install"))
    assert install.endswith("-c constraints.txt --build-constraint constraints.txt -e .[bench] --group dev")
    assert "adapter: Some GPU" in said
    assert machine.setup("dev", "adapter") == (0, "", [])
    assert machine.setup("run") == (0, "", []), "what is ready for dev is ready to run"


def test_each_part_installs_no_more_than_it_needs(machine):
    """And is completed later. Of pip's warnings nothing is shown."""
    status, said, calls = machine.setup("bench")
    assert (status, said.count("\n"), "WARNING" in said) == (0, 1, False), said
    (install,) = [call for call in calls if call.startswith("-m pip install")]
    assert "-c constraints.txt -r .venv/bench.txt" in install
    wanted = (machine.project / ".venv" / "bench.txt").read_text()
    assert all(f"\n{name}>=" in f"\n{wanted}" for name in ("numpy", "wgpu", "click", "scipy"))
    assert not re.search("altair|vl.convert", wanted)
    assert machine.setup("bench") == (0, "", [])
    (install,) = [call for call in machine.setup("run")[2] if "-e" in call]
    assert install.endswith("-e .[bench]")
    assert [call for call in machine.setup("dev")[2] if call.endswith("-e .[bench] --group dev")]
    assert machine.setup("bench", "run", "dev") == (0, "", [])


def test_a_venv_for_bench_gets_a_pip_when_more_is_wanted(machine):
    pytest.importorskip("pip")
    shutil.rmtree(machine.project / ".venv")
    status, said, _ = machine.setup("bench", PYTHON=sys.executable, PIP_INDEX_URL="http://127.0.0.1:9", PIP_RETRIES="0")
    assert (status, "a way to a package index" in said) == (1, True), said
    python = machine.project / ".venv" / "bin" / "python"
    assert subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode
    machine.setup("dev", PIP_INDEX_URL="http://127.0.0.1:9", PIP_RETRIES="0")
    assert not subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode


def test_locked_installs_by_hashes_before_anything_else(machine):
    status, said, calls = machine.setup("dev", LOCKED="1")
    assert status == 0, said
    installs = [call for call in calls if call.startswith("-m pip install")]
    assert installs[0].endswith("--require-hashes -r requirements-ci.lock")
    assert installs[-1].endswith("-e .[bench] --group dev")
    assert not [call for call in machine.setup("tools")[2] if "--require-hashes" in call]


@pytest.mark.parametrize("part", ["tools", "docs"])
def test_these_are_more_than_dev(machine, part):
    assert [call for call in machine.setup(part)[2] if call.endswith(f"--group dev --group {part}")]
    assert machine.setup("run") == (0, "", [])
    assert machine.setup("dev") == (0, "", [])
    assert machine.setup(part) == (0, "", [])


def test_docs_and_tools_are_installed_apart(machine):
    machine.setup("tools")
    assert [call for call in machine.setup("docs")[2] if call.endswith("--group dev --group docs")]
    assert machine.setup("tools", "docs", "dev") == (0, "", [])


def test_a_release_needs_what_dev_has_and_its_own_packages(machine):
    assert [call for call in machine.setup("release")[2] if call.endswith("--group dev --group release")]
    assert machine.setup("run", "dev", "release") == (0, "", [])
    assert [call for call in machine.setup("tools")[2] if call.endswith("--group dev --group tools")]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", "scripts/setup.sh"])
def test_a_changed_file_is_followed(machine, name):
    machine.setup("dev", "adapter")
    later = (machine.project / ".venv" / ".ready-adapter").stat().st_mtime + 2
    os.utime(machine.project / name, (later, later))
    assert [call for call in machine.setup("dev")[2] if "-e .[bench]" in call]


def test_a_moved_folder_is_set_up_again(machine):
    machine.setup("run")
    machine.project = machine.project.rename(machine.project.with_name("elsewhere"))
    assert [call for call in machine.setup("run")[2] if "-e .[bench]" in call]


def test_another_driver_is_looked_for_again(machine):
    machine.setup("run", "adapter")
    _, said, _ = machine.setup("run", "adapter", VK_DRIVER_FILES="/elsewhere.json")
    assert "adapter: Some GPU" in said


def test_a_failed_install_is_tried_again(machine):
    python = machine.project / ".venv" / "bin" / "python"
    machine.has(python, '#!/bin/sh\ncase $* in *constraints.txt*) echo "no network" >&2; exit 1 ;; esac\n')
    status, said, _ = machine.setup("run")
    assert status != 0
    assert "no network" in said
    assert "PyPI" in said
    machine.has_adapter("none")
    assert machine.setup("run")[0] == 0


def test_software_vulkan_is_said_loudly(machine):
    machine.has_adapter("cpu Some software")
    status, said, _ = machine.setup("run", "adapter")
    assert status == 0
    assert "ALL TIMES ARE THOSE OF A CPU" in said


def test_no_adapter_and_no_apt(machine):
    machine.has_adapter("none")
    status, said, _ = machine.setup("run", "adapter")
    assert status != 0
    assert "no apt-get" in said
    assert "mesa-vulkan-drivers" in said


def test_no_adapter_and_not_root(machine):
    machine.has_adapter("none")
    machine.has("apt-get", "#!/bin/sh\nexit 1\n")
    machine.has("id", "#!/bin/sh\necho 1000\n")
    machine.has("sudo", "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    status, said, _ = machine.setup("run", "adapter")
    assert status != 0
    assert "sudo apt-get update && sudo apt-get install mesa-vulkan-drivers" in said


@pytest.mark.parametrize(
    ("user", "sudo"), [("0", None), ("1000", 'shift\nexec "$@"')], ids=["root", "passwordless sudo"]
)
def test_no_adapter_and_the_right_to_install_one(machine, user, sudo):
    machine.has_adapter("none")
    python = machine.project / ".venv" / "bin" / "python"
    later = python.with_name("later")
    machine.has(later, STAND_IN.format(calls=machine.calls_file, adapter="cpu llvmpipe", python=sys.executable))
    (machine.programs / "mv").symlink_to(shutil.which("mv"))
    machine.has("apt-get", f'#!/bin/sh\ncase $* in *install*" mesa-vulkan-drivers") mv "{later}" "{python}" ;; esac\n')
    machine.has("id", f"#!/bin/sh\necho {user}\n")
    if sudo:
        machine.has("sudo", f"#!/bin/sh\n{sudo}\n")
    status, said, _ = machine.setup("run", "adapter")
    assert status == 0, said
    assert "installing the package mesa-vulkan-drivers" in said
    assert "adapter: llvmpipe" in said


def test_mesa_is_installed_and_yet_no_adapter(machine):
    machine.has_adapter("none")
    machine.has("dpkg-query", "#!/bin/sh\necho install ok installed\n")
    machine.has("apt-get", "#!/bin/sh\necho must not be called >&2\nexit 1\n")
    status, said, _ = machine.setup("run", "adapter", VK_DRIVER_FILES="/nowhere.json")
    assert status != 0
    assert "VK_DRIVER_FILES is '/nowhere.json'" in said
    assert "must not be called" not in said


def test_no_python_new_enough(machine):
    shutil.rmtree(machine.project / ".venv")
    machine.has("python3", "#!/bin/sh\ncase $* in *version_info\\[:2\\]*) echo 3.9 ;; *) exit 1 ;; esac\n")
    status, said, _ = machine.setup("run")
    assert status != 0
    assert "Python 3.11 or newer is needed, but python3 here is 3.9" in said


def test_another_python_than_that_of_venv_is_refused(machine):
    machine.has("python3.12", "#!/bin/sh\necho 3.12\n")
    status, said, _ = machine.setup("run", PYTHON="python3.12")
    assert status != 0
    assert ".venv is of Python 3.11, but PYTHON=python3.12 is 3.12" in said


def test_an_unknown_part_is_an_error_that_lists_them(machine):
    status, said, _ = machine.setup("everything")
    assert status != 0
    assert "'everything'; there are bench, run, dev, docs, tools, release and adapter" in said
