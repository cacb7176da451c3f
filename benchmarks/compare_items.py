"""Compares arrays on the GPU, item by item, so that results of gigabytes need not come down to be checked."""

from __future__ import annotations

import numpy as np

import gridwise_py as gw
from gridwise_py.bench.checks.check import Mismatch

_NOTHING = np.array([0, 0xFFFFFFFF], dtype=np.uint32)

_ANY = {"got": None, "expected": None}  # bits of any datatype

_COUNT_DIFFERENCES = """
@group(0) @binding(0) var<storage, read> got: array<u32>;
@group(0) @binding(1) var<storage, read> expected: array<u32>;
@group(0) @binding(2) var<storage, read_write> wrong: array<atomic<u32>>;  // how many words, and the first of them
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>) {
  for (var i = id.x; i < arrayLength(&got); i += grid.x * 256u) {
    if (got[i] != expected[i]) {
      atomicAdd(&wrong[0], 1u);
      atomicMin(&wrong[1], i);
    }
  }
}
"""


class Differences:
    """Counts items in which two arrays of a device differ in their bits.

    Parameters
    ----------
    device : wgpu.GPUDevice

    Notes
    -----
    Arrays have items of 32 bits, and fit into a binding. Floats are compared as bits: 0 differs from -0, and a NaN is
    equal to itself.
    """

    def __init__(self, device):
        bindings = {"got": "read", "expected": "read", "wrong": "read_write"}
        self._compare = gw.Kernel(device, _COUNT_DIFFERENCES, bindings, 1024, label="compare", dtypes=_ANY)
        self._wrong = gw.asarray(_NOTHING, device)

    def record(self, encoder, got: gw.Array, expected: gw.Array) -> None:
        """Count in what `encoder` will submit; counts add up until they are read."""
        if (got.size, got.datatype) != (expected.size, expected.datatype) or got.dtype.itemsize != 4:
            raise ValueError(f"{got} and {expected} must have one length and one datatype, of 32 bits")
        self._compare.record(encoder, got=got, expected=expected, wrong=self._wrong)

    def total(self) -> int:
        """Return how many items differed since it was made, or since `mismatch`."""
        return int(self._wrong.to_numpy()[0])

    def mismatch(self, got: gw.Array, expected: gw.Array) -> Mismatch | None:
        """Compare now, from zero; return the first item that differs, and how many do."""
        self._wrong.copy_from(_NOTHING)
        encoder = self._compare.device.create_command_encoder(label="compare")
        self.record(encoder, got, expected)
        self._compare.device.queue.submit([encoder.finish()])
        count, first = (int(word) for word in self._wrong.to_numpy())
        self._wrong.copy_from(_NOTHING)
        if count == 0:
            return None
        one, other = (array[first : first + 1].to_numpy()[0].item() for array in (got, expected))
        return Mismatch(first, one, other, count)
