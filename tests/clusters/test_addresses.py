"""Which addresses of schedulers are taken, and what is said of versions: without a cluster."""

import json
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

import gridwise_py as gw
from gridwise_py.cli import main
from helpers import needs

with needs.modules("distributed") as pytestmark:
    import gridwise_py.dask as gwd
    from gridwise_py.dask.cluster import check_address, chosen_adapters, tagged
    from gridwise_py.dask.worker import differing_versions, versions


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("tls://head:8786", "tls://head:8786"),
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("127.8.0.3:8786", "tcp://127.8.0.3:8786"),
        ("localhost:8786", "tcp://localhost:8786"),
        ("tcp://[::1]:8786", "tcp://[::1]:8786"),
        ("inproc://10.0.0.1/1/2", "inproc://10.0.0.1/1/2"),
    ],
)
def test_addresses_of_this_host_and_tls_are_taken(address, wanted):
    assert check_address(address, insecure=False, remedy="") == wanted


@pytest.mark.parametrize(
    "address",
    [
        "tcp://head:8786",
        "10.0.0.7:8786",
        "tcp://[fe80::1]:8786",
        "ws://head:80",
        "ucx://10.0.0.7:1",
        "tcp://127.0.0.1.evil.org:8786",
        "localhost.evil.org:8786",
        "tcp://0.0.0.0:8786",
    ],
)
def test_plain_tcp_outside_of_this_host_is_refused_unless_it_is_asked_for(address):
    with pytest.raises(gw.ClusterError, match=r"neither TLS nor on this host.*tls://.*, or pass insecure=True"):
        gwd.connect(address)
    assert check_address(address, insecure=True, remedy="").endswith(address)
    done = CliRunner().invoke(main, ["worker", address])
    assert done.exit_code == 2
    assert "neither TLS nor on this host" in done.output
    assert "or give --insecure" in done.output


@pytest.mark.parametrize("address", ["127.0.0.1", "tcp://127.0.0.1", "tls://head", "127.0.0.1:http", "tls://head:"])
def test_an_address_without_a_port_says_so(address):
    with pytest.raises(gw.ArgumentError, match=r"has no port; give HOST:PORT, such as t(cp|ls)://head:8786"):
        gwd.connect(address)


def test_what_is_no_cluster_and_no_client_is_named():
    with pytest.raises(gw.ArgumentError, match=r"takes the address of a scheduler or a cluster, not 5"):
        gwd.connect(5)
    with pytest.raises(gw.ArgumentError, match=r"a client is needed .*such as gwd\.connect\(…\), not 'tcp://x'"):
        gwd.identities("tcp://x")


def test_limits_that_are_no_bytes_are_refused(monkeypatch):
    from gridwise_py.dask import cluster

    adapter = gw.AdapterDescription(0, "GPU", "DiscreteGPU", "Vulkan", "", "", ())
    monkeypatch.setattr(cluster, "list_adapters", lambda: [adapter])
    for options in ({"memory_limit": "abc"}, {"device_memory_limit": "abc"}, {"device_memory_limit": "-5"}):
        (name,) = options
        with pytest.raises(gw.ArgumentError, match=rf"^{name}='.*' must be bytes, such as '60GiB'"):
            gwd.local_cluster(0, **options)
    with pytest.raises(gw.ArgumentError, match="threads must be an integer of at least 1, not 0"):
        gwd.local_cluster("GPU", threads=0)
    done = CliRunner().invoke(main, ["worker", "127.0.0.1:1", "--memory-limit", "abc"])
    assert done.exit_code == 2
    assert "memory_limit='abc' must be bytes" in done.output


def test_a_scheduler_file_gives_the_address_in_it(tmp_path):
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": "tls://10.0.0.7:4711", "workers": {}}))
    assert check_address(str(path), insecure=False, remedy="") == "tls://10.0.0.7:4711"
    path.write_text(json.dumps({"address": "tcp://10.0.0.7:4711"}))
    with pytest.raises(gw.ClusterError, match=r"tcp://10\.0\.0\.7:4711 is neither TLS"):
        check_address(str(path), insecure=False, remedy="")
    for text in ("", "{}", "[1]"):
        path.write_text(text)
        with pytest.raises(gw.ArgumentError, match="no scheduler file of Dask"):
            check_address(str(path), insecure=False, remedy="")
    with pytest.raises(gw.ArgumentError, match="cannot be read"):
        check_address(str(tmp_path / "other.json"), insecure=False, remedy="")


