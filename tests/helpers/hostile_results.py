"""Results for the tests of reports, tame and hostile."""

from helpers.commands import gridwise
from helpers.results import CONTEXT, DEVICE, document, measurement, write

#: What a label must not do: end an element, begin one, break a JSON text or an expression, steer a terminal.
HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "<!--<script>",
    '"><img src=x onerror="window.pwned = 2">',
    "'-alert(1)-'",
    "a\u2028b\u2029c",
    "{{ 7 * 7 }}{% raw %}",
    "]]></style></title><svg onload=window.pwned=3>",
    "javascript:window.pwned=4",
    "\u202egnp.exe",
    "datum['constructor'].constructor('window.pwned=5')()",
    "x\x00\x1b[31m\ud800y",
    "long" * 60,
)


def report(folder, documents, *words):
    """Return the page that ``gridwise report`` makes of documents, which are JSON data by the names of their files."""
    paths = [write(folder / f"{name}.json", made) for name, made in documents.items()]
    done = gridwise("report", *paths, "-o", folder / "report.html", *words)
    assert done.exit_code == 0, done.output
    return (folder / "report.html").read_text(encoding="utf-8")


def sweep(scale=1.0, **fields):
    """Two primitives at three sizes, hot and cold."""
    return document(
        [
            measurement(primitive, n, mode, op=op, labels=labels, count=40, ticks=(),
                        scale_ns=scale * n / 100 * (1.2 if mode == "cold" else 1.0))
            for primitive, op, labels in (("copy", None, ("copy",)), ("reduce", "add", ("reduce",)),
                                          ("scan", "add", ("reduce blocks", "scan blocks")))
            for n in (1 << 16, 1_000_003, 1 << 20)
            for mode in ("hot", "cold")
        ],
        **fields,
    )  # fmt: skip


def hostile_document(label, few=False):
    """A document with `label(i, HOSTILE[i])` wherever a file may have text; with `few` of one primitive."""
    # No file with half of a character is read.
    texts = [label(i, text).replace("\ud800", "") for i, text in enumerate(HOSTILE)]
    made = document(
        [
            measurement(primitive=texts[0] if few else text, n=n, datatype=text, op=text,
                        labels=(f"{text} 1", f"{text} 2"), warnings=(text,), ticks=())
            for text in texts
            for n in (1 << 16, 1 << 20)
        ]
        + [measurement(primitive=text, n=3, error=text, kernels=(), whole={}, ticks=()) for text in texts],
        device={**DEVICE, **{key: texts[0] for key in ("adapter", "driver", "vendor", "backend")}},
        context={
            **CONTEXT, "command": texts, "suite": texts[1], "versions": {**CONTEXT["versions"], "gridwise_py": texts[2]}
        },
    )  # fmt: skip
    return made
