"""What a case asks of a GPU, as data that two versions are compared by: is it the same code?

It is made of plans, which need no GPU: the text of each kernel without comments, its constants and run-time checks;
each launch with its workgroups and what it binds, in order; buffers, the content of uniforms, and digests of the
inputs. Names and labels do not count. What the host does before and after does not, either.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
import wgpu

from ..errors import GridwiseError
from ..planning.kernel_text import KernelText
from ..planning.plan import Plan
from ..types.capabilities import Capabilities
from ..types.wgsl_text import tokens
from .encoding_order import StepUse, barriers
from .recorded import recording_device

#: The parts that have a digest each, and the kinds of facts that belong to it; all others are of launches.
_OF_FACTS = {"text": "kernels", "checks": "kernels", "entry": "kernels", "constant": "kernels"} | {
    "uniform": "uniforms", "items": "inputs"
}  # fmt: skip
_MOST_SHOWN = 120
Words: TypeAlias = list[Any]
#: What a transfer reads, and what it writes.
_ENDS = (("source",), ("destination", "buffer"))


@functools.lru_cache(maxsize=4096)
def bare_lines(text: str) -> tuple[str, ...]:
    """Return the lines of a WGSL text without comments, blank ones and blanks at their ends."""
    kept = (" " if token.kind == "comment" else token.text for token in tokens(text))
    return tuple(line.rstrip() for line in "".join(kept).splitlines() if line.strip())


@dataclass(frozen=True)
class Code:
    """What a case asks of a GPU.

    Attributes
    ----------
    parts : tuple of (str, mapping)
        Of each launch and transfer its label and its facts; then those of the memory, and of the inputs.
    texts : mapping from str to str
        WGSL by the sha256 of the whole text.
    more : mapping from str to int or None
        What was counted beside it.
    """

    #: What has a digest each.
    DIGESTS: ClassVar[tuple[str, ...]] = ("kernels", "launches", "uniforms", "inputs")

    parts: tuple[tuple[str, Mapping[str, Any]], ...]
    texts: Mapping[str, str]
    more: Mapping[str, int | None]

    @staticmethod
    def device(capabilities: Capabilities) -> wgpu.GPUDevice:
        """Return a device that notes what it is asked to do in its context's `log`, and computes nothing."""
        return recording_device(capabilities)

    @staticmethod
    def data_of(plan: Plan) -> dict[str, Any]:
        """Return a plan as `of` takes it: its JSON data, with the run-time checks of its shaders."""
        data: dict[str, Any] = json.loads(plan.to_json())
        for key, shader in plan.shaders.items():
            data["shaders"][key]["checks"] = shader.shader_checks
        return data

    @staticmethod
    def digest_of(items: np.ndarray) -> str:
        """Return a digest of items and what they are."""
        found = hashlib.blake2b(f"{items.dtype.str} {items.shape}".encode(), digest_size=32)
        found.update(np.ascontiguousarray(items).view(np.uint8).data if items.size else b"")
        return found.hexdigest()

    @classmethod
    def of(cls, plans: Sequence[Mapping[str, Any]], inputs: Mapping[str, str | None], **more: int | None) -> Code:
        """Return the code of plans that run one after the other.

        Parameters
        ----------
        plans : sequence of mapping
            As `data_of` returns them; equal names of arguments are the same memory, or what ``memory`` has for them.
            Each kernel is dispatched as often as ``times`` says.
        inputs : mapping from str to str or None
            Digests of items by argument; None where nobody knows.
        **more
            What else was counted.
        """
        numbers: dict[tuple[Any, str], int] = {}
        memory: dict[str, Any] = {}
        parts: list[tuple[str, dict[str, Any]]] = []
        for position, plan in enumerate(plans):
            specs = {spec["name"]: spec for spec in plan["buffers"]}

            def number(name: str, specs: Any = specs, position: int = position) -> int:
                role, size_bytes = specs[name]["role"], specs[name]["size_bytes"]
                key = (
                    (None, plans[position].get("memory", {}).get(name, name))
                    if role == "argument"
                    else (position, name)
                )
                found = numbers.setdefault(key, len(numbers))
                memory[f"buffer {found}"] = [role, size_bytes]
                return found

            for step in plan["steps"]:
                if step["kind"] == "kernel":
                    parts.append((step["label"], _kernel_facts(step, plan, number)))
                else:
                    is_end = {name: any(name in names for names in _ENDS) for name in step}
                    facts = {name: number(value) if is_end[name] else value for name, value in step.items()}
                    parts.append((step["kind"], facts))
        parts += [("memory", memory), ("inputs", {f"items of {name}": one for name, one in inputs.items()})]
        texts = {key: shader["text"] for plan in plans for key, shader in plan["shaders"].items()}
        return cls(tuple(parts), texts, more)

    @functools.cached_property
    def counts(self) -> dict[str, int | None]:
        """What it asks for in numbers, which gates need no clock for; None of what is not known."""
        steps, (_, memory), _ = [facts for _, facts in self.parts[:-2]], *self.parts[-2:]
        kernels = [facts for facts in steps if "workgroups" in facts]
        groups = [math.prod(facts["workgroups"]) for facts in kernels]
        sizes = [_workgroup_size(self.texts[facts["text"]], facts) for facts in kernels]
        known = None if None in sizes else sum(n * (size or 0) for n, size in zip(groups, sizes, strict=True))
        own = {json.dumps({name: facts[name] for name in facts if _part(name) == "kernels"}) for facts in kernels}
        bound = {tuple(v[1:]) for facts in kernels for name, v in facts.items() if name.startswith("binding")}
        return {
            "launches": len(kernels), "transfers": len(steps) - len(kernels), "workgroups": sum(groups),
            "invocations": known, "pipelines": len(own), "barriers": barriers([*map(_use, steps)], range(len(steps))),
            "bound_bytes": sum(size for _, _, size in bound),
            "scratch_bytes": sum(size for role, size in memory.values() if role != "argument"), **self.more,
        }  # fmt: skip

    @functools.cached_property
    def digests(self) -> dict[str, str]:
        """A digest of each of `DIGESTS`: of all facts of its kind, in order; none of inputs that nobody knows."""
        facts: dict[str, list[Any]] = {name: [] for name in self.DIGESTS}
        for i, (_, own) in enumerate(self.parts):
            for name, value in sorted(own.items()):
                bare = bare_lines(self.texts[value]) if name == "text" else value
                facts[_part(name)].append([i, name, bare])
        if None in self.parts[-1][1].values():
            del facts["inputs"]
        return {name: hashlib.sha256(json.dumps(own).encode()).hexdigest() for name, own in facts.items()}

    def changes(self, new: Code) -> Iterator[str]:
        """Yield what differs in another one, most important first: kernels, launches, uniforms, inputs."""
        found: list[tuple[int, str]] = []
        empty: tuple[str, dict[str, Any]] = ("", {})
        old_steps, new_steps = self.parts[:-2], new.parts[:-2]
        pairs = [*itertools.zip_longest(old_steps, new_steps, fillvalue=empty)]
        pairs += zip(self.parts[-2:], new.parts[-2:], strict=True)
        for (label, before), (now, after) in pairs:
            if (label, before) == empty or (now, after) == empty:
                found.append((0, f"only in {'NEW' if before == {} else 'OLD'}: {label or now}"))
                continue
            for name in dict.fromkeys((*before, *after)):
                said = self._change(new, name, before.get(name), after.get(name))
                found += [(self.DIGESTS.index(_part(name)), f"{label}: {name}: {said}")] if said else []
        return (text for _, text in sorted(found, key=lambda one: one[0]))

    def _change(self, new: Code, name: str, old: Any, now: Any) -> str:
        """Return what differs in a fact; empty if nothing does."""
        if old == now:
            return ""
        return _text_change(self.texts[old], new.texts[now]) if name == "text" and old and now else _shown(old, now)

    def text_changes(self, new: Code) -> Iterator[str]:
        """Yield a unified diff of each kernel's text, each text once."""
        seen: set[tuple[str, str]] = set()
        for (label, before), (_, after) in zip(self.parts, new.parts, strict=False):
            pair = before.get("text", ""), after.get("text", "")
            if all(pair) and pair not in seen:
                seen.add(pair)
                old, now = bare_lines(self.texts[pair[0]]), bare_lines(new.texts[pair[1]])
                if lines := [*difflib.unified_diff(old, now, f"OLD {label}", f"NEW {label}", lineterm="", n=2)]:
                    yield "\n".join(lines)


