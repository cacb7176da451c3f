"""What the package answers to names of numpy that it does not have."""

from __future__ import annotations

__all__ = ["INSTEAD", "no_such_name"]

_UPLOAD = "make it with numpy and upload it: gw.asarray(np.{name}(…, dtype=np.float32))"
_OPERATOR = (
    "use Python's operator on Arrays, which gives an expression; gw.asarray(…) stores it (docs/concepts/expressions.md)"
)
#: What takes the place of a name of numpy that is missing here; ``{name}`` is that name.
INSTEAD: dict[str, str] = {
    "array": "gw.asarray(data) uploads data, gw.empty(n) makes an Array of n items",
    **dict.fromkeys(("linspace",), _UPLOAD),
    **dict.fromkeys(("subtract", "multiply", "divide", "negative"), _OPERATOR),
    "abs": "Python's abs(x) of an Array gives an expression; gw.asarray(…) stores it (docs/concepts/expressions.md)",
    "diff": "x[1:] - x[:-1] gives an expression; gw.asarray(…) stores it (docs/concepts/expressions.md)",
    "average": "gw.mean",
    "amin": "gw.min",
    "amax": "gw.max",
    "dot": "gw.matmul",
    "argwhere": "gw.nonzero",
    "concatenate": "gw.ChunkedArray([a, b]) takes Arrays as one",
    "ndarray": "gw.Array",
    "asnumpy": "x.to_numpy()",
}


def no_such_name(package: str, name: str) -> AttributeError:
    """Return what to raise for a name that the package does not have; Python itself finds similar names."""
    remedy = f": {INSTEAD[name].format(name=name)}" if name in INSTEAD else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{remedy}")
