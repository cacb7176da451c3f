"""Everything that must hold before a version is published: `make release-check`.

Usage: python scripts/release_check.py [--pythons 3.11,3.12] [--strict] [--tag v1.2.3] [--out dist]

The wheel and the source archive are built twice, from two copies of the tracked files, and must have the same bytes.
They are checked, installed in an empty environment of each Python version, and tried there. --out receives the wheel,
the source archive, the bill of materials (CycloneDX) and the notes for the release.

What could not be checked, such as a Python version that is not on this machine, is listed at the end in capitals. It
fails the run only with --strict. --tag is for the release itself: the version must be final and fit the tag, and the
changelog must have a section for it, with nothing left under "Unreleased".

Exit: 1 if something is wrong, or, with --strict, was not checked.
"""

from __future__ import annotations

import argparse
import email
import email.message
import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import make_api_reference
import sbom
from packaging.version import Version
from wheel_names import differences, documented_names, names_of_wheel

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: What a reader of PyPI's page wants to reach.
URLS = {"Repository", "Documentation", "Changelog", "Issues"}
DOWNLOAD_TIMEOUT_S = 120


class Wrong(Exception):
    """Something that must not be published; the text says what."""


class NotChecked(Exception):
    """Something that cannot be checked on this machine; the text says why."""


def require(condition: object, text: str) -> None:
    """Raise `Wrong` unless a condition holds."""
    if not condition:
        raise Wrong(text)


def run(*command: str | Path, **options: object) -> str:
    """Run a program; return its output, or raise `Wrong` with the end of it."""
    given = {"capture_output": True, "text": True, "encoding": "utf-8", "stdin": subprocess.DEVNULL} | options
    done = subprocess.run([str(word) for word in command], **given)
    if done.returncode:
        said = f"{done.stdout or ''}{done.stderr or ''}".strip()[-2000:]
        raise Wrong(f"{' '.join(map(str, command[:6]))} … ended with {done.returncode}:\n{said}")
    return done.stdout


# ---- version and changelog


def sections(changelog: str) -> dict[str, tuple[str, str]]:
    """Return date ("" if there is none) and text of each section of a changelog, by version."""
    found = re.findall(r"^## \[([^\]]+)\](?: - (\S+))?\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    return {version: (date, text.strip()) for version, date, text in found}


def check_changelog(version: str, changelog: str, tag: str | None = None) -> str:
    """Return the notes of a version; raise `Wrong` if the changelog and the version do not fit.

    Parameters
    ----------
    version, changelog : str
        The changelog in the form of Keep a Changelog.
    tag : str, optional
        Of the release that is being made.
    """
    known = sections(changelog)
    if tag is not None:
        require(tag == f"v{version}", f"the tag is {tag}, the version {version}: set gridwise_py/_version.py")
        require(not Version(version).is_prerelease, f"{version} is no final version: set gridwise_py/_version.py")
        _, left = known.get("Unreleased", ("", ""))
        require(not left, f'CHANGELOG.md has entries under "Unreleased": move them to [{version}]')
    wanted = "Unreleased" if Version(version).is_devrelease else version
    require(wanted in known, f"CHANGELOG.md has no section [{wanted}]")
    date, text = known[wanted]
    if wanted != "Unreleased":
        require(text, f"the section [{wanted}] of CHANGELOG.md is empty")
        require(re.fullmatch(r"\d{4}-\d\d-\d\d", date), f"the section [{wanted}] of CHANGELOG.md lacks its date")
    return text + "\n"


# ---- building


def copy_tracked_files(root: Path, to: Path, *, other: bool) -> None:
    """Copy the files that git tracks; an `other` copy differs in what must not matter: order, times, permissions."""
    names = [name for name in run("git", "ls-files", "-z", cwd=root).split("\0") if name and (root / name).is_file()]
    for name in reversed(names) if other else names:
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, target)
        if other:
            os.utime(target, (1_000_000_000, 1_000_000_000))
            target.chmod(target.stat().st_mode & ~0o077)


