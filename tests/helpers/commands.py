"""The command ``gridwise``, called in this process."""

from click.testing import CliRunner, Result

from gridwise_py.cli import main
from gridwise_py.storage.locks import locked

#: The commands by name, as click has them.
COMMANDS = main.commands
#: A context in which another command writes a file.
being_written = locked


def gridwise(*words: object, **options: object) -> Result:
    """Call ``gridwise`` with these words; options are those of click's runner, such as ``env``."""
    return CliRunner(**options).invoke(main, [str(word) for word in words])
