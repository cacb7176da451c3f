"""The check of a release: what it refuses, what it says of what it could not check, and what it writes.

Archives are made here, small ones; that the real ones pass is what `make release-check` asks.
"""

import email
import importlib.util
import json
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

import gridwise_py as gw
from helpers.paths import ROOT

pytestmark = [pytest.mark.needs("the repository", "git"), pytest.mark.slow]


@pytest.fixture(scope="module")
def scripts():
    """A function that imports a script by its name."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look there
        spec.loader.exec_module(module)
        return module

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        before = set(sys.modules)
        yield load
        for name in set(sys.modules) - before:
            if (ROOT / "scripts" / f"{name}.py").exists():
                del sys.modules[name]


@pytest.fixture(scope="module")
def check(scripts):
    return scripts("release_check")


def make_wheel(path: Path, files: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


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
    assert check.check_changelog("1.2.0", CHANGELOG) == "The notes.\n"
    assert check.check_changelog("1.3.0.dev0", CHANGELOG) == "### Added\n\n- One thing.\n"
    assert check.check_changelog("1.2.0", CHANGELOG.replace("### Added\n\n- One thing.\n", ""), "v1.2.0")


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
    with pytest.raises(check.Wrong, match=said):
        check.check_changelog(version, CHANGELOG, tag)


def test_only_a_development_version_may_have_no_entries_yet(check):
    nothing_new = CHANGELOG.replace("### Added\n\n- One thing.\n", "")
    assert check.check_changelog("1.3.0.dev0", nothing_new) == "\n"
    with pytest.raises(check.Wrong, match="is empty"):
        check.check_changelog("1.2.0", CHANGELOG.replace("The notes.", ""))


# ---- builds


def test_two_builds_with_the_same_bytes_pass_and_others_name_what_differs(check, tmp_path):
    for folder, text in (("one", "a"), ("two", "a"), ("three", "b")):
        (tmp_path / folder).mkdir()
        make_wheel(tmp_path / folder / "x-1-py3-none-any.whl", {"same.py": "", "x.py": text})
        with tarfile.open(tmp_path / folder / "x-1.tar.gz", "w") as archive:
            info = tarfile.TarInfo("x-1/x.py")
            archive.addfile(info)
    wheel, sdist = check.compare_builds(tmp_path / "one", tmp_path / "two")
    assert (wheel.parent, sdist.name) == (tmp_path / "one", "x-1.tar.gz")
    with pytest.raises(check.Wrong, match=r"x-1-py3-none-any\.whl: two builds differ: x\.py$"):
        check.compare_builds(tmp_path / "one", tmp_path / "three")
    (tmp_path / "two" / "more.txt").touch()
    with pytest.raises(check.Wrong, match="other files"):
        check.compare_builds(tmp_path / "one", tmp_path / "two")


def test_a_file_that_git_does_not_track_is_not_built(check, tmp_path):
    source, copy, other = tmp_path / "source", tmp_path / "copy", tmp_path / "other"
    (source / "below").mkdir(parents=True)
    for name in ("a.py", "below/b.py", "left.py"):
        (source / name).write_text(name)
    for command in (["init", "-q"], ["add", "a.py", "below/b.py"]):
        subprocess.run(["git", *command], cwd=source, check=True)
    for target in (copy, other):
        check.copy_tracked_files(source, target, other=target is other)
        assert {p.relative_to(target).as_posix() for p in target.rglob("*.py")} == {"a.py", "below/b.py"}
    # The second copy is another one in everything that must not matter.
    assert (other / "a.py").stat().st_mtime != (copy / "a.py").stat().st_mtime


@pytest.mark.needs("module:hatchling")
def test_the_readme_of_a_build_leads_somewhere(scripts):
    absolute = scripts("hatch_readme").absolute
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


# ---- contents

METADATA = """\
Metadata-Version: 2.4
Name: x
Version: 1.0
Summary: s
Author: a
License-Expression: Apache-2.0
Description-Content-Type: text/markdown
Classifier: Programming Language :: Python :: 3.11
Classifier: Programming Language :: Python :: 3.12
Project-URL: Repository, https://host/repo
Project-URL: Documentation, https://host/docs
Project-URL: Changelog, https://host/changes
Project-URL: Issues, https://host/issues
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Version: 1.0\n", "Version: 1.1\n", "version is 1.1"),
        ("Apache-2.0", "MIT", "licence: MIT"),
        ("Project-URL: Issues, https://host/issues\n", "", "Issues"),
        ("https://host/docs", "http://host/docs", "not https"),
        ("text/markdown", "text/x-rst", "Markdown"),
        ("Summary: s\n", "", "summary"),
        ("Classifier: Programming Language :: Python :: 3.12\n", "", "3.12"),
    ],
)
def test_metadata_that_lack_something_are_refused(check, old, new, said):
    pythons = ("3.11", "3.12")
    check.check_metadata(email.message_from_string(METADATA), "1.0", pythons)
    assert old in METADATA
    with pytest.raises(check.Wrong, match=said):
        check.check_metadata(email.message_from_string(METADATA.replace(old, new)), "1.0", pythons)


