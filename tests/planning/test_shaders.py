"""Shader texts: composed without any GPU, with errors that name the file."""

import difflib
import itertools
import re

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.planning import shaders
from gridwise_py.planning.shaders import (
    compose,
    dump,
    prologue,
    refuse_fatal_text,
    shader_directory,
)
from helpers import composed as stored
from helpers import inside
from helpers.cases import APART, cases, texts

FILES = sorted(shader_directory().rglob("*.wgsl"))
TOP = [path for path in FILES if path.parent == shader_directory()]
TEMPLATES = [path for path in TOP if re.search(r"^//\$|\{\{", path.read_text(encoding="utf-8"), re.MULTILINE)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of shader files for one test."""
    monkeypatch.setattr(shaders, "shader_directory", lambda: tmp_path)
    shaders._environment.cache_clear()
    yield tmp_path
    shaders._environment.cache_clear()


def test_files_say_what_they_are_and_nothing_that_a_target_wants():
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert re.match("// .{18}", lines[0]), f"{path}: the first line says what the file is"
        assert not [line for line in lines if re.match(r"\s*(enable|requires|diagnostic)\b", line)], path
    for path in TOP:  # of a kernel, whose forms may differ in the header
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("//$")]
        header = "\n".join(itertools.takewhile(lambda line: line.startswith("// "), lines))
        assert "Forward progress:" in header, path
        assert "Bindings:" in header, path


def test_no_pointer_to_an_element():
    """naga aborts the process where ``&array[i]`` is passed to a function that is not a built-in one."""
    for path in FILES:
        code = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        for match in re.finditer(r"(\w+)\(&\w+\[", code):
            assert match[1].startswith(("atomic", "workgroupUniformLoad")), (path, match[0])


_TAKES_A_POINTER = "fn g(p: ptr<function, f32>) -> f32 { return *p; }"


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("y = g(&a[1]);", "&a[1]"),
        ("y = f(x, &s.member);", "&s.member"),
        ("y = f(x, & s . member);", "&s . member"),
        ("y = g(&a[h(i, 2)]);", "&a[h(i, 2)]"),
        ("y = g(&(*p)[i]) + 1.0;", "&(*p)[i]"),
        ("let p = &a[i]; y = g(p);", "&a[i]"),
        ("return &a[i];", "&a[i]"),
        ("let p = &a[i", "&a[i"),
        ("y = g(&a); atomicAdd(&counts[3], 1u); y = g(&b[1]);", "&b[1]"),
        ("y = g(&a);", None),
        ("y = f(&a, b[1]);", None),
        ("y = g(&a) + b[1];", None),
        ("let p = &a; y = b[1];", None),
        ("atomicAdd(&counts[3], 1u); y = f32(arrayLength(&s.items));", None),
        ("let n = workgroupUniformLoad(&shared_words[0]);", None),
        ("if (x && b[1] > 0.0) { y = 1.0; }", None),
        ("y = 1.0; // g(&a[1])", None),
        ("y = /* g(&a[1]) */ 1.0;", None),
    ],
)
def test_addresses_of_elements_are_refused_where_a_function_takes_pointers(statement, refused):
    text = f"{_TAKES_A_POINTER}\n{statement}"
    if refused is None:
        refuse_fatal_text("k", text)
    else:
        with pytest.raises(gw.ShaderError, match=rf"shader 'k': .*\({re.escape(refused)}\)"):
            refuse_fatal_text("k", text)
    refuse_fatal_text("k", f"fn g(p: f32) -> f32 {{ return p; }}\n{statement}")


@pytest.mark.parametrize(
    "function",
    [
        "alias P = ptr<function, f32>; fn g(p: P) -> f32 { return *p; }",
        "fn g(p: Q) -> f32 { return *p; } alias Q = P; alias P = ptr<function, f32>;",
        "fn g(a: array<f32, (2)>, p: ptr<function, f32>) -> f32 { return *p; }",
        "fn g(/* /* */ ) */ p: ptr<function, f32>) -> f32 { return *p; }",
        "// a line that ends here\u2028fn g(p: ptr<function, f32>) -> f32 { return *p; }",
        "fn atomicg(p: ptr<function, f32>) -> f32 { return *p; } fn g(p: ptr<function, f32>) -> f32 { return *p; }",
        "fn atomicG(p: ptr<function, f32>) -> f32 { return *p; }",
    ],
)
def test_a_function_that_takes_pointers_is_found_however_it_is_written(function):
    """Each text, complete, ends the process in naga 29."""
    name = "g" if "fn g(" in function else "atomicG"
    with pytest.raises(gw.ShaderError, match=r"&a\[1\]"):
        refuse_fatal_text("k", f"{function}\nfn main() {{ y = {name}(&a[1]); }}")


@pytest.mark.parametrize(
    ("expression", "refused"),
    [
        ("(" * 150 + "a" + ")" * 150, False),
        ("(" * 3000 + "a" + ")" * 3000, True),
        ("max(a, " * 3000 + "a" + ")" * 3000, True),
        ("a" + " + a" * 1500, False),
        ("a" + " + a" * 30_000, True),
        ("a" + " + max(a, a)" * 30_000, True),
        ("~" * 30_000 + "a", True),
        ("array(" + "-a, " * 30_000 + "a)", False),
        ("a; " + "x = -a; if (x > a) { x += a; } " * 5000, False),
        ("a; // " + "(" * 5000, False),
    ],
)
def test_expressions_that_overflow_the_compilers_stack_are_refused(expression, refused):
    text = f"fn main() {{ let y = {expression}\n; }}"
    if refused:
        with pytest.raises(gw.ShaderError, match="break the expression into several statements"):
            refuse_fatal_text("k", text)
    else:
        refuse_fatal_text("k", text)


@pytest.fixture(scope="module", params=["few", pytest.param("every", marks=pytest.mark.slow)])
def composed(request):
    """Composed texts of a few cases, or of every one: a case's name and the shader, by sha256."""
    return texts(every=request.param == "every")


def test_every_primitive_composes_in_every_form(composed):
    """Items are reached only through load and store, where views, windows and casts come in for all at once."""
    assert len(composed) > 300
    own = r"fn ((load|store)4?_\w+|(words|chunks)_\d+_(read|write|swap)\w*)\([^)]*\)[^{]*\{.*?\n\}"
    for key, (name, shader) in composed.items():
        text = shader.text
        assert shaders.sha256(text) == key
        assert "@compute" in text, name
        assert not re.search(r"\{\{|//\$|Undefined|\n\n\n|^\s*(enable|requires)\b", text, re.MULTILINE), name
        assert not re.search(r"\bwords_\d+\[", re.sub(own, "", text, flags=re.DOTALL)), name
        # 64-bit words and subgroups are only where their features are named.
        wide = re.search(r"\bu64\b|\dlu\b", re.sub(r"//[^\n]*", "", text)) is not None
        assert wide == ("shader-int64" in shader.features), name
        assert bool(prologue("tint", text)) == ("subgroup" in shader.features), name
        assert prologue("naga", text) == ("enable f16;\n" if "shader-f16" in shader.features else ""), name


def test_a_kernel_of_each_kind_is_composed_as_it_is_stored():
    """So that a review sees what a change of a template, or of its values, makes of the texts."""
    now = stored.composed()
    then = {path.name: path.read_text(encoding="utf-8") for path in stored.FOLDER.iterdir()}
    changes = [
        "".join(difflib.unified_diff(
            then.get(name, "").splitlines(keepends=True), now.get(name, "").splitlines(keepends=True),
            f"stored {name}", f"composed {name}", n=1,
        ))
        for name in sorted(now.keys() | then.keys())
    ]  # fmt: skip
    remedy = "If that is meant, write them anew: PYTHONPATH=tests python -m helpers.composed"
    assert now == then, "".join(["the composed texts are other ones\n", *changes, remedy])


def test_no_kernel_is_missing_among_them(composed):
    """So that a new one, too, is compiled under Tint: by the first line of its file, which no other has."""
    heads = {path: path.read_text(encoding="utf-8").splitlines()[0] for path in FILES if path.parent.name != "lib"}
    for _, shader in composed.values():
        heads = {path: head for path, head in heads.items() if head not in shader.text}
    assert heads == {}


def test_items_are_written_by_atomics_only_where_they_share_words(composed):
    found = [(name, shader) for name, shader in composed.values() if re.match("vector_add|copy|triad|matmul-f32", name)]
    assert len(found) > 50
    assert not [name for name, shader in found if "array<atomic<u32>>" in shader.text]
    assert any("array<atomic<u32>>" in shader.text for name, shader in composed.values() if "matmul-f16" in name)


def test_without_shader_files_it_says_where_it_looked(tmp_path, monkeypatch):
    shader_directory.cache_clear()
    try:
        monkeypatch.setattr(shaders, "__file__", str(tmp_path / "package" / "planning" / "shaders.py"))
        with pytest.raises(gw.ShaderError) as caught:
            shader_directory()
        assert f"neither {tmp_path / 'package' / '_shaders'} nor {tmp_path / 'shaders'} exists" in str(caught.value)
        for folder in (tmp_path / "shaders", tmp_path / "package" / "_shaders"):  # the wheel's come first
            folder.mkdir(parents=True)
            shader_directory.cache_clear()
            assert shader_directory() == folder
    finally:
        shader_directory.cache_clear()


def test_a_missing_value_names_the_file_and_the_value():
    with pytest.raises(gw.ShaderError, match=r"vector_add\.wgsl.*datatype") as caught:
        compose("vector_add.wgsl", vecs=4, bindings="", counted=False)
    assert "vecs" in str(caught.value), "what was given"


def test_no_file_composes_without_its_values():
    for path in TEMPLATES:
        with pytest.raises(gw.ShaderError, match=re.escape(path.name)):
            compose(path.name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("const x = {{ op.expresion }};\n", r"a\.wgsl.*expresion"),
        ('//$ include "lib/none.wgsl"\n', r"a\.wgsl.*lib/none\.wgsl"),
        ("// a\n//$ if x\nconst y = 1;\n", r"a\.wgsl, line \d"),
        (None, r"a\.wgsl"),
    ],
    ids=["attribute", "include", "malformed", "no file"],
)
def test_what_is_missing_in_a_template_is_named_with_its_file(folder, text, words):
    if text is not None:
        (folder / "a.wgsl").write_text(text)
    with pytest.raises(gw.ShaderError, match=words):
        compose("a.wgsl", op={"expression": "a + b"}, x=1)


