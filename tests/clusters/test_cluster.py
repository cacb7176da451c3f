"""Clusters of processes on this machine: what travels, what dies, what is refused.

One cluster of two workers serves this file. Kills are triggered by the phase that a worker is in, not by time: a
function of a chunk makes a file and ends its process, once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import gridwise_py as gw
from helpers import clusters, needs
from helpers.clusters import MEMORY

with needs.modules("distributed") as distributed_is_needed:
    import dask
    import dask.array as da
    from distributed import Client, Nanny, Scheduler, SpecCluster, wait

    import gridwise_py.dask as gwd
    from gridwise_py.dask import chunks, splitters
    from gridwise_py.dask.cluster import NO_DASHBOARD, chosen_adapters, tagged, worker_options
    from gridwise_py.dask.worker import RESOURCE, gpu_workers, run_on_gpu

pytestmark = [pytest.mark.gpu, pytest.mark.dask, distributed_is_needed]


SIZE = 4000
LENGTHS = (1000, 1, 0, 1499, 500, 1000)


@pytest.fixture(scope="module", autouse=True)
def settings_of_dask():
    """Dask's cluster gives a Nanny up whose worker is away for 15 s, which a busy machine may take."""
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1h", "distributed.scheduler.allowed-failures": 2}):
        yield


