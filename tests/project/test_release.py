"""The check of a release: what it refuses. That the real archives pass is what `make release-check` asks."""

import importlib.util
import subprocess
import sys

import pytest

from helpers.paths import ROOT

pytestmark = [pytest.mark.needs("the repository", "git"), pytest.mark.slow]


def load(name):
    """Import a script by its name."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check():
    return load("release_check")


# ---- version and changelog

CHANGELOG = """# Changelog

## [Unreleased]

### Added

- One thing.

## [1.2.0] - 2026-11-20

The notes.

## [1.1.0]

Undated.
"""


def test_the_notes_are_the_section_of_the_version(check):
    assert check.notes("1.2.0", CHANGELOG) == "The notes.\n"
    assert check.notes("1.3.0.dev0", CHANGELOG) == "### Added\n\n- One thing.\n"
    assert check.notes("1.2.0", CHANGELOG.replace("### Added\n\n- One thing.\n", ""), "v1.2.0")


@pytest.mark.parametrize(
    ("version", "tag", "said"),
    [
        ("1.4.0", None, r"no section \[1.4.0\]"),
        ("1.1.0", None, "lacks its date"),
        ("1.2.0", "v1.2.0", "Unreleased"),
        ("1.2.0", "v1.2.1", "the tag is v1.2.1"),
        ("1.3.0.dev0", "v1.3.0.dev0", "no final version"),
        ("1.3.0rc1", "v1.3.0rc1", "no final version"),
    ],
)
def test_a_version_that_the_changelog_does_not_fit_is_refused(check, version, tag, said):
    with pytest.raises(SystemExit, match=said):
        check.notes(version, CHANGELOG, tag)


def test_only_a_development_version_may_have_no_entries_yet(check):
    nothing_new = CHANGELOG.replace("### Added\n\n- One thing.\n", "")
    assert check.notes("1.3.0.dev0", nothing_new) == "\n"
    with pytest.raises(SystemExit, match="is empty"):
        check.notes("1.2.0", CHANGELOG.replace("The notes.", ""))


# ---- builds


PROJECT = {
    "pyproject.toml": '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    '[project]\nname = "x"\nversion = "1"\n[tool.hatch.build.hooks.custom]\n',
    "x/__init__.py": "",
    "left.py": "",
    "hatch_build.py": "",
}


@pytest.mark.needs("module:hatchling", "module:build")
def test_two_builds_with_the_same_bytes_pass_and_others_name_what_differs(check, tmp_path):
    source = tmp_path / "source"
    hook = "from hatchling.builders.hooks.plugin.interface import BuildHookInterface as Hook\nclass Custom(Hook):\n"
    same, other = "    pass\n", (
        "    def initialize(self, version, data):\n"
        "        import time, pathlib\n"
        "        (pathlib.Path(self.root) / 'x/made.py').write_text(str(time.time_ns()))\n"
    )  # fmt: skip
    for number, body in enumerate((same, other)):
        for name, text in (PROJECT | {"hatch_build.py": hook + body}).items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
        for command in (["init", "-q"], ["add", "x", "pyproject.toml", "hatch_build.py"], ["commit", "-qm", "x"]):
            subprocess.run([*git, *command], cwd=source, check=True)
        if number == 0:
            wheel, sdist = check.build_twice(source, tmp_path / "same")
            assert (wheel.suffix, sdist.name) == (".whl", "x-1.tar.gz")
            assert "left.py" not in subprocess.run(
                [sys.executable, "-m", "tarfile", "-l", sdist], check=True, capture_output=True, text=True
            ).stdout, "git does not track it"  # fmt: skip
        else:
            with pytest.raises(SystemExit, match=r"two builds differ: x-1.*\.whl(.|\n)*must not be released"):
                check.build_twice(source, tmp_path / "other")


def test_a_program_that_fails_ends_the_check_with_what_it_said(check):
    with pytest.raises(SystemExit, match=r"WRONG: .* ended with 3:\nno such thing"):
        check.run(sys.executable, "-c", "print('no such thing'); raise SystemExit(3)")
    assert check.run(sys.executable, "-c", "print(1); raise SystemExit(3)", fails=True) == "1"
    with pytest.raises(SystemExit, match="ended with 0"):
        check.run(sys.executable, "-c", "", fails=True)


@pytest.mark.needs("module:hatchling")
def test_the_readme_of_a_build_leads_somewhere():
    absolute = load("hatch_readme").absolute
    readme = (
        "[a](docs/a.md#b) [c](https://x.org/c) [d](#d) ![e](e.svg)\n"
        '<source srcset="docs/dark.svg"><img src="docs/light.svg">\n'
        "```python\nx[0](docs/a.md)\n```\n[f](./LICENSE)\n"
    )
    assert absolute(readme, "https://host/repo", "v1") == (
        "[a](https://host/repo/blob/v1/docs/a.md#b) [c](https://x.org/c) [d](#d) ![e](https://host/repo/raw/v1/e.svg)\n"
        '<source srcset="https://host/repo/raw/v1/docs/dark.svg"><img src="https://host/repo/raw/v1/docs/light.svg">\n'
        "```python\nx[0](docs/a.md)\n```\n[f](https://host/repo/blob/v1/LICENSE)\n"
    )