def test_wgsl_that_looks_like_a_template_is_left_alone(folder):
    """Also an operator's text: a value is not composed again."""
    (folder / "a.wgsl").write_text("const a = 1 % 3; // {# no comment #}\n{{ user }}\n")
    text = compose("a.wgsl", user='{{ x }} {% y %} <b> & "q"\n//$ if z')
    assert "1 % 3; // {# no comment #}" in text
    assert '{{ x }} {% y %} <b> & "q"\n//$ if z' in text


def test_the_prologue_of_tint_enables_subgroups_where_they_are_used():
    for text in (
        "let x = subgroupAdd(1u);",
        "let x = subgroupShuffleUp(y, 1u);",
        "fn main(@builtin(subgroup_size) s: u32) {}",
        "fn main(@builtin(num_subgroups) s: u32) {}",
        "fn main(@builtin(subgroup_invocation_id) s: u32) {}",
    ):
        lines = prologue("tint", text).splitlines()
        assert lines[0] == "enable subgroups;", "enable comes before everything else"
        assert "diagnostic(off, subgroup_uniformity);" in lines
    assert prologue("tint", "// no subgroups here\nfn main() {}") == ""


def test_dump_writes_a_file_per_text_where_it_is_asked_to(tmp_path, monkeypatch):
    folder = tmp_path / "deep" / "folder"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRIDWISE_DUMP_SHADERS", raising=False)
    dump("label", "text")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("GRIDWISE_DUMP_SHADERS", str(folder))
    for label, text in (("scan / ../blocks: ü", "one"), *2 * [("scan / ../blocks: ü", "two")], ("n" * 300, "three")):
        dump(label, text)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+-[0-9a-f]{12}\.wgsl", path.name) for path in folder.iterdir())
    assert sorted(path.read_text() for path in folder.iterdir()) == ["one", "three", "two"]


