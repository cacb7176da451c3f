"""Differences from numpy that the documentation states: what is refused, and what is answered in another way.

Each is narrow: a function, a kind of difference, a part of the message, and where it holds. What they cover is counted.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gridwise_py as gw
from gridwise_py.runtime.context import context_of

from .calls import OPERATORS, UNARY, Call, Given, is_on_gpu, leaves, names, walk


@dataclass(frozen=True)
class Known:
    """A documented difference.

    Attributes
    ----------
    reason : str
        What is different, and where that stands.
    names : str
        A regular expression for the function.
    message : str
        One that is found in the message.
    kinds : str
        One for the kind of difference.
    when : callable, optional
        Says whether it holds for a call.
    """

    reason: str
    names: str = ".*"
    message: str = ""
    kinds: str = "refusal"
    when: Callable[[Call], bool] | None = None

    def holds(self, call: Call, finding: Any) -> bool:
        return bool(
            re.fullmatch(self.names, call.name)
            and re.fullmatch(self.kinds, finding.kind)
            and re.search(self.message, finding.detail)
            and (self.when is None or self.when(call))
        )


# ---- what calls have


def _numbers(call: Call) -> list[Any]:
    return [leaf for leaf in leaves(call) if isinstance(leaf, (bool, int, float, complex, np.generic))]


def _without_float64(call: Call) -> bool:
    listed = any(given.how in ("list", "tuple", "scalar") for given in walk(call))
    plain = any(isinstance(number, float) for number in _numbers(call))
    return (listed or plain or _has("float64")(call)) and not context_of(gw.default_device()).has_float64


def _eight_bytes(call: Call) -> bool:
    listed = any(given.how in ("list", "tuple", "scalar", "range") for given in walk(call))
    return (
        listed
        or any(given.items.dtype.itemsize == 8 for given in walk(call))
        or any(isinstance(number, np.generic) and number.dtype.itemsize == 8 for number in _numbers(call))
    )


def _is_mixed(call: Call) -> bool:
    """Say whether operands are of several datatypes, Python's numbers included."""
    kinds = {given.items.dtype.name for given in walk(call)}
    kinds |= {type(number).__name__ for number in _numbers(call) if not isinstance(number, np.generic)}
    kinds |= {number.dtype.name for number in _numbers(call) if isinstance(number, np.generic)}
    return len(kinds) > 1 or any(given.how in ("list", "tuple", "scalar") for given in walk(call))


def _is_exact(call: Call) -> bool:
    """Say whether int64 is compared with uint64, by functions that do so exactly."""
    kinds = {given.items.dtype.name for given in walk(call)}
    return call.name in ("isin", "setdiff1d") and kinds == {"int64", "uint64"} and not _numbers(call)


def _has_two_shapes(call: Call) -> bool:
    """Say whether an operator in a call has arrays of two shapes."""
    pairs = [each.args for each in call.args if isinstance(each, Call) and each.name in OPERATORS]
    return any(len({each.items.shape for each in pair if isinstance(each, Given)}) > 1 for pair in pairs)


def _has(*dtypes: str) -> Callable[[Call], bool]:
    return lambda call: any(given.items.dtype.name in dtypes for given in walk(call))


def _is_expression(call: Call) -> bool:
    inner = set(names(call)[1:])
    return any(given.how == "expr" for given in walk(call)) or bool(
        inner & {*OPERATORS, *UNARY, "flip", "maximum", "where", "abs_"}
    )


def _has_dtype(*wanted: Any) -> Callable[[Call], bool]:
    return lambda call: any(leaf in wanted for leaf in leaves(call) if isinstance(leaf, str))


def _some_single(call: Call) -> bool:
    return any(given.items.size <= 1 for given in walk(call))


def _huge(call: Call) -> bool:
    return any(isinstance(n, int) and not isinstance(n, bool) and abs(n) >= 2**31 for n in _numbers(call))


def _is_listed(call: Call) -> bool:
    return any(given.how in ("list", "tuple", "scalar") for given in walk(call)) or bool(_numbers(call))


