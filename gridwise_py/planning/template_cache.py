"""What the templates of shaders have beside Jinja's own; loaded with the first template.

Their lines may be repeated. As Python has compiled them, they are kept on disk: half of what a first plan costs.

Whoever can write such a file decides what this process does. So the folder must belong to the user, and nobody else may
write in it; where that is not so, nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket
from jinja2.ext import Extension

from .._version import __version__
from ..storage.cache import cache_folder
from ..storage.files import write_whole

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
        self._folder = _own_folder()

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the name of a template's file; jinja2 itself adds the version of Python."""
        return hashlib.sha256(f"{name}\n{filename}\n{jinja2.__version__}\n{__version__}".encode()).hexdigest()[:32]

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket, if there is a file that is whole."""
        if self._folder is None:
            return
        try:
            content = (self._folder / bucket.key).read_bytes()
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


def _own_folder() -> Path | None:
    """Return the folder, made if need be; None where others can write in it, or it cannot be made."""
    parent = cache_folder()
    if parent is None:
        return None
    folder = parent / "templates"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return None
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return folder
