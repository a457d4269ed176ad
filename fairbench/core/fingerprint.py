"""Fingerprints: of configurations, of the code a result depends on, of the packages behind it."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib.metadata
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

from fairbench.core.files import sha256, unsealed_json, write_cache
from fairbench.core.text import digest

_DECLARATIONS = ("Capabilities", "Metric")
_SENTENCES = ("needs", "advice", "group_at_prediction")  # of declarations, for people to read
_REFUSALS = ("UserError", "DataError", "IncompatibleError", "unknown_name")
_GUARD = "guarded"  # what refuses a change of what is given, and computes nothing


class _Reduce(ast.NodeTransformer):
    """Drops what cannot change a result: what people read, and what type checkers read."""

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

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        """Leave out a guard around what computes."""
        self.generic_visit(node)
        what = node.items[0].context_expr
        guard = isinstance(what, ast.Call) and ast.unparse(what.func) == _GUARD
        return node.body if guard else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Keep that an error is made, and leave out what it says."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _REFUSALS or name.endswith(("Error", "Exception")):
            return ast.Call(node.func, [], [])
        if name in _DECLARATIONS:
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in _SENTENCES]
        return self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        node.elts.sort(key=ast.dump)
        return self.generic_visit(node)

    def _without_docstring(self, node: Any) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    visit_Module = visit_ClassDef = _without_docstring


ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fairbench", "datasets", "algorithms", "papers")
# What refuses input, stores, or declares what a component looks like, computes nothing.
_ASIDE = (
    "fairbench.core.errors",
    "fairbench.core.files",
    "fairbench.core.fingerprint",
    "fairbench.core.memory",
    "fairbench.core.options",
    "fairbench.core.processes",
    "fairbench.experiments.contracts",
    "fairbench.results.tables",
)


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


ALL, RUN, IMPORTS = "*", "", "import"  # of a module: everything, what runs, imports of others


@cache
def code_digest(modules: tuple[str, ...]) -> str:
    """Return a hash of what `modules`, and all they use from this project, compute.

    It is made once a process: what is imported is not what a file says that is changed meanwhile.
    Of ``module:name`` one definition counts, and what it uses.

    What is hashed are the syntax trees of definitions, without docstrings, annotations, layout and
    messages of errors, and without the names of modules: rewording code, or moving it to another
    module, changes nothing. Of `modules` all definitions count; of others those that are used, and
    what runs when they are imported. Package ``__init__`` files, which here hold nothing that
    computes, are left out.
    """
    seen: set[tuple[str, str]] = set()
    digests: set[str] = set()
    asked = (module.partition(":") for module in modules)
    waiting = [(module, name or ALL) for module, _, name in asked]
    while waiting:
        module, name = place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        parts = _parts_of(module)
        if parts is None:
            # Of a package a module was imported, and of another project nothing counts.
            waiting += [(f"{module}.{name}", ALL)] if name not in (ALL, RUN) else []
            continue
        whole = [part for part in parts if parts[part][0] or part == RUN]
        names = whole if name == ALL else [name, RUN]
        for part_digest, used in (parts[part] for part in names if part in parts):
            digests.add(part_digest)
            waiting += [(user or module, what) for user, what in used]
    _note_modules()
    return digest(sorted(digests - {""}))


@cache
def _parts_of(module: str) -> Mapping[str, Sequence[Any]] | None:
    """Return what a module of this project defines, by name; None of others."""
    package, _, inner_name = module.partition(".")
    if package not in PACKAGES or not inner_name or module in _ASIDE:
        return None
    path = _source_of(module)
    if path is None:
        return None
    source = path.read_bytes()
    key = sha256(source)
    notes = _noted(_notes_path())
    if key not in notes:
        notes[key] = _new[key] = _parts(_Reduce().visit(ast.parse(source)))
    return notes[key]


def _parts(tree: ast.Module) -> dict[str, Any]:
    """Return the digest of each definition of a module, and the modules and names that it uses.

    The name of this very module is left out. A name that is imported has no digest.
    """
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    foreign = {
        alias.asname or alias.name.partition(".")[0]: ast.dump(node)
        for node in imports
        if not _own_import(node)
        for alias in node.names
    }
    own = [*_own_imports(imports)]
    names = {here: (module, name) for here, module, name in own if here}
    defined: dict[str, list[ast.stmt]] = {RUN: []}
    for node in tree.body:
        for name in _defined_by(node):
            defined.setdefault(name, []).append(node)
    known = {**names, **{name: ("", name) for name in defined if name != RUN}}
    parts = {name: _part(nodes, known, foreign) for name, nodes in defined.items()}
    # A decorator of ours may keep what it decorates, to be found by another name.
    decorated = {
        name
        for name, nodes in defined.items()
        for node in nodes
        for decorator in getattr(node, "decorator_list", [])
        if known.keys() & {n.id for n in ast.walk(decorator) if isinstance(n, ast.Name)}
    }
    parts[RUN][1] += [("", name) for name in sorted(decorated)]
    parts[RUN][1] += [(module, name) for _, module, name in own if name == ALL]
    others = sorted({ast.dump(node) for node in imports if not _own_import(node)})
    passed_on = {name: ["", [place]] for name, place in names.items() if name not in parts}
    return {**passed_on, **parts, IMPORTS: [digest(others) if others else "", []]}


def _defined_by(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines, `RUN` where it does anything else."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            parts = [part for target in targets for part in getattr(target, "elts", [target])]
            plain = [part.id for part in parts if isinstance(part, ast.Name)]
            return plain if len(plain) == len(parts) else [*plain, RUN]
        case ast.Import() | ast.ImportFrom():
            return []
    return [RUN]


def _own_imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str, str]]:
    """Yield what is imported from this project: its name here, if any, its module, its name there.

    Of a module that is imported itself the latter is `ALL`.
    """
    for node in filter(_own_import, nodes):
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                yield alias.asname or alias.name, str(node.module), alias.name
            else:
                yield alias.asname or "", alias.name, ALL


def _part(
    nodes: Sequence[ast.stmt], known: Mapping[str, tuple[str, str]], foreign: Mapping[str, str]
) -> list[Any]:
    """Return the digest of a definition, and what it uses."""
    walked = [inner for node in nodes for inner in ast.walk(node)]
    words = {inner.id for inner in walked if isinstance(inner, ast.Name)}
    local = [*_own_imports(walked)]
    names = {**known, **{here: (module, name) for here, module, name in local if here}}
    used = {names[word] for word in words if word in names}
    used |= {(module, name) for _, module, name in local if name == ALL}
    renamed = sorted(
        (word, names[word][1]) for word in words if word in names and names[word][1] != word
    )
    others = sorted({foreign[word] for word in words if word in foreign})
    trees = [ast.dump(_without_paths(node)) for node in nodes]
    return [digest([trees, renamed, others]) if nodes else "", sorted(used)]


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
_new: dict[str, dict[str, Any]] = {}
_MOST_NOTES = 2000


def _own_cache() -> Path:
    """Return the user's own folder of what can be computed again."""
    if folder := os.environ.get("FAIRBENCH_CACHE"):
        return Path(folder)
    if (ROOT / "requirements.lock").is_file():  # a checkout
        return ROOT / "data" / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairbench"


@cache
def _notes_path() -> Path:
    """Return the file of notes, which are good for this very code and version of Python."""
    name = digest([sha256(Path(__file__).read_bytes()), sys.version, PACKAGES], 12)
    return _own_cache() / f"code-{name}.json"


@lru_cache(maxsize=1)
def _noted(path: Path) -> dict[str, dict[str, Any]]:
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
    write_cache(_notes_path(), kept)
    _new.clear()


def _without_paths(tree: ast.stmt) -> ast.stmt:
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
