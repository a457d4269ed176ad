"""Verifying a stored run: that its cells are whole, and that some computed again are the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from hydra import compose, initialize_config_dir
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf, open_dict

from fairbench.core.errors import UserError
from fairbench.core.files import entry, is_folder
from fairbench.core.options import hydra_word
from fairbench.core.processes import GivenUpError, failure, in_time
from fairbench.evaluation.table import COSTS
from fairbench.experiments import pipeline
from fairbench.experiments.compute import compute
from fairbench.experiments.configuration import COMPONENTS, Presets, check_files_named
from fairbench.experiments.contracts import Cell
from fairbench.experiments.pipeline import PlannedRun
from fairbench.results.record import FILES, VERIFIED
from fairbench.results.runs import (
    Columns,
    CorruptCellError,
    Run,
    Store,
    damaged_figures,
    damaged_files,
    machine,
)
from fairbench.results.tables import damaged_people, damaged_rows, people_path

T = TypeVar("T")

# Memory that computing from a record may take, beside a multiple of what the run has stored, and
# seconds: what a stranger asks for may have no end.
_LEAST_BYTES, _TIMES_BYTES = 1 << 30, 100
_LEAST_S, _S_PER_MB, _TIMES_S = 120.0, 10.0, 50.0
_FEW = 1000  # splits, variants or rows, which are built whatever is stored


def recompose(run: Run, conf: Path, typed: Mapping[str, str]) -> DictConfig:
    """Return the configuration of a stored run, whose names stand for the files in `conf`.

    What is stored may come from a stranger: it chooses components of this project by their names
    and sets options of theirs, to sizes that fit what is stored, and nothing else.

    Parameters
    ----------
    typed : options of the command line, which name the files that are read.

    Raises
    ------
    UserError : it does anything else.
    """
    components = Presets(conf).stored_options(run)
    if missing := [group for group in COMPONENTS if group not in components]:
        raise UserError(f"run {run.id} has no {missing[0]}: an earlier version made it")
    check_files_named(run, COMPONENTS, typed)
    _check_sizes(run, components)
    words = [f"{group}={hydra_word(options['name'])}" for group, options in components.items()]
    with initialize_config_dir(str(conf.resolve()), version_base="1.3"):
        cfg = compose("config", [*words, f"seed={run.seed}"], return_hydra_config=True)
    with open_dict(cfg):
        for group, options in components.items():
            own = {k: value for k, value in options.items() if k not in ("name", VERIFIED)}
            cfg[group] = OmegaConf.merge(cfg[group], own)
        cfg.protect = run.config.get("protect")
        cfg.results = str(run.results)
        cfg.data.verify = run.verified
        cfg.purpose = run.purpose
    return cfg


def _check_sizes(run: Run, components: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse a configuration that asks for more splits or rows than the run has stored.

    Raises
    ------
    UserError : it does.
    """
    cells = len(run.cells())
    split, varied, data = (components[name] for name in ("split", "consistency", "dataset"))
    sizes = {
        "split.repeats": (split.get("repeats"), cells, "cells"),
        "split.n_folds": (split.get("n_folds"), cells, "cells"),
        "consistency.replicates": (varied.get("replicates"), cells, "cells"),
        "consistency.values": (len(varied.get("values") or ()), cells, "cells"),
    }
    with contextlib.suppress(UserError):  # of people that were left out or are damaged
        sizes["dataset.n_samples"] = data.get("n_samples"), len(run.people()), "rows"
    for option, (size, stored, what) in sizes.items():
        # Some hundreds cost little, and variants that read the same fits share their cells.
        if isinstance(size, int) and size > max(stored, _FEW):
            raise UserError(f"run {run.id} has {option}={size}, and fewer {what} stored: {stored}")


def _within_bounds(run: Run, work: Callable[[], T], seconds: float = 0.0) -> T:
    """Return what work returns, unless it takes much more than what the run has stored explains.

    Parameters
    ----------
    seconds : how long it took when the run was made, as that is stored.

    Raises
    ------
    UserError : it takes too much time or memory, or a component fails.
    """
    store = Store(run.results)
    paths = [people_path(run.results, run.environment["data"]), *(run.path / n for n in FILES)]
    paths += [store.cell_path(cell) for cell in run.cells()]
    stored = sum(about.st_size for path in paths if (about := entry(path)))
    try:
        return in_time(
            lambda _: work(),
            idle_s=inf,
            total_s=_LEAST_S + _S_PER_MB * stored / 1e6 + _TIMES_S * seconds,
            most_bytes=_LEAST_BYTES + _TIMES_BYTES * stored,
        )
    except GivenUpError as error:
        raise UserError(f"run {run.id} cannot be computed again: {error}") from error
    except Exception as error:  # many components refuse an option only when they are fitted
        reason, trace = failure(error)
        if not trace:
            raise
        raise UserError(f"run {run.id} cannot be computed again: {reason}") from error


