"""Verifying a stored run: that its cells are whole, and that some computed again are the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf, open_dict

from fairbench.core.errors import UserError, unknown_name
from fairbench.core.safe_open import is_folder
from fairbench.experiments import pipeline
from fairbench.experiments.compute import compute
from fairbench.experiments.configuration import COMPONENTS
from fairbench.experiments.study import Cell
from fairbench.results.cells import Columns, CorruptCellError, Store
from fairbench.results.run_writer import machine
from fairbench.results.runs import LAST, VERIFIED, Run, damaged_figures, damaged_files


def recompose(run: Run, conf: Path) -> DictConfig:
    """Return the configuration of a stored run, whose names stand for the files in `conf`.

    What is stored may come from a stranger: it chooses components of this project by their names
    and sets options of theirs, and nothing else. No text of it is code, a path to code, or an
    interpolation.

    Raises
    ------
    UserError : it names what is no component, or holds what no component is configured with.
    """
    config_path = run.path / LAST
    chosen = {group: _component(run.config, group, conf, config_path) for group in COMPONENTS}
    words = [f"{group}={name}" for group, (name, _) in chosen.items()]
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        cfg = compose("config", [*words, f"seed={run.seed}"], return_hydra_config=True)
    with open_dict(cfg):
        for group, (_, options) in chosen.items():
            cfg[group] = OmegaConf.merge(cfg[group], options)
        cfg.protect = _inert(run.config.get("protect"), f"{config_path}: protect")
        cfg.results = str(run.results)
        cfg.data.verify = run.verified
        cfg.purpose = run.purpose
    return cfg


def _component(
    stored: Mapping[str, Any], group: str, conf: Path, config_path: Path
) -> tuple[str, dict[str, Any]]:
    """Return the name and the options that a stored configuration has for a group."""
    component = stored.get(group)
    if not isinstance(component, dict) or not isinstance(component.get("name"), str):
        raise UserError(
            f"{config_path}: {group} names no component; the run is not one of this project"
        )
    valid = {path.stem for path in (conf / group).glob("*.yaml")}
    if component["name"] not in valid:
        raise unknown_name(f"{group} in {config_path}", str(component["name"]), valid)
    options = {name: value for name, value in component.items() if name not in ("name", VERIFIED)}
    _inert(options, f"{config_path}: {group}")
    return str(component["name"]), options


def _inert(value: Any, where: str) -> Any:
    """Return a stored value that is plain data.

    Raises
    ------
    UserError : it holds an interpolation, or an option that tells Hydra what to call.
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if str(name).startswith("_") or "${" in str(name):
                raise UserError(f"{where} has the option {str(name)!r}, which no component has")
            _inert(inner, f"{where}.{name}")
    elif isinstance(value, list):
        for inner in value:
            _inert(inner, where)
    elif isinstance(value, str) and "${" in value:
        raise UserError(f"{where} is {value!r}: a stored value refers to nothing else")
    return value


# Between CPU types: of an output's largest value, from other orders of summation.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Difference:
    """How a recomputed cell differs from the stored one; `largest` is infinite for a shape."""

    cell: str
    what: str
    largest: float


def mend(run: Run, conf: Path, draw: pipeline.DrawFigures | None = None) -> list[str]:
    """Make damaged files of a run again from its cells; return their names.

    Figures that there are, are drawn again.

    Raises
    ------
    UserError : the code, or a component's defaults, are no longer those that the run was made with.
    """
    damaged = damaged_files(run)
    figures = is_folder(run.figures)
    if figures:
        damaged += [f"figures/{name}" for name in damaged_figures(run)]
    if damaged:
        planned = pipeline.prepare(recompose(run, conf))
        if (planned.id, planned.fingerprint) != (run.id, run.environment["fingerprint"]):
            raise UserError(
                f"{run.path} is damaged ({', '.join(damaged)}), and other code made it: repeat its "
                "command, which makes it again with the code as it is"
            )
        pipeline.finish(planned, draw=draw if figures else None)
    return damaged


