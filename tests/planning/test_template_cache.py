"""Compiled templates on disk: used where they are right, ignored where they are not, never taken from others."""

import os

import jinja2
import pytest

from gridwise_py.planning import shaders
from gridwise_py.planning.shaders import compose
from gridwise_py.storage import cache

TEXT = "//$ for i in range(count)\nlet x{{ i }} = {{ i }};\n//$ endfor\n"
THREE = "let x0 = 0;\nlet x1 = 1;\nlet x2 = 2;\n"


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """The folder of the cache; the shader file three.wgsl is in another."""
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "shaders").mkdir()
    (tmp_path / "shaders" / "three.wgsl").write_text(TEXT)
    monkeypatch.setattr(shaders, "shader_directory", lambda: tmp_path / "shaders")
    yield tmp_path / "cache"
    shaders._environment.cache_clear()


@pytest.fixture
def compiled(monkeypatch):
    """Names of templates that were compiled, not read."""
    names = []
    original = jinja2.Environment.compile

    def noting(self, source, name=None, *args, **kwargs):
        names.append(name)
        return original(self, source, name, *args, **kwargs)

    monkeypatch.setattr(jinja2.Environment, "compile", noting)
    return names


def _next_process(count=3):
    shaders._environment.cache_clear()
    return compose("three.wgsl", count=count)


def _files(disk):
    return sorted((disk / "templates").iterdir())


def test_the_next_process_compiles_no_template(disk, compiled):
    assert _next_process() == THREE
    assert compiled == ["three.wgsl"]
    assert _next_process() == THREE
    assert _next_process(1) == "let x0 = 0;\n"
    assert compiled == ["three.wgsl"]
    assert len(_files(disk)) == 1


def test_a_changed_text_is_compiled(disk, compiled, tmp_path):
    _next_process()
    (tmp_path / "shaders" / "three.wgsl").write_text(TEXT.replace("let", "var"))
    assert _next_process() == THREE.replace("let", "var")
    assert len(compiled) == 2


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b"", lambda b: b.replace(b"let x", b"let y")])
def test_a_damaged_file_is_replaced(disk, compiled, damage):
    _next_process()
    (file,) = _files(disk)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert _next_process() == THREE
    assert file.read_bytes() == whole
    assert len(compiled) == 2


def test_other_versions_have_their_own_files(disk, compiled, monkeypatch):
    _next_process()
    monkeypatch.setattr(jinja2, "__version__", "99")
    assert _next_process() == THREE
    assert len(compiled) == len(_files(disk)) == 2


@pytest.mark.needs("posix")
def test_a_folder_that_others_can_write_in_is_not_trusted(disk, compiled, monkeypatch):
    _next_process()
    folder = disk / "templates"
    for mode in (0o770, 0o707):
        folder.chmod(mode)
        assert _next_process() == THREE
    folder.chmod(0o700)
    assert len(compiled) == 3
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert _next_process() == THREE
    assert len(compiled) == 4


def test_a_link_in_its_place_is_not_followed(disk, compiled, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    disk.mkdir()
    (disk / "templates").symlink_to(elsewhere)
    assert _next_process() == THREE
    assert list(elsewhere.iterdir()) == []


def test_without_a_folder_nothing_is_kept(disk, compiled, monkeypatch):
    disk.write_text("a file, where the folder would be")
    assert _next_process() == THREE
    monkeypatch.setattr(cache, "cache_folder", lambda: None)
    assert _next_process() == THREE
    assert len(compiled) == 2