def build_twice(root: Path, folder: Path) -> tuple[Path, Path]:
    """Return wheel and source archive; raise `Wrong` if a second build has other bytes.

    The first wheel is built from the source archive, the second one from the files, so both sources agree, too.
    """
    epoch = run("git", "log", "-1", "--format=%ct", cwd=root).strip()
    built: list[Path] = []
    for other, kinds in ((False, ()), (True, ("--sdist", "--wheel"))):
        source, out = folder / ("elsewhere/source" if other else "source"), folder / f"built-{int(other)}"
        source.mkdir(parents=True)
        copy_tracked_files(root, source, other=other)
        environment = {
            **os.environ, "SOURCE_DATE_EPOCH": epoch, "PYTHONHASHSEED": str(int(other)),
            "TZ": "Pacific/Auckland" if other else "UTC",
        }  # fmt: skip
        run(sys.executable, "-m", "build", "--no-isolation", *kinds, "-o", out, source, env=environment)
        built.append(out)
    return compare_builds(*built)


def compare_builds(first: Path, second: Path) -> tuple[Path, Path]:
    """Return the wheel and the source archive of the first folder; raise `Wrong` if the second one's bytes differ."""
    names = sorted(path.name for path in first.iterdir())
    require(
        names == sorted(path.name for path in second.iterdir()),
        f"the builds have other files: {names} and {sorted(path.name for path in second.iterdir())}",
    )
    for name in names:
        one, two = first / name, second / name
        if one.read_bytes() != two.read_bytes():
            members = ", ".join(_differing(_members(one), _members(two))) or "only in the archive's own data"
            raise Wrong(f"{name}: two builds differ: {members}")
    (wheel,), (sdist,) = first.glob("*.whl"), first.glob("*.tar.gz")
    return wheel, sdist


def _members(archive: Path) -> dict[str, str]:
    """Return a digest of each member of a wheel or a source archive, with its time and permissions."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return {
                one.filename: f"{one.date_time} {one.external_attr} {_sha256(opened.read(one))}"
                for one in opened.infolist()
            }
    with tarfile.open(archive) as opened:
        return {
            one.name: f"{one.mtime} {one.mode} {one.uid} {_sha256(content.read())}"
            for one in opened.getmembers()
            if (content := opened.extractfile(one)) is not None
        }


def _differing(one: Mapping[str, str], two: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*one, *two} if one.get(name) != two.get(name))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ---- what is in the wheel


def wheel_metadata(wheel: Path) -> email.message.Message:
    """Return the file METADATA."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def check_metadata(metadata: email.message.Message, version: str, pythons: Sequence[str] = PYTHONS) -> None:
    """Raise `Wrong` unless the metadata say what PyPI and its readers need."""
    require(metadata["Version"] == version, f"the wheel's version is {metadata['Version']}, expected {version}")
    require(metadata["License-Expression"] == "Apache-2.0", f"licence: {metadata['License-Expression']}")
    require(metadata["Description-Content-Type"] == "text/markdown", "the README is not declared as Markdown")
    require(metadata["Summary"] and metadata["Author"], "a summary or an author is missing")
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    require(set(urls) >= URLS, f"project URLs are missing: {sorted(URLS - set(urls))}")
    require(all(url.startswith("https://") for url in urls.values()), f"a project URL is not https: {urls}")
    classifiers = set(metadata.get_all("Classifier", []))
    missing = [python for python in pythons if f"Programming Language :: Python :: {python}" not in classifiers]
    require(not missing, f"no classifier for Python {', '.join(missing)}")


def check_readme(metadata: email.message.Message) -> None:
    """Raise `Wrong` if PyPI would not render the README, or a link in it would lead nowhere there."""
    from readme_renderer import markdown

    text = metadata.get_payload()
    require(isinstance(text, str) and text.strip(), "the metadata have no README")
    rendered = markdown.render(text)
    require(rendered is not None, "the README cannot be rendered")
    # Only headings of the page itself may be linked to without an address.
    relative = re.findall(r'\b(?:href|src|srcset)="(?!https?://|mailto:|#)([^"]*)"', rendered)
    require(not relative, f"links in the README lead nowhere on PyPI: {', '.join(relative)}")


