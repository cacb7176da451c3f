"""Reduce and scan with operators of one's own, one of them not commutative.

An operator must be associative; nothing can check that. ``commutative=False`` takes a path that keeps the order of
the items. The numpy twin is what `reference` compares with, and it must agree with the WGSL text.
"""

import numpy as np

import gridwise_py as gw

device = gw.request_device()
rng = np.random.default_rng(0)

xor = gw.BinOp(
    "xor",
    identity=0,
    numpy=np.bitwise_xor,
    wgsl="fn combine(a: T, b: T) -> T { return a ^ b; }",
)
items = rng.integers(0, 1 << 32, 100_003, dtype=np.uint32)
print(f"xor: {gw.reduce(items, xor, device=device):#010x}, numpy: {np.bitwise_xor.reduce(items):#010x}")

# An affine map x -> m x + c modulo 2^16, as a word: m in the high half, c in the low half. Applying map a, then
# map b, is again an affine map; the order matters.
AFFINE = """
fn combine(a: T, b: T) -> T {
  let m = (a >> 16u) * (b >> 16u);
  let c = (a & 0xffffu) * (b >> 16u) + (b & 0xffffu);
  return (m << 16u) | (c & 0xffffu);
}"""


def after(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the map that applies `a`, then `b`."""
    m = (a >> 16) * (b >> 16)
    c = (a & 0xFFFF) * (b >> 16) + (b & 0xFFFF)
    return (m << 16) | (c & 0xFFFF)


affine = gw.BinOp("affine", identity=1 << 16, numpy=after, wgsl=AFFINE, commutative=False)
x = gw.asarray(items | np.uint32(1 << 16), device)  # odd factors, so that no product is 0
scan = gw.Scan(device, "u32", affine)
prefixes = scan.execute(input=x).output.to_numpy()
print(f"affine scan equals numpy: {np.array_equal(prefixes, scan.reference(x.to_numpy()))}")
