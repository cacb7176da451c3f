"""Arrays that are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..calls import Call
from ..draws import ALL, LEFT, Draw
from .table import DTYPES, add, any_float, drawn_array


def _shape_argument(d: Draw) -> Any:
    return d.pick((0, 1, 3, 5, (2, 3), (), (0, 3), [4], np.int64(2), -1, (2, -1), 1.5, 2**62, (2**33,), "3"))


def _full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    return np.full(shape, fill_value, dtype)


_MADE_DTYPES = (*DTYPES, None)
for _name in ("zeros", "ones", "empty"):
    add(
        _name,
        getattr(np, _name),
        (lambda name: lambda d: d.call(name, [_shape_argument(d)], [("dtype", d.maybe(0.6, d.pick(_MADE_DTYPES)))]))(
            _name
        ),
        resides="gpu",
        compare="any" if _name == "empty" else "bits",
        dtypes=any_float,
        weight=0.5,
    )
    add(
        f"{_name}_like",
        getattr(np, f"{_name}_like"),
        (
            lambda name: (
                lambda d: d.call(name, [drawn_array(d, dims=2)], [("dtype", d.maybe(0.4, d.pick(_MADE_DTYPES)))])
            )
        )(f"{_name}_like"),
        resides="gpu",
        compare="any" if _name == "empty" else "bits",
        weight=0.5,
    )
_FILLS = (0, 1, 7, -1, 2.5, 300, 2**40, True, np.float32(0.1), np.int8(3), float("nan"), 2**63, 2**64, 1j)
add(
    "full",
    _full,
    lambda d: d.call("full", [_shape_argument(d), d.pick(_FILLS)], [("dtype", d.maybe(0.6, d.pick(_MADE_DTYPES)))]),
    resides="gpu",
    compare="bits",
    dtypes=any_float,
)
add(
    "full_like",
    np.full_like,
    lambda d: d.call(
        "full_like", [drawn_array(d, dims=2), d.pick(_FILLS)], [("dtype", d.maybe(0.4, d.pick(_MADE_DTYPES)))]
    ),
    resides="gpu",
    compare="bits",
)


def _draw_arange(d: Draw) -> Call:
    number = lambda: d.pick((0, 1, 5, 10, -3, 2.5, 0.1, 100, 1000, np.float32(3), np.int64(4)))  # noqa: E731
    stop, step = d.maybe(0.8, number()), d.maybe(0.5, d.pick((1, 2, -1, 0.5, 0.1, 7, -0.3, 0)))
    dtype = d.maybe(0.3, d.pick(_MADE_DTYPES))
    return d.call(
        "arange", [number()], [("stop", stop), ("step", step if stop is not LEFT else LEFT), ("dtype", dtype)]
    )


def _arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    return np.arange(start, stop, 1 if step is None else step, dtype)


add("arange", _arange, _draw_arange, resides="gpu", dtypes=any_float)


def _draw_asarray(d: Draw) -> Call:
    x = drawn_array(d, (*ALL, "complex64"))
    given = {"dtype": d.pick(DTYPES)} if d.chance(0.2) and x.how in ("list", "scalar", "tuple") else {}
    return Call("asarray", (x,), given)


add(
    "asarray",
    lambda x, *, dtype=None: np.asarray(x, dtype),
    _draw_asarray,
    resides="gpu",
    compare="bits",
    dtypes=any_float,
)