def _writes_nothing(call: Call) -> bool:
    return isinstance(call.args[2], Given) and not call.args[2].items.size


def _is_chain(call: Call) -> bool:
    return len(names(call)) > 1


def _has_length(call: Call) -> bool:
    return "length" in call.kwargs


def _has_out_and_dtype(call: Call) -> bool:
    return "dtype" in call.kwargs or any(isinstance(a, (str, type, np.dtype)) for a in call.args)


def _has_no_dims(call: Call) -> bool:
    return any(given.items.ndim == 0 for given in walk(call)) or isinstance(
        call.args[0], (int, float, complex, np.generic)
    )


def _has_no_items(call: Call) -> bool:
    return any(not given.items.size for given in walk(call))


def _is_missorted(call: Call) -> bool:
    """Say whether numpy's own sort leaves float16 in disorder, as 2.4 does beside many NaN."""
    halves = [np.sort(g.items.ravel()).astype(np.float32) for g in walk(call) if g.items.dtype.name == "float16"]
    return any(bool(np.any(x[1:] < x[:-1])) for x in (half[~np.isnan(half)] for half in halves))


def _says_unique(call: Call) -> bool:
    return call.kwargs.get("assume_unique", call.args[2] if len(call.args) > 2 else False) is True


def _has_narrow_out(call: Call) -> bool:
    """Say whether `out=` is of integers of fewer than 8 bytes."""
    out = call.kwargs.get("out")
    return isinstance(out, Given) and out.items.dtype.kind in "iu" and out.items.dtype.itemsize < 8


def _asks_integers(call: Call) -> bool:
    """Say whether `dtype=` or `out=` is of integers or bools."""
    kinds = {given.items.dtype.kind for given in walk([*call.args[1:], *call.kwargs.values()])}
    for leaf in leaves(call):
        if isinstance(leaf, (str, type, np.dtype)):
            with contextlib.suppress(TypeError):
                kinds.add(np.dtype(leaf).kind)
    return bool(kinds & set("iub"))


def _float_to_integer(call: Call) -> bool:
    """Say whether floats that no integer holds may be converted to integers."""
    for given in walk(call):
        if given.items.dtype.kind == "f":
            with np.errstate(all="ignore"):
                wide = given.items.astype(np.float64)
                if not np.all(np.isfinite(wide) & (np.abs(wide) < 2**31)):
                    return True
                if np.any(wide < 0):  # of unsigned integers
                    return True
    return False


def _nan(call: Call) -> bool:
    return any(given.items.dtype.kind == "f" and bool(np.isnan(given.items).any()) for given in walk(call)) or any(
        isinstance(n, float) and n != n for n in _numbers(call)
    )


def _small(call: Call) -> bool:
    return any(given.items.dtype.itemsize < 4 and given.items.dtype.kind != "b" for given in walk(call))


_OPERATORS = "|".join(map(re.escape, (*OPERATORS, *UNARY, "abs_")))
_OF_F32 = "sqrt|exp|log|sin|cos|tanh|floor|ceil|rint|round|isnan|sign|abs|absolute|popcount"
_EXPRESSIONS = f"{_OPERATORS}|maximum|minimum|clip|where|{_OF_F32}"
_PAGE = "docs/concepts/expressions.md: "
_TABLE = "docs/reference/numpy-and-cupy.md: "
_DOC = "docstring: "

