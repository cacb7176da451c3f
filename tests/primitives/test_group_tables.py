"""Group-bys whose rows are combined in tables, compared with numpy's results of the same rows."""

import dataclasses

import numpy as np
import pytest

import gridwise_py as gw
from gridwise_py.primitives import group_tables
from helpers.cases import FULL
from helpers.strategies import quick_first


class Tabled(gw.GroupBy):
    """Takes tables however few the rows are."""

    @staticmethod
    def _are_enough(n, tables):
        return True


class Sorted(gw.GroupBy):
    """Never takes tables."""

    _by_tables = False


K, X, Y = gw.u32("k"), gw.u32("x"), gw.i32("y")
EVERY_OPERATOR = {
    "total": (X, gw.Add), "low": (X, gw.Min), "high": (X, gw.Max), "all_bits": (X, gw.And), "some_bits": (X, gw.Or),
    "odd_bits": (X, gw.Xor), "signed": (Y, gw.Add), "lowest": (Y, gw.Min), "highest": (Y, gw.Max), "rows": gw.count,
    "any": (Y > 0, "any"), "all": (Y > 0, "all"),
}  # fmt: skip


def rows_of(n, keys, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "k": rng.integers(0, keys, n, dtype=np.uint32),
        "x": rng.integers(0, 2**32, n, dtype=np.uint32),
        "y": rng.integers(-(2**31), 2**31, n, dtype=np.int32),
    }


def check(group, device, rows, **options):
    """Run twice, and compare both results with numpy's."""
    names = set(group.signature.inputs)
    given = {name: items for name, items in rows.items() if name in names}
    arrays = {name: gw.asarray(items, device) for name, items in given.items()}
    wanted = group.reference(**given)
    for _ in range(2):
        run = group.execute(**arrays, **options)
        for (name, got), want in zip(run.outputs.items(), wanted, strict=True):
            assert got.dtype == want.dtype, name
            np.testing.assert_array_equal(got.to_numpy(), want, err_msg=name)
    return run


def planned(group, n):
    """The parameters of the plan for so many rows."""
    inputs = dict.fromkeys(group.signature.inputs, n)
    lengths = {**inputs, **{name: group.signature.output_length(name, inputs) for name in group.signature.outputs}}
    return group.plan(gw.Layout.separate(**lengths)).parameters


def made(device, bits, keys=K, cls=Tabled, capabilities=None, **aggregates):
    return cls(device, keys, aggregates, key_bits=bits, capabilities=capabilities)


@pytest.mark.parametrize("at", quick_first([0, 9], [3, 6]))
def test_every_operator(device, at):
    """Three in each table."""
    group = made(device, 9, **dict(list(EVERY_OPERATOR.items())[at : at + 3]))
    run = check(group, device, rows_of(3000, 400))
    assert run.plan.parameters["by"] == "tables"
    check(group, device, {each: items[:1] for each, items in rows_of(5, 400).items()})


@pytest.mark.parametrize("bits", quick_first([12, 13], [1, 16]))
def test_keys_of_few_and_of_more_bits(device, bits):
    group = made(device, bits, total=(X, gw.Add))
    for n in (0, 1, 2, 3, 4, 5, 127, 128, 129, 4095, 4096, 4097, 9001):
        run = check(group, device, rows_of(n, 2**bits, n))
        sorts = [kernel.label for kernel in run.plan.kernels if kernel.label.startswith("sort")]
        assert bool(sorts) == (n > 0 and bits > 12)


