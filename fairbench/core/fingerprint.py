"""Fingerprints: of configurations, of the code a result depends on, of the packages behind it."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

from fairbench.core.files import sealed_json, unsealed_json, write_text

_DECLARATIONS = ("Capabilities", "Metric")
_SENTENCES = ("needs", "advice", "group_at_prediction")  # of declarations, for people to read
_REFUSALS = ("UserError", "DataError", "IncompatibleError", "unknown_name")


def computing_tree(tree: ast.Module) -> ast.Module:
    """Return a module's tree without what cannot change a result."""
    reduced: ast.Module = _Reduce().visit(tree)
    return reduced


class _Reduce(ast.NodeTransformer):
    """Drops what people read and what type checkers read."""

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._without_docstring(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Keep that an error is made, and leave out what it says."""
        if isinstance(node.func, ast.Name) and _is_error(node.func.id):
            return ast.Call(node.func, [], [])
        if isinstance(node.func, ast.Name) and node.func.id in _DECLARATIONS:
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in _SENTENCES]
        return self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        node.elts.sort(key=ast.dump)
        return self.generic_visit(node)

    def _without_docstring(self, node: Any) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        reduced: ast.AST = self.generic_visit(node)
        return reduced


def _is_error(name: str) -> bool:
    return name in _REFUSALS or name.endswith(("Error", "Exception"))


ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fairbench", "datasets", "algorithms", "papers")
# What refuses input, stores, or declares what a component looks like, computes nothing.
_ASIDE = (
    "fairbench.core.errors",
    "fairbench.core.files",
    "fairbench.core.fingerprint",
    "fairbench.experiments.contracts",
    "fairbench.experiments.study",
    "fairbench.results.predictions",
)


def digest(content: Any, length: int = 20) -> str:
    """Return the hash of a JSON-like value; equal values in any key order hash alike."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def describe(component: Any) -> dict[str, Any]:
    """Return what identifies a component: the name of its class and its options, nested ones too.

    The module that the class lives in is left out, so that moving it changes nothing.
    """
    described: dict[str, Any] = {"class": type(component).__qualname__}
    if dataclasses.is_dataclass(component):
        for field in dataclasses.fields(component):
            value = getattr(component, field.name)
            described[field.name] = describe(value) if dataclasses.is_dataclass(value) else value
    return described


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """Return the installed versions of those `distributions` that are installed."""
    version_of = {name: _version(name) for name in sorted(set(distributions))}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python, **{name: version for name, version in version_of.items() if version}}


@cache
def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def code_digest(modules: Iterable[str]) -> str:
    """Return a hash of what `modules`, and all they use from this project, compute.

    What is hashed are syntax trees without docstrings, annotations, layout and messages of errors,
    and without the names of modules: rewording or moving code changes nothing. A module counts if
    a name that is imported from it is used. Package ``__init__`` files, which here hold nothing
    that computes, are left out.
    """
    closure: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in closure and (module := _module_digest(name)) is not None:
            closure[name], imported = module
            waiting += imported
    _note_modules()
    return digest(sorted(closure.values()))


@cache
def _module_digest(module: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the digest of a module of this project and what it imports; None of others."""
    package, _, inner_name = module.partition(".")
    if package not in PACKAGES or not inner_name or module in _ASIDE:
        return None
    path = _source_of(module)
    if path is None:
        return None
    source = path.read_bytes()
    key = hashlib.sha256(source).hexdigest()
    notes = _noted(_notes_path())
    if key not in notes:
        tree = computing_tree(ast.parse(source))
        imported = list(dict.fromkeys(_used_imports(tree)))
        notes[key] = _new[key] = [digest(ast.dump(_without_paths(tree))), imported]
    module_digest, modules = notes[key]
    return module_digest, tuple(modules)


_COMPONENTS = "fairbench.components."


def _source_of(module: str) -> Path | None:
    """Return the file of a module of this project, or of a component of somebody's own."""
    name = module.removeprefix(_COMPONENTS)
    homes = (ROOT / "fairbench" / "components", ROOT) if name != module else (ROOT,)
    for home in homes:
        if (path := home / f"{name.replace('.', '/')}.py").is_file():
            return path
    if name == module or name.partition(".")[0] not in PACKAGES:
        return None
    with contextlib.suppress(ModuleNotFoundError):
        spec = find_spec(module)
        if spec is not None and spec.origin and not spec.submodule_search_locations:
            return Path(spec.origin)
    return None


# Reducing the syntax trees of fifty modules takes half a second: what came of it is noted in a
# sealed file, under the sha256 of each source. It is a cache: it may be removed at any time.
_new: dict[str, list[Any]] = {}
_MOST_NOTES = 2000


def own_cache() -> Path:
    """Return the user's own folder of what can be computed again."""
    if folder := os.environ.get("FAIRBENCH_CACHE"):
        return Path(folder)
    if (ROOT / "requirements.lock").is_file():  # a checkout
        return ROOT / "data" / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairbench"


@cache
def _notes_path() -> Path:
    """Return the file of notes, which are good for this very code and version of Python."""
    own_source = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    name = digest([own_source, sys.version, PACKAGES], 12)
    return own_cache() / f"code-{name}.json"


@lru_cache(maxsize=1)
def _noted(path: Path) -> dict[str, list[Any]]:
    try:
        return unsealed_json(path.read_bytes())
    except (OSError, ValueError):
        return {}


def _note_modules() -> None:
    """Add what was found of new sources to the file of notes; a read-only disk costs only time."""
    if not _new:
        return
    notes = _noted(_notes_path())
    kept = dict(_new) if len(notes) > _MOST_NOTES else notes
    with contextlib.suppress(OSError):
        write_text(_notes_path(), sealed_json(kept))
    _new.clear()


def _used_imports(tree: ast.Module) -> Iterator[str]:
    """Yield the modules from which the code uses a name, wherever they are imported."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) in used:
                    yield from (node.module, f"{node.module}.{alias.name}")


def _without_paths(tree: ast.Module) -> ast.Module:
    """Leave out what this project's own modules are called, and imports of what is not used.

    Of an import under another name, ``from module import a as b``, that b is a is kept: what the
    code calls b would otherwise be told by nothing.
    """
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = (
                _renamed(statement) if _own_import(statement) else statement for statement in body
            )
            body[:] = [statement for statement in kept if statement] or [ast.Pass()]
    return tree


def _renamed(statement: ast.Import | ast.ImportFrom) -> ast.ImportFrom | None:
    """Return what an import gives another name, without the module that it is from, if anything."""
    names = [name for name in statement.names if name.asname not in (None, name.name)]
    return ast.ImportFrom("", names, 0) if names else None


def _own_import(node: ast.AST) -> TypeGuard[ast.Import | ast.ImportFrom]:
    if isinstance(node, ast.Import):
        return all(alias.name.partition(".")[0] in PACKAGES for alias in node.names)
    return isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in PACKAGES
