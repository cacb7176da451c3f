"""Docstrings as the site shows them: without what one page says of all, and without their notes.

`help()` shows them whole. A page has the summary, an example, the parameters, the result, the names of the errors and
the source of the algorithm, in this order.
"""

from __future__ import annotations

import re
from collections.abc import Collection

#: What is said once, on the page reference/python/shared.rst: the text there, and what it stands for in a docstring.
SHARED: dict[str, tuple[str, tuple[str, ...]]] = {
    "device": (
        "A `wgpu.GPUDevice`. By default that of an `Array` among the arguments, else `default_device()`. A primitive "
        "without a device only plans, for `capabilities`.",
        (
            "",
            "By default that of an Array among the arguments, else `default_device()`.",
            "By default that of an Array among the keys, else `default_device()`.",
            "By default that of an Array, else `default_device()`.",
            "By default that of `x`, else `default_device()`.",
            "That computes on arrays of the host; by default `default_device()`.",
            "By default `default_device()`.",
            "The default is `default_device()`.",
        ),
    ),
    "out": (
        "Where to put the result, of its kind, shape and dtype. Sums and products are cast to it.",
        (
            "Where to put the result, of its shape and dtype.",
            "Where to put the result, of its shape.",
            "Where to put the result, of the result's kind, shape and dtype. A numpy array may be an input.",
            "Where to put the result: of its shape, which is () without `axis`; an Array of 1 item will do there. "
            "Results of another dtype are cast to its dtype, as numpy casts them.",
            "Where to put the result, of the result's kind, shape and dtype. It may be an input.",
            "Where to put the result, of the result's kind, shape and dtype; in numpy C-contiguous. A numpy array "
            "may be an input.",
            "Where to put the result, of the result's kind, shape and dtype.",
            "Where to put the result, of its shape; an Array of the result's datatype.",
            "Where to put the result, of its shape; an Array of f32.",
            "Where to put the result, of its shape: of intp, or an Array of u32.",
            "Where to put the result, of its shape; an Array of bool.",
            "Where to put the result, of its shape and the dtype of `x`.",
        ),
    ),
    "axis": (
        "The dimension along which items are taken, from the end if negative, or a tuple of them; by default all "
        "items. Those along which items of an `Array` are combined must be neighbours.",
        (
            "Along which items are combined, from the end if negative; by default all. Those of an Array that are "
            "several must be neighbours.",
            "Along which items are combined, from the end if negative; by default all items in C order, as one "
            "dimension.",
            "By default all items, in C order.",
            "By default the last one.",
            "By default all.",
            "By default all items, of any shape.",
            "By default all items.",
        ),
    ),
    "x": (
        "Of any shape, of bool, integers or floats. Of `cos`, `exp` and other functions of floats: of up to 4 bytes; "
        "on the GPU f32, and f16, which is read as f32. Results are of float32, or float16 for it. Of `median`, "
        "`quantile`, `ptp` and functions without NaN: an `Array` of up to 4 bytes. Of `put`, `roll` and `transpose`: "
        "of 1, 2, 4 or 8 bytes.",
        (
            "On the host bool, integers and floats of up to 4 bytes, and Python's numbers. On the GPU f32 (and f16, "
            "which is read as f32).",
            "An Array of up to 4 bytes. Integers have no NaN.",
            "An Array of up to 4 bytes.",
            "With items of 1, 2, 4 or 8 bytes.",
            "Integers and floats of up to 4 bytes, and Python's numbers.",
            "Any shape, of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.",
            "Shape (n,), of any datatype: bool, integers and floats of 8 to 64 bits. See `sum`.",
            "Of any shape and datatype.",
            "Of any shape.",
            "Of any datatype; an expression of one dimension.",
        ),
    ),
    "keepdims": (
        "Whether these axes stay, with one item each.",
        (
            "Whether these axes stay, with one item each.",
            "Whether the axes stay, with one item each.",
            "Whether the result has as many dimensions as `x`.",
        ),
    ),
    "where": (
        "Which items count: bools that are broadcast to ``x``. Minima and maxima then need ``initial``. Not with "
        "``axis`` for an `Array` of 8-byte items.",
        (
            "Which items count, of a shape that is broadcast to that of `x`. Of an Array with items of 8 bytes not "
            "with `axis`.",
            "Which items count, of a shape that is broadcast to that of `x`.",
            "Which items count, of a shape that is broadcast to that of `x`. With it `initial` is needed, as in "
            "numpy. Of an Array with items of 8 bytes not with `axis`.",
        ),
    ),
    "initial": (
        "What is combined in front of all items; the result where there are none.",
        ("What is combined in front of all items; the result where there are none.",),
    ),
    "dtype": (
        "Of a primitive that of its items or keys: bool or numbers of 8 to 64 bits. Of a function that of the result; "
        "items are converted as they are read. By default that of ``out``, or numpy's choice.",
        (
            "",
            "Datatype of the keys: bool, or integers and floats of 8 to 64 bits.",
            "Datatype of the items: bool, or integers and floats of 8 to 64 bits.",
            "Of the keys: bool, or integers and floats of 8 to 64 bits.",
            "Of the keys: bool or numbers of 8 to 64 bits.",
            "Datatype of the items and of the results.",
            "Of the result, and what items are converted to as they are read; by default that of `out`, else int64 "
            "or uint64 for bool and integers, as in numpy, and that of `x` for floats.",
            "Of the result, and what items are converted to as they are read; by default that of `x`.",
            "Of the result, and what items are converted to as they are read; by default that of `out`, else that of "
            "`x`.",
        ),
    ),
    "value_dtype": (
        "Of values of 4 or 8 bytes that move with the keys; None for no values.",
        (
            "Datatype of values, of 4 or 8 bytes, that move with the keys. By default there are none.",
            "Datatype of values, of 4 or 8 bytes, that move with the items. By default there are none.",
            "Of values of 4 or 8 bytes that move with the keys; by default there are none.",
            "Of the values; None for none.",
            "Datatype of the values, of 4 or 8 bytes.",
        ),
    ),
    "descending": (
        "Largest first. Equal keys keep their order in both directions, and NaN comes last.",
        (
            "",
            "Largest first. Equal keys keep their order in both directions.",
            "Largest key first. Pairs with equal keys keep their order in both directions.",
            "Index of the largest key first. Indices of equal keys ascend in both directions.",
            "Largest first. Equal items keep their order, and NaN comes last in both directions.",
            "Largest first, without `less`. Equal items keep their order in both directions.",
            "As for `sort`.",
        ),
    ),
    "less": (
        "Another order: a function that says whether the first of two items goes before the second, such as ``lambda "
        "a, b: a.depth < b.depth``.",
        (
            "Another order: a function of two items that says whether the first goes before the second, as in "
            "`MergeSort`.",
            "The order, a function of two items, as in `Merge`.",
            "The order: a function of two items that says whether the first goes before the second, such as ``lambda "
            "a, b: (a.y < b.y) | ((a.y == b.y) & (a.x < b.x))``. It is called once, with expressions. By default "
            "numpy's order.",
            "The order: a function of two items that says whether the first goes before the second, such as ``lambda "
            "a, b: a.depth < b.depth``. It is called once, with expressions. By default numpy's order.",
        ),
    ),
    "sorted": (
        "Whether the best item comes first. Otherwise they are in the order of their indices.",
        ("Whether the best item comes first. Otherwise they are in the order of their indices.",),
    ),
    "op": (
        "The operator: one of gridwise_py's (:doc:`operators`), its name, or your own `BinOp`, which must be "
        "associative. Items, of bool or numbers of 8 to 64 bits, are combined in their order. Results have their "
        "datatype; integers wrap. NaN propagates, and −0 is less than +0. The GPU may flush denormals. No items give "
        "the identity; a minimum or maximum raises `EmptyReductionError`.",
        (
            "",
            "A non-commutative operator keeps the order of the items.",
            "If it does not commute, items are combined in their order.",
        ),
    ),
    "result_dtype": (
        "The dtype that items are combined as, which results have; by default that of the items.",
        (
            "Of the results, and what items are combined as; by default that of the items. Items of 1 and 2 bytes "
            "are read as such: a sum of uint8 as uint64 takes the time of the bytes.",
            "Of the results, and what is computed with; by default that of the items.",
        ),
    ),
    "deterministic": (
        "For floats: the same bits on every run and every adapter that rounds as IEEE 754 says. Integers, minima and "
        "maxima always are. It costs time.",
        (),
    ),
    "compensated": (
        "For float sums: adds up the rounding errors, too: the error hardly grows with the number of items. Implies "
        "``deterministic``.",
        (),
    ),
    "output": (
        "What is stored in place of a result: an expression such as ``gw.result / 2``; the fields of a struct are "
        "its attributes.",
        (
            "What is stored in place of a result: an expression of ``gw.result``, ``gw.index`` and numbers, such as "
            "``gw.result / 2``. The fields of a struct are attributes, ``gw.result.sum / gw.result.count``.",
        ),
    ),
    "strategy": (
        '``"lookback"`` (of sorts ``"onesweep"``) reads each item once; ``"reduce_then_scan"`` twice, but no workgroup '
        "waits for another. By default the first, unless the self-test finds it unsafe, or the call is in place. "
        '``GRIDWISE_SCAN_STRATEGY`` sets the default; ``run.plan.parameters["strategy"]`` tells. Histograms have '
        '``"tables"`` in workgroup memory, and ``"sort"``, which is faster for many bins and needed for results '
        "of 64 bits.",
        (),
    ),
    "tuning": (
        "Options of :doc:`tuning`; by default the library's, or those that ``gridwise tune`` found.",
        (),
    ),
    "workgroup_size": (
        "Of a tuning: invocations per workgroup, a power of two.",
        ("Invocations per workgroup, a power of two.",),
    ),
    "vecs": (
        "Of a tuning: vec4 per invocation and tile, 1 to 16.",
        ("vec4 per invocation and tile, 1 to 16.",),
    ),
    "subgroups": (
        "Of a tuning: None uses subgroups if the device has them; False uses workgroup memory and barriers only. "
        '``"emulated-8"`` emulates that size, for tests.',
        (
            "None uses subgroups if the device has them; False uses workgroup memory and barriers only. "
            '``"emulated-8"`` emulates that size, for tests.',
            "None uses subgroups if the device has them and is a GPU; False uses workgroup memory and barriers only. "
            '``"emulated-8"`` emulates that size, for tests.',
            "As in `ScanTuning`.",
            "As in `ReduceTuning`.",
            "As for `SortTuning`.",
        ),
    ),
    "look": (
        "Of a tuning, look-back: tiles that a lane polls at once, 1 to 32.",
        (
            "Look-back only: tiles that a lane polls at once, 1 to 32.",
            "As in `ScanTuning`.",
        ),
    ),
    "tickets": (
        "Of a tuning, look-back: whether a workgroup takes its tile from a counter. None: on CPU adapters, and where "
        "the self-test finds it needed.",
        (
            "Look-back only: whether a workgroup takes its tile from a counter. None: on CPU adapters, and where the "
            "self-test finds it needed.",
            "As in `ScanTuning`.",
        ),
    ),
    "state": (
        "Of a tuning: form of the state words. None uses 64-bit atomics if the device has them.",
        (
            "Form of the state words. None uses 64-bit atomics if the device has them.",
            "As in `ScanTuning`.",
        ),
    ),
    "spin_limit": (
        "Of a tuning: polls after which a workgroup recomputes what is unpublished; 256 by default.",
        (
            "Polls after which a workgroup recomputes what is unpublished; 256 by default.",
            "As in `ScanTuning`.",
        ),
    ),
    "max_blocks": ("Of a tuning: most workgroups.", ("Most workgroups.",)),
    "capabilities": (
        "What to plan for without a device.",
        ("The capabilities to plan for, with None as device. By default those measured on the device.",),
    ),
    "encoder": (
        "Of a call: a `wgpu.GPUCommandEncoder` to record on. By default the call submits, and does not wait.",
        ("Record on this encoder, without submitting. By default the primitive submits, and does not wait.",),
    ),
    "enable_gpu_timing": (
        'Of a call: timestamps around each kernel, in a pass of its own; with ``"inside"`` the passes stay as '
        "they are (feature ``timestamp-query-inside-passes``). Without the feature ``timestamp-query`` times are "
        "None, with a warning.",
        (
            "Take timestamps around each kernel. Without ``timestamp-query`` GPU times are None, with a warning. True "
            'gives each kernel a pass of its own; ``"inside"`` leaves the passes as they are without timing, and takes '
            "timestamps inside of them (feature ``timestamp-query-inside-passes``).",
        ),
    ),
    "enable_cpu_timing": (
        "Of a call: the time from the submission to an idle queue; the queue is idle before.",
        ("Measure the time from the submission to an idle queue; the queue is idle before.",),
    ),
    "trials": (
        "Of a call: dispatch each kernel so many times; the result is that of one.",
        (
            "Dispatch each kernel this many times in a row. The result is that of one trial.",
            "How often each dispatch is recorded.",
        ),
    ),
    "**arrays": (
        "The arguments by name. One that is left out is that of the call before; an output that was never given is "
        "made. With ``n``, an int or an `Array` of one u32, the first ``n`` items count (:doc:`/concepts/counts`).",
        (
            "The arguments, by name. One that is left out is that of the previous call. An output that was never "
            "given, or is None, is allocated. With ``n``, an int or an Array of one u32 on the GPU, only the first "
            "`n` items of the inputs of this call count (docs/concepts/counts.md). Arrays with a `count` bring it "
            "along. Nothing is read.",
            "The arguments.",
        ),
    ),
    "size": (
        "How many items the output has room for; by default for all. What does not fit is not written, but counted.",
        (
            "Room of the output, by default for all items. What does not fit is not written, but counted.",
            "As in `Select`.",
            "The items that the output has room for. What does not fit is not written, but counted.",
            "The runs that the outputs have room for; by default as many as items. Runs that do not fit are not "
            "written, but counted.",
            "The groups that there is room for; by default as many as rows. Others are not written, but counted.",
            "The length of the output.",
        ),
    ),
    "equal_nan": (
        "Whether NaN equals NaN, as in numpy's unique; otherwise each is a run. −0 equals +0 in any case.",
        (
            "Whether NaN equals NaN, as in numpy's `unique`; otherwise each is a run. −0 equals +0 in any case.",
            "Whether NaN equals NaN; otherwise each is a run. −0 equals +0 in any case.",
        ),
    ),
    "begin_bit, end_bit": (
        "Sort only by these bits of the keys' codes, from the first to the second (exclusive); by default by all. A "
        "code is an unsigned integer, in the order of the keys.",
        (
            "Sort only by these bits, from `begin_bit` to `end_bit` (exclusive); by default by all. They are bits of "
            "the key's code, an unsigned integer: codes have the order of the keys.",
            "Sort only by these bits of the keys' codes, as in `Sort`; by default by all.",
        ),
    ),
    "overwrite_input": (
        "Sort in place: the outputs are the inputs, which saves memory.",
        ("Sort in place: the outputs are the inputs, which saves memory.",),
    ),
}