@pytest.mark.parametrize("bits", [12, 13])
def test_one_key_and_a_key_for_each_row(device, bits):
    group = made(device, bits, total=(X, gw.Add))
    rows = rows_of(4000, 1)
    each = np.arange(4000)
    for keys in (0 * each, 0 * each + 2**bits - 1, each, each[::-1], each // 9 * 8):
        check(group, device, {**rows, "k": keys.astype(np.uint32)})


def test_repeated_dispatches_and_calls_begin_anew(device):
    group = made(device, 13, total=(X, gw.Add))
    for n in (3000, 3001, 3000):
        for trials in (1, 3, 2):
            check(group, device, rows_of(n, 5000, n), trials=trials)


def test_bits_above_those_of_keys_are_ignored(device):
    rows = rows_of(2000, 2**32)
    for bits, cls, of in ((12, Tabled, np.uint32), (13, Tabled, np.int32), (13, Sorted, np.uint32)):
        group = made(device, bits, gw.leaf("k", of), cls, total=(X, gw.Add))
        run = check(group, device, {**rows, "k": rows["k"].view(of)})
        keys, where = np.unique(rows["k"] & np.uint32(2**bits - 1), return_inverse=True)
        totals = np.zeros(keys.size, np.uint32)
        np.add.at(totals, where, rows["x"])
        np.testing.assert_array_equal(run.outputs["output_keys"].to_numpy(), keys.view(of))
        np.testing.assert_array_equal(run.outputs["total"].to_numpy(), totals)


def test_several_columns_and_expressions(device):
    rows = rows_of(5000, 2**32)
    keys = {"a": K & 0x1F, "b": gw.i32("y") > 0, "c": gw.i32("y") & 0xFF}
    group = Tabled(device, keys, total=(X * 2 + 1, gw.Add), key_bits=(5, 1, 8))
    run = check(group, device, rows)
    assert run.plan.parameters["by"] == "tables"
    assert {"output_keys_a", "output_keys_b", "output_keys_c"} < set(run.outputs)
    more = Tabled(device, keys, total=(X * 2 + 1, gw.Add), rows=gw.count, key_bits=(5, 1, 8))
    assert "by" not in planned(more, 5000), "whose outputs are more than a kernel selects"


@pytest.mark.parametrize("bits", [12, 13])
def test_views_and_counted_rows(device, bits):
    rows = rows_of(5003, 900)
    group = made(device, bits, total=(X, gw.Add))
    arrays = {name: gw.asarray(rows[name], device)[3:] for name in ("k", "x")}
    count = gw.zeros(1, "u32", device)
    for n in (5000, 0, 1, 77, 4999, 2**32 - 1):
        count.fill(n)
        run = group.execute(**arrays, n=count, trials=2)
        wanted = group.reference(**{name: rows[name][3:][:n] for name in arrays})
        for got, want in zip(run.outputs.values(), wanted, strict=True):
            np.testing.assert_array_equal(got.to_numpy(), want)


def test_groups_without_room_are_counted(device):
    rows = rows_of(3000, 500)
    group = Tabled(device, K, total=(X, gw.Add), key_bits=13, size=100)
    run = group.execute(**{name: gw.asarray(rows[name], device) for name in ("k", "x")})
    keys, total, count = group.reference(k=rows["k"], x=rows["x"])
    assert run.outputs["count"].item() == count[0] > 100
    np.testing.assert_array_equal(run.outputs["output_keys"].to_numpy(), keys[:100])
    np.testing.assert_array_equal(run.outputs["total"].to_numpy(), total[:100])


def test_tables_are_taken_where_they_can_be():
    """By the bits of the keys, the operators, the workgroup memory and the number of rows."""
    large, small = (
        dataclasses.replace(FULL, limits={**FULL.limits, "max-compute-workgroup-storage-size": room_bytes})
        for room_bytes in (49_152, 16_384)
    )

    def parameters(n=1 << 22, bits=20, capabilities=large, cls=gw.GroupBy, **aggregates):
        group = cls(None, K, aggregates or {"total": (X, gw.Add)}, key_bits=bits, capabilities=capabilities)
        return planned(group, n)

    assert parameters()["table_bits"] == 12
    assert parameters(bits=19, capabilities=small)["table_bits"] == 11
    assert parameters(bits=19, total=(X, gw.Add), low=(X, gw.Min))["table_bits"] in (11, 12)
    by_sort = [
        parameters(bits=21),
        parameters(bits=20, capabilities=small),
        parameters(n=1 << 20),
        parameters(n=65_535, bits=4),
        parameters(total=(gw.f32("x"), gw.Add)),
        parameters(total=(X, "mean")),
        parameters(last=(X, "last")),
        parameters(total=(X, gw.Multiply)),
        parameters(spread=(gw.f32("x"), "var")),
    ]
    assert all("by" not in found for found in by_sort)
    assert "by" not in parameters(cls=Sorted)
    assert parameters(n=65_536, bits=4)["by"] == "tables"


def test_tables_fit_into_workgroup_memory():
    """Whatever a device has, from what every WebGPU device has on."""
    for room_bytes in (16_384, 32_768, 49_152, 65_536):
        capabilities = dataclasses.replace(
            FULL, limits={**FULL.limits, "max-compute-workgroup-storage-size": room_bytes}
        )
        for names in (["total"], ["total", "low"], ["total", "low", "rows"], list(EVERY_OPERATOR)[:6]):
            group = made(None, 10, capabilities=capabilities, **{name: EVERY_OPERATOR[name] for name in names})
            tables = group_tables.group_tables(group.spec, capabilities)
            if tables is not None:
                assert (4 * len(tables.words) << tables.table_bits) + 2**tables.table_bits // 8 < room_bytes


def test_many_rows_of_the_default(device):
    group = gw.GroupBy(device, K, total=(X, gw.Add), key_bits=13)
    run = check(group, device, rows_of(70_001, 2**13))
    assert run.plan.parameters["by"] == "tables"
