"""Fingerprints: of configurations, of the code a result depends on, of the packages behind it."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("fairbench", "datasets", "algorithms")


def digest(content: Any, length: int = 20) -> str:
    """Return the hash of a JSON-like value; equal values in any key order hash alike."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def describe(component: Any) -> dict[str, Any]:
    """Return what identifies a component: its class and every field of its dataclass."""
    kind = type(component)
    fields: dict[str, Any] = {}
    if dataclasses.is_dataclass(component) and not isinstance(component, type):
        fields = dataclasses.asdict(component)
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **fields}


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of those `distributions` that are installed."""
    found = {name: _version(name) for name in sorted(set(distributions))}
    return {name: version for name, version in found.items() if version}


@cache
def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def code_digest(modules: Iterable[str]) -> str:
    """Return a hash of the syntax trees of `modules` and of all they import from this project.

    Comments, layout and docstrings do not count; package ``__init__`` files, which here hold
    nothing that computes, are left out.
    """
    closure: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in closure and (tree := _tree_digest(name)) is not None:
            closure[name], imported = tree
            waiting += imported
    return digest(closure)


@cache
def _tree_digest(module: str) -> tuple[str, tuple[str, ...]] | None:
    path = _source(module)
    if path is None:
        return None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = tuple(sorted(set(_imports(tree))))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), imported


def _source(module: str) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or spec.submodule_search_locations is not None:
        return None
    return Path(spec.origin)


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
