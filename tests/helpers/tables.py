"""Tables as people see them."""

import io
import re

from rich.console import Console

from gridwise_py.bench.report.table import results_table
from helpers.results import document, loaded


def bench_table(made, width=400, **options):
    """Return the table that ``gridwise bench`` prints of a document, which is JSON data, or of measurements."""
    made = document(made) if isinstance(made, list) else made
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(results_table(loaded(made), **options))
    return console.file.getvalue()


def check_whole(text, wide, width, must):
    """Hold a text against the same at a width that has room for all."""
    for line in text.splitlines():
        assert len(line) <= width, line
        assert "…" not in line
    left_out = re.compile(r"Left out, as \d+ columns are too few: [^.]*\.")
    whole = set(wide.replace("─", "").split())
    words = left_out.sub("", re.sub(r"\s+", " ", text)).replace("─", "").split()
    assert set(words) <= whole, set(words) - whole
    assert set(must) <= set(words), set(must) - set(words)
