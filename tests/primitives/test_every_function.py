"""What every public function must do: drawn calls of each, compared with its twin in numpy.

Results, datatypes, shapes, where results lie, classes of errors, and that arguments stay as they are. `make peers`
draws more of them; differences that are documented (`helpers.peers.known`) are none here either.
"""

import numpy as np
import pytest

import gridwise_py as gw
from helpers.peers.calls import text
from helpers.peers.chains import drawn
from helpers.peers.draws import ALL
from helpers.peers.judge import judged
from helpers.peers.twins import TWINS


@pytest.mark.parametrize("calls", [8, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TWINS)
def test_drawn_calls_give_what_the_twin_gives(device, monkeypatch, name, calls):
    monkeypatch.setattr(gw.runtime.device, "_default", [device])
    # Kernels for int32 are compiled by other tests, too; the other datatype is another one for each function.
    dtypes = ("int32", ALL[list(TWINS).index(name) % len(ALL)]) if calls == 8 else ()
    for number in range(calls):
        call = drawn(np.random.default_rng([1, number]), (name,), dtypes)
        finding = judged(call).finding
        assert finding is None, f"{text(call)}: {finding}"
