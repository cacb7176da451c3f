"""A group-by as a case: the sum of the items of each key, as ``gw.group_by(keys, total=(items, gw.Add))``."""

from __future__ import annotations

from typing import Any

import wgpu

from ... import DATATYPES, Add, Capabilities, GroupBy, leaf


class GroupSums(GroupBy):
    """The case.

    Parameters
    ----------
    device : wgpu.GPUDevice or None
    dtype : str
        Of the items; keys are u32.
    key_bits : int
        That the keys need.
    capabilities : Capabilities, optional
    """

    datatypes = DATATYPES

    def __init__(
        self, device: wgpu.GPUDevice | None, dtype: str = "u32", *, key_bits: int = 32,
        capabilities: Capabilities | None = None,
    ):  # fmt: skip
        total = {"total": (leaf("items", dtype), Add)}
        super().__init__(device, leaf("keys", "u32"), total, key_bits=key_bits, capabilities=capabilities)

    @classmethod
    def at_size(cls, n: int, run: int = 8, **axes: Any) -> tuple[dict[str, Any], dict[str, int]]:
        """Return the bits of keys of which each has `run` rows on average, and the lengths of the inputs."""
        return {"key_bits": max(1, (max(n // run, 1) - 1).bit_length())}, {"keys": n, "items": n}
