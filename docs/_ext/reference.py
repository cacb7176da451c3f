"""The pages of public names: what they show of a docstring, and of which members.

Sphinx's autosummary makes a page for each name in docs/reference/python/*.rst. `help()` shows a docstring whole; a page
has its summary, an example, the parameters, the result, the names of the errors and the source of the algorithm, in
this order, without what docstrings repeat and shared.rst says once.
"""

from __future__ import annotations

import functools
import inspect
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import gridwise_py as gw
from gridwise_py.namespace import INSTEAD

PAGES = Path(__file__).resolve().parents[1] / "reference" / "python"
_SETTINGS = tomllib.loads((PAGES / "members.toml").read_text(encoding="utf-8"))
INTERNAL: dict[str, str] = _SETTINGS["internal"]
COMPANIONS: dict[str, list[str]] = _SETTINGS["companions"]
_SHARED_PAGE = (PAGES / "shared.rst").read_text(encoding="utf-8")
#: What the page of shared arguments says: of parameters by their names, its sentences, and names, of errors too.
SHARED = dict(re.findall(r"^``([^`]+)``\n   (.*)$", _SHARED_PAGE, re.MULTILINE))
SAID = {" ".join(each.split()) for each in re.split(r"(?<=\.)\s+(?:\* )?", _SHARED_PAGE)}
NAMES = set(re.findall(r"`(\w+)`", _SHARED_PAGE))
#: The part of a docstring's words that it must have, so that a page leaves them out.
_MOST = 0.75
#: Parameters that it explains for all primitives.
OF_PRIMITIVES = {"tuning", "capabilities", "strategy", "sort_tuning"}
#: Names on pages whose first lines link it.
LINKED_ONCE = {name for path in PAGES.glob("*.rst") if "<shared>" in (text := path.read_text(encoding="utf-8"))
               for name in re.findall(r"^\.\. auto\w+:: (\w+)$", text, re.MULTILINE)}  # fmt: skip
_TITLES = "Parameters|Returns|Yields|Raises|Warns|See Also|Notes|Examples|Attributes"

# ---- docstrings as data


def sections(text: str) -> dict[str, str]:
    """Sections of a docstring by their titles; what comes first is under ""."""
    first, *rest = re.split(rf"^({_TITLES})\n-+\n", text, flags=re.MULTILINE)
    return {"": first.strip()} | {title: body.strip("\n") for title, body in zip(rest[::2], rest[1::2], strict=True)}


def entries(body: str) -> list[tuple[str, str, str]]:
    """Entries of a section: name, type, and text in one line."""
    found = []
    for part in re.split(r"\n(?=\S)", body) if body else ():
        head, _, text = part.partition("\n")
        name, _, kind = head.partition(" : ")
        found.append((name.strip(), kind.strip(), " ".join(text.split())))
    return found


# ---- docstrings as pages show them


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _is_shared(name: str, text: str, *, of_primitive: bool) -> bool:
    """Whether the page of shared arguments says what a docstring says of a parameter."""
    names = set(name.split(", ")) - (OF_PRIMITIVES if of_primitive else set())
    if names <= {"deterministic", "compensated"}:
        return True
    said = _words(" ".join(SHARED.get(each, "") for each in (name, *names)))
    words = set() if re.fullmatch(r"As (for|in) `\w+`\.", text) else _words(text)
    return bool(said) and len(words & said) >= _MOST * len(words)


def _parameters(body: str, *, of_primitive: bool, linked: bool) -> list[str]:
    lines, others = [], ""
    for name, kind, text in entries(body):
        choices = kind.rpartition(", default")[0] or kind.removesuffix(", optional") if "{" in kind else ""
        if _is_shared(name, text, of_primitive=of_primitive) or not (text or choices):
            others = others or (":doc:`{} </reference/python/shared>`." if linked else "")
        elif "," in name and re.fullmatch(r"As for `\w+`\.", text):
            others = f"Others as{text[2:]}"
        else:
            said = ". ".join(filter(None, (choices, text)))
            lines += [", ".join(f"``{part}``" for part in name.split(", ")), f"   {said}", ""]
    return [*lines, others.format("Others" if lines else "Arguments"), ""]


def _unsaid(text: str) -> str:
    """A text without the sentences that the page of shared arguments has, word for word."""
    for sentence in SAID:
        if len(sentence) > 5:
            text = re.sub(r"(?<!\S)" + r"\s+".join(map(re.escape, sentence.split())) + r"(?=\s|$) ?", "", text)
    return text


