"""Fingerprints: of configurations, of the code a result depends on, of the packages behind it."""

from __future__ import annotations

import ast
import dataclasses
import dis
import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fairbench", "datasets", "algorithms")


def digest(content: Any, length: int = 20) -> str:
    """Return the hash of a JSON-like value; equal values in any key order hash alike."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def describe(component: Any) -> dict[str, Any]:
    """Return what identifies a component: its class and its fields, nested dataclasses too."""
    kind = type(component)
    described: dict[str, Any] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
    if dataclasses.is_dataclass(component):
        for field in dataclasses.fields(component):
            value = getattr(component, field.name)
            described[field.name] = describe(value) if dataclasses.is_dataclass(value) else value
    return described


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of those `distributions` that are installed."""
    found = {name: _version(name) for name in sorted(set(distributions))}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python, **{name: version for name, version in found.items() if version}}


@cache
def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def code_digest(modules: Iterable[str]) -> str:
    """Return a hash of the code of `modules` and of all they import from this project.

    What is hashed is the compiled code without docstrings, comments, layout and line numbers (of
    one Python version, which is part of every fingerprint). Package ``__init__`` files, which here
    hold nothing that computes, are left out.
    """
    closure: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in closure and (module := _module_digest(name)) is not None:
            closure[name], imported = module
            waiting += imported
    return digest(closure)


@cache
def _module_digest(module: str) -> tuple[str, tuple[str, ...]] | None:
    package, _, rest = module.partition(".")
    if package not in PACKAGES or not rest:
        return None
    path = ROOT / f"{module.replace('.', '/')}.py"
    if not path.is_file():
        return None
    code = compile(_on_one_line(path), path.name, "exec", dont_inherit=True, optimize=2)
    return digest(_plain(code)), tuple(_imports(code))


def _on_one_line(path: Path) -> ast.Module:
    """Return the syntax tree, all in one place: the compiler gives some lines code of their own."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if "lineno" in node._attributes:
            place = {"lineno": 1, "end_lineno": 1, "col_offset": 0, "end_col_offset": 0}
            node.__dict__.update(place)
    return tree


def _plain(value: Any) -> Any:
    """Return a code object, or a constant of one, without what layout alone decides."""
    if isinstance(value, CodeType):
        names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        signature = (value.co_argcount, value.co_kwonlyargcount, value.co_flags)
        constants = [_plain(constant) for constant in value.co_consts]
        code = (value.co_code.hex(), value.co_exceptiontable.hex())
        return [value.co_name, code, names, signature, constants]
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, frozenset):
        return sorted(map(repr, value))
    return repr(value)


def _imports(code: CodeType) -> Iterator[str]:
    """Yield the modules that the code imports, anywhere in it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            module = str(instruction.argval)
            yield module
        elif instruction.opname == "IMPORT_FROM":
            yield f"{module}.{instruction.argval}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant)
