"""What a plan says of a kernel: its file, the memory that it reaches, how often it runs, and what is written from that.

A shader file holds an algorithm: ``fn run``. The rest is written from what the plan knows: ``struct Params`` and the
bindings before it (`declare`), and the entry point in place of its first line (`entry_point`), which ends what the grid
has too many of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..settings import ShaderChecks
from .layout import Operand


@dataclass(frozen=True)
class KernelFile:
    """A shader file, and what its text is made of.

    Attributes
    ----------
    name : str
    context : mapping
        Values for the template.
    constants : mapping from str to int
        Values of overrides. Without a WORKGROUP_SIZE the file declares that constant.
    shader_checks : {"none", "bounds", "all"} or None
        The run-time checks that a user's WGSL in the context asks for; None without any.
    features : tuple of str
        wgpu features that the text needs.
    """

    name: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    shader_checks: ShaderChecks | None = None
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Memory:
    """The memory that a kernel reaches.

    Attributes
    ----------
    reads, writes : mapping from str to Operand
        What ``load_NAME`` and ``store_NAME`` reach in the text. Operands that share a buffer share a binding, unless
        they were given parts of it. What is larger than a binding may be gets several, its segments, and what lies in
        chunks one or more for each.
    atomics : mapping from str to (Operand, str)
        Further variables of the text, with the memory that each stands for, and their WGSL types.
    units : mapping from str to int, optional
        The text loads and stores rows of 16 bytes, as those for items of other sizes than 4 bytes do; of each operand,
        how many consecutive bytes an invocation reads or writes.
    contended : collection of str
        Names of outputs of which invocations may store the same item at the same time: one of the values stays.
    """

    reads: Mapping[str, Operand] = field(default_factory=dict[str, Operand])
    writes: Mapping[str, Operand] = field(default_factory=dict[str, Operand])
    atomics: Mapping[str, tuple[Operand, str]] = field(default_factory=dict[str, tuple[Operand, str]])
    units: Mapping[str, int] | None = None
    contended: Collection[str] = ()


@dataclass(frozen=True)
class Invocations:
    """As many invocations as a field of the parameters says; ``run`` gets the number of its own, and nothing else."""

    field: str


#: How often a kernel runs: in as many workgroups as a field of the parameters says, in a number of them that the text
#: knows by itself, for each of some invocations, or in one workgroup (None).
Extent = str | int | Invocations | None

# The number of a workgroup in a grid of up to three dimensions. It may have more than are needed: these end before they
# take part in anything, such as tickets, whose counter the last workgroup to finish may have reset.
_GRID = "@builtin(workgroup_id) workgroup: vec3<u32>,\n  @builtin(num_workgroups) grid: vec3<u32>,\n  "
_WORKGROUP = "workgroup.x + grid.x * (workgroup.y + grid.y * workgroup.z)"


def declare(fields: Sequence[str], bindings: str, *, sized: bool) -> str:
    """Return what stands before the algorithm of a shader file.

    Parameters
    ----------
    fields : sequence of str
        Names of the parameters.
    bindings : str
        The declarations of memory, and the functions that reach it.
    sized : bool
        Whether the plan sets WORKGROUP_SIZE; otherwise the file does.
    """
    declared = "\n".join(f"  {name}: u32," for name in fields)
    size = "\noverride WORKGROUP_SIZE: u32 = 256u;\n" if sized else ""
    return f"struct Params {{\n{declared}\n}}\n{bindings}{size}\n"


def entry_point(parameters: str, extent: Extent) -> str:
    """Return the beginning of the entry point, in place of ``fn run(parameters) {`` of the file.

    The last parameter is the number of an invocation in its workgroup, or the ``Lanes`` that the file declares; before
    it, the number of the workgroup. With `Invocations` there is only the number of the invocation among all.
    """
    *number, own = (part.strip() for part in parameters.split(","))
    bound, value = extent, _WORKGROUP
    if isinstance(extent, Invocations):
        number, own, bound, value = [own], "local: u32", extent.field, f"({_WORKGROUP}) * WORKGROUP_SIZE + local"
    taken = own if own.endswith(": Lanes") else f"@builtin(local_invocation_index) {own}"
    lines = ["@compute @workgroup_size(WORKGROUP_SIZE)", "fn main(", f"  {_GRID if number else ''}{taken},", ") {"]
    for each in number:
        name = each.partition(":")[0]
        lines.append(f"  let {name} = {value};")
        if isinstance(bound, str):
            lines.append(f"  if ({name} >= params.{bound}) {{ return; }}")
    return "\n".join(lines)
