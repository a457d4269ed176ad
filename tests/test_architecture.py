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
    f"fairbench.report.{name}"
    for name in (
        "figures",
        "across",
        "comparison_figure",
        "parity_figure",
        "tradeoff_figure",
        "uncertainty_figures",
    )
]
# Each layer may import its own and the ones above it in this list.
LAYERS = (
    ("errors", "version"),
    ("checks", "seeds", "confusion", "data", "fingerprint", "card", "group_names"),
    ("metrics", "splits", "half_splits", "encoding", "download", "posterior", "tabular"),
    ("contracts", "predictions", "store", "delimited"),
    ("study",),
    ("variants", "compute"),
    ("evaluation", "cells"),
    ("assessment",),
    ("evaluator", "runs", "dataset_cache"),
    ("run_evaluation", "build"),
    ("report", "audit", "tracking"),
    ("pipeline",),
    ("command",),
    ("stored_runs", "comparison", "tradeoff", "housekeeping"),
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


def layer(name):
    parts = name.split(".")
    if parts[0] != "fairbench" or len(parts) < 2:
        return None
    return next((i for i, names in enumerate(LAYERS) if parts[1] in names), None)


@pytest.mark.parametrize("path", sorted((ROOT / "fairbench").rglob("*.py")), ids=module)
def test_imports_point_downwards(path):
    mine = layer(module(path))
    if path.stem == "__init__":
        return
    assert mine is not None, f"{module(path)} has no place in LAYERS"
    assert not [m for m in imports(path, top_level=True) if (layer(m) or 0) > mine]


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
