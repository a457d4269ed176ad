"""The structure of the code itself: imports point one way, and heavy ones wait.

Every test looks at every file and lists all offenders.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest
import yaml

from tests.harness import CONF, ROOT, listed, options

PACKAGES = ("fairbench", "datasets", "algorithms")
COMPONENTS = "fairbench.components."
EXTENSIONS = sorted(ROOT.glob("extensions/*/fairbench_*"))
SOURCES = [
    path
    for folder in (*(ROOT / name for name in PACKAGES), *EXTENSIONS)
    for path in sorted(folder.rglob("*.py"))
]
LIBRARY = [path for path in SOURCES if path.is_relative_to(ROOT / "fairbench")]
HEAVY = {"torch", "mlflow", "jax", "numpyro", "xgboost", "sklearn", "fairlearn", "matplotlib"}
# A package may import only those before it in this list.
LAYERS = (
    "core",
    "components",
    "data",
    "metrics",
    "inference",
    "evaluation",
    "results",
    "experiments",
    "comparison",
    "reporting",
    "audits",
    "tracking",
    "cli",
)


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
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert not [name for name in LAYERS if f"\n| `{name}` | " not in page]
    folders = "algorithms|benchmarks|conf|datasets|docs|extensions|fairbench|papers|tests"
    named = set(re.findall(rf"\b(?:{folders})/[\w/]*[\w.]+", page))
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


def names_the_runs_folder(path):
    """Return whether a file has the expression `... / "runs"`, or a pattern such as "runs/*"."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and isinstance(node.right, ast.Constant)
        and node.right.value == "runs"
        or isinstance(node, ast.Constant)
        and str(node.value).startswith("runs/*")
        for node in ast.walk(tree(path))
    )


def test_one_package_knows_the_folder_of_runs():
    names = {module(path) for path in LIBRARY if names_the_runs_folder(path)}
    assert {package(name) for name in names} == {"results"}


# Words of other senses: a package, and what stands for nothing done and nothing compared with.
_WORDS = {"none", "random", "baseline", "sklearn"}


def test_the_library_names_no_component_of_algorithms():
    folders = (ROOT / "conf" / group for group in ("learner", "intervention", "method"))
    names = {path.stem for folder in folders for path in folder.glob("*.yaml")} - _WORDS
    for path in LIBRARY:
        texts = {node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)}
        assert not texts & names, f"{module(path)} names a component: it belongs into conf/"


def loaded_by(code):
    """Return the top-level modules that running `code` loads."""
    report = "; import sys; print(' '.join({m.split('.')[0] for m in sys.modules}))"
    output = subprocess.run(
        [sys.executable, "-c", code + report], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(output.stdout.splitlines()[-1].split())


@pytest.mark.thorough
def test_evaluating_needs_no_training_package():
    arrays = "[0, 1] * 9, [0, 1] * 9, sensitive_features=list('ab') * 9"
    code = f"import fairbench; fairbench.evaluate({arrays})"
    assert not loaded_by(code) & {*HEAVY, "hydra", "pyarrow.parquet"}


def test_evaluating_matches_by_hand():
    """The one-line import path of the README works, with a value known by hand."""
    import fairbench

    table = fairbench.evaluate([0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=list("aabb"))
    rates = table.query("metric == 'selection_rate' and attribute == 'group'").set_index("group")
    assert rates["value"].to_dict() == {"a": 0.5, "b": 0.0}


def test_the_library_is_imported_at_once():
    """What is public is imported when it is first asked for."""
    assert not loaded_by("import fairbench") & {*HEAVY, "numpy", "pandas", "scipy", "hydra"}


def test_listing_runs_imports_nothing_heavy(tmp_path):
    code = f"from fairbench.cli import main; main.main(['store', 'ls', 'results={tmp_path}'])"
    assert not loaded_by(code) & {*HEAVY, "numpy", "pandas", "scipy", "pyarrow", "hydra"}


@pytest.mark.thorough
def test_one_module_decides_what_is_small():
    """All kinds of audits, and gates, ask it; a mend there is one everywhere."""
    deciding = ROOT / "fairbench" / "evaluation" / "findings.py"
    found = set()
    for path in LIBRARY:
        for node in ast.walk(tree(path)):
            values = [getattr(node, "value", None)]
            if isinstance(node, ast.IfExp):
                values = [node.body, node.orelse]
            if not isinstance(node, ast.Return | ast.Assign | ast.keyword | ast.IfExp):
                continue
            if any(isinstance(value, ast.Name) and value.id == "SMALL" for value in values):
                found.add(path)
    assert found == {deciding}


def test_a_value_with_both_ends_of_its_interval_is_limits():
    named = set()
    for path in LIBRARY:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                fields = {
                    item.target.id
                    for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                }
                named |= {node.name} if fields & {"lower", "upper"} else set()
    assert named == {"Limits", "Finding", "GapInterval"}
