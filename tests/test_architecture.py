"""The structure of the code itself: imports point one way, and heavy ones wait.

Every test looks at every file and lists all offenders.
"""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest
import yaml

from tests.harness import CONF, EXTENSIONS, ROOT, TINY, listed, options, python

PACKAGES = ("fairbench", "datasets", "algorithms")
COMPONENTS = "fairbench.components."
SOURCES = [
    path
    for folder in (*(ROOT / name for name in PACKAGES), *EXTENSIONS)
    for path in sorted(folder.rglob("*.py"))
]
LIBRARY = [path for path in SOURCES if path.is_relative_to(ROOT / "fairbench")]
HEAVY = {"torch", "mlflow", "jax", "numpyro", "xgboost", "sklearn", "fairlearn", "matplotlib"}
MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
# A package may import only those before it in this list.
LAYERS = re.findall(r"(?m)^\| `(\w+)` \| ", MAP.partition("## What happens")[0])


def module(path):
    """Return the name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[2:] if parts[0] == "extensions" else parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return f"{COMPONENTS}{name}" if parts[0] in PACKAGES[1:] else name


@cache
def tree(path):
    return ast.parse(path.read_text())


def executed(node):
    """Yield what of a module runs when it is imported: no function, nor what is for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from executed(child)


@cache
def imports(path, *, top_level=False):
    """Return the modules and names a file imports, or only those when it is itself imported."""
    names = []
    nodes = executed(tree(path)) if top_level else ast.walk(tree(path))
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(names)


def roots(path, **options):
    """Return the first word of every module that a file imports."""
    return {name.split(".")[0] for name in imports(path, **options)}


def package(name):
    """Return the package of the library that a module is in, None for other modules."""
    parts = name.split(".")
    return parts[1] if parts[0] == "fairbench" and parts[1:2] and parts[1] in LAYERS else None


def kinds(path):
    """Return which kinds of components a file imports: ``datasets``, ``algorithms``, ``papers``."""
    names = (name for name in imports(path) if name.startswith(COMPONENTS))
    return {name.removeprefix(COMPONENTS).split(".")[0] for name in names} & {*PACKAGES, "papers"}


def test_components_are_imported_by_their_own_kind_and_by_one_name_alone():
    """The library imports none, data sets no algorithms, nothing the papers."""
    offenders = set()
    for path in SOURCES:
        own = module(path).removeprefix(COMPONENTS).split(".")[0]
        allowed = {own} if own in ("fairbench", *PACKAGES) else {*PACKAGES}
        # As top-level packages they might be somebody else's.
        if kinds(path) - allowed or roots(path) & {"datasets", "algorithms"}:
            offenders.add(module(path))
    assert not offenders


def test_extensions_are_known_by_what_they_add_alone():
    """Nothing of the library, of data sets or algorithms imports one, nor does another one."""
    names = {folder.name for folder in EXTENSIONS}
    assert names
    for path in SOURCES:
        assert not (roots(path) & names) - {module(path).split(".")[0]}, module(path)


def test_imports_point_downwards():
    upwards = [
        (module(path), name)
        for path in LIBRARY
        for name in imports(path)
        if (mine := package(module(path)))
        and (other := package(name))
        and LAYERS.index(other) > LAYERS.index(mine)
    ]
    assert not upwards


