"""Every public function looks at the shapes and the axes that it is given: it does what numpy does, or raises."""

import inspect

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.functions.groups import Groups
from gridwise_py.types.expression_functions import StructExpression

#: What functions need besides the items, by the names of parameters.
_NEEDED = {
    "q": 0.5, "k": 1, "kth": 0, "bins": [0.0, 9.0], "indices": [0], "shift": (1, 2), "repeats": 2, "fill_value": 0,
    "values": [0.0], "offsets": [0, 6], "predicate": lambda x: x > 3, "where": lambda x: x > 3, "datatype": "u32",
    "length": 9, "x1": [1.0], "x2": [1.0], "test_elements": [1.0], "ar2": [1.0],
}  # fmt: skip
_ITEMS = ("x", "x2", "a", "b", "condition", "data", "element", "ar1", "keys", "value")
#: Shapes that numpy broadcasts, and how a kernel then repeats items: in both, in rows or columns of any length, planes.
_PAIRS = [((6, 1), (1, 6)), ((3, 4), (3, 1)), ((5,), (3, 5)), ((1, 1), (5,)), ((2, 1, 4), (3, 1)), ((1, 3), (2, 1, 1))]
_UNFIT = [((2, 3), (3, 2)), ((6,), (2, 3)), ((3,), (4,))]
#: One of each way from an expression to a result, each with another pair; the others are slow tests.
_QUICK = ("sum", "mean", "flatnonzero", "argmax", "extract", "searchsorted", "cumsum", "histogram")


def _functions():
    for name in dir(gw):
        function = getattr(gw, name)
        if inspect.isfunction(function):
            parameters = inspect.signature(function).parameters
            items = next((each for each in parameters if each in _ITEMS), None)
            if items is not None and function is not gw.merge:
                yield name, function, items, parameters


def _like(shape):
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def _called(function, items, product, given):
    if items == "keys":  # by position alone
        return function(product, **{name: each for name, each in given.items() if name != items})
    return function(**{**given, items: product})


def _call(name, product):
    """Call a function with a product in the place of its items, and of what else it needs."""
    function, items, parameters = next(rest for each, *rest in _functions() if each == name)
    if name in ("compress", "extract"):
        product = product > 1
    given = {
        each: _NEEDED.get(each, product)
        for each, parameter in parameters.items()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    }
    if name == "group_by":
        given["n"] = gw.count
    return _called(function, items, product, given)


def _read(found):
    """Return what a call gives, in numpy, or the class of what it raises."""
    if isinstance(found, Groups):
        found = list(found.columns.values())
    if isinstance(found, (tuple, list)):
        return [_read(each) for each in found]
    if isinstance(found, StructExpression):
        return [each.numpy() for each in found.fields.values()]
    return (
        found.to_numpy()
        if isinstance(found, gw.Array)
        else found.numpy()
        if isinstance(found, gw.Expression)
        else found
    )


def _outcome(name, product):
    try:
        return _read(_call(name, product))
    except gw.GridwiseError as error:
        return type(error)


def _names_and_pairs():
    for name, *_ in _functions():
        for number, pair in enumerate(_PAIRS):
            is_quick = name in _QUICK and _QUICK.index(name) % len(_PAIRS) == number
            yield pytest.param(name, pair, marks=() if is_quick else pytest.mark.slow, id=f"{name}-{number}")


@pytest.mark.parametrize(("name", "pair"), list(_names_and_pairs()))
def test_an_expression_of_two_shapes_is_one_of_their_common_shape(device, name, pair):
    first, second = map(_like, pair)
    found = _outcome(name, gw.asarray(first, device) * gw.asarray(second, device))
    wanted = _outcome(name, gw.asarray(first * second, device) * 1)
    if isinstance(wanted, type):
        assert found is wanted
        return
    for one, other in zip(*([x] if not isinstance(x, list) else x for x in (found, wanted)), strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name, *_ in _functions()])
def test_shapes_that_do_not_fit_are_refused(device, name):
    for first, second in _UNFIT:
        with pytest.raises(gw.GridwiseError):
            gw.asarray(_call(name, gw.asarray(_like(first), device) * gw.asarray(_like(second), device)))


def test_weights_have_the_shape_of_the_items(device):
    x, weights = np.float32([1, 2, 3]), np.float32([[1], [2], [3]])
    for each in (x, gw.asarray(x, device)):
        with pytest.raises(gw.LengthError, match=r"weights has shape \(3, 1\), but x has \(3,\)"):
            gw.histogram(each, 2, range=(0, 9), weights=weights)


@pytest.mark.parametrize("axis", [(1, 0), (2, 0), (-1, -2)])
def test_axes_in_any_order(device, axis):
    x = np.random.default_rng(5).integers(1, 5, (2, 3, 3)).astype(np.float32)
    checked = []
    for name, function, items, parameters in _functions():
        if "axis" not in parameters or not hasattr(np, name) or items != "x":
            continue
        required = [each for each, one in parameters.items() if one.default is one.empty and each != items]
        more = [_NEEDED[each] for each in required]
        try:
            found = function(x, *more, axis=axis)
        except gw.GridwiseError:
            continue
        np.testing.assert_allclose(found, getattr(np, name)(x, *more, axis=axis), rtol=1e-6, err_msg=name)
        checked.append(name)
    assert {"sum", "max", "mean", "std", "any", "median", "flip", "ptp"} <= set(checked)
    weights = np.arange(1, 1 + np.prod([x.shape[k] for k in axis])).reshape([x.shape[k] for k in axis])
    for each in (x, gw.asarray(x, device)):
        if each is x or axis != (2, 0):  # those of an Array are neighbours
            found = gw.average(each, axis=axis, weights=weights.astype(np.float32))
            found = found.to_numpy() if isinstance(found, gw.Array) else found
            np.testing.assert_allclose(found, np.average(x, axis=axis, weights=weights), rtol=1e-6)
