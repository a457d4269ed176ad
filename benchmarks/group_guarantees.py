"""Whether multicalibration helps calibrated models, and promised coverages hold in groups.

``python -m benchmarks.group_guarantees calibration [DATASET ...]`` fits three learners as they are
and with multicalibration, on ten splits, and prints paired differences with 95 % intervals.
``python -m benchmarks.group_guarantees coverage [DATASET ...]`` prints how often sets at 90 % hold
the label in each group of 200 test rows or more, over twenty splits, under each guarantee.
``splits=3`` takes another number of them. Nothing is stored.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from benchmarks.measure import configuration, show
from fairbench.core.arrays import Floats
from fairbench.evaluation.predictions import AllGroups, Groups
from fairbench.evaluation.scores import largest_calibration_error
from fairbench.experiments import pipeline
from fairbench.experiments.compute import compute, raw_outputs
from fairbench.inference.repeats import REPEATS, Splits, mean_limits
from fairbench.inference.scores import Bins
from fairbench.metrics.probability import FEWEST, brier_rows, log_loss_rows, reliability
from fairbench.results.predictions import TEST

PROTECT = {
    "german": ("sex", "age"),
    "compas": ("sex", "race"),
    "acs_employment_fu": ("sex", "race"),
    "bank": ("age", "marital"),
    "adult": ("sex", "race"),
}
LEARNERS = ("logistic_regression", "xgboost", "gaussian_nb")
INTERVENTIONS = {
    "multicalibration": ("intervention=multicalibration",),
    "everyone": ("intervention=multicalibration", "intervention.among=everyone"),
    "mcgrad": ("intervention=mcgrad",),
}
GUARANTEES = {
    "marginal": "radius", "group": "group_radius", "overlapping": "overlapping_radius",
}  # fmt: skip
TRAINED, SPLITS, MANY, LARGE = 0.8, 10, 20, 200


class Judged(NamedTuple):
    """What one split says of scores."""

    multicalibration_error: float
    brier_score: float
    log_loss: float


def main(words: Sequence[str]) -> None:
    """Print the tables that the first word asks for, of the data sets that follow."""
    tables = {"calibration": (calibration, SPLITS), "coverage": (coverage, MANY)}
    table, splits = tables[words[0]]
    for word in words[1:]:
        splits = int(word.removeprefix("splits=")) if word.startswith("splits=") else splits
    for dataset in [word for word in words[1:] if word in PROTECT] or PROTECT:
        table(dataset, splits)


def calibration(dataset: str, splits: int) -> None:
    """Print three errors of each learner, and what interventions add to them."""
    rows = []
    for learner in LEARNERS:
        plain = judged(dataset, learner, splits)
        rows.append((learner, "none", *(f"{mean:.4f}" for mean in plain.mean(axis=0))))
        for name, words in INTERVENTIONS.items():
            if name != "mcgrad" or find_spec("mcgrad"):
                change = judged(dataset, learner, splits, words) - plain
                rows.append((learner, name, *(_mean(each) for each in change.T)))
    title = f"{dataset}: means over {splits} splits, and differences from none (95 % intervals)"
    show(title, ("learner", "intervention", *Judged._fields), rows)


def judged(dataset: str, learner: str, splits: int, words: Sequence[str] = ()) -> Floats:
    """Return (splits, 3) errors of test rows."""
    options = (f"learner={learner}", *words, f"split.repeats={splits}")
    result = []
    for target, raw, groups in outputs(dataset, *options):
        score = raw["score"]
        losses = (brier_rows(target, score), log_loss_rows(target, score, floor=1e-4))
        means = (float(loss.mean()) for loss in losses)
        result.append(Judged(worst_error(target, score, groups), *means))
    return np.array(result)


def worst_error(target: Floats, score: Floats, groups: AllGroups) -> float:
    """Return the largest debiased calibration error of any group of `FEWEST` rows."""
    each = []
    for attribute in groups.attributes:
        for label, own in zip(attribute.split(target), attribute.split(score), strict=True):
            if len(own) >= FEWEST:
                result = reliability(label, own, equal_mass=True)
                each.append((result.size, result.size * result.base_rate, result.mean_score))
    bins = Bins(*(np.array(part, float) for part in zip(*each, strict=True)))
    return max(float(largest_calibration_error(bins).value), 0.0)


def coverage(dataset: str, splits: int) -> None:
    """Print each group's mean coverage, with its Monte Carlo error, and its sets' mean size."""
    options = ("method=conformal", "method.levels=[0.9]", f"split.repeats={splits}")
    result: dict[str, list[list[tuple[float, float]]]] = {}
    rows: dict[str, list[int]] = {}
    for target, raw, groups in outputs(dataset, *options):
        p = np.stack([1 - raw["score"], raw["score"]])
        sets = {name: 1 - p <= raw[column][:, 0] + 1e-6 for name, column in GUARANTEES.items()}
        label, row = target.astype(int), np.arange(len(target))
        held = {name: each[label, row] for name, each in sets.items()}
        for attribute in groups.attributes:
            for g, name in enumerate(attribute.names):
                own = attribute.codes == g
                rows.setdefault(name, []).append(int(own.sum()))
                both = [(held[k][own].mean(), sets[k][:, own].sum(axis=0).mean()) for k in sets]
                result.setdefault(name, []).append(both)
    lines = [
        (name or "everyone", int(np.median(rows[name])), *_covered(np.array(each)))
        for name, each in result.items()
        if np.median(rows[name]) >= LARGE
    ]
    title = f"{dataset}, sets at 90 %, {splits} splits: coverage (Monte Carlo error), mean size"
    show(title, ("group", "test rows", *GUARANTEES), lines)


def _covered(each: Floats) -> list[str]:
    """Return coverage and size in words, of (splits, guarantees, 2)."""
    mean, error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))
    return [f"{m[0]:.3f} ({e[0]:.3f}), {m[1]:.2f}" for m, e in zip(mean, error, strict=True)]


def outputs(dataset: str, *words: str) -> Iterator[tuple[Floats, dict[str, Floats], AllGroups]]:
    """Yield labels, raw outputs and groups of the test rows of each split."""
    protect = PROTECT[dataset]
    chosen = (f"dataset={dataset}", f"protect=[{','.join(protect)}]", f"split.train={TRAINED}")
    run = pipeline.prepare(configuration(*chosen, *words, "results=nowhere"))
    for cell in run.cells:
        columns, _ = compute(cell.study, cell.fold)
        test = columns["part"] == TEST
        data = cell.study.dataset.take(columns["row"][test].astype(np.intp))
        groups = {name: data.groups(name) for name in protect}
        groups[" x ".join(protect)] = data.groups(protect)
        raw = {name: raw_output[test] for name, raw_output in raw_outputs(columns).items()}
        named = (Groups.of(name, labels) for name, labels in groups.items())
        yield data.target.to_numpy(float), raw, AllGroups((Groups.everyone(len(data)), *named))


def _mean(change: Floats) -> str:
    """Return the mean of differences with its corrected interval (Nadeau and Bengio 2003)."""
    none = np.full(len(change), np.nan)
    limits = mean_limits(change, none, none, Splits(REPEATS, len(change), 1 - TRAINED))
    ends = (float(each) for each in (limits.value, limits.lower, limits.upper))
    return "{:+.4f} ({:+.4f} to {:+.4f})".format(*ends)


if __name__ == "__main__":
    main(sys.argv[1:])
