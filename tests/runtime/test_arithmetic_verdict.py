"""The self-test of arithmetic, where its verdict is kept, and the warning for a user's text."""

import warnings

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.runtime import arithmetic_selftest as selftest
from gridwise_py.runtime.arithmetic_selftest import OPERATIONS, arithmetic_faults
from gridwise_py.runtime.context import context_of

X = np.array([-1, -767, -768, -769, 5, -5, 1000, -1000], np.int32)
# What an NVIDIA GPU does to a text of naga 29.
AS_UNSIGNED = "bitcast<i32>(bitcast<u32>(x) % bitcast<u32>(y))"
EXAMPLE = "-1 % 768 gives 255, not -1", "x - (x / y) * y"


@pytest.fixture
def untested(renewed_device, tmp_path, monkeypatch):
    """A device without a verdict, and a cache without one."""
    monkeypatch.setenv("GRIDWISE_CACHE_DIR", str(tmp_path))
    context = context_of(renewed_device)
    for kept in ("arithmetic faults", "texts with faults"):
        context.forget(kept)
    yield renewed_device
    for kept in ("arithmetic faults", "texts with faults"):
        context.forget(kept)


@pytest.fixture
def faulty(untested, monkeypatch):
    """A device that is found to take % of i32 for one of u32."""
    monkeypatch.setattr(selftest, "_probed", lambda device: {"% of i32": EXAMPLE})
    return untested


def _kernel(device, body, kind="i32"):
    text = f"""
@group(0) @binding(0) var<storage, read> x: array<{kind}>;
@group(0) @binding(1) var<storage, read_write> y: array<{kind}>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{ y[i] = {body}; }}"""
    kernel = gw.Kernel(device, text, {"x": "read", "y": "read_write"}, 1, label="wrap")
    x = gw.asarray(X.astype({"i32": np.int32, "u32": np.uint32, "f32": np.float32}[kind]), device)
    return kernel.execute(x=x, y=gw.empty_like(x)).output.to_numpy()


def test_every_adapter_has_a_remedy_for_what_it_computes_wrongly(untested):
    faults = arithmetic_faults(untested)
    assert all(remedy for _, remedy in faults.values()), faults
    if context_of(untested).capabilities.is_cpu:
        assert not faults
    assert set(faults) <= {"% of i32"}, "add what is known upstream"


def test_the_librarys_own_remainder_is_right_everywhere(device):
    x = gw.asarray(X, device)
    for divisor in (768, -768, 3, gw.asarray(np.array([768, -3, 5, 7, -7, 3, 768, -768], np.int32), device)):
        by = divisor if isinstance(divisor, int) else divisor.to_numpy()
        np.testing.assert_array_equal(gw.asarray(x % divisor).to_numpy(), X % by)
    last = gw.BinOp.of("last", lambda a, b: b % 768 + a * 0, identity=0, commutative=False, check=False)
    np.testing.assert_array_equal(gw.scan(x, last).to_numpy(), X % 768)


def test_a_wrong_operation_is_found_and_its_remedy_tried(untested, monkeypatch):
    monkeypatch.setitem(OPERATIONS, "% of i32", OPERATIONS["% of i32"]._replace(code=AS_UNSIGNED))
    example, remedy = arithmetic_faults(untested)["% of i32"]
    assert remedy == "x - (x / y) * y"
    assert example.endswith("gives 255, not -1")
    wrong = OPERATIONS["<< by 32 and more"]._replace(code="x + y", remedy="x - y")
    monkeypatch.setitem(OPERATIONS, "<< by 32 and more", wrong)
    assert selftest._probed(untested)["<< by 32 and more"] == ("1 + 32 gives 33, not 1", "")


def test_the_verdict_is_kept_on_disk_and_a_broken_one_is_not_taken(untested, monkeypatch, tmp_path):
    tried = []
    probe = selftest._probed
    monkeypatch.setattr(selftest, "_probed", lambda device: tried.append(device) or probe(device))
    found = arithmetic_faults(untested)
    (file,) = tmp_path.glob("arithmetic-*.json")
    for _ in range(2):
        context_of(untested).forget("arithmetic faults")
        assert arithmetic_faults(untested) == found
    assert len(tried) == 1
    for kept in ('{"% of i32": [""]}', '{"?": ["", ""]}', "[]"):
        context_of(untested).forget("arithmetic faults")
        file.write_text(file.read_text().replace('"faults": {}', f'"faults": {kept}'))
        assert arithmetic_faults(untested) == found
    assert len(tried) == (4 if not found else 1)