def _part(name: str) -> str:
    return _OF_FACTS.get(name.partition(" ")[0], "launches")


def _kernel_facts(step: Mapping[str, Any], plan: Mapping[str, Any], number: Any) -> dict[str, Any]:
    """Return the facts of a launch."""
    specs = {spec["name"]: spec for spec in plan["buffers"]}
    facts = {"text": step["shader"], "checks": plan["shaders"][step["shader"]].get("checks")}
    facts |= {"entry point": step["entry_point"], "workgroups": list(step["workgroups"])}
    facts |= {"times": plan["times"]} if plan.get("times", 1) != 1 else {}
    facts |= {f"constant {name}": value for name, value in sorted(step["constants"].items())}
    for binding in step["bindings"]:
        spec, index = specs[binding["buffer"]], binding["index"]
        size, offset = binding.get("size_bytes"), binding.get("offset_bytes", 0)
        size = spec["size_bytes"] - offset if size is None else size
        facts[f"binding {index}"] = [binding["access"], number(spec["name"]), offset, size]
        if spec["words"] is not None:
            facts[f"uniform {index}"] = list(spec["words"])
    return facts


def _use(facts: Mapping[str, Any]) -> StepUse:
    if "workgroups" not in facts:
        read, written = (frozenset(facts[name] for name in names if name in facts) for names in _ENDS)
        return StepUse(read - written, written, is_transfer=True)
    bound = [value for name, value in facts.items() if name.startswith("binding")]
    written = frozenset(one[1] for one in bound if one[0] == "read_write")
    return StepUse(frozenset(one[1] for one in bound) - written, written)