def shorten(text: str, *, of_primitive: bool = False, linked: bool = True, internal: Iterable[str] = ()) -> str:
    """A docstring for the site, as reStructuredText, without internal attributes."""
    found = sections(_unsaid(text))
    summary = re.sub(r"^Return (the (?!\w\b))?(?=[\w`])", "", found[""])
    lines = [summary[:1].upper() + summary[1:], "", found.get("Examples", ""), ""]
    lines += _parameters(found.get("Parameters", ""), of_primitive=of_primitive, linked=linked)
    for title in ("Returns", "Yields"):
        if given := " ".join(filter(None, (text for *_, text in entries(found.get(title, ""))))):
            lines += [f"{title}: {given}", ""]
    raised = [name for names, *_ in entries(found.get("Raises", "")) for name in names.split(", ")]
    if errors := [f"`{name}`" for name in raised if name not in NAMES]:
        lines += [f"Raises {', '.join(errors)}", ""]
    if source := re.search(r"\bSources?: .*?(?=\n\n|\Z)", found.get("Notes", ""), re.DOTALL):
        lines += [" ".join(source[0].split()), ""]
    for name, kind, said in entries(found.get("Attributes", "")):
        names = [each for each in name.split(", ") if each not in internal]
        if names and "for the library's own use" not in said:
            lines += [".. attribute:: " + ("\n" + 15 * " ").join(names), *([f"   :type: {kind}"] if kind else []), "",
                      f"   {said}", ""]  # fmt: skip
    return "\n".join(lines)


def _call(text: str) -> str:
    """What the page of a primitive says of its `execute`: the arrays, which its See Also has."""
    said = [f"{kind} {body}" for name, kind, body in entries(sections(text).get("See Also", "")) if name == "execute"]
    words = re.sub(r",? shape \(n,\)( each)?(?=[,;.])", "", " ".join(" ".join(said).split()))
    return f"{words[:1].upper()}{words[1:]}"


def page_text(name: str, docstring: str) -> str:
    """What the page of a public name, or of a member, says of it."""
    first = name.split(".")[1]
    owner = getattr(gw, first, None)
    of_primitive = inspect.isclass(owner) and issubclass(owner, gw.Primitive)
    if of_primitive and owner is not gw.Primitive and name.endswith(".execute"):
        text = _call(inspect.getdoc(owner) or "")
    else:
        internal = INTERNAL.get(first, "").split()
        linked = first not in LINKED_ONCE and name.count(".") == 1  # once on a page
        text = shorten(docstring, of_primitive=of_primitive, linked=linked, internal=internal)
    # reStructuredText would take the bars of |x| for a substitution.
    parts = re.split(r"(``.*?``|^ *(?:>>>|\.\.\.|\|).*$)", text, flags=re.MULTILINE)
    return "".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


# ---- members


def own_members(cls: type) -> list[str]:
    """Public methods and properties that a class brings in; what it overrides is at its base.

    Bases that are not public count as a part of the class.
    """
    if issubclass(cls, gw.Primitive) and cls is not gw.Primitive:  # which has what all of them share
        takes = [list(inspect.signature(each.execute).parameters) for each in (cls, gw.Primitive)]
        own = [name for name in ("error_bound", "output_shape") if hasattr(cls, name)]
        return sorted([*own, *(["execute"] if takes[0] != takes[1] else [])])
    public = {getattr(gw, name) for name in gw.__all__ if inspect.isclass(getattr(gw, name))}
    own = [cls, *(base for base in cls.__mro__[1:] if base not in public and base.__module__.startswith("gridwise"))]
    kinds = (property, functools.cached_property, classmethod, staticmethod)
    return sorted(
        name
        for name, thing in {name: thing for base in reversed(own) for name, thing in vars(base).items()}.items()
        if not (name.startswith("_") or name in INTERNAL.get(cls.__name__, "").split())
        and (isinstance(thing, kinds) or inspect.isfunction(thing))
        and not any(name in vars(base) for base in cls.__mro__ if base not in own)
    )


def template_data() -> dict[str, dict[str, list[str]]]:
    """What the template of a page asks for: members of classes, and names that are on the page of another one."""
    classes = {name: getattr(gw, name) for name in gw.__all__ if inspect.isclass(getattr(gw, name))}
    return {"companions": COMPANIONS, "shown": {name: own_members(cls) for name, cls in classes.items()}}


def missing_names() -> str:
    """What takes the place of names of numpy and pandas that are missing here, as a table in Markdown."""
    places: dict[str, list[str]] = {}
    for name, place in INSTEAD.items():
        places.setdefault(place.replace("|", r"\|"), []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {place} |" for place, names in places.items()]
    return "\n".join(["| name | in its place |", "| --- | --- |", *rows, ""])