def test_a_text_without_such_an_operation_tries_nothing(untested, monkeypatch):
    monkeypatch.setattr(selftest, "_probed", lambda device: pytest.fail("it was tried"))
    _kernel(untested, "x[i] + 1 /* x[i] % 768 */")
    gw.scan(gw.asarray(X, untested))
    gw.asarray(gw.asarray(X, untested) % 768)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: _kernel(d, "x[i] % 768"),
        lambda d: gw.scan(gw.asarray(X, d), gw.BinOp("f", identity=0, numpy=np.add, expression="a % b", check=False)),
        lambda d: gw.Map(
            d, "i32", gw.UnaryOp("f", np.abs, "fn apply(x: T) -> T { return x % 7; }", check=False)
        ).execute(input=gw.asarray(X, d)),
        lambda d: gw.asarray(gw.function("fn f(x: i32) -> i32 { return x % 7; }")(gw.asarray(X, d))),
    ],
    ids=["kernel", "operator", "map", "function"],
)
def test_a_text_with_a_signed_remainder_warns_once(faulty, call):
    words = r"% of i32, which is wrong on .*: -1 % 768 gives 255, not -1 .*#8191.*#9578.*30.*#9674.*x - \(x / y\) \* y"
    with pytest.warns(gw.GridwiseWarning, match=words):
        call(faulty)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(faulty)


def test_other_texts_do_not_warn(faulty):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _kernel(faulty, "x[i] % 768u", "u32")
        _kernel(faulty, "x[i] % 768.0", "f32")
        _kernel(faulty, "x[i] / 768 /* % */")
        op = gw.BinOp("f", identity=0, numpy=np.add, expression="a % b", check=False)
        gw.scan(gw.asarray(X.astype(np.uint32), faulty), op, dtype=np.uint32)
        for body in UNSIGNED:
            gw.Kernel(faulty, MIXED.replace("BODY", body), {"y": "read_write", "p": "uniform"}, 1).execute(
                y=gw.zeros(8, "u32", faulty), p={"n": 3, "k": 3}
            )


MIXED = """
struct P { n: u32, k: i32 }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> p: P;
override WIDE: u32 = 5;
fn f(n: u32, low: i32) -> u32 { return n % 5 + bitcast<u32>(low); }
@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>) { BODY }"""
UNSIGNED = [
    "y[id.x] = (id.x + 9) % p.n + id.x % 5 + id.x % WIDE;",
    "y[id.x] = y[id.x] % 0x5u + (id.x + 1) % (2u * 3u) + f(1, 2) % arrayLength(&y) + y[id.x] % u32(p.k);",
    "var h: u32 = id.x; h %= p.n; y[id.x] = (vec2<u32>(id.x) % vec2u(3)).x / p.n + h;",
]


@pytest.mark.parametrize("body", ["u32(p.k % 3)", "u32((i32(id.x) - 5) % p.k)", "id.x + u32(g(1))"])
def test_a_signed_remainder_beside_unsigned_ones_warns(faulty, body):
    text = MIXED.replace("BODY", f"y[id.x] = {body};") + "fn g(n: i32) -> i32 { return 7 % n; }" * ("g" in body)
    with pytest.warns(gw.GridwiseWarning, match="seems to have % of i32"):
        gw.Kernel(faulty, text, {"y": "read_write", "p": "uniform"}, 1).execute(
            y=gw.zeros(8, "u32", faulty), p={"n": 3, "k": 3}
        )


def test_it_says_so_where_no_remedy_is_right(untested, monkeypatch):
    monkeypatch.setattr(selftest, "_probed", lambda device: {"<< by 32 and more": ("1 << 32 gives 0, not 1", "")})
    with pytest.warns(gw.GridwiseWarning, match="wrap: .*gives 0, not 1. No other way was found"):
        _kernel(untested, "x[i] << 3u")