#: What any call may raise; the page of shared arguments says when.
ANYWHERE = {
    "ArgumentError", "AxisError", "BoundsError", "BufferUsageError", "DatatypeError", "EmptyReductionError",
    "LengthError", "OverlapError", "TimingNotReady", "TimingUnavailable",
}  # fmt: skip
#: Sentences that the page of shared arguments, or the first lines of a subject's page, say of all.
SAID = (
    "NaN propagates, and −0 is less than +0.",
    "Integers wrap.",
    "The GPU may flush denormals.",
    "Of the items; their bits are copied.",
    "Reasons to doubt the number.",
    "Reasons to doubt the GPU times.",
    "The datatype of the items.",
    "The numpy dtype of the items.",
    "Bytes of the items.",
    "Number of items.",
    "The number of dimensions.",
    "The number of dimensions: 1.",
    "``(size,)``.",
    "The device it runs on.",
    "The device of the buffer.",
    "The device of the buffers.",
    "Waits for all submitted work.",
    "Return all fields as JSON data.",
    "The arguments are those of `execute`, except ``encoder``.",
    "Return the times of the last timed call; see `Run.get_timing_result`.",
    "Return the times of the last timed run; see `Run.get_timing_result`.",
    "Return the times of the last timed replay; see `SequenceRun.get_timing_result`.",
    "Return the times of this call; waits for its work to finish.",
    "Like `execute`, without blocking the event loop; returns when the work is done.",
    "Like `get_timing_result`, without blocking the event loop.",
    "Like `to_numpy`, without blocking the event loop.",
    "As `to_numpy`, without blocking the event loop.",
)
#: Sentences about results; the page of shared arguments says the same of all.
RESULTS = (
    "Of the shape and datatype of `x`; an Array if an argument is one.",
    "``values`` and ``indices``.",
    "An expression where `x` is on the GPU: `asarray` stores it.",
    "An expression where an argument is on the GPU: `asarray` stores it.",
    "Of one dimension; an Array carries its count, and nothing is read back.",
    "Of one dimension; an Array carries its count.",
    "An Array of u32 where `x` is on the GPU.",
    "An Array of bool where `x` is on the GPU.",
    "An Array if an argument is one.",
    "Indices are of intp for numpy, of u32 for Arrays.",
    "Of the shape and datatype of `x`.",
    "Of the shape of `x`: intp for numpy, u32 for an Array.",
    "Of intp for numpy, of u32 with its count for an Array.",
    "`out`, or what `x` is: numpy gives a scalar where no axis is left, and an Array has shape ().",
    "An Array carries its count.",
    "Arrays carry their counts.",
    "Of float32; of float16 for float16.",
    "Of the dtype of `x`.",
    "Of bool.",
)
SHARED_PAGE = "/reference/python/shared"
#: Types of which the signature, or the page of shared arguments, says enough.
_PLAIN = """numpy.ndarray numpy array array_like Array Arrays ChunkedArray wgpu.GPUBuffer wgpu.GPUDevice expression
expressions Expression number numbers mapping integers floats dtype Datatype str bool int float callable None sequence
iterable tuple list dict two from to or of and a wgpu.GPUCommandEncoder TimingSession SamplingProtocol Path Work
UnaryOp Primitive Sequence complex scalar"""
PLAIN = set(_PLAIN.split())
_TITLES = "Parameters|Returns|Yields|Raises|Warns|See Also|Notes|Examples|Attributes"


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by their titles; what comes first is under ""."""
    parts = re.split(rf"^({_TITLES})\n-+\n", text, flags=re.MULTILINE)
    return {"": parts[0].strip()} | {
        title: body.strip("\n") for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def entries(body: str) -> list[tuple[str, str, str]]:
    """Return the entries of a section: name, type, and text in one line."""
    found = []
    for part in re.split(r"\n(?=\S)", body):
        head, _, text = part.partition("\n")
        name, _, kind = head.partition(" : ")
        found.append((name.strip(), kind.strip(), " ".join(text.split())))
    return found


def is_shared(name: str, text: str, *, of_primitive: bool = True) -> bool:
    """Whether the page of shared arguments says what a docstring says of a parameter."""
    parts = name.split(", ")
    if of_primitive:
        parts = [part for part in parts if part not in ("tuning", "capabilities", "strategy", "sort_tuning")]
    name = ", ".join(parts)
    return set(parts) <= {"deterministic", "compensated"} or (name in SHARED and text in SHARED[name][1])


def _kind(kind: str, text: str) -> str:
    """Return what a type says that neither the signature nor the shared page does."""
    kind = re.sub(r",? ?\b(optional|default\b.*)$", "", kind)
    return kind if not text or set(_words(kind)) - PLAIN else ""


def _words(kind: str) -> list[str]:
    return re.findall(r"[\w.]+", kind)


def _parameters(body: str, of_primitive: bool, linked: bool) -> list[str]:
    lines, others, shared = [], [], False
    for name, kind, text in entries(body):
        if is_shared(name, text, of_primitive=of_primitive) or not (text or _kind(kind, "type")):
            shared = True
            continue
        if "," in name and re.fullmatch(r"As for `\w+`\.", text):
            others.append(f"Others {text[0].lower()}{text[1:]}")
            continue
        kind = _kind(kind, text)
        name = ", ".join(f"``{part}``" for part in name.split(", "))
        said = ". ".join(part for part in (kind, text) if part) if text else kind
        lines += [f"{name}\n   {said}" if said else name + "\n   \\", ""]
    if shared and linked and not others:
        others.append(f":doc:`{'Others' if lines else 'Arguments'} <{SHARED_PAGE}>`.")
    return [*lines, " ".join(others), ""] if others else lines


def _results(body: str) -> str:
    """Return what a call gives in a line; "" if the page of shared arguments says it."""
    said = [
        (name, kind, text) for name, kind, text in entries(body) if text or (not kind and set(_words(name)) - PLAIN)
    ]
    result = " ".join(text or " : ".join(filter(None, (name, kind))) for name, kind, text in said)
    for sentence in RESULTS:
        result = result.replace(sentence, "")
    return " ".join(result.split())


def without_said(text: str) -> str:
    """Leave out what the page of shared arguments says of all."""
    for sentence in SAID:
        text = re.sub(r"(?<![^\s])" + r"\s+".join(map(re.escape, sentence.split())) + r"(?=\s|$) ?", "", text)
    return text


def without_return(summary: str) -> str:
    """Return what a function returns: a page does not say "Return the" before each."""
    said = re.sub(r"^Return (the (?!\w\b))?(?=[\w`])", "", summary)
    return said[:1].upper() + said[1:]


def shortened(text: str, *, of_primitive: bool = False, linked: bool = True, internal: Collection[str] = ()) -> str:
    """Return a docstring for the site, as reStructuredText, without internal attributes.

    Its page may link the shared arguments once for all.
    """
    found = sections(without_said(text))
    lines = [without_return(found[""]), ""]
    if "Examples" in found:
        lines += [found["Examples"], ""]
    if "Parameters" in found:
        lines += _parameters(found["Parameters"], of_primitive, linked)
    for title in ("Returns", "Yields"):
        if given := _results(found.get(title, "")):
            lines += [f"{title}: {given}", ""]
    raised = [name for names, *_ in entries(found.get("Raises", "")) for name in names.split(", ") if name]
    errors = [f"`{name}`" for name in raised if name not in ANYWHERE]
    if errors:
        lines += [f"Raises {', '.join(errors)}", ""]
    for paragraph in found.get("Notes", "").split("\n\n"):
        if source := re.search(r"\bSources?: .*", paragraph, re.DOTALL):
            lines += [" ".join(source[0].split()), ""]
    for name, kind, said in entries(found["Attributes"]) if "Attributes" in found else ():
        names = [one for one in name.split(", ") if one not in internal]
        if names and "for the library's own use" not in said:
            together = ", ".join(names).replace(", ", "\n" + " " * len(".. attribute:: "))
            lines += [f".. attribute:: {together}", *([f"   :type: {kind}"] if kind else []), "", f"   {said}", ""]
    return "\n".join(lines)


def call(text: str) -> str:
    """Return what the page of a primitive says of its `execute`: the arrays, which its See Also has."""
    said = [f"{kind} {body}" for name, kind, body in entries(sections(text).get("See Also", "")) if name == "execute"]
    words = " ".join(" ".join(said).split())
    words = re.sub(r",? shape \(n,\)( each)?(?=[,;.])", "", words)
    return f"{words[:1].upper()}{words[1:]}"


def shared_page() -> str:
    """Return the page of what many functions and primitives take."""
    lines = [
        "Shared arguments",
        "================",
        "",
        ".. py:currentmodule:: gridwise_py",
        "",
        "Arrays are numpy arrays and what numpy makes an array of (lists, numbers, tensors on the CPU), or "
        "`Array`, whose "
        "results stay on the GPU. Most functions also take an :doc:`expression <expressions>`. A dtype is a "
        "name, a numpy "
        "dtype, or a `Datatype`; names count bits: ``i8`` is int8. Computing with float64 needs a device with "
        "``shader-f64``, else Python's floats are float32; comparing, sorting and moving it does not.",
        "",
        "Results are numpy arrays, or `Array` where an argument is one, of the shape and datatype that numpy's would "
        "have. Indices and counts are of intp for numpy, of u32 for an `Array`. Functions of :doc:`expressions` "
        "give an "
        "expression where an argument is on the GPU: `asarray` stores it. Where only the GPU knows the length of a "
        "result, it carries its count (:doc:`/concepts/counts`), and nothing is read back.",
        "",
        "Errors come before anything is submitted, and change nothing: `ArgumentError` for options, `DatatypeError` "
        "for items and operators, `LengthError`, `OverlapError`, `AxisError`, `BoundsError`, and "
        "`EmptyReductionError` for the extreme of no items. :doc:`All errors <errors>`.",
        "",
        "`Primitive` has what all primitives share, `Run` what a call gives. Arrays of a call have one dimension and "
        "one length, where the page of a primitive does not say another. ``get_timing_result()`` gives the "
        "`TimingResult` of the last timed run, and waits for it. What ends in ``_async`` does the same without "
        "blocking the event loop. ``warnings`` are reasons to doubt the numbers. ``help(gw.Scan)`` shows more than "
        "its page: exact bounds of rounding errors, memory, limits.",
        "",
    ]
    for name, (text, _) in SHARED.items():
        if text:
            lines += [f"``{name}``", f"   {text}", ""]
    return "\n".join(lines)
