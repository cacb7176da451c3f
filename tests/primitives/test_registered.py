"""What every primitive of the registry must do, found by its declared arguments and compared with its numpy twin."""

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.bench.cases.case import Case
from gridwise_py.bench.cases.workloads import USUAL_AXES
from gridwise_py.bench.checks.check import mismatch
from gridwise_py.primitives import REGISTRY
from helpers.strategies import quick_first

# Around vec4, subgroups, workgroups and tiles.
SIZES = [0, 1, 3, 5, 257, 1023, 4097, 100_003]
MORE_SIZES = [2, 4, 31, 33, 255, 256, 1025, 4095, 16_385]
_MOST_ITEMS = 1 << 18
_SENTINEL = 0x5A


class Call:
    """A primitive at a size, with random inputs and what must come out."""

    def __init__(self, device, name, n, datatype=None):
        datatype = next(iter(REGISTRY[name].datatypes)) if datatype is None else datatype
        case = Case.build(name, n, datatype, **{**USUAL_AXES, "segment": "100", "bins": "100"})
        self.device = device
        self.primitive = case.make(device)
        self.signature = self.primitive.signature
        self.inputs = case.inputs(self.primitive, seed=0)
        self.lengths = {argument: items.size for argument, items in self.inputs.items()}

    def dtype(self, argument):
        return self.signature.datatype(argument).dtype

    @property
    def items(self):
        return max(self.lengths.values())

    def check(self, outputs):
        got = {name: array.to_numpy() for name, array in outputs.items()}
        assert mismatch(self.primitive, self.inputs, got) is None

    def upload(self):
        return {name: gw.asarray(items, self.device) for name, items in self.inputs.items()}


@pytest.fixture(params=REGISTRY)
def name(request):
    return request.param


#: Their kernels take long to compile, and test_sort.py and test_segments.py have them at edge sizes, too.
SLOW_TO_COMPILE = ("argsort", "sort_pairs", "scan_by_key", "reduce_by_key", "segmented_scan", "segmented_reduce")
_MOSTLY_QUICK = quick_first([name for name in REGISTRY if name not in SLOW_TO_COMPILE], REGISTRY)


@pytest.mark.parametrize("name", _MOSTLY_QUICK)
@pytest.mark.parametrize("n", quick_first(SIZES, MORE_SIZES))
def test_edge_sizes(device, name, n):
    while max(REGISTRY[name].at_size(n)[1].values()) > _MOST_ITEMS:  # n x n matrices
        n //= 4
    call = Call(device, name, n)
    call.check(call.primitive.execute(**call.upload(), trials=2).outputs)


_QUARTERS = range(4)


@pytest.mark.parametrize("quarter", _QUARTERS)
@pytest.mark.parametrize("name", _MOSTLY_QUICK)
@pytest.mark.thin(1)
def test_every_datatype(device, name, quarter):
    for datatype in tuple(REGISTRY[name].datatypes)[quarter :: len(_QUARTERS)]:
        call = Call(device, name, 61, datatype)
        call.check(call.primitive.execute(**call.upload()).outputs)


@pytest.mark.parametrize("shift", [1, 2, 77])
@pytest.mark.thin(1)
def test_views_at_any_offset_and_nothing_is_written_outside(device, name, shift):
    call = Call(device, name, 300)
    arrays, whole = {}, {}
    lengths = {**call.lengths}
    for output in call.signature.outputs:
        lengths[output] = call.signature.output_length(output, call.lengths)
    for argument, length in lengths.items():
        around = np.full((length + 2 * shift) * call.dtype(argument).itemsize, _SENTINEL, dtype=np.uint8)
        items = around.view(call.dtype(argument))
        if argument in call.inputs:
            items[shift : shift + length] = call.inputs[argument]
        whole[argument] = gw.asarray(items, device)
        arrays[argument] = whole[argument][shift : shift + length]
    run = call.primitive.execute(**arrays)
    call.check(run.outputs)
    for array in whole.values():
        margins = array.to_numpy().view(np.uint8)
        edge = shift * array.datatype.itemsize_bytes
        assert (margins[:edge] == _SENTINEL).all()
        assert (margins[-edge:] == _SENTINEL).all()