def check_licences(wheel: Path, root: Path) -> None:
    """Raise `Wrong` unless the wheel has the licence files, and every shader as it is in the repository.

    A shader that names a licence (``SPDX-License-Identifier``) other than the project's needs its text among the
    wheel's licence files, as LICENSES/IDENTIFIER.txt.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        licences = {name.partition(".dist-info/licenses/")[2] for name in names if ".dist-info/licenses/" in name}
        require({"LICENSE", "NOTICE"} <= licences, f"the wheel lacks {sorted({'LICENSE', 'NOTICE'} - licences)}")
        shaders = {name.partition("/_shaders/")[2]: archive.read(name) for name in names if "/_shaders/" in name}
    expected = {
        path.relative_to(root / "shaders").as_posix(): path.read_bytes() for path in (root / "shaders").rglob("*.wgsl")
    }
    require(expected, "the repository has no shaders")
    changed = sorted(name for name in {*shaders, *expected} if shaders.get(name) != expected.get(name))
    require(not changed, f"shaders differ from the repository's: {', '.join(changed)}")
    for name, content in shaders.items():
        for licence in re.findall(rb"SPDX-License-Identifier:\s*(\S+)", content):
            text = f"LICENSES/{licence.decode()}.txt"
            require(
                licence == b"Apache-2.0" or text in licences,
                f"{name} is under {licence.decode()}, and the wheel has no {text}",
            )


def reference(folder: Path) -> list[Path]:
    """Make the pages of the reference, as the build of the site does, and return them."""
    make_api_reference.write(folder)
    return sorted(folder.rglob("*.rst"))


def check_names(wheel: Path, documentation: Sequence[Path]) -> str:
    """Raise `Wrong` unless wheel and documentation have the same public names; return how many."""
    names = names_of_wheel(wheel)
    found = differences(names, set().union(*(documented_names(path) for path in documentation)))
    require(not found, "; ".join(found))
    return f"{len(names)} names, the same in the wheel and in the reference"


# ---- installing


def interpreter(version: str, *, download: bool = True) -> Path:
    """Return an interpreter of a Python version, such as "3.12"; raise `NotChecked` if there is none."""
    found = next((path for path in _candidates(version) if _version_of(path) == version), None)
    if found is not None:
        return found
    uv = [sys.executable, "-m", "uv", "python"]
    why = "not asked to download it"
    if download:
        try:
            done = subprocess.run([*uv, "install", version], capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S)
            path = subprocess.run([*uv, "find", "--no-project", version], capture_output=True, text=True).stdout.strip()
            if path and _version_of(Path(path)) == version:
                return Path(path)
            why = (done.stderr.strip().splitlines() or ["uv found none"])[-1].strip()
        except subprocess.TimeoutExpired:
            why = f"uv got no answer within {DOWNLOAD_TIMEOUT_S} s"
    raise NotChecked(f"there is no Python {version} on this machine ({why})")


def _candidates(version: str) -> Iterator[Path]:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        # Not this virtual environment's: that of its base.
        yield Path(getattr(sys, "_base_executable", sys.executable))
        yield Path(sys.executable)
    if (on_path := shutil.which(f"python{version}")) is not None:
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)
    uv = subprocess.run(
        [sys.executable, "-m", "uv", "python", "find", "--no-project", "--no-python-downloads", version],
        capture_output=True, text=True,
    )  # fmt: skip
    if uv.returncode == 0:
        yield Path(uv.stdout.strip())


def _version_of(python: Path) -> str | None:
    """Return major and minor version of an interpreter that runs and can make environments, else None."""
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def empty_environment(python: Path, folder: Path) -> Path:
    """Make a virtual environment without any package; return its interpreter."""
    run(python, "-m", "venv", "--without-pip", folder)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(environment: Path, what: str) -> None:
    """Install into an environment, at the versions in constraints.txt."""
    run(
        sys.executable, "-m", "pip", "--python", environment, "install", "--quiet", "--disable-pip-version-check",
        "-c", ROOT / "constraints.txt", "--build-constraint", ROOT / "constraints.txt", what,
    )  # fmt: skip


def check_install(version: str, python: str, archive: Path, folder: Path) -> Path:
    """Install an archive in an empty environment, without and with `bench`, and try it; return its interpreter."""
    environment = empty_environment(interpreter(python), folder)
    # Neither this checkout nor what is installed for this process is visible there.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    for part, wanted in (("core", str(archive)), ("bench", f"{archive}[bench]")):
        install(environment, wanted)
        run(environment, "-P", ROOT / "scripts" / "smoke_wheel.py", part, version, env=clean, cwd=folder)
    return environment


# ---- all of it


@dataclass
class Report:
    """What was found, in order."""

    wrong: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    def step(self, name: str, what: Callable[[], object]) -> object:
        """Do one check and print a line; return what it returned, or None if something was wrong."""
        print(f"{name} … ", end="", flush=True)
        try:
            value = what()
        except NotChecked as reason:
            self.not_checked.append(f"{name}: {reason}")
            print("NOT CHECKED")
        except Wrong as reason:
            self.wrong.append(f"{name}: {reason}")
            print("WRONG")
        except Exception:  # a check that breaks down has found nothing, which must not pass
            self.wrong.append(f"{name}: the check itself failed:\n{traceback.format_exc()}")
            print("WRONG")
        else:
            print(value if isinstance(value, str) and "\n" not in value else "right")
            return value
        return None

    def conclude(self, *, strict: bool) -> int:
        """Print what is wrong and what was not checked; return the exit code."""
        for title, texts in (("WRONG", self.wrong), ("NOT CHECKED", self.not_checked)):
            for text in texts:
                print(f"\n{title}: {text}")
        if self.wrong or (strict and self.not_checked):
            print("\nThis must not be released.")
            return 1
        print(
            f"\nAll that was checked is right.{' NOT EVERYTHING WAS CHECKED, see above.' if self.not_checked else ''}"
        )
        return 0


def check_tree() -> str:
    """Raise `NotChecked` if the work tree differs from the last commit."""
    changes = run("git", "status", "--porcelain", cwd=ROOT).splitlines()
    if changes:
        raise NotChecked(f"{len(changes)} files differ from the last commit, such as {changes[0][3:]}")
    return run("git", "rev-parse", "--short", "HEAD", cwd=ROOT).strip()


def check_workflows() -> None:
    """Raise `Wrong` if a workflow does not fit GitHub's schema."""
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    schema = ("--builtin-schema", "vendor.github-workflows")
    run(sys.executable, "-m", "check_jsonschema", *schema, *files)


