"""Find, compose and specialise WGSL.

A shader file is readable WGSL with Jinja2 directives on lines that start with ``//$``. A line that ends with a loop,
as in ``sum += items[{{ k }}];  //$ for k in range(4)``, stands there once for each turn. Types come in through an
``alias``, numbers that need no new text through ``override``. What a target compiler wants at the head of a
text (``enable subgroups;``, say, which Tint demands and naga refuses) is in `prologue`, never in a file. The texts of
users may have it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import settings
from ..errors import ShaderError
from ..types.wgsl_text import Declaration, declarations, tokens
from ..warn import warn
from .kernel_constants import KERNEL_CONSTANTS

if TYPE_CHECKING:
    import jinja2


@lru_cache(maxsize=1)
def shader_directory() -> Path:
    """Return the folder with the WGSL files: in the wheel inside the package, in a checkout at the top."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "_shaders", package.parent / "shaders"):
        if folder.is_dir():
            return folder
    raise ShaderError(f"no shader files: neither {package / '_shaders'} nor {package.parent / 'shaders'} exists")


def load_templates() -> None:
    """Import what composes texts, as the first plan of a process does: for a thread that has time for it before."""
    with suppress(ImportError, ShaderError):  # for the call that needs it to tell
        _environment()


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    import jinja2  # a third of this package's import time, and not needed until a plan is made

    from .template_cache import RepeatedLines, TemplateCache

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(shader_directory()),
        undefined=jinja2.StrictUndefined,
        line_statement_prefix="//$",
        # Jinja's own block delimiters are not wanted in WGSL; these cannot occur in it.
        block_start_string="<%%%",
        block_end_string="%%%>",
        comment_start_string="<###",
        comment_end_string="###>",
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # WGSL, not HTML
        auto_reload=False,  # files do not change while a process runs, and each include would ask for the file's time
        bytecode_cache=TemplateCache(),
        extensions=[RepeatedLines],
    )
    cast(dict[str, Any], environment.globals).update(constants=KERNEL_CONSTANTS, components=_components)
    return environment


def _components(name: str, count: int) -> list[str]:
    """Return the items of an array of vec4, in their order: the unrolled loops of templates run over them."""
    return [f"{name}[{k}].{component}" for k in range(count) for component in "xyzw"]


def compose(name: str, **context: Any) -> str:
    """Compose the shader file `name` (for example ``"scan.wgsl"``) with the values of `context`.

    Returns
    -------
    str
        The text, without prologue.

    Raises
    ------
    ShaderError
        If the file is missing, is malformed, or uses a value that `context` lacks. Names the file and line.
    """
    import jinja2

    try:
        text = _environment().get_template(name).render(**context)
    except jinja2.TemplateNotFound as error:
        raise ShaderError(f"shader {name!r} needs {error.name!r}, which is not in {shader_directory()}") from error
    except jinja2.TemplateSyntaxError as error:
        raise ShaderError(f"shader {error.filename or name}, line {error.lineno}: {error.message}") from error
    except (jinja2.UndefinedError, TypeError) as error:
        # A TypeError where a value that was not given is used as a number.
        raise ShaderError(
            f"shader {name!r} uses a value that was not given: {error}; given were {sorted(context)}"
        ) from error
    return _without_gaps(text)


def _without_gaps(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text)


_COMMENT_AT_TOP = re.compile(r"(?://[^\n]*\n)*")
_RUN = re.compile(r"^fn run\(([^)]*)\) \{", re.MULTILINE)


def compose_kernel(name: str, declarations: str, enter: Callable[[str], str], context: Mapping[str, Any]) -> str:
    """Compose a kernel: the comment of its shader file, declarations, and the algorithm as the entry point.

    Parameters
    ----------
    name : str
    declarations : str
    enter : callable
        Returns the beginning of the entry point, for the parameters of the file's ``run``.
    context : mapping
        Values for the template.
    """
    text = compose(name, **context)
    comment = cast(re.Match[str], _COMMENT_AT_TOP.match(text)).end()
    algorithm, count = _RUN.subn(lambda run: enter(run[1]), text[comment:])
    if count != 1:
        raise ShaderError(f"shader {name!r} has {count} functions 'run', but must have one")
    return _without_gaps(f"{text[:comment]}\n{declarations}{algorithm}")


