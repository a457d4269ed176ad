"""Small result folders for the tests of the page: real runs, and copies made from them."""

import shutil
from pathlib import Path

import pandas as pd

from fairbench.experiments.execute import carry_out
from fairbench.reporting.page.write import Places
from fairbench.results.run_writer import seal_run
from fairbench.results.runs import read_environment
from tests.harness import CONF, ROOT, configuration

_GROUPS = ("dataset", "intervention", "method", "learner")
PUBLISHED = ROOT / "papers"


def places(results: Path) -> Places:
    """Return a results folder with this checkout's configurations and published numbers."""
    return Places(results, CONF, PUBLISHED)


def finish(results: Path, *overrides: str) -> Path:
    """Finish a small run and return its folder, with choices as the command line records them."""
    cfg = configuration("dataset.n_samples=300", *overrides, results=results)
    folder = carry_out(cfg).prepared.folder
    given = dict(override.split("=", 1) for override in overrides)
    environment = folder.environment
    environment["choices"] |= {"split": "holdout", "evaluator": "default"}
    environment["choices"] |= {group: given[group] for group in _GROUPS if group in given}
    seal_run(folder.path, environment)
    return folder.path


def copy(folder: Path, name: str, *, config: dict[str, object], rows=None, **choices: str) -> Path:
    """Copy a run under another id, with some of its configuration, choices and rows changed."""
    target = folder.with_name(name)
    shutil.copytree(folder, target)
    environment = read_environment(target)
    stored = environment["config"]
    for key, value in config.items():
        group, _, option = key.partition(".")
        stored[group] = {**stored[group], option: value} if option else value
    environment["choices"] |= choices
    if rows is not None:
        metrics = pd.read_parquet(target / "metrics.parquet")
        rows(metrics).to_parquet(target / "metrics.parquet", index=False)
    seal_run(target, environment)
    return target