def check_all(pythons: Sequence[str], out: Path, tag: str | None) -> Report:
    """Run every check; fill `out`."""
    report = Report()
    version = runpy.run_path(str(ROOT / "gridwise_py" / "_version.py"))["__version__"]
    print(f"gridwise_py {version}")
    report.step("work tree", check_tree)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = report.step("changelog", lambda: check_changelog(version, changelog, tag))
    report.step("workflows fit GitHub's schema", check_workflows)
    with tempfile.TemporaryDirectory(prefix="gridwise-release-") as name:
        folder = Path(name)
        built = report.step("two builds have the same bytes", lambda: build_twice(ROOT, folder))
        if built is None:
            return report
        wheel, sdist = built
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for archive in built:
            shutil.copy(archive, out)
        if notes is not None:
            (out / "NOTES.md").write_text(notes, encoding="utf-8")
        metadata = wheel_metadata(wheel)
        report.step("metadata", lambda: check_metadata(metadata, version))
        report.step("twine", lambda: run(sys.executable, "-m", "twine", "check", "--strict", *built) and None)
        report.step("README renders", lambda: check_readme(metadata))
        report.step("licences and shaders", lambda: check_licences(wheel, ROOT))
        report.step("public names", lambda: check_names(wheel, reference(folder / "reference")))
        first: Path | None = None
        for python in pythons:
            environment = report.step(
                f"wheel in an empty environment, Python {python}",
                lambda python=python: check_install(version, python, wheel, folder / f"wheel-{python}"),
            )
            first = first or environment
        report.step(
            "source archive in an empty environment",
            lambda: check_install(version, f"3.{sys.version_info.minor}", sdist, folder / "sdist"),
        )
        if first is not None:
            target = out / f"{wheel.name.partition('-py3')[0]}.cdx.json"
            report.step("bill of materials", lambda: sbom.write(wheel, first, target))
        else:
            report.not_checked.append("bill of materials: no environment has the wheel")
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, print, conclude."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pythons", default=",".join(PYTHONS), help="versions to install on [%(default)s]")
    parser.add_argument("--strict", action="store_true", help="fail on what could not be checked")
    parser.add_argument("--tag", help="of the release that is being made, such as v1.2.3")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="replaced by what was built [dist]")
    given = parser.parse_args(arguments)
    return check_all(given.pythons.split(","), given.out, given.tag).conclude(strict=given.strict)


if __name__ == "__main__":
    sys.exit(main())