@pytest.fixture
def licensed(tmp_path):
    """A repository with two shaders, and the files of a wheel of it."""
    (tmp_path / "shaders" / "lib").mkdir(parents=True)
    shaders = {"scan.wgsl": b"// Scan\n", "lib/state.wgsl": b"// State\n"}
    for name, content in shaders.items():
        (tmp_path / "shaders" / name).write_bytes(content)
    files = {f"x/_shaders/{name}": content for name, content in shaders.items()}
    return tmp_path, files | {"x-1.dist-info/licenses/LICENSE": "", "x-1.dist-info/licenses/NOTICE": ""}


def test_shaders_and_licences_are_those_of_the_repository(check, licensed):
    root, files = licensed
    check.check_licences(make_wheel(root / "a.whl", files), root)
    for name in files:
        left = {other: content for other, content in files.items() if other != name}
        with pytest.raises(check.Wrong, match=name.rpartition("/")[2]):
            check.check_licences(make_wheel(root / "b.whl", left), root)
    with pytest.raises(check.Wrong, match=r"lib/state\.wgsl"):
        check.check_licences(make_wheel(root / "c.whl", files | {"x/_shaders/lib/state.wgsl": "// Other\n"}), root)


def test_a_shader_under_another_licence_brings_its_text(check, licensed):
    root, files = licensed
    content = b"// SPDX-License-Identifier: BSD-3-Clause\n"
    (root / "shaders" / "scan.wgsl").write_bytes(content)
    files["x/_shaders/scan.wgsl"] = content
    with pytest.raises(check.Wrong, match=r"scan\.wgsl is under BSD-3-Clause"):
        check.check_licences(make_wheel(root / "a.whl", files), root)
    files["x-1.dist-info/licenses/LICENSES/BSD-3-Clause.txt"] = "…"
    check.check_licences(make_wheel(root / "b.whl", files), root)


# ---- public names


@pytest.fixture(scope="module")
def names(scripts):
    return scripts("wheel_names")


def test_the_names_are_those_of_the_wheel_and_not_of_what_is_installed(names, tmp_path):
    wheel = make_wheel(tmp_path / "a.whl", {"gridwise_py/__init__.py": "__all__ = ['only']\nonly = 1\n"})
    assert names.names_of_wheel(wheel) == {"only"}
    wheel = make_wheel(tmp_path / "b.whl", {"gridwise_py/__init__.py": "__all__ = ['only', 'gone']\nonly = 1\n"})
    with pytest.raises(RuntimeError, match="gone"):
        names.names_of_wheel(wheel)
    with pytest.raises(RuntimeError, match=r"no_such_module"):
        names.names_of_wheel(make_wheel(tmp_path / "c.whl", {"gridwise_py/__init__.py": "import no_such_module\n"}))