@functools.lru_cache(maxsize=4096)
def _size_of(text: str, entry_point: str, constants: tuple[tuple[str, Any], ...]) -> int | None:
    try:
        size = KernelText(text, dict(constants)).workgroup_size(entry_point)
    except GridwiseError:
        return None
    return math.prod(size) if size else None


def _workgroup_size(text: str, facts: Mapping[str, Any]) -> int | None:
    """Return the invocations of a workgroup; None where this library cannot tell."""
    constants = {name.partition(" ")[2]: value for name, value in facts.items() if name.startswith("constant ")}
    return _size_of(text, facts["entry point"], tuple(constants.items()))


def _text_change(old: str, new: str) -> str:
    """Return the first lines that differ, as both have them; empty if only comments do."""
    lines = [*difflib.unified_diff(bare_lines(old), bare_lines(new), lineterm="", n=0)][2:]
    sides = [[line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+"]
    shown = "; ".join(f"{sign} {side[0]}" for sign, side in zip("-+", sides, strict=True) if side)
    count = max(map(len, sides))
    return f"{count} line{'s' * (count != 1)}: {shown[:_MOST_SHOWN]}" if count else ""


def _shown(old: Any, new: Any) -> str:
    """Return two values, of long lists the first item that differs."""
    if isinstance(old, list) and isinstance(new, list) and len(cast(Words, old)) == len(cast(Words, new)) > 4:
        pairs = zip(cast(Words, old), cast(Words, new), strict=True)
        at = next(i for i, (then, now) in enumerate(pairs) if then != now)
        return f"word {at}: {old[at]} → {new[at]}"
    return f"{_short(old)} → {_short(new)}"


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) < _MOST_SHOWN // 2 else f"{text[:12]}…"