def sha256(text: str) -> str:
    """Return the hexadecimal sha256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def prologue(target: str, text: str) -> str:
    """Return the lines that `target` wants before `text`.

    Parameters
    ----------
    target : {"naga", "tint"}
        naga is what wgpu-native uses, Tint what Chromium uses.
    text : str
        The text that follows, which tells what it needs.
    """
    if target not in ("naga", "tint"):
        raise ValueError(f"target {target!r} is unknown; known are naga, tint")
    lines: list[str] = []
    if "f16" in text:
        code = _COMMENT.sub(" ", text)
        if re.search(r"\bf16\b", code) and not re.search(r"\benable\b[^;]*\bf16\b", code):
            lines.append("enable f16;")
    if target == "tint" and re.search(r"\bsubgroup\w*\(|@builtin\((subgroup_\w+|num_subgroups)\)", text):
        # Subgroup operations run under conditions that are uniform by construction, which Tint cannot see.
        lines += ["enable subgroups;", "diagnostic(off, subgroup_uniformity);"]
        if "subgroup_matrix_" in text:
            lines.insert(0, "enable chromium_experimental_subgroup_matrix;")
            lines.append("diagnostic(off, chromium.subgroup_matrix_uniformity);")
    return "".join(line + "\n" for line in lines)


_ENABLE = re.compile(_COMMENT.pattern + r"|\benable\b([\s\w,]*);", re.DOTALL)
#: The features of a device that an extension of the language needs.
_FEATURE = {"f16": "shader-f16", "subgroups": "subgroup"}


def enabled_features(text: str) -> tuple[str, ...]:
    """Return the features of a device that a text asks for by ``enable``."""
    names = {name for found in _ENABLE.finditer(text) for name in re.findall(r"\w+", found[1] or "")}
    return tuple(_FEATURE[name] for name in sorted(names & _FEATURE.keys()))


def complete(target: str, text: str) -> str:
    """Return a text as `target` compiles it: behind its `prologue`, which is on the text's first line.

    So messages name the lines of whoever wrote it.
    """
    if target == "naga":  # which has subgroups without a word, and refuses this one
        text = _ENABLE.sub(_without_subgroups, text)
    return prologue(target, text).replace("\n", " ") + text


def _without_subgroups(found: re.Match[str]) -> str:
    names = re.findall(r"\w+", found[1] or "")
    if "subgroups" not in names:
        return found[0]
    others = ", ".join(name for name in names if name != "subgroups")
    return (f"enable {others};" if others else "") + "\n" * found[0].count("\n")


def numbered(text: str) -> str:
    """Return `text` with line numbers, for error messages."""
    lines = text.splitlines()
    width = len(str(len(lines)))
    return "\n".join(f"{i:>{width}} | {line}" for i, line in enumerate(lines, 1))


# Around an operator's text in lib/operator.wgsl.
_OPERATOR = re.compile(r"^// ---- the user's text\n(.*?)^// ---- end of the user's text$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"┌─ \S*?:(\d+):(\d+)")
# An operator's expression in lib/operator.wgsl, once for single items and once for four.
_EXPRESSION = re.compile(
    r"^fn combine(?P<four>4?)\(a: \S+, b: \S+\) -> \S+ \{ return (?:seal4?\((?P<sealed>.*)\)|(?P<plain>.*)); \}$"
)
_GUTTER = re.compile(r"^( *)(\d+)(?= │)", re.MULTILINE)
_QUOTED = re.compile(r"^ *\d+ │(.*)$", re.MULTILINE)
_CALLS = re.compile(r"\A(?:\w[\w ]*\n+)?Caused by:\n(?:  In \w+.*\n)+\n*|(?:\n+ - While .*)+\Z")
# A message of Tint: its place, what it is, the line of the text, and what is meant in it.
_TINT = re.compile(
    r"^(?:Error while parsing WGSL: )?:(\d+):(\d+) (error|warning|note): (.*)\n(.*)\n([ \t^]+)$", re.MULTILINE
)
_USERS_EXPRESSION = re.compile(r"^fn (?:combine|apply)\(.*\{ return (.*); \}$", re.MULTILINE)
_LINES_SHOWN = 30
_LINES_AROUND = 5


def users_text(text: str) -> str:
    """Return the part of a text that a user wrote: functions of operators and expressions, or else all of it."""
    return "\n".join(_OPERATOR.findall(text) or _USERS_EXPRESSION.findall(text)) or text


def shader_error(what: str, text: str, compiler: str) -> ShaderError:
    """Return the error about a text: the compiler's words, and the lines that they are about.

    In the text of an operator lines are numbered as its author counts them.

    Parameters
    ----------
    what : str
        What failed, for people.
    text : str
        What was compiled.
    compiler : str
        What the compiler said.
    """
    said = _TINT.sub(_as_naga_says_it, _CALLS.sub("", compiler.strip()).strip())
    found = _OPERATOR.search(text)
    numbers = [int(number) for _, number in _GUTTER.findall(said)]
    place = _PLACE.search(said)
    # A function of the author's may be written as the library writes an expression.
    expression = _EXPRESSION.match(text.splitlines()[int(place[1]) - 1]) if place and found is None else None
    if expression is not None:
        said = _PLACE.sub(lambda m: f"┌─ the operator's expression, in line {m[1]} of the shader", said)
        remedy = ""
        if expression["four"]:
            remedy = "\nIt must hold for vectors of four items, too; for single items only, give a function by wgsl=."
        written = expression["sealed"] or expression["plain"]
        return _with_remedy(f"{what}: {said}\n\nThe expression of the operator:\n{written}{remedy}", text)
    if found is None:
        return _with_remedy(f"{what}: {said}\n\n{_excerpt(text, int(place[1]) if place else None)}", text)
    before, lines = text.count("\n", 0, found.start(1)), found[1].count("\n")
    if numbers and all(before < number <= before + lines for number in numbers):
        said = _GUTTER.sub(lambda m: f"{int(m[2]) - before:>{len(m[0])}}", said)
        said = _PLACE.sub(lambda m: f"┌─ the operator's text:{int(m[1]) - before}:{m[2]}", said)
    else:
        said = f"{said}\n\n(These lines are the library's, around the text of the operator.)"
    return _with_remedy(f"{what}: {said}\n\nThe text of the operator:\n{numbered(found[1])}", text)


def _as_naga_says_it(message: re.Match[str]) -> str:
    line, column, kind, said, quoted, marks = message.groups()
    bar = " " * len(line) + " │"
    return f"{kind}: {said}\n{bar[:-1]}┌─ wgsl:{line}:{column}\n{bar}\n{line} │ {quoted}\n{bar} {marks}"


def where_in_shader(message: str) -> str:
    """Return which line of the shader the message of a `ShaderError` names, in a few words; or nothing."""
    place, lines = _PLACE.search(message), _QUOTED.findall(message)
    if place is None or not lines:
        return ""
    return f", in line {place[1]} of the shader: {lines[0].strip()}"


def _excerpt(text: str, line: int | None) -> str:
    """Return a short text, or of a long one the lines around a line, with their numbers."""
    lines = numbered(text).splitlines()
    if len(lines) <= _LINES_SHOWN:
        return "\n".join(lines)
    return "" if line is None else "\n".join(lines[max(0, line - 1 - _LINES_AROUND) : line + _LINES_AROUND])


def _with_remedy(message: str, text: str) -> ShaderError:
    return ShaderError(
        f"{message.rstrip()}\n\nThe whole text that was compiled is in the exception's attribute text; "
        f"GRIDWISE_DUMP_SHADERS=folder writes every text to a file.",
        text,
    )


def dump(label: str, text: str) -> None:
    """Write `text` into the folder that ``GRIDWISE_DUMP_SHADERS`` names, if it names one; warn where that fails."""
    folder = settings.dump_shaders()
    if folder is None:
        return
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", label)[:100]  # file systems take names of some 250 characters
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{stem}-{sha256(text)[:12]}.wgsl").write_text(text, encoding="utf-8")
    except OSError as error:
        warn(
            f"the shader {label!r} is not written to GRIDWISE_DUMP_SHADERS={str(folder)!r}, which must be a folder "
            f"that can be written to ({error}); it is compiled and run all the same"
        )


_OPERATORS = frozenset("+-*/%&|^~!<>=.")
_ADDRESS_OF = re.compile(r"(?:(?P<call>\w*)\s*\(|[,=(]|\breturn\b)\s*&(?!&)")
_TAKES_ELEMENTS = re.compile(r"atomic[A-Z]\w*|workgroupUniformLoad|arrayLength")
# naga 29 calls itself once for each bracket and each operator of an expression: 3,000 brackets, or 30,000 operators,
# are more than a stack of 8 MiB holds. Threads, and other systems, have smaller ones.
_MOST_BRACKETS = 200
_MOST_OPERATORS = 2000


def refuse_fatal_text(label: str, text: str) -> None:
    """Refuse a text on which the shader compiler would end the process.

    naga 29 panics on the address of an element or member as an argument of a function that the text declares, and
    overflows its stack on expressions that are nested too deeply or are too long.

    Raises
    ------
    ShaderError
        With the expression.
    """
    pieces = [" " if piece.kind == "comment" else piece.text for piece in tokens(text)]
    _refuse_deep_text(label, text, pieces)
    if _takes_pointers(text):
        _refuse_element_pointers(label, text, "".join(pieces))


def _refuse_deep_text(label: str, text: str, pieces: Sequence[str]) -> None:
    operators = [0]  # in each bracket that is open, since the last comma or the end of the last statement
    count = 0
    for piece in pieces:
        if piece in ("(", "[", "{"):
            operators.append(0)
        elif piece in (")", "]", "}") and len(operators) > 1:
            count -= operators.pop()
        if piece in (",", ";", "}"):
            count -= operators[-1]
            operators[-1] = 0
        elif piece in _OPERATORS:
            count += 1
            operators[-1] += 1
        if len(operators) - 1 > _MOST_BRACKETS or count > _MOST_OPERATORS:
            raise shader_error(
                f"shader {label!r}",
                text,
                f"has more than {_MOST_BRACKETS} brackets within each other, or more than {_MOST_OPERATORS} operators "
                f"in one expression, on which the shader compiler may end this process; break the expression into "
                f"several statements",
            )


def _takes_pointers(text: str) -> bool:
    """Whether a function of the text has a parameter that is a pointer, be it by another name of the type."""
    declared = declarations(text)
    pointers = {"ptr"}
    aliases = [each for each in declared if each.kind == "alias"]
    for _ in aliases:  # one may be declared before the one that it stands for
        pointers |= {each.name for each in aliases if pointers & {token.text for token in each.body}}
    return any(pointers & set(_parameters(each)) for each in declared if each.kind == "fn")


def _parameters(function: Declaration) -> Iterator[str]:
    """Yield the words and marks between a function's name and its body."""
    for token in function.body:
        if token.text == "{":
            return
        yield token.text


def _refuse_element_pointers(label: str, text: str, bare: str) -> None:
    """Refuse a text without comments, `bare`, that passes an element on; built-in functions may be given one."""
    own = {each.name for each in declarations(bare) if each.kind == "fn"}
    for match in _ADDRESS_OF.finditer(bare):
        place = _expression(bare, match.end())
        call = match["call"] or ""
        builtin = call not in own and _TAKES_ELEMENTS.fullmatch(call)
        if not builtin and ("[" in place or "." in place):
            raise shader_error(
                f"shader {label!r}",
                text,
                f"takes the address of an element or member (&{place.strip()}) and has a function with a pointer "
                f"parameter, on which the shader compiler (naga 29) would abort this process; pass the whole variable, "
                f"or a value, instead",
            )


def _expression(text: str, start: int) -> str:
    """Return the expression that begins at `start`: up to a comma, a semicolon or the parenthesis that closes it."""
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] in "([") - (text[end] in ")]")
        if depth < 0 or (depth == 0 and text[end] in ",;"):
            return text[start:end]
    return text[start:]
