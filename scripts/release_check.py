"""Everything that must hold before a version is published: `make release-check`.

Usage: python scripts/release_check.py [--pythons 3.11,3.12] [--strict] [--tag v1.2.3] [--out dist]

The wheel and the source archive are built twice, from two copies of the last commit, and must have the same bytes.
twine and check-wheel-contents look at them; then they are installed in an empty environment of each Python version,
where the lines of README.md run and print what it shows. --out receives both, the bill of materials (CycloneDX) and
the notes for the release.

What could not be checked, such as a Python version that is not on this machine, is listed at the end in capitals. It
fails the run only with --strict. --tag is for the release itself: the version must be final and fit the tag, and the
changelog must have a section for it, with nothing left under "Unreleased".

Exit: 1 if something is wrong, or, with --strict, was not checked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = "3.11,3.12,3.13,3.14"
_NO_PYTHON = re.compile(r"no interpreter found|failed to (?:download|fetch)|could not (?:connect|find)", re.IGNORECASE)
#: What runs in an environment without the extra `bench`.
_CORE = """
import sys, gridwise_py as gw, numpy as np
assert gw.__version__ == sys.argv[1] and "site-packages" in gw.__file__, (gw.__version__, gw.__file__)
x = np.arange(10_000, dtype=np.uint32)[::-1]
assert gw.sum(x) == x.sum() and (gw.sort(x) == x[::-1]).all()
"""
#: What a reader of README.md runs, who has pandas; the first block prints what stands below it.
_README = """
import contextlib, io, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
blocks = re.findall(r"<!-- run -->\\n```python\\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
shown = re.search(r"^```text\\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]
names, printed = {}, []
for block in blocks:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(block, names)
    printed.append(out.getvalue())
assert printed[0] == shown, printed
assert all(kernel in printed[1] for kernel in names["kernels"]), printed
"""


def require(condition: object, text: str) -> None:
    """End with a text unless a condition holds."""
    if not condition:
        sys.exit(f"WRONG: {text}\n\nThis must not be released.")


def run(*command: str | Path, fails: bool = False, **options: object) -> str:
    """Run a program, which has to succeed, or to fail; return what it printed."""
    print("…", *(str(word).replace("\n", " ")[:60] for word in command[:7]), flush=True)
    given = {"capture_output": True, "text": True, "encoding": "utf-8", "stdin": subprocess.DEVNULL} | options
    done = subprocess.run([str(word) for word in command], check=False, **given)
    said = f"{done.stdout}{done.stderr}".strip()
    require(
        bool(done.returncode) == fails,
        f"{' '.join(map(str, command[:6]))} ended with {done.returncode}:\n{said[-2000:]}",
    )
    return said


def notes(version: str, changelog: str, tag: str | None = None) -> str:
    """Notes of a version, from a changelog in the form of Keep a Changelog, which has to fit it and the tag."""
    found = re.findall(r"^## \[([^\]]+)\](?: - (\S+))?\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    sections = {name: (date, text.strip()) for name, date, text in found}
    if tag is not None:
        require(tag == f"v{version}", f"the tag is {tag}, the version {version}: set gridwise_py/_version.py")
        require(not Version(version).is_prerelease, f"{version} is no final version: set gridwise_py/_version.py")
        left = sections.get("Unreleased", ("", ""))[1]
        require(not left, f'CHANGELOG.md has entries under "Unreleased": move them to [{version}]')
    wanted = "Unreleased" if Version(version).is_devrelease else version
    require(wanted in sections, f"CHANGELOG.md has no section [{wanted}]")
    date, text = sections[wanted]
    if wanted != "Unreleased":
        require(text, f"the section [{wanted}] of CHANGELOG.md is empty")
        require(re.fullmatch(r"\d{4}-\d\d-\d\d", date), f"the section [{wanted}] of CHANGELOG.md lacks its date")
    # What stands before the list of changes is the page of notes.
    return text.partition("\n### Changed\n")[0].strip() + "\n"


def build_twice(root: Path, folder: Path) -> tuple[Path, Path]:
    """Wheel and source archive of the last commit; a second build, elsewhere, has to have the same bytes.

    The first wheel is built from the source archive, the second one from the files, so both sources agree, too.
    """
    epoch = run("git", "log", "-1", "--format=%ct", cwd=root)
    names: list[list[str]] = []
    for number, kinds in enumerate(((), ("--sdist", "--wheel"))):
        source, out = folder / ("elsewhere/source" if number else "source"), folder / f"built-{number}"
        run("git", "clone", "-q", "--no-local", "--depth", "1", root, source)
        other = {"SOURCE_DATE_EPOCH": epoch, "PYTHONHASHSEED": str(number), "TZ": ("UTC", "Pacific/Auckland")[number]}
        if number:
            for path in source.rglob("*.*"):  # what must not matter
                os.utime(path, (1_000_000_000, 1_000_000_000))
        run(sys.executable, "-m", "build", "--no-isolation", *kinds, "-o", out, source, env=os.environ | other)
        names.append(sorted(path.name for path in out.iterdir()))
    require(names[0] == names[1], f"the builds have other files: {names}")
    first, second = folder / "built-0", folder / "built-1"
    differ = [name for name in names[0] if (first / name).read_bytes() != (second / name).read_bytes()]
    require(not differ, f"two builds differ: {', '.join(differ)}; diffoscope {first} {second} says in what")
    (wheel,), (sdist,) = first.glob("*.whl"), first.glob("*.tar.gz")
    return wheel, sdist


def try_out(version: str, python: str, archive: Path, folder: Path) -> Path | None:
    """Install an archive in an empty environment, without and with `bench`, and try it as README.md says.

    Returns its interpreter; None if there is no such Python on this machine, nor one to be downloaded.
    """
    uv = (sys.executable, "-m", "uv")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    path = os.pathsep.join([os.environ["PATH"], *(str(each) for each in sorted(pyenv.glob(f"{python}.*/bin")))])
    made = subprocess.run([*uv, "venv", "-q", "--python", python, folder], env=os.environ | {"PATH": path},
                          capture_output=True, text=True, check=False)  # fmt: skip
    if made.returncode:
        require(_NO_PYTHON.search(made.stderr), made.stderr)
        return None
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    interpreter, gridwise = scripts / "python", scripts / "gridwise"
    # Neither this checkout nor what is installed for this process is visible there.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    options: dict[str, object] = {"env": clean, "cwd": folder}
    pins = ("-c", ROOT / "constraints.txt", "--build-constraint", ROOT / "constraints.txt")
    install = (sys.executable, "-m", "pip", "--python", interpreter, "install", "-q", *pins)
    run(*install, archive)
    run(interpreter, "-P", "-c", _CORE, version, **options)
    said = run(gridwise, "info", fails=True, **options)
    require("gridwise-py[bench]" in said, f"gridwise does not name the extra that it needs: {said}")
    run(*install, f"{archive}[bench]", "pandas")
    run(interpreter, "-P", "-c", _README, ROOT / "README.md", **options)
    run(gridwise, "info", **options)
    run(gridwise, "bench", "scan", "--n", "2^16", "--json", "out.json", **options)  # fails if a result is wrong
    return interpreter


def bill_of_materials(version: str, wheel: Path, interpreter: Path, folder: Path) -> None:
    """Write what is installed beside a wheel, as CycloneDX; the version is none of the fields of pyproject.toml."""
    path = folder / f"gridwise_py-{version}.cdx.json"
    run(sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml", "--mc-type",
        "library", "--of", "JSON", "--output-reproducible", "--sv", "1.6", "-o", path, interpreter)  # fmt: skip
    document = json.loads(path.read_text(encoding="utf-8"))
    document["metadata"]["component"] |= {
        "version": version,
        "purl": f"pkg:pypi/gridwise-py@{version}",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Check, in order."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pythons", default=PYTHONS, help="versions to install on [%(default)s]")
    parser.add_argument("--strict", action="store_true", help="fail on what could not be checked")
    parser.add_argument("--tag", help="of the release that is being made, such as v1.2.3")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="replaced by what was built [dist]")
    given = parser.parse_args()
    not_checked = ["the work tree has changes that are not committed"] if run("git", "status", "-s", cwd=ROOT) else []
    version = runpy.run_path(str(ROOT / "gridwise_py" / "_version.py"))["__version__"]
    from hatch_readme import absolute

    repository = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    text = absolute(notes(version, changelog, given.tag), repository, "main" if "dev" in version else f"v{version}")
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    for schema, files in {
        "github-workflows": workflows,
        "github-issue-forms": sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c][!o]*.yml")),
        "dependabot": [ROOT / ".github" / "dependabot.yml"],
        "citation-file-format": [ROOT / "CITATION.cff"],
    }.items():
        run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    with tempfile.TemporaryDirectory(prefix="gridwise-release-") as name:
        folder = Path(name)
        wheel, sdist = build_twice(ROOT, folder)
        shutil.rmtree(given.out, ignore_errors=True)
        given.out.mkdir(parents=True)
        (given.out / "NOTES.md").write_text(text, encoding="utf-8")
        for archive in (wheel, sdist):
            shutil.copy(archive, given.out)
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
        run(sys.executable, "-m", "check_wheel_contents", wheel)
        own = f"3.{sys.version_info.minor}"
        environments = {python: try_out(version, python, wheel, folder / python) for python in given.pythons.split(",")}
        require(try_out(version, own, sdist, folder / "sdist"), f"there is no Python {own} for the source archive")
        not_checked += [f"there is no Python {python} here" for python, found in environments.items() if not found]
        bill_of_materials(version, wheel, next(filter(None, environments.values())), given.out)
    for reason in not_checked:
        print(f"\nNOT CHECKED: {reason}")
    require(not (given.strict and not_checked), "not everything was checked")
    print(f"\nAll that was checked is right. It is in {given.out}.")


if __name__ == "__main__":
    main()
