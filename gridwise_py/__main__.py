"""``python -m gridwise_py`` is the command ``gridwise``, which needs the extra ``bench``."""

from __future__ import annotations

import sys

from .extras import check_bench_is_installed

_BAD_INPUT = 2  # as in cli/exit_codes.py, which cannot be imported without click


def main() -> None:
    """Run the command, or say in one line what to install for it."""
    try:
        check_bench_is_installed("the command gridwise")
    except ImportError as error:
        print(f"gridwise: {error}", file=sys.stderr)
        sys.exit(_BAD_INPUT)
    from .cli import main as command

    command(prog_name="gridwise")


if __name__ == "__main__":
    main()