def test_versions_that_differ_are_named_with_who_has_them():
    own = versions()
    assert set(own) == {"gridwise_py", "python", "wgpu", "numpy", "dask", "distributed"}
    assert differing_versions({"a": own, "b": own}) == []
    other = {**own, "wgpu": "0.1.0"}
    (line,) = differing_versions({"a": own, "b": other, "c": other, "d": other, "e": other})
    assert line == f"wgpu: 0.1.0 (b, c, d and 1 more), {own['wgpu']} (a)"
    fewer = {name: value for name, value in own.items() if name != "dask"}
    assert differing_versions({"a": own, "b": fewer}) == [f"dask: {own['dask']} (a), none (b)"]


def test_a_cluster_takes_software_adapters_only_where_they_are_named(monkeypatch):
    from gridwise_py.dask import cluster

    def adapter(index, kind, backend="Vulkan"):
        return gw.AdapterDescription(index, f"GPU {index}", kind, backend, "", "a driver", ())

    known = [
        adapter(0, "DiscreteGPU"),
        adapter(1, "DiscreteGPU"),
        adapter(2, "DiscreteGPU", "D3D12"),
        adapter(3, "CPU"),
    ]
    monkeypatch.setattr(cluster, "list_adapters", lambda: known)
    assert [one.index for one in chosen_adapters("all")] == [0, 1]
    assert [one.index for one in chosen_adapters([3, "gpu 1", 1])] == [3, 1, 1]
    tags = list(tagged(chosen_adapters([1, 3, 1])))
    assert len(set(tags)) == 3
    assert tags[2] == f"{tags[0]}#2"
    monkeypatch.setattr(cluster, "list_adapters", lambda: known[3:])
    with pytest.raises(gw.AdapterError, match=r"(?s)no GPU adapter was found; name another.*\[3\]"):
        gwd.local_cluster()
    with pytest.raises(gw.AdapterError, match=r"adapter 7 does not exist"):
        gwd.local_cluster([7])


@pytest.mark.parametrize(("begin", "is_refused"), [("def run():\n", True), ('if __name__ == "__main__":\n', False)])
def test_a_script_without_a_main_guard_is_told_so_before_anything_starts(tmp_path, begin, is_refused):
    script = tmp_path / "script.py"
    end = "run()\n" if is_refused else ""
    script.write_text(f"import gridwise_py.dask as gwd\n{begin}    gwd.local_cluster([99])\n{end}")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=1200, check=False)
    said = done.stderr.splitlines()[-1]
    assert ("adapter 99 does not exist" in done.stderr) is not is_refused
    if is_refused:
        assert said.startswith(f"gridwise_py.errors.ClusterError: line 4 of {script} starts a cluster")
        assert said.endswith('put it below `if __name__ == "__main__":`')


def test_importing_the_package_imports_nothing_of_dask():
    code = """
import sys
import gridwise_py, gridwise_py.dask, gridwise_py.cli
print(sorted({name.partition(".")[0] for name in sys.modules} & {"dask", "distributed", "tornado", "zict"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1200, check=True)
    assert done.stdout.strip() == "[]"


def test_without_dask_every_use_says_what_to_install():
    code = """
import sys
sys.modules.update(dict.fromkeys(["dask", "distributed"]))
import gridwise_py.dask as gwd
from gridwise_py.cli import main
for name in gwd.__all__:
    try:
        getattr(gwd, name)
    except ImportError as error:
        assert "the extra 'dask', of which dask, distributed are not installed: pip install" in str(error)
    else:
        print(name)
main(["worker", "127.0.0.1:1"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1200, check=False)
    assert (done.stdout, done.returncode) == ("", 2)
    assert "gridwise worker needs the extra 'dask'" in done.stderr


def test_names_that_are_not_there_say_so():
    with pytest.raises(AttributeError, match=r"'gridwise_py\.dask' has no attribute 'summ'"):
        gwd.summ  # noqa: B018


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    """A port that takes connections and says nothing, as a server of another protocol does."""
    import socket

    from gridwise_py.dask import cluster

    monkeypatch.setattr(cluster, "_GRACE_S", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        with pytest.raises(gw.ClusterError, match=rf"no scheduler answers at tcp://127\.0\.0\.1:{port} within 0\.5 s"):
            gwd.connect(f"127.0.0.1:{port}", timeout_s=0.5)
    with pytest.raises(TimeoutError, match=r"no end after 0\.2 s"):
        cluster._within(0.2, threading.Event().wait)
    with pytest.raises(TimeoutError, match="own"):
        cluster._within(5, _late)


def _late():
    raise TimeoutError("its own")
