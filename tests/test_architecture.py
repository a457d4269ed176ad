"""The structure of the code itself: imports point one way, heavy ones wait, files stay small."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("fairbench", "datasets", "algorithms")
SOURCES = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
HEAVY = ("torch", "mlflow", "jax", "numpyro", "xgboost", "sklearn", "fairlearn", "matplotlib")
# Imported only where a figure is drawn.
FIGURES = [
    f"fairbench.reporting.{name}"
    for name in (
        "figures",
        "across",
        "comparison_figure",
        "parity_figure",
        "tradeoff_figure",
        "uncertainty_figures",
    )
]
# A package may import only those before it in this list.
LAYERS = (
    "core",
    "data",
    "metrics",
    "inference",
    "evaluation",
    "results",
    "experiments",
    "comparison",
    "audit",
    "reporting",
    "tracking",
    "cli",
)


def module(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(path, *, top_level=False):
    """Yield the modules a file imports, anywhere in it or at its top level only."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", SOURCES, ids=module)
def test_library_does_not_import_what_is_plugged_into_it(path):
    if module(path).startswith("fairbench."):
        assert not [m for m in imports(path) if m.split(".")[0] in ("datasets", "algorithms")]


@pytest.mark.parametrize("path", SOURCES, ids=module)
def test_datasets_and_algorithms_do_not_know_each_other(path):
    other = {"datasets": "algorithms", "algorithms": "datasets"}.get(module(path).split(".")[0])
    assert other not in {m.split(".")[0] for m in imports(path)}


def package(name):
    """Return the package of the library that a module is in, None for other modules."""
    parts = name.split(".")
    return parts[1] if parts[0] == "fairbench" and len(parts) > 1 else None


LIBRARY = sorted((ROOT / "fairbench").rglob("*.py"))


@pytest.mark.parametrize("path", [p for p in LIBRARY if p.parent.name != "fairbench"], ids=module)
def test_imports_point_downwards(path):
    mine = LAYERS.index(package(module(path)))
    others = {package(name) for name in imports(path)} - {None}
    assert not [name for name in others if LAYERS.index(name) > mine]


def floors():
    """Return how many packages lie on the longest chain of imports that ends in each package."""
    below = {name: set() for name in LAYERS}
    for path in LIBRARY:
        mine = package(module(path))
        if mine in below:
            below[mine] |= {package(name) for name in imports(path)} & set(LAYERS) - {mine}
    floor = {}
    for name in LAYERS:
        floor[name] = 1 + max((floor[other] for other in below[name]), default=0)
    return floor


def test_the_library_has_few_floors_files_and_modules_in_its_root():
    assert max(floors().values()) <= 8  # the scripts above them are the ninth
    assert len([p for p in (ROOT / "fairbench").glob("*.py") if p.stem != "__init__"]) <= 3
    assert len(LIBRARY) <= 236


@pytest.mark.parametrize("path", SOURCES, ids=module)
def test_heavy_packages_are_imported_where_they_are_used(path):
    heavy = {m.split(".")[0] for m in imports(path, top_level=True)} & set(HEAVY)
    if module(path) in FIGURES:
        heavy.discard("matplotlib")
    # Estimators are imported by the learner that makes one, when it makes it.
    assert not heavy or module(path).startswith("algorithms.estimators.")


@pytest.mark.parametrize("path", [*SOURCES, *(ROOT / "tests").rglob("*.py")], ids=module)
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 400


def loaded_by(code):
    """Return the top-level modules that running `code` loads."""
    report = "; import sys; print(' '.join({m.split('.')[0] for m in sys.modules}))"
    output = subprocess.run(
        [sys.executable, "-c", code + report], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(output.stdout.splitlines()[-1].split())


def test_evaluating_needs_no_training_package():
    arrays = "[0, 1] * 9, [0, 1] * 9, sensitive_features=list('ab') * 9"
    code = f"import fairbench; fairbench.evaluate({arrays})"
    assert not loaded_by(code) & {*HEAVY, "hydra", "pyarrow.parquet"}


def test_evaluating_a_score_matches_by_hand():
    """The one-line import path of the README works, with a value known by hand."""
    import fairbench

    table = fairbench.evaluate([0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=list("aabb"))
    rates = table.query("metric == 'selection_rate' and attribute == 'group'").set_index("group")
    assert rates["value"].to_dict() == {"a": 0.5, "b": 0.0}