def test_dump_warns_where_it_cannot_write(tmp_path, monkeypatch, fresh_device):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("GRIDWISE_DUMP_SHADERS", str(file / "folder"))
    scan = gw.Scan(fresh_device, strategy="reduce_then_scan")
    x = gw.asarray(np.ones(1000, dtype=np.uint32), fresh_device)
    with pytest.warns(gw.GridwiseWarning, match=r"GRIDWISE_DUMP_SHADERS='.*folder'.*compiled and run all the same"):
        output = scan.execute(input=x).output
    np.testing.assert_array_equal(output.to_numpy(), np.arange(1, 1001))


def test_execute_dumps_what_it_compiles(tmp_path, monkeypatch, fresh_device):
    monkeypatch.setenv("GRIDWISE_DUMP_SHADERS", str(tmp_path))
    scan = gw.Scan(fresh_device, strategy="reduce_then_scan")
    run = scan.execute(input=gw.asarray(np.ones(100_000, dtype=np.uint32), fresh_device))
    dumped = {path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    language = {"wgpu": "naga", "dawn": "tint"}[inside.engine_name(fresh_device)]
    texts = [run.plan.shaders[kernel.shader].text for kernel in run.plan.kernels]
    assert dumped == {prologue(language, text).replace("\n", " ") + text for text in texts}


def test_cases_cover_every_registered_primitive():
    assert {case.name for case in cases()} | set(APART) == set(gw.primitives.REGISTRY)


def test_f16_is_enabled_where_code_uses_it():
    for text, before in (
        ("var x: f16;\n", "enable f16;\n"),
        ("enable f16;\nvar x: f16;", ""),
        ("enable subgroups, f16;\nvar x: f16;", ""),
        ("/* as f16,\n or f16 */ var x: f32; // f16", ""),
        ("// enable f16;\nvar x: f16;", "enable f16;\n"),
        ("var f16s: f32;", ""),
        ("let x = unpack2x16float(y);  // items of f16", ""),
    ):
        assert prologue("naga", text) == prologue("tint", text) == before, text
