"""``python -m gridwise_py`` is the command ``gridwise``."""

from .cli import main

main(prog_name="gridwise")