def test_documented_names_come_from_directives_or_from_an_inventory(names, tmp_path):
    page = tmp_path / "arrays.rst"
    text = "Arrays\n======\n\n.. autofunction:: asarray\n\n.. py:data:: Add\n\n   Sum. See `gw.scan`.\n"
    page.write_text(".. py:currentmodule:: gridwise_py\n" + text, encoding="utf-8")
    assert names.documented_names(page) == {"asarray", "Add"}
    lines = (
        "gridwise_py py:module 0 index.html#$ -\n"
        "gridwise_py.Scan py:class 1 api.html#$ -\n"
        "gridwise_py.Scan.execute py:method 1 api.html#$ -\n"
        "gridwise_py.sum py:function 1 api.html#$ -\n"
        "other.sum2 py:function 1 api.html#$ -\n"
        "search std:label -1 search.html Search the page\n"
    )
    head = b"# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# The remainder is compressed using zlib.\n"
    inventory = tmp_path / "objects.inv"
    inventory.write_bytes(head + zlib.compress(lines.encode()))
    assert names.documented_names(inventory) == {"Scan", "sum"}
    inventory.write_bytes(b"# Sphinx inventory version 1\n\n\n\n")
    with pytest.raises(ValueError, match="version 2"):
        names.documented_names(inventory)


def test_differences_are_told_in_both_directions(names):
    assert names.differences({"a", "b"}, {"b", "a"}) == []
    assert names.differences({"a", "b"}, {"b", "c"}) == [
        "in the wheel, not in the documentation: a",
        "in the documentation, not in the wheel: c",
    ]


# ---- installing


def test_a_python_that_is_not_there_is_not_checked(check, monkeypatch):
    monkeypatch.setattr(check, "_candidates", lambda version: iter([Path("/nonexistent/python"), Path(sys.executable)]))
    with pytest.raises(check.NotChecked, match=r"no Python 2\.6 on this machine"):
        check.interpreter("2.6", download=False)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert check.interpreter(version, download=False) == Path(sys.executable)


def test_what_was_not_checked_is_said_and_fails_only_where_all_must_be(check, capsys):
    def missing():
        raise check.NotChecked("there is no Python 9.9")

    def wrong():
        raise check.Wrong("two builds differ")

    report = check.Report()
    assert report.step("good", lambda: "3 names") == "3 names"
    assert report.step("missing", missing) is None
    assert (report.conclude(strict=False), report.conclude(strict=True)) == (0, 1)
    said = capsys.readouterr().out
    assert "NOT CHECKED: missing: there is no Python 9.9" in said
    assert "NOT EVERYTHING WAS CHECKED" in said
    report.step("wrong", wrong)
    assert report.conclude(strict=False) == 1
    assert "WRONG: wrong: two builds differ" in capsys.readouterr().out


def test_a_check_that_breaks_down_does_not_pass(check, capsys):
    report = check.Report()
    report.step("broken", lambda: {}["key"])
    assert report.conclude(strict=False) == 1
    assert "KeyError" in capsys.readouterr().out


# ---- the bill of materials


def test_the_bill_of_materials_is_about_the_wheel(scripts, tmp_path):
    sbom = scripts("sbom")
    wheel = make_wheel(
        tmp_path / "gridwise_py-1-py3-none-any.whl", {"gridwise_py/_shaders/a.wgsl": "// A\n", "b.py": ""}
    )
    parts = [
        {"type": "library", "name": "gridwise_py", "version": "1", "bom-ref": "me",
         "externalReferences": [{"type": "distribution", "url": "file:///home/someone/x.whl"}]},
        {"type": "library", "name": "numpy", "version": "2", "bom-ref": "numpy"},
    ]  # fmt: skip
    made = sbom.complete({"metadata": {"tools": []}, "components": parts}, wheel)
    subject = made["metadata"]["component"]
    assert [part["name"] for part in made["components"]] == ["numpy"]
    assert (subject["bom-ref"], subject["purl"]) == ("me", "pkg:pypi/gridwise-py@1")
    assert "someone" not in json.dumps(made)
    (shader,) = subject["components"]
    assert shader["name"] == "gridwise_py/_shaders/a.wgsl"
    # sha256sum of the text
    assert shader["hashes"] == [
        {"alg": "SHA-256", "content": "67f69e04347fde1ef34d69b1d4bb8b45033b8e7c290b764fbe3e96e0c304d8c0"}
    ]
    with pytest.raises(ValueError, match="0 packages named"):
        sbom.complete({"metadata": {}, "components": parts[1:]}, wheel)


