"""What the templates of shaders have beside Jinja's own; loaded with the first template.

Their lines may be repeated. As Python has compiled them, they are kept on disk: half of what a first plan costs.
"""

from __future__ import annotations

import hashlib
import re

import jinja2
from jinja2.bccache import Bucket
from jinja2.ext import Extension

from .._version import __version__
from ..storage.cache import code_folder
from ..storage.files import read_file, write_whole

_DIGEST_BYTES = 32
_REPEATED = re.compile(r"^(.*\S) +//\$ (for .*)$", re.MULTILINE)


class RepeatedLines(Extension):
    """Lines that end with ``//$ for …``, which stand there once for each turn; the numbers of lines stay."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the source with Jinja's own loops."""
        return _REPEATED.sub(r'<%%% \2 %%%>\1{{ "\n" }}<%%% endfor %%%>', source)


class TemplateCache(jinja2.BytecodeCache):
    """One file for each template in a folder of the cache; jinja2 compares it with the template's text."""

    def __init__(self) -> None:
        self._folder = code_folder("templates")

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the name of a template's file, wherever its text lies; jinja2 itself adds the version of Python."""
        return hashlib.sha256(f"{name}\n{jinja2.__version__}\n{__version__}".encode()).hexdigest()[:32]

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket, if there is a file that is whole."""
        if self._folder is None:
            return
        try:
            content = read_file(self._folder / bucket.key)
            if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
                bucket.bytecode_from_string(content[_DIGEST_BYTES:])
        except OSError:
            return

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write the file, if that is possible."""
        if self._folder is None:
            return
        content = bucket.bytecode_to_string()
        try:
            write_whole(self._folder / bucket.key, hashlib.sha256(content).digest() + content, follow_links=False)
        except OSError:
            return
