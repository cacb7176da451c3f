"""Plans of radix sorts: the digits, the shape of the kernels, and the dispatches of both strategies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ...errors import ArgumentError, LimitError
from ...planning.builder import PlanBuilder
from ...planning.faults import HEALTHY, Faults
from ...planning.kernel_constants import BINS, CONTROL_WORDS, DIGIT_WIDTH_SHIFT, DIGIT_WORD_SHIFT, ROUTES_FIRST_BIN
from ...planning.kernel_request import Extent, KernelFile, Memory
from ...planning.layout import Operand
from ...planning.plan import Fill
from ...planning.source import Source
from ...planning.windows import binding_limit
from ...tuning.model import code_counts
from ...tuning.rows import Shapes
from ...tuning.sort_shapes import SegmentedSortShape, SortShape
from ...types.capabilities import Capabilities, SubgroupMode, SubgroupsLike
from ...types.datatype import DATATYPES, Datatype
from ...types.operators import Add, operator_context
from .key_codes import key_context, key_words

ONESWEEP, REDUCE_THEN_SCAN, COUNTING = "onesweep", "reduce_then_scan", "counting"
SortStrategy: TypeAlias = Literal["onesweep", "reduce_then_scan"]
# Of the kernel that writes keys by their counts: 16 bytes of an invocation at a time, and how often.
_FILL_WORKGROUP_SIZE, _FILL_ROWS = 256, 4
_CODES = 1 << 16
_LEAST_ROWS = 2  # of 16 bytes that an invocation counts: a workgroup adds its counters to those of all
_PLACES = ("input", "output", "temporary")
_MAX_ITEMS = 1 << 30  # a state word has 30 bits for a number of keys
_LEAST_CHUNKS = 4  # per block of the histogram
# Polls of the last workgroup for counts that the others have all added. Each poll has loops, and lavapipe ends all
# loops of an invocation after 65,535 iterations.
_HISTOGRAM_SPINS = 256


def digits_of(datatype: Datatype, begin_bit: int, end_bit: int | None) -> tuple[int, ...]:
    """Return the digits of a bit range, lowest first, each packed: first bit, width and word.

    Raises
    ------
    ArgumentError
        If the range does not lie in the key.
    """
    bits = 8 * datatype.itemsize_bytes
    end_bit = bits if end_bit is None else end_bit
    if not 0 <= begin_bit <= end_bit <= bits:
        raise ArgumentError(
            f"bits {begin_bit} to {end_bit} do not lie in a key of {datatype}; give 0 <= begin_bit <= end_bit <= {bits}"
        )
    found: list[int] = []
    # A key of less than 32 bits is the upper part of its word.
    lead = max(0, 32 - bits)
    for word in range(-(-bits // 32)):
        first, end = max(begin_bit + lead - 32 * word, 0), min(end_bit + lead - 32 * word, 32)
        while first < end:
            width = min(8, end - first)
            found.append(first | width << DIGIT_WIDTH_SHIFT | word << DIGIT_WORD_SHIFT)
            first += width
    return tuple(found) or (0,)


def ranking_mode(capabilities: Capabilities, subgroups: SubgroupsLike) -> SubgroupMode:
    """Return the form of subgroups that keys of a tile are ranked with."""
    # A CPU does a subgroup vote lane by lane, so ranking key by key takes fewer steps.
    return capabilities.subgroup_mode(False if subgroups is None and capabilities.is_cpu else subgroups)


def rank_context(
    shape: SortShape | SegmentedSortShape, mode: SubgroupMode, capabilities: Capabilities
) -> dict[str, Any]:
    """Return template values of lib/sort_rank.wgsl."""
    return {
        "ballots": True,
        "items": shape.items,
        "rows": shape.workgroup_size // 32,
        "stage_words": shape.stage_words,
        "takes_turns": mode.kind == "emulated" or (mode.kind == "native" and capabilities.subgroup_min_size < 32),
    }


@dataclass(frozen=True)
class SortConfig:
    """The configuration of a sort, apart from its arguments.

    Attributes
    ----------
    key : Datatype
    descending : bool
    value_words : int
        32-bit words of a value; 0 without values.
    generated : bool
        Whether the values are the positions of the keys, which are not read.
    digits : tuple of int
        The result of `digits_of`.
    strategy : {"onesweep", "reduce_then_scan"}
    mode : SubgroupMode
    shape : SortShape
    capabilities : Capabilities
    tickets : bool
    spin_limit : int
    counts : bool
        Whether keys are written by their counts, where they lie in one binding: integers of 8 and 16 bits alone.
    faults : Faults
        For tests.
    """

    key: Datatype
    descending: bool
    value_words: int
    generated: bool
    digits: tuple[int, ...]
    strategy: str
    mode: SubgroupMode
    shape: SortShape
    capabilities: Capabilities
    tickets: bool
    spin_limit: int
    counts: bool = False
    faults: Faults = HEALTHY

    def digits_for(self, in_place: bool) -> tuple[int, ...]:
        """Return the digits of the passes; in place their number is even, so that the last one writes the input."""
        return self.digits + (0,) * (len(self.digits) % 2 if in_place else 0)

    def context(self, **more: Any) -> dict[str, Any]:
        """Return the template values of all kernels."""
        return {
            **operator_context(Add, DATATYPES["u32"], self.mode),
            **key_context(self.key, descending=self.descending),
            "encodes": self.descending or self.key.dtype.kind != "u" or self.key.itemsize_bytes < 4,
            **more,
        }

    def tile_context(self, **more: Any) -> dict[str, Any]:
        """Return template values of kernels that rank tiles."""
        moved = [{"name": "keys", "words": key_words(self.key), "generated": False}]
        if self.value_words:
            moved.append({"name": "values", "words": self.value_words, "generated": self.generated})
        return self.context(
            **rank_context(self.shape, self.mode, self.capabilities),
            parts=self.shape.parts,
            moved=moved,
            held=moved,
            by_segment=True,
            **more,
        )


class _Sort:
    """The dispatches of one sort; with `sibling` only the pipelines for other lengths."""

    def __init__(
        self,
        builder: PlanBuilder,
        config: SortConfig,
        keys: Mapping[str, Operand],
        values: Mapping[str, Operand],
        *,
        sibling: bool,
    ):
        self.builder, self.config, self.sibling = builder, config, sibling
        self.n = keys["input"].length
        self.operands = {
            **{f"keys_{place}": operand for place, operand in keys.items()},
            **{f"values_{place}": operand for place, operand in values.items()},
        }
        self.in_place = keys["input"] == keys.get("output")
        output = keys.get("output")
        needed = [output] if config.key.itemsize_bytes == 1 else [output, keys["input"]]
        self.counts = config.counts and all(_is_in_one_binding(each, config.capabilities) for each in needed)
        self.digits = config.digits if self.counts else config.digits_for(self.in_place)
        self.features = ("subgroup",) if config.mode.kind == "native" else ()

    @property
    def parameters(self) -> dict[str, Any]:
        """What a plan reports of it."""
        return {"passes": len(self.digits), "in_place": self.in_place}

    def add(
        self,
        label: str,
        shader: str,
        *,
        params: Mapping[str, int],
        extent: Extent,
        context: Mapping[str, Any],
        reads: Mapping[str, Operand] | None = None,
        writes: Mapping[str, Operand] | None = None,
        workgroup_size: int | None = None,
        counted: bool = True,
        constants: Mapping[str, int] | None = None,
        features: tuple[str, ...] | None = None,
        **more: Any,
    ) -> None:
        """Add a kernel; `more` is of its memory."""
        size = workgroup_size or self.config.shape.workgroup_size
        self.builder.kernel(
            label,
            KernelFile(
                shader,
                context=context,
                constants={"WORKGROUP_SIZE": size, **(constants or {})},
                features=self.features if features is None else features,
            ),
            Memory(reads=reads or {}, writes=writes or {}, **more),
            params={"n": self.n, **params, "identity_bits": 0},
            extent=extent,
            sibling=self.sibling,
            counted_from=0 if counted else None,
        )

    def small(self) -> None:
        """Sort in one workgroup."""
        tiled = {name: replace(operand, vec4=False) for name, operand in self.operands.items()}
        self.add(
            "sort", "sort_small.wgsl",
            reads={name: o for name, o in tiled.items() if name.endswith("_input")},
            writes={name: o for name, o in tiled.items() if name.endswith("_output")},
            params={f"digit_{i}": digit for i, digit in enumerate(self.digits)},
            extent=None,
            context=self.config.tile_context(
                places=_PLACES[:1], passes=len(self.digits),
                stored=[name.removesuffix("_output") for name in tiled if name.endswith("_output")],
            ),
        )  # fmt: skip

    def large(self) -> dict[str, Any]:
        """Sort in passes over the whole input; return the parameters that a plan reports."""
        config, builder, shape = self.config, self.builder, self.config.shape
        if self.counts and config.key.itemsize_bytes == 2:
            return self.by_codes()
        if "keys_output" not in self.operands:
            self.operands["keys_output"] = builder.scratch(
                "sorted_keys", self.n, config.key.itemsize_bytes, in_chunks=True
            )
        temporary = self.n if len(self.digits) > 1 else 1
        for what, item_bytes in (("keys", config.key.itemsize_bytes), ("values", 4 * config.value_words)):
            if item_bytes:
                self.operands[f"{what}_temporary"] = builder.scratch(
                    f"temporary_{what}", temporary, item_bytes, in_chunks=True
                )
        routes = builder.scratch("routes", ROUTES_FIRST_BIN + BINS * len(self.digits))
        self.histogram(routes)
        if self.counts:
            return self.fill(replace(routes, offset=ROUTES_FIRST_BIN, length=BINS).by_words())
        tiles = -(-self.n // shape.tile_items)
        per_block = min(-(-tiles // shape.max_blocks), shape.max_tiles_per_block)
        blocks = -(-tiles // per_block)
        # The passes share their pipelines, so siblings name one pass only.
        passes = [
            {
                "route_index": index,
                "bins_index": ROUTES_FIRST_BIN + BINS * index,
                "tiles": tiles,
                "digit": digit,
            }
            for index, digit in enumerate(self.digits[:1] if self.sibling else self.digits)
        ]
        if config.strategy == ONESWEEP:
            states = builder.scratch("states", CONTROL_WORDS + tiles * BINS)
            for index, params in enumerate(passes):
                if config.faults.stall_every and not self.sibling:
                    # One epoch bit tells a pass from the previous one only if every tile publishes.
                    builder.step(Fill(states.buffer, 0, states.size_bytes))
                self.move(index, params, {"routes": routes}, states)
            return {"tiles": tiles, "blocks": tiles}
        counts, offsets = (builder.scratch(name, blocks * BINS) for name in ("counts", "offsets"))
        for index, params in enumerate(passes):
            params |= {"blocks": blocks, "tiles_per_block": per_block}
            self.count_blocks(index, params | {"block_items": per_block * shape.tile_items}, routes, counts, offsets)
            self.move(index, params, {"routes": routes, "offsets": offsets})
        return {"tiles": tiles, "blocks": blocks}

    def histogram(self, routes: Operand) -> None:
        """Count all digits."""
        config, shape = self.config, self.config.shape
        keys, key_bytes = self.operands["keys_input"], config.key.itemsize_bytes
        in_rows = key_bytes < 4 and _is_in_one_binding(keys, config.capabilities)
        items = max(shape.count_items, 16 // key_bytes) if in_rows else shape.count_items
        chunk = shape.count_workgroup_size * items
        # A block adds 256 counts per digit to the shared ones: that must not be more work than counting its keys.
        block_items = max(_LEAST_CHUNKS, -(-self.n // (shape.count_blocks * chunk))) * chunk
        blocks = -(-self.n // block_items)
        sums = self.builder.scratch("sums", CONTROL_WORDS + BINS * len(self.digits))
        self.add(
            "histogram", "sort_histogram.wgsl",
            reads={"keys_input": keys},
            writes={"routes": replace(routes, vec4=False)},
            units={"keys_input": 16, "routes": 4} if in_rows else None,
            params={
                "blocks": blocks, "block_items": block_items,
                **{f"digit_{i}": digit for i, digit in enumerate(self.digits)},
            },
            extent="blocks",
            workgroup_size=shape.count_workgroup_size,
            constants={
                "SPIN_LIMIT": min(config.spin_limit, _HISTOGRAM_SPINS),
                "STALL_EVERY": config.faults.stall_every,
            },
            atomics={"sums": (sums, "array<atomic<u32>>")},
            context=config.context(
                digits=len(self.digits), in_place=self.in_place, places=_PLACES[:1],
                vec4=key_bytes == 4, in_rows=in_rows, tickets=False,
                copies=shape.count_copies, chunk_items=items,
            ) | {"control": "sums"},
        )  # fmt: skip

    def by_codes(self) -> dict[str, Any]:
        """Count keys of 16 bits, and write them by their counts; return the parameters that a plan reports."""
        config, shape = self.config, code_counts(self.config.capabilities)
        row, blocks = 8 * shape.workgroup_size, max(1, shape.workgroups // shape.ranges)
        rows = max(_LEAST_ROWS, -(-self.n // (row * blocks)))
        # Behind the counts each workgroup has a mark.
        counts = self.builder.scratch("counts", _CODES + blocks * shape.ranges).by_words()
        begins = self.builder.scratch("begins", _CODES).by_words()
        self.add(
            "count", "sort_count_codes.wgsl",
            reads={"keys_input": self.operands["keys_input"]}, units={"keys_input": 16},
            atomics={"counts": (counts, "array<atomic<u32>>")},
            params={"block_items": row * rows, "workgroups": -(-self.n // (row * rows)) * shape.ranges},
            extent="workgroups",
            workgroup_size=shape.workgroup_size,
            context=config.context(ranges=shape.ranges), features=(),
        )  # fmt: skip
        self.add(
            "begins", "sort_begins.wgsl",
            reads={"counts": counts},
            writes={"begins": begins},
            params={}, extent=_CODES // shape.workgroup_size,
            workgroup_size=shape.workgroup_size,
            context=config.context(ranges=shape.ranges), counted=False,
        )  # fmt: skip
        return self.fill(begins, counts)

    def fill(self, begins: Operand, counts: Operand | None = None) -> dict[str, Any]:
        """Write the keys by where those of each code begin; return the parameters that a plan reports."""
        workgroups = -(-self.n // (_FILL_WORKGROUP_SIZE * _FILL_ROWS * 16 // self.config.key.itemsize_bytes))
        self.add(
            "fill", "sort_fill.wgsl",
            reads={"begins": begins},
            writes={"keys_output": self.operands["keys_output"], **({"counts": counts} if counts else {})},
            params={},
            extent=workgroups,
            workgroup_size=_FILL_WORKGROUP_SIZE,
            context=self.config.context(rows=_FILL_ROWS, cleared=counts.length if counts else 0),
            units={"begins": 4, "counts": 4, "keys_output": 16},
            features=(),
        )  # fmt: skip
        return {"strategy": COUNTING, "passes": 0}

    def count_blocks(
        self, index: int, params: Mapping[str, int], routes: Operand, counts: Operand, offsets: Operand
    ) -> None:
        """Count one digit by block, and turn the counts into offsets."""
        config, shape = self.config, self.config.shape
        keys = {name: operand for name, operand in self.operands.items() if name.startswith("keys_")}
        self.add(
            f"count {index}", "sort_count.wgsl",
            reads={**keys, "routes": routes},
            writes={"counts": replace(counts, vec4=False)},
            params={k: v for k, v in params.items() if k != "digit"} | {"digit_0": params["digit"]},
            extent="blocks",
            workgroup_size=shape.count_workgroup_size,
            context=config.context(
                digits=1, places=_PLACES, vec4=config.key.itemsize_bytes == 4, in_rows=False,
                copies=shape.count_copies, chunk_items=shape.count_items,
            ),
        )  # fmt: skip
        self.add(
            f"offsets {index}", "sort_offsets.wgsl",
            reads={"routes": routes, "counts": counts},
            writes={"offsets": replace(offsets, vec4=False)},
            params=params,
            extent=BINS,
            # At most one invocation per possible block: on a CPU every invocation of a workgroup costs time.
            workgroup_size=min(shape.count_workgroup_size, max(shape.max_blocks, config.mode.size)),
            context=config.context(),
            counted=False,  # blocks without keys have counts of 0
        )  # fmt: skip

    def move(
        self, index: int, params: Mapping[str, int], tables: Mapping[str, Operand],
        states: Operand | None = None,
    ) -> None:  # fmt: skip
        """Move all items by one digit; with the states of a look-back, or by the offsets of blocks."""
        config = self.config
        tiled = {name: replace(operand, vec4=False) for name, operand in self.operands.items()}
        more: dict[str, Any] = {}
        if states is not None:
            more["constants"] = {
                "EPOCH_BITS": 1,
                "SPIN_LIMIT": config.spin_limit,
                "STALL_EVERY": config.faults.stall_every,
            }
            more["atomics"] = {"states": (states, "array<atomic<u32>>")}
        self.add(
            f"pass {index}", "sort_pass_offsets.wgsl" if states is None else "sort_pass_lookback.wgsl",
            reads={name: o for name, o in tiled.items() if name.endswith("_input")} | dict(tables),
            writes={name: o for name, o in tiled.items() if not name.endswith("_input")},
            params=params,
            extent="blocks" if states is None else "tiles",
            context=config.tile_context(
                places=_PLACES, look=config.shape.look,
                tickets=config.tickets, read_by_rmw=config.capabilities.is_cpu,
            ) | {"control": "states"},
            **more,
        )  # fmt: skip


def _is_in_one_binding(operand: Operand | None, capabilities: Capabilities) -> bool:
    """Whether an operand is there, is not computed, and needs no further binding."""
    if operand is None or isinstance(operand, Source):
        return False
    return not operand.chunks and operand.size_bytes <= binding_limit(capabilities)


def add_sort(
    builder: PlanBuilder,
    configs: Shapes[SortConfig],
    keys: Mapping[str, Operand],
    values: Mapping[str, Operand],
) -> dict[str, Any]:
    """Add the kernels of a sort to a plan.

    Parameters
    ----------
    builder : PlanBuilder
    configs : Shapes of SortConfig
        Configurations by the number of keys.
    keys, values : mapping from {"input", "output"} to Operand
        `keys` has no output if only the values are wanted. `values` has no input if they are generated, and is empty
        if there are none.

    Returns
    -------
    dict
        The parameters that the plan reports.

    Raises
    ------
    LimitError
        If there are more keys than the state words can count.
    """
    n = keys["input"].length
    if n >= _MAX_ITEMS:
        raise LimitError(f"sort: {n} keys, but one sort takes at most {_MAX_ITEMS - 1}; sort parts and merge them")
    # The pipelines of other lengths are always made as well, so a new n compiles nothing. They come first, because all
    # use the same names of scratch buffers.
    tiles = {config.shape.tile_items: config for _, config in configs.rows}
    fitting = next((tiles[items] for items in sorted(tiles) if n <= items), None)
    config = configs.at(n) if fitting is None else fitting
    parameters = {
        "strategy": config.strategy if fitting is None else "one workgroup",
        "shape": configs.source_of(config),
        "subgroups": str(config.mode),
        "workgroup_size": config.shape.workgroup_size,
        "items_per_invocation": config.shape.items,
    }
    if not n:
        return parameters | _Sort(builder, config, keys, values, sibling=True).parameters
    for _, other in configs.rows:
        if other is not config or fitting is not None:
            _Sort(builder, other, keys, values, sibling=True).large()
    for other in tiles.values():
        _Sort(builder, other, keys, values, sibling=other is not fitting).small()
    own = _Sort(builder, config, keys, values, sibling=False)
    parameters |= own.parameters
    if fitting is not None:
        return parameters
    parameters |= own.large()
    if parameters["strategy"] == ONESWEEP:
        parameters |= {
            "tickets": config.tickets, "spin_limit": config.spin_limit, "look_back_window": config.shape.look
        }  # fmt: skip
    return parameters