#: What is refused that numpy takes.
REFUSALS: tuple[Known, ...] = (
    Known("docs/concepts/counts.md: the GPU alone knows how many items there are", "len", "count|trim"),
    Known(_PAGE + "arrays of numpy are no operands", _OPERATORS, "cannot be part of an expression"),
    Known(
        _PAGE + "nothing is converted unasked",
        f"{_EXPRESSIONS}|isin|gather",
        "no conversion is made unasked|is a float, but the other side|is not a number of|but the operands are of",
        when=_is_mixed,
    ),
    Known(
        _PAGE + "which types an operator is for",
        f"(?!//|%)({_EXPRESSIONS})",
        "is for (u32, i32, f32|f32|u32|integers)|must be unsigned",
    ),
    Known(_PAGE + "which types an operator is for", "//|%", "is for u32, i32", when=_has("bool")),
    Known(
        _PAGE + "only an Array of one item is repeated",
        _EXPRESSIONS,
        "(lengths|shapes .*) differ|has shape",
        when=is_on_gpu,
    ),
    Known(
        _PAGE + "of single items nothing says how many there are", message="no leaf says how many", when=_some_single
    ),
    Known(_PAGE + "operands of two shapes are not broadcast", message="shape|lengths", when=_has_two_shapes),
    Known(
        _PAGE + "an expression of several dimensions is stored first",
        message="works along one dimension of it; store it",
        when=_is_expression,
    ),
    Known(
        _PAGE + "some functions take Arrays, not expressions",
        when=_is_expression,
        message="an expression|only an array has axes|is an expression|has no axes|of one dimension",
    ),
    Known(
        _PAGE + "functions of f32 alone",
        "exp|log|sin|cos|tanh",
        "datatype '(float64|int64|uint64)' is not supported|is of (float64|int64|uint64)",
        when=_eight_bytes,
    ),
    Known(_TABLE + "round to integers only", "round", "only integers are rounded to"),
    Known(_TABLE + "no float64 on a device without it", message="(lacks|needs the features?) '?shader-f64"),
    Known(
        _TABLE + "differences of Arrays of 8 bytes, and their reductions without NaN",
        "average|diff|ediff1d|ptp|nan(?!mean|var|std).*",
        "datatype '.*' is not supported",
        when=_eight_bytes,
    ),
    Known(
        _TABLE + "quantiles without NaN are for numpy arrays",
        "nan(median|quantile|percentile)",
        "known to the GPU alone",
        when=is_on_gpu,
    ),
    Known(
        "numpy looks at method= only where there is a number",
        "nan(quantile|percentile)",
        "is unknown",
        when=lambda call: _has_no_items(call) or _nan(call),
    ),
    Known(_TABLE + "quantiles of bools", "ptp", "has no differences", when=_has("bool")),
    Known(
        _TABLE + "matrix products of f32 and f16, one at a time",
        "matmul",
        "datatype|dimensions|matrix|shape|batches|vector",
    ),
    Known(
        _TABLE + "text and complex numbers",
        message="'(S3|complex64|complex128)'|S3|c64|not a number",
        when=lambda call: _has_dtype("S3", "complex64")(call) or any(isinstance(n, complex) for n in _numbers(call)),
    ),
    Known(_TABLE + "complex64 in some functions only", message="complex64|c64", when=_has("complex64")),
    Known(_DOC + "out has the shape of the result", message="out has shape"),
    Known(
        _DOC + "out is where the result is",
        message="out must be a numpy array|stays on the GPU|out is (ndarray|Array)|out must be an Array",
    ),
    Known(_TABLE + "an item of an Array is not read", r"\[\]", "is not read implicitly"),
    Known(_TABLE + "several axes of an Array are neighbours", message="are not neighbours", when=is_on_gpu),
    Known(
        _DOC + "columns of 8 bytes in groups",
        "group_by(_table)?",
        "there are sums, products, minima and maxima",
        when=_eight_bytes,
    ),
    Known(_DOC + "variances of integers of Arrays", "group_by", "of which f32 holds 24 bits", when=is_on_gpu),
    Known(_DOC + "keys of 8 bytes are one column", "group_by", "cannot be one of several", when=_eight_bytes),
    Known(_DOC + "key_bits of integers", "group_by", "key_bits"),
    Known(
        _DOC + "missing keys and items of 8 bytes on the GPU",
        "group_by",
        "dropna=True is for|skipna=True is for",
        when=is_on_gpu,
    ),
    Known(_TABLE + "True is no number of bins, of items or of an axis", message="not (np.)?True"),
    Known(_DOC + "two edges or more", "histogram|histogram2d|histogram_bin_edges", "2 edges or more"),
    Known(
        _TABLE + "no rules for bins of Arrays",
        "histogram|histogram2d|histogram_bin_edges",
        "no rule chooses|needs range=|range",
        when=is_on_gpu,
    ),
    Known(
        _DOC + "edges in an Array have the datatype of the items",
        "histogram|histogram2d|histogram_bin_edges|digitize",
        "bins is an Array of|datatype|converted?",
        when=is_on_gpu,
    ),
    Known(_DOC + "densities of Arrays", "histogram2d|histogram", "density= is for numpy", when=is_on_gpu),
    Known(_DOC + "an Array needs length= or size=", "bincount|repeat|segment_ids", "length=|size=", when=is_on_gpu),
    Known(_DOC + "a number of 32 bits", message=r"at most 4294967295|at most 2147483647|2\*\*32", when=_huge),
    Known(_DOC + "results of fewer than 2**32 items", "repeat", r"fewer than 2\^32"),
    Known(_DOC + "the device has too little memory", message="max-buffer-size|memory"),
    Known(_TABLE + "numbers that an Array does not hold", "full|full_like|clip|maximum|minimum|where|add", "hold"),
    Known("an axis of an array without dimensions", message="array of 0 dimensions", when=_has_no_dims),
    Known("indices are looked at, too, where no value is to be written", "put", "out of bounds", when=_writes_nothing),
    Known(_TABLE + "NaN between bins", "histogram|histogram2d|histogram_bin_edges", "has NaN", when=_nan),
    Known(_DOC + "NaN is the last of bins, or the first", "digitize", "with NaN last or first", when=_nan),
    Known(
        _TABLE + "counts and indices that are floats",
        "bincount|repeat|take|put|scatter_add|reduce_by_index",
        "be integers",
    ),
    Known(_TABLE + "bins='auto' and the like of Arrays", "histogram.*", "is a rule that reads all items"),
    Known(_TABLE + "keys in one Array are its rows", "lexsort", "is not read implicitly"),
    Known(
        _DOC + "other types of arguments in Arrays",
        message="is of .*, but .* of|must be of one datatype|convert one",
        when=lambda call: is_on_gpu(call) and _is_mixed(call),
    ),
    Known(
        _TABLE + "values of sort_pairs and merge have 4 or 8 bytes",
        "sort_pairs|merge|repeat",
        "is not supported",
        when=_small,
    ),
    Known(_TABLE + "nonzero of an Array has one dimension", "nonzero", "one dimension", when=is_on_gpu),
    Known(_DOC + "merged keys are of one datatype", "merge", "is of .*, but b of", when=_is_mixed),
    Known(_TABLE + "counts that are floats", "repeat", "integers", when=_has("float64", "float32", "float16")),
    Known(_DOC + "integers on the host are checked", "bincount", "out of range for a length", when=_has_length),
    Known(
        "docs/concepts/counts.md: of a counted Array some functions ask for trim()",
        message="only the GPU knows",
        when=_is_chain,
    ),
    Known(_DOC + "where= of real numbers", message="where= of an Array of c64"),
    Known(_DOC + "shifts are integers", "roll", "must be an integer"),
    Known(_DOC + "initial= is a number of the result's datatype", "(nan)?(prod|sum|min|max)|scan", "no value of"),
    Known(
        _DOC + "out= has the datatype that dtype= says",
        message="out is of .*, but the result of",
        when=_has_out_and_dtype,
    ),
    Known(
        _DOC + "means and variances into integers", "mean|var|std|nanmean|nanvar|nanstd|average", "out is of .*, but"
    ),
    Known(_DOC + "along an axis of several dimensions conditions are on the host", "compress", "only the GPU knows"),
    Known(
        _DOC + "conditions on the GPU are as long as the items",
        "compress|extract",
        "lengths differ|condition has",
        when=is_on_gpu,
    ),
    Known(_DOC + "as many weights as numbers, also of none", "bincount", "lengths differ", when=_has_no_items),
    Known(_DOC + "kth is looked at, also of no items", "(arg)?partition", "kth=", when=_has_no_items),
    Known(_DOC + "what float64 would round", "union1d|setxor1d", "no integers that hold both", when=_eight_bytes),
    Known("numpy's bins around an item may have no width", "histogram2d", "so large that bins around it"),
    Known("where there are no items numpy looks at no index", "take", "out of bounds", when=_has_no_items),
    Known(_DOC + "lists of fractions are no integers", "asarray", "cannot be held as|store it, and convert"),
    Known(_PAGE + "an expression has no length", "len", "no length of its own"),
    Known(_TABLE + "rows of unique", "unique", "axis"),
    Known("of a number numpy writes into a copy", "put", "is written in place", when=_has_no_dims),
    Known(
        "numpy rounds integers before it looks at their order",
        "digitize",
        "must ascend or descend",
        when=_has("int64", "uint64"),
    ),
)
#: What is answered in another way.
ALLOWED: tuple[Known, ...] = (
    Known(
        _DOC + "one number before NaN ascends, and numpy takes it as descending",
        "digitize",
        kinds="value",
        when=lambda call: _nan(call) and any(np.unique(each.items).size == 2 for each in walk(call.args[1:2])),
    ),
    Known(_PAGE + "integers to negative powers are 0", r"\*\*", "negative integer powers", "accepts", is_on_gpu),
    Known(_DOC + "indices of uint64", "put", "Cannot cast", "accepts", _has("uint64")),
    Known(
        _PAGE + "items of 1 and 2 bytes are read as 4 bytes, and a number is one of those",
        "maximum|minimum|clip|where",
        "OverflowError",
        "accepts",
        lambda call: is_on_gpu(call) and _has("uint8", "uint16", "int8", "int16")(call),
    ),
    Known(
        _TABLE + "several axes may be in a list, too",
        message="'list' object cannot be interpreted as an integer",
        kinds="accepts",
    ),
    Known("numpy's own bools are True and False", message="'numpy.bool' object cannot be interpreted", kinds="accepts"),
    Known(_DOC + "bools are 0 and 1", "(nan)?(quantile|percentile)", kinds="accepts|dtype", when=_has("bool")),
    Known(_DOC + "of no items", "(nan)?(median|quantile|percentile)", kinds="accepts|dtype", when=_has_no_items),
    Known(_DOC + "correction=None is ddof", "(nan)?(var|std)", "'int' and 'None", "accepts"),
    Known(
        "docs/start/functions.md: Python's floats are float32 on a device without float64",
        kinds="dtype",
        message="(?s)float64 .* float32",
        when=_without_float64,
    ),
    Known(_DOC + "added in float32 on a device without float64", "bincount", kinds="value", when=_without_float64),
    Known(_DOC + "as many weights as items", "histogram", "weights should have the same shape", "accepts"),
    Known(
        "a quantile that is NaN may be of the items' dtype in numpy, whatever q is",
        "(nan)?(quantile|percentile)",
        kinds="dtype",
        when=_nan,
    ),
    Known("numbers that C does not hold are numbers", message="too large to convert to C", kinds="accepts"),
    Known(
        "of no q numpy's own minimum fails", "(nan)?(quantile|percentile)", "zero-size array to reduction", "accepts"
    ),
    Known("numpy converts a length to small integers", "delete", "Python integer .* out of bounds", "accepts"),
    Known("where nothing is written the value does not matter", "put", "convert|argument", "accepts", _has_no_items),
    Known(_DOC + "one item is an array of one", "histogram2d", r"has no len|len\(\) of", "error class|accepts"),
    Known("along no axis nothing moves", "roll", "not enough values to unpack", "accepts"),
    Known("numpy looks for the axes first", "cumulative_.*", "must be one integer", "error class"),
    Known(
        "a number in a tuple is a column of one row",
        "group_by",
        "Refused: lengths",
        "accepts",
        lambda call: call.is_odd,
    ),
    Known("numpy's own default is no kind", "(arg)?partition", "kind must be str, not NoneType", "accepts"),
    Known("numpy looks at the ends without the step", "arange", "Maximum allowed size", "accepts"),
    Known("numpy looks beyond the items", "intersect1d", "index -?[0-9]+ is out of bounds", "accepts"),
    Known(_DOC + "kth of no items is any integer", "(arg)?partition", "Partition index", "accepts", _has_no_items),
    Known(
        _DOC + "kind= changes nothing",
        "isin",
        "method is only supported|kind='table'|MemoryError|Maximum allowed",
        "accepts",
    ),
    Known(
        "numpy takes int and uint64 through float64; here they are exact",
        "cumprod|cumsum|cumulative_.*|sum|prod|nan.*",
        kinds="value",
        when=lambda call: any(given.items.dtype == np.uint64 for given in walk(call)),
        message="uint64",
    ),
    Known(
        "numpy concatenates: it wraps a number to the other's type; here it has its own",
        "union1d|setxor1d",
        kinds="dtype|shape|value",
        when=lambda call: any(
            not isinstance(arg, (Given, Call)) or arg.how == "scalar"
            for arg in call.args[:2]
            if not isinstance(arg, Call)
        ),
    ),
    Known(
        _DOC + "differences of integers wrap in numpy's quantiles",
        "(nan)?(quantile|percentile)",
        kinds="value",
        when=lambda call: (
            is_on_gpu(call)
            and any(g.items.dtype.kind == "i" and g.items.size and np.ptp(g.items) < 0 for g in walk(call))
        ),
    ),
    Known(
        _DOC + "a quantile of an Array that is an item is that item, also beside an infinity",
        "(nan)?(quantile|percentile|median)",
        kinds="value",
        when=lambda call: (
            is_on_gpu(call) and any(g.items.dtype.kind == "f" and np.isinf(g.items).any() for g in walk(call))
        ),
    ),
    Known(
        _DOC + "quantiles of a float16 Array are computed in float32",
        "quantile|percentile",
        kinds="value",
        when=lambda call: is_on_gpu(call) and "float16" in repr(call),
    ),
    Known(
        _DOC + "of no items numpy's quantiles without NaN are means",
        "nan(quantile|percentile)",
        kinds="shape|dtype|type",
        when=_has_no_items,
    ),
    Known(_DOC + "of a counted Array without such an item, its room", "find", kinds="value", when=_is_chain),
    Known("numpy's sort of float16 with NaN", kinds="value|shape", when=_is_missorted),
    Known(
        _DOC + "1 is neutral also beside complex infinities",
        "(nan|cum|cumulative_)?prod",
        kinds="value",
        when=lambda call: (
            any(g.items.dtype.kind in "fc" and not np.isfinite(g.items).all() for g in walk(call))
            and (_has("complex64")(call) or _has_dtype("complex64")(call))
        ),
    ),
    Known(
        _TABLE + "float16 is computed in float32 and rounded once: what it does not hold is no infinity before",
        "(cum|cumulative_)?(sum|prod)|nan(sum|prod)",
        "float16",
        "value",
        lambda call: any(
            np.any(np.abs(g.items.astype(np.float64)) > 65504) for g in walk(call) if g.items.dtype.kind in "iu"
        ),
    ),
    Known(
        _DOC + "a mean or variance in float16 is computed in float32 and rounded once",
        "(nan)?(mean|var|std)",
        kinds="value",
        when=lambda call: "float16" in repr(call),
    ),
    Known(_DOC + "products of flat Arrays are flat", "matmul", kinds="shape", when=is_on_gpu),
    Known(
        "of no items along no axis numpy's own reshape fails", "median|quantile|percentile", "cannot reshape", "accepts"
    ),
    Known("bools without bounds are themselves; numpy has no + of them", "clip", "ufunc 'positive'", "accepts"),
    Known("differences of bools", "ediff1d|ptp", kinds="accepts", message="numpy boolean subtract"),
    Known("a number that bool holds as True", "full_like|full", kinds="accepts", message="OverflowError", when=_huge),
    Known(
        _TABLE + "names of datatypes count bits: i8 is int8",
        kinds="dtype|value|refusal|accepts|warning",
        when=_has_dtype("i8", "u8"),
    ),
    Known(_PAGE + "a shift is of the type of its first operand", "<<|>>", kinds="dtype|value", when=_is_mixed),
    Known(
        _PAGE + "items of 1 and 2 bytes are words",
        f"{_EXPRESSIONS}|previous|next|flip",
        kinds="value|dtype",
        when=_small,
    ),
    Known(
        _PAGE + "numbers of numpy take the other side's type",
        _EXPRESSIONS,
        kinds="dtype|value",
        when=lambda call: is_on_gpu(call) and any(isinstance(n, np.generic) for n in _numbers(call)),
    ),
    Known(
        _PAGE + "a comparison with NaN is the compiler's",
        "<|<=|>|>=|==|!=|where|maximum|minimum|clip",
        kinds="value",
        when=lambda call: is_on_gpu(call) and _nan(call),
    ),
    Known(_PAGE + "integers divided by 0 give 0, in Python's sense", "//|%", kinds="value", message="^$"),
    Known(
        _TABLE + "products where others overflow: 0 may be NaN",
        "prod|cumprod|cumulative_prod|nanprod|reduce|scan",
        kinds="zero",
    ),
    Known(
        _TABLE + "floats that no integer holds",
        "sum|prod|cumsum|cumprod|cumulative_.*|min|max|nan.*|mean",
        kinds="value",
        when=lambda call: _float_to_integer(call) and _asks_integers(call),
    ),
    Known(
        "indices and counts of uint64 are taken",
        "take|put|repeat|bincount|digitize|reduce_by_index|scatter_add",
        r"numpy: TypeError: Cannot cast array data from dtype\('(uint64|>u8)'\)",
        kinds="accepts",
        when=lambda call: all(g.items.max(initial=0) < 2**63 for g in walk(call) if g.items.dtype == np.uint64),
    ),
    Known(
        _DOC + "bits of keys on the GPU are ignored", "group_by", "a key of more bits", kinds="accepts", when=is_on_gpu
    ),
    Known(
        "docs/concepts/counts.md: what is not counted is as in a segment of fewer than k items",
        "top_k",
        kinds="accepts",
        when=lambda call: isinstance(call.args[0], Call),
    ),
    Known(_TABLE + "there is no complex128", kinds="dtype", message="complex128"),
    Known("key_bits of floats", "group_by", "key_bits of floats", kinds="accepts"),
    Known(_DOC + "offsets on the GPU are not checked", "segment.*", "Refused", kinds="accepts", when=is_on_gpu),
    Known(
        _TABLE + "an index of an Array: an item is refused, not looked for",
        r"\[\]",
        "is not read implicitly|to index by",
        kinds="error class",
    ),
    Known("an axis of an array without dimensions", message="numpy: AxisError", kinds="accepts", when=_has_no_dims),
    Known(
        _DOC + "means into integers",
        "nanmean|mean|average|var|std|nanvar|nanstd",
        kinds="value",
        message=r"u?int(8|16|32|64) |[<>][iu]\d",
    ),
    Known(_DOC + "Python's floats are of 4 bytes", "abs|absolute", kinds="value|dtype", when=_is_listed),
    Known(
        _PAGE + "bools are computed with 4 bytes",
        "scan",
        kinds="value|dtype",
        when=lambda call: _is_expression(call) and _has("bool")(call),
    ),
    Known(
        "numpy's results of items that are not unique, though said to be, follow from how it sorts",
        "intersect1d|setxor1d",
        kinds="shape|value",
        when=lambda call: _says_unique(call) and any(np.unique(g.items).size < g.items.size for g in walk(call)),
    ),
    Known(
        "numpy makes an empty list float64, and rounds integers beside it",
        "intersect1d|setdiff1d|union1d|setxor1d",
        kinds="shape|value",
        when=lambda call: (
            _has("int64", "uint64")(call)
            and (_has_no_items(call) or any(isinstance(arg, (list, tuple)) and not arg for arg in call.args))
        ),
    ),
    Known(
        "numpy compares items with what it has put into a narrower out=",
        "(nan)?(min|max)",
        kinds="value",
        when=lambda call: _has_narrow_out(call) and _has("int64", "uint64")(call),
    ),
    Known(
        "Python's numbers and empty lists take the other side's type",
        "merge|clip|where|maximum|minimum|union1d|setxor1d",
        kinds="dtype",
        when=_is_listed,
    ),
    Known(
        _PAGE + "numbers of numpy without dimensions take the other side's type",
        _EXPRESSIONS,
        kinds="dtype|value|accepts",
        when=lambda call: is_on_gpu(call) and _has_no_dims(call),
    ),
    Known("averages of nothing are NaN, without weights as with them", "average", "ZeroDivisionError", kinds="accepts"),
    Known(_TABLE + "indices that are floats", "delete", "must be integers", "error class"),
    Known(_TABLE + "a condition of the shape of x", "compress", "1-d array", "accepts"),
    Known(
        _TABLE + "edges in an Array are not checked",
        "histogram|histogram2d|histogram_bin_edges|digitize",
        "increase|monotonic",
        kinds="accepts",
        when=is_on_gpu,
    ),
    Known(
        _PAGE + "items of 2 bytes are words, also where some are left out",
        "nan.*|sum|prod|min|max|mean",
        kinds="dtype",
        when=lambda call: is_on_gpu(call) and _small(call),
    ),
    Known(
        _TABLE + "of no number the GPU gives the first index", "nanargm..", "All-NaN", kinds="accepts", when=is_on_gpu
    ),
    Known(
        "docs/concepts/counts.md: of no counted item the GPU gives what is neutral",
        "min|max|minmax|argm..|reduce|mean|var|nanm..|histogram",
        "zero-size|empty sequence",
        kinds="accepts",
        when=lambda call: is_on_gpu(call) and isinstance(call.args[0], Call),
    ),
    Known("numbers that no integer of numpy's holds", message="integer|convert|large", kinds="error class", when=_huge),
    Known(
        _TABLE + "indices on the GPU wrap, are dropped, or count as none",
        "take|put|gather|bincount|scatter_add",
        kinds="accepts|value",
        when=lambda call: is_on_gpu(call.args[1:]),
    ),
    Known(
        _DOC + "indices on the GPU that are out of range are left out",
        "reduce_by_index",
        kinds="accepts",
        when=lambda call: is_on_gpu(call.args[:1]),
    ),
    Known(_TABLE + "put also has mode='drop'", "put", "clipmode", kinds="accepts", when=_has_dtype("drop")),
    Known(
        _DOC + "means of integers of an Array are computed in float32, whatever out= is",
        "(nan)?mean|average",
        "float64",
        "value",
        lambda call: (
            is_on_gpu(call)
            and call.args[0].items.dtype.kind in "iu"
            and any(given.items.dtype == np.float64 for given in walk([*call.args[1:], *call.kwargs.values()]))
        ),
    ),
    Known(_DOC + "the result is sorted in any case", "setdiff1d", kinds="value", when=_is_chain),
    Known(_TABLE + "sets of an Array have the common datatype", "setdiff1d|intersect1d", kinds="dtype", when=is_on_gpu),
    Known(
        "numbers that are one when they are rounded to a common type",
        "setxor1d|union1d|intersect1d|isin|setdiff1d",
        kinds="value|shape|dtype",
        when=lambda call: _is_mixed(call) and _has("int64", "uint64")(call) and not _is_exact(call),
    ),
    Known(
        _TABLE + "a scalar of no dimension has axis 0",
        "take|compress|repeat|unique",
        "AxisError",
        kinds="refusal|error class",
        when=lambda call: any(given.items.ndim == 0 for given in walk(call)),
    ),
)