# ---- against the last release


@pytest.fixture
def repository(tmp_path):
    """A function that commits, with tags; the repository is empty at first."""

    def git(*words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=tmp_path, check=True)

    git("init", "-q", "-b", "main")

    def commit(*tags):
        git("commit", "-q", "--allow-empty", "-m", "x")
        for tag in tags:
            git("tag", tag)

    commit.git, commit.folder = git, tmp_path
    return commit


def test_the_last_release_is_the_newest_final_version_before_this_commit(scripts, repository):
    last_release = scripts("compare_release").last_release
    repository()
    assert last_release(repository.folder) is None
    repository("v0.9.0")
    assert last_release(repository.folder) is None, "this commit itself"
    repository("v0.10.0", "v0.11.0rc1", "very-old")
    repository()
    assert last_release(repository.folder) == "v0.10.0", "by version, not by letters"
    repository.git("checkout", "-q", "-b", "other")
    repository("v2.0.0")
    repository.git("checkout", "-q", "main")
    assert last_release(repository.folder) == "v0.10.0", "a release of another branch"
    repository("v0.11.0")
    assert last_release(repository.folder) == "v0.10.0"


def test_what_git_says_to_do_is_passed_on(scripts, repository, monkeypatch, capsys):
    repository()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(SystemExit) as ended:
        scripts("compare_release").last_release(repository.folder)
    assert ended.value.code == 2, "1 is a verdict"
    assert f"git config --global --add safe.directory {repository.folder}" in capsys.readouterr().err


def test_a_regression_fails_and_is_in_the_summary(scripts, monkeypatch, tmp_path, capsys):
    script = scripts("compare_release")
    summary, commands = tmp_path / "summary.md", []
    monkeypatch.setattr(script, "last_release", lambda folder: "v1.0.0")

    def measured(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, stdout="scan is slower\n")

    monkeypatch.setattr(script.subprocess, "run", measured)
    assert script.main(["--summary", str(summary), "--json", "a.json", "--", "scan", "--gate", "9%"]) == 1
    assert commands[0][3:] == ["ab", "v1.0.0", ".", "scan", "--gate", "9%", "--json", "a.json", "--overwrite"]
    text = summary.read_text(encoding="utf-8")
    assert "SLOWER than v1.0.0" in text
    assert "scan is slower" in text
    assert "SLOWER" in capsys.readouterr().out


def test_without_a_release_nothing_is_compared_and_that_is_said(scripts, monkeypatch, tmp_path, capsys):
    script = scripts("compare_release")
    monkeypatch.setattr(script, "last_release", lambda folder: None)
    assert script.main(["--summary", str(tmp_path / "summary.md")]) == 0
    for text in (capsys.readouterr().out, (tmp_path / "summary.md").read_text(encoding="utf-8")):
        assert "NOTHING WAS COMPARED" in text


@pytest.mark.parametrize(("kind", "gate"), [("CPU", "25%"), ("DiscreteGPU", "5%")])
def test_a_software_adapter_gets_few_items_and_a_wide_gate(scripts, monkeypatch, kind, gate):
    adapter = gw.AdapterDescription(0, "Some", kind, "Vulkan", "", "", frozenset())
    monkeypatch.setattr(gw, "list_adapters", lambda: [adapter])
    arguments = scripts("compare_release").default_arguments()
    assert arguments[arguments.index("--gate") + 1] == gate
    assert ("2^24" in arguments[arguments.index("--n") + 1]) == (kind != "CPU")
