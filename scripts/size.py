"""Compare the size of each folder with its budget in budget.toml; exit 1 if one is over.

Python (and .pyi) counts by lines with a token and by tokens, both without blank lines, comments and docstrings; WGSL,
JavaScript and HTML by lines. Files that a script makes ("# Made by …") do not count. A file counts for the longest
folder of budget.toml that holds it.
"""

import ast
import io
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
TEXTS = {".wgsl", ".js", ".html", ".cu"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def find_docstring_lines(source: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def count_python(source: str) -> tuple[int, int]:
    docstrings = set(find_docstring_lines(source))
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in LAYOUT and token.start[0] not in docstrings
    ]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)}), len(tokens)


def measure(folders: list[str]) -> tuple[Counter[str], Counter[str]]:
    """Code lines and tokens of each folder."""
    lines, tokens = Counter[str](), Counter[str]()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.split("\0")[:-1]:
        folder = max((folder for folder in folders if name.startswith(f"{folder}/")), key=len, default=None)
        path = ROOT / name
        if folder is None or not path.exists():
            continue
        if path.suffix in {".py", ".pyi"}:
            source = path.read_text(encoding="utf-8")
            of_file = (0, 0) if source.startswith("# Made by ") else count_python(source)
            lines[folder] += of_file[0]
            tokens[folder] += of_file[1]
        elif path.suffix in TEXTS:
            lines[folder] += len(path.read_text(encoding="utf-8").splitlines())
    return lines, tokens


def main() -> int:
    written = tomllib.loads((ROOT / "budget.toml").read_text(encoding="utf-8"))
    budget, package = written["folders"], written["package"]
    lines, tokens = measure(list(budget))
    faults = []
    for folder, most in budget.items():
        print(f"{folder:32}{lines[folder]:8} of {most[0]:6} lines{tokens[folder]:9} of {most[1]:6} tokens")
        for unit, now, limit in (("lines", lines[folder], most[0]), ("tokens", tokens[folder], most[1])):
            if now > limit:
                faults.append(f"{folder} is {now - limit} {unit} over its budget of {limit}")
    planned = sum(most[0] for folder, most in budget.items() if folder.startswith("gridwise_py"))
    planned += sum(written["allowances"].values())
    if planned > package["lines"]:
        over = f"{planned - package['lines']} over the package's {package['lines']} lines"
        faults.append(f"the budgets of gridwise_py's folders and the allowances are {over}")
    print(*(f"\n{fault}: remove as much, or see budget.toml" for fault in faults), sep="")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