def test_no_modules_import_each_other_in_a_circle():
    """Neither when they are imported nor later, within functions, nor for types."""
    sources = [*SOURCES, *sorted((ROOT / "papers").rglob("*.py"))]
    modules = {module(path) for path in sources}
    graph = {}
    for path in sources:
        names = imports(path)
        own = {name if name in modules else name.rpartition(".")[0] for name in names} & modules
        graph[module(path)] = own - {module(path)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError(f"a circle: {circle.args[1]}") from None


def test_the_map_names_every_package_and_only_files_that_exist():
    packages = {path.parent.name for path in (ROOT / "fairbench").glob("*/__init__.py")}
    assert packages == {*LAYERS}
    folders = "algorithms|benchmarks|conf|datasets|docs|extensions|fairbench|papers|tests"
    named = set(re.findall(rf"\b(?:{folders})/[\w/]*[\w.]+", MAP))
    assert len(named) > 50
    assert not sorted(name for name in named if not (ROOT / name.rstrip(".")).exists())


def test_every_package_says_what_is_in_it_what_is_not_and_where_to_begin():
    for name in LAYERS:
        text = ast.get_docstring(tree(ROOT / "fairbench" / name / "__init__.py"))
        assert len(re.findall(r"[.:;](?=\s|$)", text)) >= 3, name
        assert "Begin with" in text, name


def targets(group, names):
    """Return the modules that choices of a group name."""
    files = [CONF / group / f"{name}.yaml" for name in names]
    return {yaml.safe_load(file.read_text())["_target_"].rpartition(".")[0] for file in files}


def test_heavy_packages_are_imported_where_they_are_used():
    heavy = {}
    own = {  # of a contributor's own components, which are slow to list until they wait, too
        f"{COMPONENTS}{target}"
        for group in ("dataset", "learner", "intervention", "method")
        for target in targets(group, {*options(group)} - {*listed(group)})
    }
    for path in SOURCES:
        # Estimators are imported by the learner that makes one, when it makes it.
        is_estimator = module(path).startswith(f"{COMPONENTS}algorithms.estimators.")
        if not (is_estimator or module(path) in own):
            heavy[module(path)] = roots(path, top_level=True) & HEAVY
    assert not {name: result for name, result in heavy.items() if result}


def private(name):
    """Return whether a dotted name of a dependency has a part that is not for its users."""
    parts = name.split(".")
    return parts[0] not in (*PACKAGES, *(folder.name for folder in EXTENSIONS)) and any(
        part in ("_internal", "externals") or (part.startswith("_") and not part.startswith("__"))
        for part in parts
    )


def test_only_public_parts_of_dependencies_are_imported():
    offenders = {module(path) for path in SOURCES if any(map(private, imports(path)))}
    offenders |= {module(path) for path in SOURCES if "unittest" in roots(path)}
    assert not offenders


def test_one_package_knows_the_folder_of_runs():
    names = re.compile(r"/ \"runs\"|\"runs/\\*")
    found = {package(module(path)) for path in LIBRARY if names.search(path.read_text())}
    assert found == {"results"}


# Words of other senses: a package, and what stands for nothing done and nothing compared with.
_WORDS = {"none", "random", "baseline", "sklearn"}


def test_the_library_names_no_component_of_algorithms():
    folders = (ROOT / "conf" / group for group in ("learner", "intervention", "method"))
    names = {path.stem for folder in folders for path in folder.glob("*.yaml")} - _WORDS
    for path in LIBRARY:
        texts = {node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)}
        assert not texts & names, f"{module(path)} names a component: it belongs into conf/"


COMMAND = "from fairbench.cli.main import main; assert main({}) == 0"
RUN = ["run", *TINY, "dataset.n_samples=200"]
EVALUATED = "[0, 1] * 9, [0, 1] * 9, sensitive_features=list('ab') * 9"
LIBRARIES = {*HEAVY, "numpy", "pandas", "scipy", "pyarrow", "hydra", "rich"}
# What is imported when it is first asked for.
WAITS = {
    "import fairbench": LIBRARIES,
    f"import fairbench; fairbench.evaluate({EVALUATED})": {*HEAVY, "hydra"},
    "import fairbench.cli.pytest_plugin": LIBRARIES,
    "import fairbench.tracking.model_evaluator": {"mlflow"},
    COMMAND.format(["--help"]): {*LIBRARIES, "yaml"},
    COMMAND.format(["run", "--help"]): {"numpy", "pandas", "sklearn", "xgboost", "mlflow", "torch"},
    COMMAND.format(RUN): {"mlflow", "torch", "jax", "fairlearn"},
    COMMAND.format(["store", "ls", "results=."]): LIBRARIES - {"rich"},
    COMMAND.format(["completion", "bash", "line=fairbench compare rho_per=m"]): LIBRARIES,
}


@pytest.mark.parametrize("code", WAITS)
def test_what_is_not_needed_is_not_loaded(code, tmp_path):
    report = "; import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = python("-c", code + report, cwd=tmp_path, PYTHONPATH=str(ROOT)).stdout
    assert not {*loaded.splitlines()[-1].split()} & WAITS[code]


@pytest.mark.thorough
def test_a_public_class_of_the_library_has_a_name_of_its_own():
    added = [path for path in SOURCES if path.is_relative_to(ROOT / "extensions")]
    nodes = [node for path in (*LIBRARY, *added) for node in tree(path).body]
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert not [name for name, count in names.items() if count > 1 and name[0] != "_"]
