"""Every public function looks at the shapes and the axes that it is given: it does what numpy does, or raises."""

import inspect
import re

import numpy as np
import pytest

import gridwise_py as gw

#: What functions need besides the items, by the names of parameters.
_NEEDED = {
    "q": 0.5, "k": 1, "kth": 0, "bins": [0.0, 9.0], "indices": [0], "shift": (1, 2), "repeats": 2, "fill_value": 0,
    "values": [0.0], "offsets": [0, 6], "predicate": lambda x: x > 3, "where": lambda x: x > 3, "datatype": "u32",
    "length": 9, "x1": [1.0], "x2": [1.0], "test_elements": [1.0], "ar2": [1.0],
}  # fmt: skip
_ITEMS = ("x", "x2", "a", "b", "condition", "data", "element", "ar1", "keys", "value")
_PAIRS = [((6, 1), (1, 6)), ((2, 3), (3, 2)), ((6,), (2, 3)), ((3,), (4,)), ((3, 1), (3,)), ((1, 1), (5,))]


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


@pytest.mark.parametrize("name", [name for name, *_ in _functions()])
def test_an_expression_of_two_shapes_is_refused(device, name):
    function, items, parameters = next(rest for each, *rest in _functions() if each == name)
    for first, second in _PAIRS:
        product = gw.asarray(_like(first), device) * gw.asarray(_like(second), device)
        if name in ("compress", "extract"):
            product = product > 1
        given = {
            each: _NEEDED.get(each, product)
            for each, parameter in parameters.items()
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        }
        if name == "group_by":
            given["n"] = gw.count
        with pytest.raises(gw.GridwiseError):
            gw.asarray(_called(function, items, product, given))  # what waits until it is read


@pytest.mark.parametrize(("first", "second"), _PAIRS)
def test_what_the_error_advises_gives_what_numpy_gives(device, first, second):
    arrays = [gw.asarray(_like(shape), device) for shape in (first, second)]
    try:
        wanted = (_like(first) * _like(second)).sum()
    except ValueError:
        wanted = None
    with pytest.raises(gw.LengthError) as error:
        gw.sum(arrays[0] * arrays[1])
    remedy = re.search(r"of (.*) give (gw\.asarray\(.*\))$", str(error.value))
    assert (remedy is None) == (wanted is None), "numpy broadcasts"
    if remedy:
        for name in remedy[1].split(" and "):
            place = int(name[-1])
            arrays[place] = eval(remedy[2], {"gw": gw, "np": np, "x": arrays[place]})
        assert gw.sum(arrays[0] * arrays[1]).item() == wanted


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
