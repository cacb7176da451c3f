"""What every public function must do: drawn calls of each, compared with its twin in numpy.

Results, datatypes, shapes, where results lie, classes of errors, and that arguments stay as they are. `make peers`
draws more of them; differences that are documented (`helpers.peers.known`) are none here either.
"""

import numpy as np
import pytest

import gridwise_py as gw
from helpers.peers.calls import text
from helpers.peers.chains import drawn
from helpers.peers.judge import judged
from helpers.peers.twins import TWINS

#: Those that have a kernel for every two datatypes, and several for shapes.
OF_MANY_KERNELS = ("add", "take")


@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("name", TWINS)
def test_drawn_calls_give_what_the_twin_gives(device, monkeypatch, name, is_long):
    monkeypatch.setattr(gw.runtime.device, "_default", [device])
    calls, dtypes = 40, ()  # of all datatypes
    if not is_long and name not in OF_MANY_KERNELS:
        calls, dtypes = 5, ("int32", "float32")  # for which other tests compile kernels, too
    for number in range(calls):
        call = drawn(np.random.default_rng([1, number]), (name,), dtypes)
        finding = judged(call).finding
        assert finding is None, f"{text(call)}: {finding}"