@pytest.fixture(scope="module")
def cluster(settings_of_dask):
    with gwd.local_cluster([0, 0], memory_limit=MEMORY, threads=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with gwd.connect(cluster) as client:
        yield client


@pytest.fixture
def several_groups(monkeypatch):
    """Sorts of a few items are built for two GPUs, as those of many are."""
    from gridwise_py.dask import collections

    monkeypatch.setattr(collections, "what_gpus_take", lambda ask: (2, 1 << 32))
    monkeypatch.setattr(collections, "_TOGETHER_BYTES", 0)


@pytest.fixture(autouse=True)
def whole(request):
    """Every test leaves the shared cluster with both its workers."""
    yield
    if "client" in request.fixturenames:
        request.getfixturevalue("client").wait_for_workers(2, timeout=60)


def _items(dtype="f4"):
    items = np.random.default_rng(5).standard_normal(SIZE).astype(dtype)
    items[::7], items[1::9], items[2::9] = np.nan, -0.0, 0.0
    return items


def _chunked(items):
    return da.from_array(items, chunks=(LENGTHS,))


def _bits(items):
    return np.asarray(items).view(f"u{np.asarray(items).dtype.itemsize}")


# ---- what travels


@pytest.mark.slow
def test_each_worker_has_its_own_identity(client, cluster):
    found = gwd.identities(client)
    assert len({one.id for one in found}) == len({one.tag for one in found}) == len({one.pid for one in found}) == 2
    assert [one.worker for one in found] == [one.tag for one in found]
    assert set(gpu_workers(client)) == {one.address for one in found}
    assert cluster.scheduler_address.startswith("tcp://127.0.0.1:")
    tagged = client.submit(os.getpid, resources={found[1].tag: 1}, pure=False).result(timeout=120)
    assert tagged == found[1].pid


def _listening(dask_worker):
    import psutil

    process = psutil.Process()
    return {c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}


@pytest.mark.slow
def test_a_local_cluster_listens_on_this_host_only(client, cluster):
    assert set().union(*client.run(_listening).values()) == {"127.0.0.1"}
    assert _listening(None) <= {"127.0.0.1"}, "scheduler and Nannies are in this process"


def _make(device, size):
    return gw.asarray(np.arange(size, dtype=np.uint32), device)


def _kind_and_sum(device, array):
    return type(array).__name__, int(np.sum(array.to_numpy(), dtype="u8"))


@pytest.mark.slow
def test_an_array_travels_to_another_gpu_and_comes_to_a_client_as_numpy(client):
    here, there = gpu_workers(client)
    size = 1 << 20  # more than one frame, with the limit below
    made = client.submit(run_on_gpu, _make, size, workers=[here], pure=False)
    wait(made)
    assert client.run(_size_of, made.key, workers=[here])[here] == (4 * size, 4 * size)
    found = client.submit(run_on_gpu, _kind_and_sum, made, workers=[there], pure=False).result(timeout=60)
    assert found == ("Array", size * (size - 1) // 2)
    gathered = made.result()
    assert type(gathered) is np.ndarray
    np.testing.assert_array_equal(gathered, np.arange(size, dtype=np.uint32))


def _size_of(key, dask_worker):
    from dask.sizeof import sizeof

    return sizeof(dask_worker.data[key]), dask_worker.state.tasks[key].nbytes


def _tokens(device):
    from dask.base import tokenize

    one = gw.asarray(np.arange(9, dtype=np.float32), device)
    same, other = one[0:9], one[1:9]
    first = tokenize(one)
    copies = [tokenize(gw.asarray(np.full(9, i, np.float32), device)) for i in range(3)]
    return first == tokenize(one) == tokenize(same), first != tokenize(other), len({first, *copies})


def _run_of(device, size):
    return chunks.held(device, np.arange(size, dtype=np.uint64)[::-1], in_order=True, descending=False)


def _sum_of_half(columns):
    return int(columns.columns[0].sum()), columns.is_on_gpu


def _host_memory(dask_worker):
    from gridwise_py.dask.shared import host_memory

    with host_memory._lock:
        host_memory._collect()
    return len(host_memory._used), [block.size_bytes for block in host_memory._free]


@pytest.mark.needs("linux")
def test_a_piece_goes_to_another_worker_of_this_host_without_its_bytes_and_its_memory_is_used_again(client):
    here, there = gpu_workers(client)
    size = 1 << 18
    for _ in range(3):
        run = client.submit(run_on_gpu, _run_of, size, workers=[here], pure=False)
        half = client.submit(chunks.Columns.between, run, 0, size // 2, workers=[here], pure=False)
        found = client.submit(_sum_of_half, half, workers=[there], pure=False).result(timeout=60)
        assert found == (size // 2 * (size // 2 - 1) // 2, False)
        del run, half
        time.sleep(0.2)  # the reader tells when it has finished
    deadline = time.monotonic() + 60
    while (memory := client.run(_host_memory, workers=[here])[here]) != (0, [1 << 20]):
        assert time.monotonic() < deadline, memory
        time.sleep(0.1)


@pytest.mark.slow
def test_tokens_of_arrays_stay_and_memory_that_is_used_again_has_another(client):
    assert client.submit(run_on_gpu, _tokens, pure=False).result(timeout=120) == (True, True, 4)


def _through_bytes(device):
    """What is left of Arrays when a worker writes them to its disk and reads them."""
    from distributed.protocol import deserialize_bytes, serialize_bytelist

    structs = np.zeros(3, np.dtype([("a", "u4"), ("b", "f4")]))
    structs["a"], structs["b"] = [1, 2, 3], [0.5, np.nan, -0.0]
    found = []
    for items in (np.arange(6, dtype="i8").reshape(2, 3), np.empty(0, "f4"), np.array([1, 0], bool), structs):
        back = deserialize_bytes(b"".join(serialize_bytelist(gw.asarray(items, device))))
        host = back.to_numpy()
        found.append((type(back).__name__, host.dtype == items.dtype, host.shape, host.tobytes() == items.tobytes()))
    return found


@pytest.mark.slow
def test_arrays_of_any_kind_survive_being_written_to_disk(client):
    expected = [("Array", True, shape, True) for shape in ((2, 3), (0,), (2,), (3,))]
    assert client.submit(run_on_gpu, _through_bytes, pure=False).result(timeout=120) == expected


@pytest.mark.slow
def test_a_client_of_an_event_loop_computes(client, cluster):
    """Its answers have to be awaited, so nothing can be asked while a graph is built."""
    codes = np.arange(SIZE, dtype="u4")

    async def computed():
        async with Client(cluster.scheduler_address, asynchronous=True) as own:
            large = gwd.sum(da.zeros(1 << 25, chunks=1 << 25, dtype="f4"))  # more than is taken unasked
            assert large.dtype == np.float32
            with pytest.raises(gw.ArgumentError, match="not asynchronous"):
                gwd.identities(own)
            return await own.gather(own.compute([gwd.sum(_chunked(codes)), gwd.sort(_chunked(codes))]))

    total, in_order = asyncio.run(computed())
    assert total == codes.sum()
    np.testing.assert_array_equal(in_order, codes)


@pytest.mark.slow
def test_a_client_that_was_closed_says_so(client, cluster):
    with gwd.connect(cluster) as own:
        pass
    with pytest.raises(gw.ClusterError, match="the client is closed"):
        gwd.identities(own)
    with pytest.raises(gw.ClusterError, match="client was closed"):
        gwd.sum(_chunked(np.arange(SIZE, dtype="u4"))).compute(scheduler=own)


@pytest.mark.slow
def test_what_a_chunk_raises_keeps_its_type_and_says_where(client):
    with pytest.raises(gw.EmptyReductionError) as caught:
        gwd.min(da.from_array(np.empty(0, "f4"), chunks=((0, 0),))).compute()
    notes = "".join(getattr(caught.value, "__notes__", ()))
    assert "gridwise-reduce" in notes
    assert any(address in notes for address in gpu_workers(client))


# ---- the same bits as numpy, whatever dies


def _jobs():
    floats = _items()
    codes = np.random.default_rng(1).integers(0, 9, SIZE, dtype="u4")
    order = np.argsort(floats, kind="stable")
    x, keys = _chunked(floats), _chunked(codes)
    with np.errstate(invalid="ignore"):
        return {
            "reduce": (gwd.reduce(keys), codes.sum(dtype="u4")),
            "scan": (gwd.scan(keys), np.cumsum(codes, dtype="u4")),
            "sort": (gwd.sort(x), floats[order]),
            "argsort": (gwd.argsort(x), order.astype("u8")),
            "groups": (gwd.groupby(keys, keys, "count"), np.unique(codes, return_counts=True)),
            "histogram": (gwd.histogram(keys, 9), np.bincount(codes)),
        }


def _check(name, found, expected):
    if name == "groups":
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    else:
        np.testing.assert_array_equal(_bits(found), _bits(expected))


def _slow_but(quick, every):
    """Parameters of a test, of which `make test` has one: without a cluster the same is tested, too."""
    return [pytest.param(*one, marks=() if one == quick else pytest.mark.slow) for one in every]


@pytest.mark.parametrize("name", _slow_but(("scan",), [(name,) for name in (
    "reduce", "scan", "sort", "argsort", "groups", "histogram")]))  # fmt: skip
def test_results_are_numpys(client, several_groups, name):
    lazy, expected = _jobs()[name]
    _check(name, lazy.compute(), expected)


def _killing(function, mark, count=1):
    """A function that ends its process before it does what another does, as often as is said, once per file."""

    def dying(*arguments, **options):
        for i in range(count):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(f"{mark}-{i}", os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)

    return dying


PHASES = {
    "reduce": [(chunks, "reduced_parts"), (chunks, "result")],
    "scan": [(chunks, "reduced"), (chunks, "carries"), (chunks, "scanned")],
    "sort": [
        (chunks, "held"), (chunks, "sampled_keys"), (splitters, "narrowed"), (splitters, "cuts"), (chunks, "piece"),
        (chunks, "merged"), (chunks, "part"),
    ],
    "groups": [(chunks, "grouped"), (chunks, "merged_groups")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "phase"), _slow_but(("sort", 5), [(name, i) for name in PHASES for i in range(len(PHASES[name]))])
)
def test_a_worker_killed_in_any_phase_changes_no_bit(client, several_groups, monkeypatch, tmp_path, name, phase):
    module, attribute = PHASES[name][phase]
    mark = tmp_path / "killed"
    monkeypatch.setattr(module, attribute, _killing(getattr(module, attribute), mark))
    floats = _items() + np.float32(phase)
    codes = np.random.default_rng(phase).integers(0, 9, SIZE, dtype="u4")
    wide = da.from_array(codes, chunks=SIZE // 20)  # so many that results are combined in a tree
    order = np.argsort(floats, kind="stable")
    lazy, expected = {
        "reduce": lambda: (gwd.reduce(wide), codes.sum(dtype="u4")),
        "scan": lambda: (gwd.scan(_chunked(codes)), np.cumsum(codes, dtype="u4")),
        "sort": lambda: (gwd.sort(_chunked(floats)), floats[order]),
        "groups": lambda: (gwd.groupby(wide, wide, "count"), np.unique(codes, return_counts=True)),
    }[name]()
    found = client.compute(lazy).result(timeout=100)
    assert os.path.exists(f"{mark}-0"), "the kill did not happen"
    _check(name, found, expected)


@pytest.mark.slow
def test_work_that_always_kills_its_worker_fails_for_itself_alone(client, monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "reduced", _killing(chunks.reduced, tmp_path / "killed", count=50))
    doomed = gwd.reduce(da.from_array(np.arange(9, dtype="u4"), chunks=9), "max")
    with pytest.raises(gw.ClusterError, match=r"'gridwise-reduce-part-.* was given up, because every worker .* died"):
        doomed.compute()
    monkeypatch.undo()
    client.wait_for_workers(2, timeout=60)
    codes = np.arange(SIZE, dtype="u4")[::-1].copy()
    assert gwd.reduce(_chunked(codes), "max").compute() == SIZE - 1


@pytest.mark.slow
def test_a_worker_that_is_closed_by_its_nanny_comes_back_as_the_same_device(client):
    before = {one.id: one for one in gwd.identities(client)}
    client.restart_workers(list(gpu_workers(client))[:1], timeout=60)
    client.wait_for_workers(2, timeout=60)
    after = {one.id: one for one in gwd.identities(client)}
    assert set(after) == set(before)
    assert {one.tag for one in after.values()} == {one.tag for one in before.values()}
    assert len({one.pid for one in after.values()} - {one.pid for one in before.values()}) == 1


@pytest.mark.slow
def test_a_worker_that_does_not_come_back_in_time_is_replaced(client, cluster):
    """Dask gives it up, and what waits for its GPU would wait for ever."""
    found = gwd.identities(client)[0]
    before = cluster.workers[found.tag]
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "0.2s"}):
        os.kill(found.pid, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while cluster.workers.get(found.tag) in (None, before) and time.monotonic() < deadline:
            time.sleep(0.1)
    assert cluster.workers[found.tag] is not before
    assert client.submit(os.getpid, resources={found.tag: 1}, pure=False).result(timeout=120) != found.pid


# ---- who may compute


@pytest.fixture
def plain_worker(cluster):
    """A worker that somebody started without a GPU, in the shared cluster."""

    async def start():
        return await Nanny(cluster.scheduler_address, nthreads=1, memory_limit=MEMORY, name="plain", host="127.0.0.1")

    async def stop(nanny):
        await nanny.close(timeout=10)

    loop = cluster.loop.asyncio_loop
    nanny = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
    yield nanny
    asyncio.run_coroutine_threadsafe(stop(nanny), loop).result(60)


@pytest.mark.slow
def test_a_worker_without_a_gpu_never_computes_in_silence(client, plain_worker):
    client.wait_for_workers(3, timeout=60)
    codes = np.arange(SIZE, dtype="u4")
    x = da.from_array(codes, chunks=100)
    assert gwd.reduce(x).compute() == codes.sum(dtype="u4"), "all of it on the GPUs"
    assert len(gwd.identities(client)) == 2
    # Without what connect() sets, Dask's fusion loses the annotations.
    on_plain = client.submit(run_on_gpu, _kind_and_sum, 1, workers=["plain"], pure=False)
    with pytest.raises(gw.ClusterError, match=r"worker plain .*has no GPU .*annotations of the graph were lost"):
        on_plain.result(timeout=120)
    with dask.config.set({"optimization.fuse.active": True}):
        lost = client.compute([gwd.reduce(x + i) for i in range(1, 9)])
    wait(lost, timeout=60)
    for i, future in enumerate(lost, 1):
        if future.status == "error":
            assert isinstance(future.exception(), gw.ClusterError)
        else:
            assert future.result() == (codes + np.uint32(i)).sum(dtype="u4")


@pytest.mark.slow
def test_a_cluster_whose_client_did_not_prepare_it_refuses_to_compute(settings_of_dask):
    (tag, adapter), *_ = tagged(chosen_adapters([0])).items()
    options = {**worker_options(tag, adapter, 1, 1), "memory_limit": MEMORY, "host": "127.0.0.1"}
    refusing = {**options, "name": "refusing", "env": {"GRIDWISE_ADAPTER": "0"}, "resources": {RESOURCE: 1}}
    workers = {
        "bare": {"cls": Nanny, "options": {**options, "name": "bare"}},
        "refusing": {"cls": Nanny, "options": refusing},
    }
    scheduler = {"cls": Scheduler, "options": {**NO_DASHBOARD, "host": "127.0.0.1"}}
    with SpecCluster(workers=workers, scheduler=scheduler, silence_logs=50) as own:
        with Client(own) as client:
            # No plugin: the client was not made by connect().
            task = client.submit(run_on_gpu, _kind_and_sum, 1, workers=["bare"], pure=False)
            with pytest.raises(gw.ClusterError, match=r"no device: the client was not made by gwd\.connect"):
                task.result(timeout=120)
        with pytest.raises(
            gw.ClusterError, match=r"worker refusing .*software on the CPU; name it in.*GRIDWISE_DASK_CPU=1"
        ):
            gwd.identities(gwd.connect(own))


@pytest.mark.slow
def test_versions_that_differ_are_refused(client, cluster, monkeypatch):
    from gridwise_py.dask import cluster as module

    # The workers are asked by the same function.
    monkeypatch.setattr(module, "versions", partial(_versions_of, os.getpid()))
    with pytest.raises(gw.ClusterError, match=r"versions differ: wgpu: .*0\.99 \(this client\).*allow_versions=True"):
        gwd.connect(cluster)
    gwd.connect(cluster, allow_versions=True).close()


def _versions_of(newer_pid):
    from gridwise_py.dask.worker import versions

    return {**versions(), "wgpu": "0.99"} if os.getpid() == newer_pid else versions()


def test_a_worker_that_comes_later_with_other_versions_computes_nothing():
    from gridwise_py.dask.worker import GpuPlugin, versions

    state = SimpleNamespace(total_resources={RESOURCE: 1.0})
    plugin = GpuPlugin({**versions(), "numpy": "1.0"})
    plugin.setup(SimpleNamespace(name="late", address="tcp://10.0.0.9:1", state=state))
    with pytest.raises(gw.ClusterError, match=r"worker late .*versions differ: numpy: 1\.0 \(the client\)"):
        plugin.identity()


# ---- clusters that end, and those that let nobody in


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority of the test's own, and a certificate with its key, by openssl."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl(*new, "-x509", "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(*new, "-subj", "/CN=node", "-keyout", "node.key", "-out", "node.csr")
    openssl(
        "x509",
        "-req",
        "-in",
        "node.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-out",
        "node.pem",
    )
    return folder


@pytest.mark.slow
def test_over_tls_and_a_scheduler_that_is_killed(certificates, monkeypatch, tmp_path):
    from distributed.security import Security

    paths = [str(certificates / name) for name in ("ca.pem", "node.pem", "node.key")]
    security = Security(
        tls_ca_file=paths[0], tls_client_cert=paths[1], tls_client_key=paths[2], require_encryption=True
    )
    port = clusters.free_port()
    address = f"tls://127.0.0.1:{port}"
    scheduler = clusters.scheduler(
        "tls", port, "--tls-ca-file", paths[0], "--tls-cert", paths[1], "--tls-key", paths[2]
    )
    worker = clusters.worker(address, "--tls-ca", paths[0], "--tls-cert", paths[1], "--tls-key", paths[2])
    try:
        # Without certificates, in a process of its own: Dask goes on trying in a thread.
        program = f"import gridwise_py.dask as gwd; gwd.connect({address!r}, timeout_s=2)"
        command = [sys.executable, "-c", program]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
        assert "ClusterError: " in refused.stderr
        assert "no scheduler answers at tls://" in refused.stderr
        codes = np.arange(SIZE, dtype="u4")
        client = gwd.connect(address, security=security, timeout_s=60)
        assert client.compute(gwd.reduce(_chunked(codes))).result(timeout=60) == codes.sum(dtype="u4")
        with pytest.raises(gw.ClusterError, match="no scheduler answers at tcp://"):
            gwd.connect(f"tcp://127.0.0.1:{port}", timeout_s=2)
        monkeypatch.setattr(chunks, "reduced", clusters.once(chunks.reduced, tmp_path / "killed", scheduler.pid))
        with pytest.raises(gw.ClusterError, match="the scheduler is gone"):
            client.gather(client.compute(gwd.reduce(_chunked(codes + np.uint32(1)))))
        assert (tmp_path / "killed").exists()
        client.close(timeout=2)
        assert worker.wait(timeout=60) in (0, 2), "the workers end"
    finally:
        clusters.end(scheduler, worker)


#: One of each kind of work, in an early phase or in the last one.
ENDS = [("reduce", "reduced"), ("scan", "carries"), ("sort", "merged")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "phase"), ENDS)
def test_a_nanny_killed_in_any_phase_takes_its_worker_along_and_the_next_one_goes_on(
    settings_of_dask, several_groups, monkeypatch, tmp_path, name, phase
):
    """As where systemd starts `gridwise worker` again."""
    with clusters.by_hand() as (address, _, start):
        first = start()
        with gwd.connect(address, timeout_s=60) as client:
            (before,) = gwd.identities(client)
            monkeypatch.setattr(chunks, phase, clusters.once(getattr(chunks, phase), tmp_path / "killed"))
            lazy, expected = _jobs()[name]
            future = client.compute(lazy)
            assert first.wait(timeout=60) == -signal.SIGKILL
            start()
            _check(name, future.result(timeout=100), expected)
            (after,) = gwd.identities(client)
            assert (after.id, after.tag) == (before.id, before.tag)
            assert after.pid != before.pid


@pytest.mark.slow
@pytest.mark.parametrize(("name", "phase"), ENDS)
def test_a_scheduler_killed_in_any_phase_is_an_error_soon(
    settings_of_dask, several_groups, monkeypatch, tmp_path, name, phase
):
    with clusters.by_hand() as (address, scheduler, start):
        worker = start()
        with gwd.connect(address, timeout_s=60) as client:
            gwd.identities(client)
            killing = clusters.once(getattr(chunks, phase), tmp_path / "killed", scheduler.pid)
            monkeypatch.setattr(chunks, phase, killing)
            with pytest.raises(gw.ClusterError, match="the scheduler is gone"):
                client.gather(client.compute(_jobs()[name][0]))
            assert (tmp_path / "killed").exists()
            assert worker.wait(timeout=60) in (0, 2), "the workers end"


@pytest.mark.slow
def test_a_local_cluster_over_tls():
    codes = np.arange(SIZE, dtype="u4")
    with gwd.local_cluster([0], memory_limit=MEMORY, threads=1, tls=True) as own, gwd.connect(own) as client:
        assert own.scheduler_address.startswith("tls://127.0.0.1:")
        assert client.gather(client.compute(gwd.reduce(_chunked(codes)))) == codes.sum(dtype="u4")


@pytest.mark.slow
def test_the_command_joins_as_the_same_device_and_ends_in_order(tmp_path):
    port, file = clusters.free_port(), tmp_path / "scheduler.json"
    address = f"tcp://127.0.0.1:{port}"
    scheduler = clusters.scheduler("tcp", port, "--scheduler-file", str(file))
    deadline = time.monotonic() + 60
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    worker = clusters.worker(str(file))
    try:
        with gwd.connect(str(file), timeout_s=60) as client:
            (one,) = gwd.identities(client)
            assert (one.tag, one.worker, one.type) == (one.worker, one.tag, gw.list_adapters()[0].type)
            worker.send_signal(signal.SIGTERM)
            _, said = worker.communicate(timeout=120)
            assert worker.returncode == 0, said
            assert f"{one.tag}: " in said
            assert f"joins {address}" in said
            with pytest.raises(gw.ClusterError, match=r"no worker has a GPU .*none at all.*`gridwise worker tcp://"):
                gwd.connect(address, timeout_s=0.5)
    finally:
        clusters.end(worker, scheduler)
    done = subprocess.run(
        [sys.executable, "-m", "gridwise_py", "worker", address, "--adapter", "0", "--death-timeout", "1"],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "no worker joined the cluster" in done.stderr


# ---- where a worker keeps Arrays


@pytest.fixture
def spill(device, tmp_path, monkeypatch):
    """A function that makes the mapping of a worker in this process, with limits in bytes."""
    from gridwise_py.dask import spill, worker

    worker.register()
    monkeypatch.setattr(worker, "_uploads", True)
    monkeypatch.setattr(worker, "default_device", lambda: device)
    monkeypatch.setattr(spill, "default_device", lambda: device)
    return lambda device_bytes, host_bytes: spill.GpuSpill(device_bytes, host_bytes, str(tmp_path))


def _counting(device, first):
    return gw.asarray(np.arange(first, first + 100, dtype=np.float32), device)


def test_arrays_move_from_the_gpu_to_the_host_to_disk_and_back(device, spill, tmp_path):
    data = spill(1000, 1000)
    keys = [("chunk", i) for i in range(8)]
    for i, key in enumerate(keys):
        data[key] = _counting(device, i)
    assert (len(data), data.gpu_bytes, data.moved) == (8, 800, 6)
    assert sum(len(files) for _, _, files in os.walk(tmp_path)) >= 3, "host memory has room for two"
    for _ in range(2):
        for i, key in enumerate(keys):
            assert isinstance(data[key], gw.Array)
            np.testing.assert_array_equal(data[key].to_numpy(), np.arange(i, i + 100, dtype=np.float32))
            assert data.gpu_bytes <= 1000
    assert data.returned >= 8
    assert sorted(data) == keys
    data[keys[0]] = 7  # another value, of another kind, under a key that is there
    del data[keys[1]]
    assert data[keys[0]] == 7
    assert len(data) == 7
    assert keys[1] not in data
    np.testing.assert_array_equal(np.asarray(data.pop(keys[2])), np.arange(2, 102, dtype=np.float32))
    with pytest.raises(KeyError):
        data.pop(keys[2])
    assert data.move_all()
    assert data.gpu_bytes == 0
    assert not data.move_all()
    while data.fast:
        assert data.evict() > 0
    assert data.evict() == -1
    assert set(data) == {keys[0], *keys[3:]}
    for key in list(data):
        del data[key]
    assert (len(data), data.gpu_bytes) == (0, 0)
    assert sum(len(files) for _, _, files in os.walk(tmp_path)) == 0


def test_results_stay_in_host_memory_where_no_file_can_be_written(device, spill, tmp_path, caplog):
    """As on a disk that is full. What cannot be read raises."""
    data = spill(400, 1000)
    data["on disk"] = "a" * 2000
    (folder,) = tmp_path.iterdir()
    folder.rename(tmp_path / "away")
    for i in range(6):
        data[i] = _counting(device, i)
    data["large"] = "b" * 2000
    for i in range(6):
        np.testing.assert_array_equal(data[i].to_numpy(), np.arange(i, i + 100, dtype=np.float32))
    assert (data["large"], data.evict(), len(data)) == ("b" * 2000, -1, 8)
    assert "results stay in host memory, since none can be written to" in caplog.text
    with pytest.raises(FileNotFoundError):
        data["on disk"]
    (tmp_path / "away").rename(folder)
    assert data["on disk"] == "a" * 2000
    while data.fast:
        assert data.evict() > 0


def test_an_array_larger_than_the_limit_stays_alone_and_a_lost_device_loses_no_key(device, spill):
    data = spill(10, 10_000)
    data["a"] = _counting(device, 0)
    assert data.gpu_bytes == 400
    gone = _counting(device, 1)
    data["b"] = gone
    assert data.gpu_bytes == 400
    gone.destroy()
    with pytest.raises(gw.BufferUsageError):
        data["c"] = _counting(device, 2)
    assert {"a", "b"} <= set(data)


def test_a_gpu_without_room_gets_it_from_what_the_worker_holds(device, spill):
    from gridwise_py.dask.worker import _with_room

    data = spill(10_000, 10_000)
    data["a"], calls = _counting(device, 0), []

    def hungry(_device, *arguments):
        calls.append((data.gpu_bytes, arguments))
        if len(calls) == 1:
            raise gw.DeviceMemoryError("no room")
        return 7

    assert _with_room(SimpleNamespace(data=data), hungry, (3,)) == 7
    assert calls == [(400, (3,)), (0, (3,))]
    calls.clear()
    with pytest.raises(gw.DeviceMemoryError, match="no room"):  # nothing is left to move
        _with_room(SimpleNamespace(data=data), hungry, (3,))
    assert len(calls) == 1


@pytest.mark.slow
def test_a_cluster_with_a_limit_on_gpu_memory_holds_more_than_that():
    items = _items()
    with (
        gwd.local_cluster([0], memory_limit=MEMORY, threads=1, device_memory_limit=3000) as own,
        gwd.connect(own) as client,
    ):
        held = gwd.on_gpu(da.from_array(items, chunks=500)).persist()
        np.testing.assert_array_equal(
            _bits(client.gather(client.compute(gwd.sort(held)))), _bits(np.sort(items, kind="stable"))
        )
        ((used_bytes, moved),) = client.run(_gpu_bytes_and_moved).values()
        assert used_bytes <= 3000
        assert moved >= 8


def _gpu_bytes_and_moved(dask_worker):
    return dask_worker.data.gpu_bytes, dask_worker.data.moved
