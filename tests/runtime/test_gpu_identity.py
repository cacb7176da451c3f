"""Which of several equal GPUs a device is, on invented GPUs whose memory other processes take and free."""

from contextlib import contextmanager

import pytest

from gridwise_py.backend.gpu import Gpu
from gridwise_py.runtime import gpu_identity
from gridwise_py.runtime.gpu_identity import find_by_memory, gpu_of, pci_of

MIB = 1 << 20
GIB = 1 << 30


class Host:
    """GPUs with some memory in use; a process holds memory of one of them, and others do what they want meanwhile."""

    def __init__(self, count=4, own=2, *, meanwhile=lambda host, number: None, overhead=0, tells=True):
        self.used = [3 * GIB + i * MIB for i in range(count)]
        self.own, self.meanwhile, self.overhead, self.tells = own, meanwhile, overhead, tells
        self.sizes = []

    def looks(self):
        return [lambda i=i: self.used[i] if self.tells else None for i in range(len(self.used))]

    @contextmanager
    def hold(self, size):
        self.sizes.append(size)
        self.used[self.own] += size + self.overhead
        self.meanwhile(self, len(self.sizes))
        yield True
        self.used[self.own] -= size + self.overhead

    def find(self, seed=1):
        return find_by_memory(self.looks(), self.hold, 4 * GIB, seed)


def test_the_gpu_whose_memory_follows_is_found():
    for own in (0, 1, 3):
        host = Host(own=own, overhead=2 * MIB)
        before = list(host.used)
        assert host.find() == own
        assert host.used == before
        assert len(host.sizes) == 2  # twice, by two sizes
        assert host.sizes[1] > host.sizes[0] > 256 * MIB


def _others_take(size_of):
    def meanwhile(host, number):
        for i in range(len(host.used)):
            if i != host.own:
                host.used[i] += size_of(host, number, i)

    return meanwhile


def test_what_others_take_meanwhile_is_no_match():
    assert Host(meanwhile=_others_take(lambda host, number, i: 512 * MIB)).find() == 2
    assert Host(meanwhile=_others_take(lambda host, number, i: -(i + 1) * 100 * MIB)).find() == 2


def test_a_round_in_which_another_gpu_moves_alike_decides_nothing():
    """By accident, or since the process there looks for itself at this moment."""

    def alike(host, number, i):
        return host.sizes[-1] if number == 1 and i == 0 else 0

    host = Host(meanwhile=_others_take(alike))
    assert host.find() == 2
    assert len(host.sizes) == 3
    assert Host(meanwhile=_others_take(lambda host, number, i: host.sizes[-1])).find() is None


def test_no_gpu_is_accused_where_the_own_one_is_disturbed():
    """Somebody takes memory of the GPU that is looked for, and another one rises by what was held."""

    def meanwhile(host, number):
        host.used[host.own] += 64 * MIB  # so that it never matches
        if number == 3:
            host.used[0] += host.sizes[-1]  # which would be one match for the wrong one

    assert Host(meanwhile=meanwhile).find() is None

    def contradictory(host, number):  # a match for another one, then some for the own
        if number == 1:
            host.used[host.own] -= host.sizes[-1]
            host.used[0] += host.sizes[-1]

    assert Host(meanwhile=contradictory).find() is None


def test_eight_processes_that_start_together_find_their_own_or_nothing():
    """Each holds and frees memory by its own sizes while the others look."""
    found = []
    for seed in range(200):

        def meanwhile(host, number, seed=seed):
            for i in range(len(host.used)):
                if i != host.own:  # what the process there holds in its own round
                    step = (seed * 7919 + number * 104729 + i * 1299709) % 120
                    host.used[i] += (288 + 128 * ((seed + i + number) % 5) + step) * MIB

        found.append(Host(count=8, own=seed % 8, meanwhile=meanwhile).find(seed))
    assert all(each in (None, seed % 8) for seed, each in enumerate(found))
    assert sum(each is not None for each in found) > 150


def test_what_cannot_be_known_is_not_told():
    assert Host(tells=False).find() is None
    host = Host()
    assert find_by_memory(host.looks(), host.hold, 100 * MIB) is None  # more than a buffer may have
    assert host.sizes == []

    @contextmanager
    def refused(size):
        yield False

    assert find_by_memory(host.looks(), refused, 4 * GIB) is None


def _gpus(host):
    return [Gpu(f"0000:0{i}:00.0", lambda i=i: {"sm_clock_mhz": 1000 + i}, look) for i, look in enumerate(host.looks())]


def test_the_probe_runs_once_and_only_among_several(fresh_device, monkeypatch):
    host = Host()
    monkeypatch.setattr(gpu_identity, "gpus_like", lambda info: _gpus(host))
    monkeypatch.setattr(gpu_identity, "_held", lambda device, size: host.hold(size))
    assert gpu_of(fresh_device, may_hold=False) is None
    assert host.sizes == []
    assert pci_of(fresh_device) == "0000:02:00.0"
    assert gpu_of(fresh_device).look() == {"sm_clock_mhz": 1002}
    assert gpu_of(fresh_device, may_hold=False).look() == {"sm_clock_mhz": 1002}
    assert len(host.sizes) == 2


def test_the_only_gpu_of_its_name_needs_no_probe(fresh_device, monkeypatch):
    monkeypatch.setattr(gpu_identity, "gpus_like", lambda info: _gpus(Host(count=1, own=0)))
    monkeypatch.setattr(gpu_identity, "_held", lambda device, size: pytest.fail("held"))
    assert pci_of(fresh_device) == "0000:00:00.0"
    assert gpu_of(fresh_device, may_hold=False).look() == {"sm_clock_mhz": 1000}


def test_memory_is_held_and_given_back(fresh_device):
    """On the device itself; how much that is of a GPU's memory, only its driver can tell."""
    with gpu_identity._held(fresh_device, 1 * MIB) as is_held:
        assert is_held
    with gpu_identity._held(fresh_device, 1 << 60) as is_held:
        assert not is_held
