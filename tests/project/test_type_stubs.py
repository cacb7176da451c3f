"""The stubs of wgpu-py, by which the package is type-checked, say what wgpu-py says."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

TYPINGS = Path(__file__).parents[2] / "typings"
pytestmark = pytest.mark.needs("the repository")

#: Made for each object by its constructor, so that a class does not have them.
OF_INSTANCES = {"_device", "_internal"}


def _module(path):
    parts = path.relative_to(TYPINGS).with_suffix("").parts
    return importlib.import_module(".".join(part for part in parts if part != "__init__"))


def _declarations():
    """Return the names that stubs declare, with where to find them and what a stub says: a function, or nothing."""
    found = {}
    for path in sorted(TYPINGS.rglob("*.pyi")):
        module = _module(path)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.AnnAssign, ast.FunctionDef, ast.ClassDef)):
                name = node.target.id if isinstance(node, ast.AnnAssign) else node.name
                found[f"{module.__name__}.{name}"] = (module, name, node)
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, (ast.FunctionDef, ast.AnnAssign)):
                    name = inner.target.id if isinstance(inner, ast.AnnAssign) else inner.name
                    if name not in OF_INSTANCES:
                        found[f"{module.__name__}.{node.name}.{name}"] = (getattr(module, node.name), name, inner)
    return found


DECLARATIONS = _declarations() if TYPINGS.is_dir() else {}


def _stub_parameters(node):
    """Return the parameters that a stub gives a function: their names, kinds and defaults."""
    arguments = node.args
    by_position = [*arguments.posonlyargs, *arguments.args]
    defaults = [inspect.Parameter.empty] * (len(by_position) - len(arguments.defaults)) + [
        ast.literal_eval(default) for default in arguments.defaults
    ]
    found = [
        (argument.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default)
        for argument, default in zip(by_position, defaults, strict=True)
    ]
    if arguments.vararg is not None:
        found.append((arguments.vararg.arg, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.empty))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        value = inspect.Parameter.empty if default is None else ast.literal_eval(default)
        found.append((argument.arg, inspect.Parameter.KEYWORD_ONLY, value))
    if arguments.kwarg is not None:
        found.append((arguments.kwarg.arg, inspect.Parameter.VAR_KEYWORD, inspect.Parameter.empty))
    return found


def test_stubs_declare_what_is_there():
    assert len(DECLARATIONS) > 50
    for name, (owner, attribute, node) in DECLARATIONS.items():
        real = inspect.getattr_static(owner, attribute)
        if isinstance(node, ast.FunctionDef):
            is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
            assert isinstance(real, property) == is_property, name
            if not is_property:
                parameters = inspect.signature(real).parameters.values()
                assert _stub_parameters(node) == [(p.name, p.kind, p.default) for p in parameters], name
        elif isinstance(node, ast.ClassDef):
            assert isinstance(real, type), name
            bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
            names = {base.attr if isinstance(base, ast.Attribute) else base.id for base in bases}
            assert names <= {cls.__name__ for cls in real.__mro__} | {"Generic"}, name
