"""Ctrl-C at any place of the library: the next calls work, with right results, and nothing is lost."""

import json
import subprocess
import sys

import pytest

from helpers.paths import with_helpers


def _found(job, *places, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "helpers.interrupts", job, *map(str, places)],
        env={**with_helpers(), **environment},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr[-3000:]}"
    report = json.loads(done.stdout)
    assert report["places"] > 20, "the script did not see the library's calls"
    return report["found"]


@pytest.mark.slow
@pytest.mark.parametrize("maps", ["0", "1"])
def test_an_interrupt_anywhere_in_a_download(device, maps):
    """Between mapping and unmapping the staging buffer it once ended the process at the next call."""
    assert _found("to_numpy", GRIDWISE_MAP_ARRAYS=maps) == {}


@pytest.mark.slow
@pytest.mark.parametrize("job", ["stream", "sort", "timed", "event", "measure"])
def test_interrupts_at_some_places(device, job):
    assert _found(job, 40) == {}


@pytest.mark.parametrize("maps", ["0", "1"])
@pytest.mark.parametrize("job", ["large_download", "large_upload"])
def test_interrupts_while_threads_copy(device, job, maps):
    """A staging buffer that threads may still touch is neither unmapped nor used again; a mapped Array is unmapped."""
    assert _found(job, 40, GRIDWISE_MAP_ARRAYS=maps) == {}


def test_interrupts_of_a_batch(device):
    """No call that returned is lost, and none is done twice."""
    assert _found("batch", 25) == {}


@pytest.mark.parametrize("job", ["pinned", "windows"])
def test_interrupts_while_memory_is_mapped(device, job):
    """Memory that may be mapped is not used again."""
    assert _found(job, 20) == {}


@pytest.mark.slow
@pytest.mark.parametrize("places", [20, 400])
def test_interrupts_while_threads_compile(device, places):
    """What they compile is there, or is asked for again; nobody waits for what nobody makes."""
    assert _found("first_call", places) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "job",
    [
        "large_download",
        "large_upload",
        "asarray",
        "stream",
        "sort",
        "timed",
        "event",
        "batch",
        "sequence",
        "pinned",
        "windows",
    ],
)
def test_an_interrupt_anywhere(device, job):
    assert _found(job) == {}


@pytest.mark.slow
@pytest.mark.parametrize("job", ["large_download", "large_upload", "asarray"])
def test_an_interrupt_anywhere_with_staging(device, job):
    assert _found(job, GRIDWISE_MAP_ARRAYS="0") == {}


@pytest.mark.slow
def test_interrupts_at_many_places_of_a_measurement(device):
    assert _found("measure", 500) == {}
