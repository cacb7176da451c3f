"""The bill of materials of a wheel, as CycloneDX JSON: the packages that it installs, and its shaders.

cyclonedx-py lists the packages of an environment. This adds what it cannot know: that the wheel is the subject, its
digest, and its shaders with their digests and licence.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

NAME = "gridwise-py"
LICENCE = "Apache-2.0"


def _sha256(content: bytes) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}]


def complete(document: dict[str, Any], wheel: Path) -> dict[str, Any]:
    """Return a bill of materials with a wheel as its subject.

    Parameters
    ----------
    document : dict
        CycloneDX of an environment that has the wheel and its dependencies.
    wheel : Path

    Raises
    ------
    ValueError
        If the environment does not have the wheel.
    """
    mine = [part for part in document["components"] if _normal(part["name"]) == NAME]
    if len(mine) != 1:
        raise ValueError(f"the environment has {len(mine)} packages named {NAME}, expected 1")
    with zipfile.ZipFile(wheel) as archive:
        shaders = [
            {
                "type": "file",
                "bom-ref": name,
                "name": name,
                "hashes": _sha256(archive.read(name)),
                "licenses": [{"license": {"id": LICENCE, "acknowledgement": "declared"}}],
            }
            for name in sorted(archive.namelist())
            if name.endswith(".wgsl")
        ]
    # A path to a file of the machine that made this is nothing to publish.
    subject = {key: value for key, value in mine[0].items() if key not in ("externalReferences", "evidence")}
    subject |= {"type": "library", "hashes": _sha256(wheel.read_bytes()), "components": shaders}
    subject["purl"] = f"pkg:pypi/{NAME}@{subject['version']}"
    others = [part for part in document["components"] if part is not mine[0]]
    return {**document, "metadata": {**document["metadata"], "component": subject}, "components": others}


def write(wheel: Path, python: Path, target: Path) -> str:
    """Write the bill of materials of a wheel that is installed for an interpreter; return a line about it.

    Raises
    ------
    ValueError
        If what was made does not fit the schema of CycloneDX.
    """
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--spec-version", "1.6"]
    made = subprocess.run([*command, str(python)], capture_output=True, text=True, check=True)
    text = json.dumps(complete(json.loads(made.stdout), wheel), indent=2, ensure_ascii=False) + "\n"
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        raise ValueError(f"the bill of materials does not fit CycloneDX 1.6: {error}")
    target.write_text(text, encoding="utf-8")
    document = json.loads(text)
    return f"{len(document['components'])} packages, {len(document['metadata']['component']['components'])} shaders"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