# Between CPU types: of an output's largest value, from other orders of summation.
TOLERANCE = 1e-4


# How a recomputed cell differs from the stored one: its id, what differs, and by how much at most,
# as a share of the largest value; infinite for a shape.
Difference: TypeAlias = "tuple[str, str, float]"


def mend(
    run: Run, conf: Path, typed: Mapping[str, str], *, draw: pipeline.DrawFigures | None = None
) -> list[str]:
    """Make damaged files of a run again from its cells; return their paths.

    These are its own, the people and the rows that it shares with others, and figures that there
    are. `typed` is what `recompose` takes.

    Raises
    ------
    UserError : the code, or a component's defaults, are no longer those that the run was made with.
    """
    damaged = [run.path / name for name in damaged_files(run)]
    damaged += damaged_people(run.results, run.environment["data"])
    damaged += damaged_rows(run.results, run.environment["rows"])
    figures = is_folder(run.figures)
    if figures:
        damaged += [run.figures / name for name in damaged_figures(run)]
    if damaged:
        planned = _prepared(run, conf, typed)
        if (planned.id, planned.fingerprint) != (run.id, run.environment["fingerprint"]):
            raise UserError(
                f"{', '.join(map(str, damaged))}: damaged, and other code made run {run.id}: "
                "repeat its command, which makes it again with the code as it is"
            )
        _within_bounds(run, lambda: pipeline.finish(planned, draw=draw if figures else None))
    return list(map(str, damaged))


def _prepared(run: Run, conf: Path, typed: Mapping[str, str]) -> PlannedRun:
    """Return the run of a stored configuration; no fit."""
    config = recompose(run, conf, typed)
    return _within_bounds(run, lambda: pipeline.prepare(config))


def evaluate_again(
    run: Run, conf: Path, typed: Mapping[str, str], *, draw: pipeline.DrawFigures | None = None
) -> bool:
    """Evaluate a stored run from its cells if the evaluation's code has changed; fit nothing.

    Figures that there are, are drawn again. `typed` is what `recompose` takes.

    Returns
    -------
    bool
        Whether it was: a run that would be the same is left as it is.

    Raises
    ------
    UserError : its cells are not in the store as they would be fitted now, or its configuration
        means another run now.
    """
    planned = _prepared(run, conf, typed)
    if planned.id == run.id and planned.finished:
        return False
    missing = [cell for cell in planned.cells if not planned.store.intact(cell.id)]
    if planned.id != run.id or missing:
        why = f"{len(missing)} of {len(planned.cells)} cells are not in the store"
        if planned.id != run.id:
            why = "its configuration means another run with the code as it is"
        raise UserError(f"run {run.id} ({run.name}): {why}; repeat its command")
    draw = draw if is_folder(run.figures) else None
    _within_bounds(run, lambda: pipeline.finish(planned, draw=draw))
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


def sample(
    run: Run, conf: Path, typed: Mapping[str, str], *, cells: int, seed: int = 0
) -> list[Cell]:
    """Return some cells of a run, drawn at random, each under the id it is stored with.

    `typed` is what `recompose` takes.

    Raises
    ------
    UserError : the stored configuration makes another number of cells than the run has.
    """
    planned = _prepared(run, conf, typed)
    now = list({cell.id: cell for cell in planned.cells}.values())
    stored = run.cells()
    if len(now) != len(stored):
        raise UserError(
            f"run {run.id} has {len(stored)} cells, and its configuration makes "
            f"{len(now)} with the code as it is: run it again"
        )
    drawn = np.random.default_rng(seed).choice(len(now), min(cells, len(now)), replace=False)
    return [Cell(now[i].study, now[i].fold, stored[i], now[i].variant) for i in sorted(drawn)]


def difference(run: Run, cell: Cell, store: Store) -> Difference | None:
    """Compute a cell again and return how it differs from the stored one, None if in no bit."""
    stored = store.read(cell.id)
    costs = [stored.notes.get(name) for name in COSTS]
    seconds = sum(cost for cost in costs if isinstance(cost, float) and isfinite(cost))
    fresh, _ = _within_bounds(run, lambda: compute(cell.study, cell.fold), seconds)
    return compare(cell.id, stored.columns, fresh)


def compare(cell: str, stored: Columns, fresh: Columns) -> Difference | None:
    """Return how columns differ from the stored ones, relative to their largest value."""
    shapes = [_shapes(columns) for columns in (stored, fresh)]
    if shapes[0] != shapes[1]:
        return cell, f"columns {shapes[1]}, stored {shapes[0]}", inf
    changed = [name for name in stored if stored[name].tobytes() != fresh[name].tobytes()]
    if not changed:
        return None
    largest = max(_largest(stored[name], fresh[name]) for name in changed)
    return cell, f"{len(changed)} of {len(stored)} columns ({changed[0]} ...)", largest


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