def evaluate_again(run: Run, conf: Path, draw: pipeline.DrawFigures | None = None) -> bool:
    """Evaluate a stored run from its cells if the evaluation's code has changed; fit nothing.

    Figures that there are, are drawn again.

    Returns
    -------
    bool
        Whether it was: a run that would be the same is left as it is.

    Raises
    ------
    UserError : its cells are not in the store as they would be fitted now, or its configuration
        means another run now.
    """
    planned = pipeline.prepare(recompose(run, conf))
    if planned.id == run.id and planned.finished:
        return False
    missing = [cell for cell in planned.cells if not planned.store.intact(cell.id)]
    if planned.id != run.id or missing:
        why = f"{len(missing)} of {len(planned.cells)} cells are not in the store"
        if planned.id != run.id:
            why = "its configuration means another run with the code as it is"
        raise UserError(f"run {run.id} ({run.name}): {why}; repeat its command")
    pipeline.finish(planned, draw=draw if run.figures.is_dir() else None)
    return True


def damaged_cells(run: Run, store: Store) -> list[str]:
    """Return the fault of each cell of a run that is missing or not as it was written."""
    problems = []
    for cell in run.cells():
        try:
            store.read(cell)
        except CorruptCellError as error:
            problems.append(str(error))
    return problems


def sample(run: Run, conf: Path, cells: int, seed: int = 0) -> list[Cell]:
    """Return some cells of a run, drawn at random, each under the id it is stored with.

    Raises
    ------
    UserError : the stored configuration makes another number of cells than the run has.
    """
    planned = pipeline.prepare(recompose(run, conf))
    now = list({cell.id: cell for cell in planned.cells}.values())
    stored = run.cells()
    if len(now) != len(stored):
        raise UserError(
            f"run {run.id} has {len(stored)} cells, and its configuration makes "
            f"{len(now)} with the code as it is: run it again"
        )
    drawn = np.random.default_rng(seed).choice(len(now), min(cells, len(now)), replace=False)
    return [Cell(now[i].study, now[i].fold, stored[i], now[i].variant) for i in sorted(drawn)]


def difference(cell: Cell, store: Store) -> Difference | None:
    """Compute a cell again and return how it differs from the stored one, None if in no bit."""
    stored = store.read(cell.id).columns
    fresh, _ = compute(cell.study, cell.fold)
    return compare(cell.id, stored, fresh)


def compare(cell: str, stored: Columns, fresh: Columns) -> Difference | None:
    """Return how columns differ from the stored ones, relative to their largest value."""
    shapes = [_shapes(columns) for columns in (stored, fresh)]
    if shapes[0] != shapes[1]:
        return Difference(cell, f"columns {shapes[1]}, stored {shapes[0]}", float("inf"))
    changed = [name for name in stored if stored[name].tobytes() != fresh[name].tobytes()]
    if not changed:
        return None
    largest = max(_largest(stored[name], fresh[name]) for name in changed)
    return Difference(cell, f"{len(changed)} of {len(stored)} columns ({changed[0]} ...)", largest)


def _shapes(columns: Columns) -> dict[str, str]:
    return {name: f"{values.dtype}{list(values.shape)}" for name, values in columns.items()}


def _largest(stored: NDArray[Any], fresh: NDArray[Any]) -> float:
    """Return the largest difference as a share of the largest stored value; NaN equals NaN."""
    before, after = stored.astype(np.float64), fresh.astype(np.float64)
    if not np.array_equal(np.isfinite(before), np.isfinite(after)):
        return float("inf")
    finite = np.isfinite(before)
    if not finite.any():
        return 0.0
    scale = max(np.abs(before[finite]).max(), np.finfo(np.float64).tiny)
    return float(np.abs(before - after)[finite].max() / scale)


def changes_since(run: Run, cell: Cell) -> dict[str, str]:
    """Return the differences between the machine of a run and this one: CPU, commit, versions."""
    recorded = run.environment
    now = machine()
    versions = cell.study.identity()["versions"]
    pairs = {
        "CPU": (recorded["cpu"], now["cpu"]),
        "commit": (recorded.get("git_commit"), now.get("git_commit")),
        **{name: (version, versions.get(name)) for name, version in recorded["versions"].items()},
    }
    return {name: f"{was} then, {is_} now" for name, (was, is_) in pairs.items() if was != is_}