def test_chunks_wherever_they_are_declared(device, name):
    call = Call(device, name, 257)
    arrays = call.upload()
    for argument in call.signature.inputs:
        if call.signature.arguments[argument].chunked:
            items = call.inputs[argument]
            cuts = np.split(items, [items.size // 3 // 2 * 2, items.size // 2 // 2 * 2])
            arrays[argument] = gw.ChunkedArray([gw.asarray(cut, device) for cut in cuts])
        else:
            chunked = gw.ChunkedArray([arrays[argument]])
            with pytest.raises(gw.ArgumentError, match="must be one Array"):
                call.primitive.execute(**{**arrays, argument: chunked})
    run = call.primitive.execute(**arrays)
    call.check(run.outputs)
    for output, array in run.outputs.items():
        chunked = call.signature.arguments[output].chunked
        assert isinstance(array, gw.ChunkedArray) == chunked, "what goes in decides, not how long it happens to be"


def test_an_output_on_an_input_is_right_or_refused_as_declared(device, name):
    for output in Call(device, name, 64).signature.outputs:
        for argument in Call(device, name, 64).signature.inputs:
            call = Call(device, name, 64)
            arrays, length = call.upload(), call.signature.output_length(output, call.lengths)
            same = arrays[argument].size == length and call.dtype(argument) == call.dtype(output)
            if call.dtype(argument).itemsize != call.dtype(output).itemsize or arrays[argument].size < length:
                continue
            target = gw.Array(arrays[argument].buffer, call.signature.datatype(output), length)
            if call.signature.may_overlap(output, argument, identical=same):
                call.check(call.primitive.execute(**arrays, **{output: target}).outputs)
            else:
                with pytest.raises(gw.OverlapError):
                    call.primitive.execute(**arrays, **{output: target})
                np.testing.assert_array_equal(arrays[argument].to_numpy(), call.inputs[argument])


def test_inputs_of_lengths_that_do_not_fit_are_refused(device, name):
    call = Call(device, name, 64)
    for argument in call.signature.inputs:
        if call.signature.arguments[argument].length is None:
            continue
        arrays = call.upload()
        arrays[argument] = arrays[argument][: call.lengths[argument] - 1]
        with pytest.raises(gw.LengthError, match=argument):
            call.primitive.execute(**arrays)


def test_an_input_of_another_datatype_is_refused(device, name):
    call = Call(device, name, 64)
    for argument in call.signature.inputs:
        other = "f32" if call.signature.datatype(argument).name != "f32" else "u32"
        arrays = call.upload() | {argument: gw.empty(call.lengths[argument], other, device)}
        with pytest.raises(gw.DatatypeError, match=argument):
            call.primitive.execute(**arrays)


@pytest.mark.parametrize("n", [0, 1, 1000, 1 << 20])
def test_a_plan_needs_no_device_and_survives_json(name, n):
    cls = REGISTRY[name]
    if name == "matmul":
        n = int(n**0.5)
    options, lengths = cls.at_size(n)
    options["dtype"] = next(iter(cls.datatypes))
    planner = cls(None, capabilities=gw.Capabilities(), **options)
    for output in planner.signature.outputs:
        lengths = {**lengths, output: planner.signature.output_length(output, lengths)}
    plan = cls.plan_for(capabilities=gw.Capabilities(), lengths=lengths, **options)
    assert gw.Plan.from_json(plan.to_json()) == plan
    items = [lengths[argument] for argument in planner.signature.inputs]
    assert plan.work.items == (sum(items) if name == "merge" else items[0]) or name == "matmul"


def test_a_bound_call_keeps_its_arguments(device, name):
    call = Call(device, name, 100)
    bound = call.primitive.bind(**call.upload())
    other = Call(device, name, 31)
    other.check(other.primitive.execute(**other.upload()).outputs)
    call.check(bound.execute().outputs)
    call.check(bound.execute(enable_cpu_timing=True).outputs)
    assert bound.get_timing_result().cpu_total_time_ns > 0
    bound.release()
    with pytest.raises(gw.ArgumentError, match="released"):
        bound.execute()
