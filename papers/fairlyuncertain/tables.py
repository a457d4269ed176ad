"""Our numbers for FairlyUncertain's tables that no run of the harness has, each by a `..._numbers`.

They are made of what was predicted of single people (`job`, `tests`, `reader`). Fits come from
the results folder where it has them; others are computed, and kept there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.components.papers import PAPERS, Splits, composed, print_table, run_main
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Effort, Numbers, number
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.data.features import onehot
from fairbench.evaluation.predictions import Labelled
from fairbench.experiments import pipeline
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.contracts import Cell
from fairbench.experiments.pipeline import PlannedRun, Reading, read
from fairbench.metrics.probability import log_loss_rows, nll_of_sd
from fairbench.metrics.registry import BINARY, binary_confusion, error_rate, metrics_of, total
from fairbench.metrics.regression import normal_nll_rows
from fairbench.metrics.uncertainty import keep_weights
from fairbench.results.tables import TEST

REPEATS = 10  # splits behind every printed number
MANY = 40  # splits of ours, where those behind a printed number are one draw of many


def _repeats_of(effort: Effort, whole: int = REPEATS) -> int:
    """Return how many splits a computation of an effort has."""
    return effort.choose(whole, 2, 1)


def job(experiment: str, results: Path, words: Sequence[str], repeats: int = 1) -> PlannedRun:
    """Return one job of an experiment, which fits nothing yet."""
    fixed = [f"experiment={experiment}", f"split.repeats={repeats}", "tracking=none"]
    return pipeline.prepare(composed(*fixed, *words, f"results={results}"))


def reader(run: PlannedRun) -> Callable[[Cell, dict[str, pd.Series]], Reading]:
    """Return what reads a job's own fits, after computing those that are missing."""
    pipeline.ensure_all(run.cells, run.store)
    return partial(read, run)


def raw_tests(run: PlannedRun) -> Iterator[tuple[NDArray[np.intp], dict[str, Any]]]:
    """Yield the test rows of each split of a job, and what its method itself gave them."""
    pipeline.ensure_all(run.cells, run.store)
    for cell in run.cells:
        columns = run.store.read(cell.id).columns
        test = columns["part"] == TEST
        raw = raw_outputs({name: values[test] for name, values in columns.items()})
        yield columns["row"][test], raw


def tests(run: PlannedRun) -> Iterator[Labelled]:
    """Yield the test rows of each split of a job, with the groups that it protects."""
    read_cell = reader(run)
    groups = {run.protect: run.dataset.groups(run.study.protect)}
    for cell in run.cells:
        yield read_cell(cell, groups).test


# Tables 3 and 8 to 13: the rows that abstain, as the text has them.
#
# The text's ensembles predict what most of their members predict, and people of equal uncertainty
# are kept or left out together (its Figure 5 has flat lines for that reason). The share left out is
# that of the least sum of error rate, statistical parity and equalized odds, each over the plain
# model's, among whole percents up to a quarter, of the test rows themselves.

EXPERIMENT, VALIDATION = "fairlyuncertain/table8_13", "fairlyuncertain/table8_13_validation"
SAMPLES = {name: f"{name}_sample" for name in ("acs_income", "acs_public_coverage")}
RATES = np.arange(26) / 100  # left out, among which the text chooses
INCLUDED = "included_percent"
GAPS = (
    "statistical_parity",
    "equalized_odds",
    "equal_opportunity",
    "disparate_impact",
    "predictive_parity",
    "false_positive_rate_gap",
)
METRICS: Mapping[str, Callable[[Floats], Floats]] = {
    "error_rate": lambda counts: error_rate(total(counts))[..., 0],
    **{name: metrics_of(BINARY)[name] for name in GAPS},
}
EVERY = ("error_rate", "statistical_parity", "equalized_odds")
# What a setting of Table 3 chooses the share by.
CHOSEN_BY = {
    "abstention rate chosen for demographic_parity": EVERY[:2],
    "abstention rate chosen for equalized_odds": (EVERY[0], EVERY[2]),
}
EVERY_METRIC, MEAN, SHARED = "every metric", "mean probability", "ties shared out"
SPLITS = "other splits"
# Whose numbers scatter more than ten splits show; of Bank, whose bags take long, the single fits.
_SINGLE = ("random", "binomial_nll")
_BAGS = ("ensemble", "selective_ensemble", "self_consistency")
FEW = {"bank": _SINGLE, "compas": (*_SINGLE, *_BAGS), "german": (*_SINGLE, *_BAGS)}


class _Way(NamedTuple):
    """A way of abstaining: words of the job, what is kept, and the cause that it stands for.

    `objectives` are what the share is chosen by; by default the setting's. `splits` are how many.
    """

    words: tuple[str, ...]
    keep: Callable[[Floats, Floats], Floats]
    cause: str = ""
    objectives: tuple[str, ...] = ()
    splits: int = REPEATS


def together(uncertainty: Floats, rates: Floats) -> Floats:
    """Return who is kept (K, n) at each rate: the people up to a percentile, all ties with it."""
    limits = np.percentile(uncertainty, 100 * (1 - rates))
    return (uncertainty <= limits[:, None]).astype(float)


def ways(method: str, dataset: str) -> Iterator[_Way]:
    """Yield the ways in which a method of the text abstains, the text's first."""
    words: tuple[str, ...] = (f"method={method}",)
    if method == "ensemble":
        words = (*words, "method.reading=majority")
    yield _Way(words, together)
    yield _Way(words, together, EVERY_METRIC, tuple(METRICS))
    if method == "ensemble":
        yield _Way(words[:1], together, MEAN)
    yield _Way(words, keep_weights, SHARED)
    if method in FEW.get(dataset, ()):
        yield _Way(words, together, SPLITS, splits=MANY)


def abstention_numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield the text's numbers for published rows that abstain, and those of other ways."""
    for (dataset, method), part in rows.groupby(["dataset", "method"], sort=False):
        own = SAMPLES.get(str(dataset), str(dataset))
        for way in ways(str(method), own):
            repeats = _repeats_of(effort, way.splits)
            read, plain = (
                tests(job(EXPERIMENT, results, [f"dataset={own}", *words], repeats))
                for words in (way.words, ("method=baseline",))
            )
            splits = list(zip(read, plain, strict=True))
            for setting, of_setting in part.groupby("setting"):
                objectives = way.objectives or CHOSEN_BY.get(str(setting), EVERY)
                chosen = [chosen_metrics(a, b, objectives, way.keep) for a, b in splits]
                yield from _rows(of_setting, chosen, way.cause)


def our_number(row: Any, values: Sequence[float] | pd.Series, cause: str) -> dict[str, Any]:
    """Return mean, sd and number of some splits' values, as a row's answer under a cause.

    Of other splits, a printed mean of ten is judged by the scatter of all of ours: that of its own
    ten splits is known no better than the mean itself.
    """
    found = np.asarray(values, float)
    count = int(np.isfinite(found).sum())
    sd = float(np.nanstd(found, ddof=1)) if count > 1 else np.nan
    error = sd * np.sqrt(1 / REPEATS + 1 / count) if cause == SPLITS and count else np.nan
    mean = float(np.nanmean(found)) if count else np.nan
    return number(mean, sd, len(found), row=row, error=error, cause=cause, label=cause)


def counts_of(test: Labelled, weights: Floats) -> Floats:
    """Return the counts (K, G, 4) of test rows that count with weights (K, n)."""
    (groups,) = test.coded.values()
    cell = groups.codes * 4 + (2 * test.target + test.column("prediction")).astype(np.intp)
    size = 4 * len(groups)
    tally = [np.bincount(cell, row, minlength=size) for row in np.atleast_2d(weights)]
    counts: Floats = np.stack(tally).astype(float)
    return counts.reshape(len(tally), -1, 4)


def chosen_metrics(
    test: Labelled,
    plain: Labelled,
    objectives: Sequence[str],
    keep: Callable[[Floats, Floats], Floats],
) -> dict[str, float]:
    """Return every metric of the people kept where the normalised sum of objectives is least.

    Parameters
    ----------
    plain : the plain model's predictions of the same rows, whose values the objectives are over.
    keep : uncertainties and rates -> how much of each row is kept, such as `together`.
    """
    weights = keep(test.column("uncertainty"), RATES)
    counts = counts_of(test, weights)
    unit = counts_of(plain, np.ones(len(plain)))
    sums = np.zeros(len(RATES))
    for name in objectives:
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = METRICS[name](counts) / METRICS[name](unit)
        sums += np.where(np.isnan(ratio), np.inf, ratio)
    best = int(sums.argmin())
    return {**_metrics(counts[best]), INCLUDED: 100 * float(weights[best].mean())}


# Tables 1 and 7: the likelihoods of the methods for labels, and Table 7's calibration error.
#
# The text's likelihood (appendix D.1) clips nothing, and its ensembles predict what most of their
# members predict. Its calibration error is that of a prediction being right, in bins of the
# predicted probability. What Table 7 prints under that name is Table 1's likelihood.

BINS = 10  # of the calibration error, of which the text says no number
CLIPPED, LIKELIHOOD = "clipped", "the likelihood"
OWN = {"acs_employment": "acs_employment_fu"}
_MAJORITY = "method.reading=majority"


def likelihood_numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield the text's numbers for published rows of likelihood, and those under a cause."""
    repeats = _repeats_of(effort)
    clipped, unclipped = (partial(_likelihoods, rows) for rows in (nll_of_sd, unclipped_nll))
    for (dataset, method), part in rows.groupby(["dataset", "method"], sort=False):
        own = [f"dataset={OWN.get(str(dataset), str(dataset))}"]
        words = [*own, f"method={method}", *([_MAJORITY] if method == "ensemble" else [])]
        read = list(tests(job(EXPERIMENT, results, words, repeats)))
        scored = read
        if method != "binomial_nll":  # of a bag's votes the probability is the members' mean
            scored = list(tests(job(EXPERIMENT, results, [*own, "method=ensemble"], repeats)))
        for row, metric in part["metric"].items():
            if metric == "nll":
                answers = {"": unclipped(read), CLIPPED: clipped(read)}
                if method == "ensemble":  # beside the majority's label
                    answers[MEAN] = unclipped(scored)
            else:
                pairs = zip(read, scored, strict=True)
                errors = [error_of_labels(*_outputs(a)[:2], b.column("score")) for a, b in pairs]
                answers = {"": errors, LIKELIHOOD: clipped(read)}
            for cause, values in answers.items():
                yield our_number(row, values, cause)


def _likelihoods(rows: Callable[..., Floats], read: list[Labelled]) -> list[float]:
    return [float(rows(*_outputs(test)).mean()) for test in read]


def _outputs(test: Labelled) -> tuple[Floats, Floats, Floats]:
    return test.target, test.column("prediction"), test.column("uncertainty")


def probability_of_sd(prediction: ArrayLike, sd: ArrayLike) -> Floats:
    """Return the probability that has an sd, on its prediction's side of 1/2 (appendix D)."""
    root = np.sqrt(1 - 4 * np.clip(np.asarray(sd, float), 0, 0.5) ** 2)
    side = np.where(np.asarray(prediction, float) > 0.5, 1.0, -1.0)
    return (1 + side * root) / 2


def unclipped_nll(target: ArrayLike, prediction: ArrayLike, sd: ArrayLike) -> Floats:
    """Return each row's likelihood as the text has it; of an sd of 0 as finite as doubles allow."""
    return log_loss_rows(target, probability_of_sd(prediction, sd))


def error_of_labels(
    target: ArrayLike, prediction: ArrayLike, score: ArrayLike, bins: int = BINS
) -> float:
    """Return the text's expected calibration error (D.1): how far `score` is from accuracy.

    Of each of some bins of equal width of the score it is the distance of the share of right
    labels from the mean score, on average over people.
    """
    right = np.asarray(target) == np.asarray(prediction)
    p = np.asarray(score, float)
    place = np.minimum((p * bins).astype(np.intp), bins - 1)
    off = np.bincount(place, right, bins) - np.bincount(place, p, bins)
    return float(np.abs(off).sum() / len(p))


# Rows of Tables 8 to 13 that abstain from nobody, where ten splits say little.
#
# The answers are the text's ten splits, forty splits, and the grid search of the released code,
# which wraps a regressor and rounds what it predicts.

ROUNDED = "rounded regressor"
# In place of forty splits where each takes tens of fits.
FEWER = {"exponentiated_gradient": 20, "grid_search": 20}
_SWEEPS = {
    "baseline": "fairlyuncertain/table8_13",
    "threshold_optimizer": "fairlyuncertain/table8_13_thresholds",
    "exponentiated_gradient": "fairlyuncertain/table8_13_reductions",
    "grid_search": "fairlyuncertain/table8_13_reductions",
}


def intervention_numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield the text's numbers for published rows that abstain from nobody, and causes."""
    keys = ["dataset", "method", "setting"]
    for (dataset, method, setting), part in rows.groupby(keys, sort=False):
        own = SAMPLES.get(str(dataset), str(dataset))
        words = [f"dataset={own}", "method=baseline"]
        if method != "baseline":
            words += [f"intervention={method}", f"intervention.constraints={setting}"]
        repeats = _repeats_of(effort)
        many = _repeats_of(effort, FEWER.get(str(method), MANY))
        run = job(_SWEEPS[str(method)], results, words, many)
        splits = [_metrics(counts_of(test, np.ones(len(test)))[0]) for test in tests(run)]
        yield from _rows(part, splits[:repeats], "")
        if method == "grid_search":
            yield from _rows(part, list(_rounded(run, repeats, effort)), ROUNDED)
        yield from _rows(part, splits, SPLITS)


def _metrics(counts: Floats) -> dict[str, float]:
    return {name: float(metric(counts)) for name, metric in METRICS.items()}


def _rows(published: pd.DataFrame, splits: list[dict[str, float]], cause: str) -> Numbers:
    values = pd.DataFrame(splits)
    for row, metric in published["metric"].items():
        yield our_number(row, values[metric], cause)


def _rounded(run: PlannedRun, repeats: int, effort: Effort) -> Iterator[dict[str, float]]:
    """Yield the metrics of fairlearn's grid search around a regressor whose output is rounded."""
    import fairlearn.reductions
    import xgboost

    moments = {
        "demographic_parity": fairlearn.reductions.DemographicParity,
        "equalized_odds": fairlearn.reductions.EqualizedOdds,
    }
    moment = moments[str(run.study.intervention.constraints)]  # type: ignore[attr-defined]
    X = np.asarray(onehot(run.dataset.features))
    y = run.dataset.target.to_numpy(int)
    labels = run.dataset.groups(run.study.protect)
    group = labels.cat.codes.to_numpy()
    rounds = effort.choose(100, 100, 2)
    for cell in run.cells[:repeats]:
        train, test = cell.fold.train, cell.fold.test
        regressor = xgboost.XGBRegressor(n_estimators=rounds, n_jobs=1)
        search = fairlearn.reductions.GridSearch(regressor, moment())
        search.fit(X[train], y[train], sensitive_features=group[train])
        label = np.round(np.clip(search.predict(X[test]), 0, 1)).astype(int)
        size = len(labels.cat.categories)
        counts = binary_confusion(y[test], label, group[test], n_groups=size)
        yield _metrics(counts.astype(float))


# Table 6: how many people and columns each data set has, once categories are columns.

_EXPERIMENTS = {"binary": "fairlyuncertain/table8_13", "regression": "fairlyuncertain/table4"}


def size_numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield the size of each data set; of one without files, that it has none."""
    for (task, dataset), part in rows.groupby(["task", "dataset"], sort=False):
        own = OWN.get(str(dataset), str(dataset))
        words = [f"dataset={own}", "method=baseline"]
        try:
            data = job(_EXPERIMENTS[str(task)], results, words).dataset
        except UserError:
            reason = "its covariates are in no file that we have"
            yield from ({"row": row, "repeats": 1, "reason": reason} for row in part.index)
            continue
        size = {"rows": len(data.target), "features": onehot(data.features).shape[1]}
        for row, metric in part["metric"].items():
            yield {"row": row, "mean": size[str(metric)], "sd": 0.0, "repeats": 1}


BROADCAST = "broadcast"
METHODS = {
    "ensemble": "ensemble",
    "normal_nll": "normal_nll_reference",
    "beta_nll": "beta_nll_reference",
    "faithful_nll": "faithful_nll_reference",
}


def broadcast_numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield each method's NLL row by row, as the text has it, and what the code computes."""
    repeats = _repeats_of(effort)
    for row, method in rows["method"].items():
        reference = METHODS[str(method)]
        by_row, _ = _nlls(str(method), results, repeats)
        _, broadcast = _nlls(reference, results, repeats)
        yield our_number(row, by_row, "")
        yield our_number(row, broadcast, BROADCAST)


def _nlls(method: str, results: Path, repeats: int) -> tuple[list[float], list[float]]:
    """Return the NLL of every repeat, row by row and broadcast; rows without an sd are left out."""
    words = ["dataset=communities", f"method={method}"]
    run = job("fairlyuncertain/table4", results, words, repeats)
    by_row, broadcast = [], []
    for rows, raw in raw_tests(run):
        bag = method == "ensemble"
        mean = raw["mean"].mean(axis=1) if bag else raw["mean"]
        sd = raw["mean"].std(axis=1) if bag else raw["sd"]
        kept = np.isfinite(sd) & np.isfinite(mean) & (sd > 0)
        y = run.dataset.target.to_numpy()[rows]
        by_row.append(float(normal_nll_rows(y[kept], mean[kept], sd[kept]).mean()))
        matrix = normal_nll_rows(y[:, None], mean[None, kept], sd[None, kept])
        broadcast.append(float(matrix.mean()))
    return by_row, broadcast


def communities_broadcast(chosen: Splits) -> None:
    """Whether FairlyUncertain's NLLs on Communities are the broadcast of an (n, 1) target.

    Its loader returns the target as a column, so that its row-wise NLL of (n,) means becomes an (n,
    n) matrix, of which it prints the mean. Here both are computed from the same predictions,
    made as the published code makes them: ten 80/20 splits, 10 rounds, depth 6.
    """
    published = Paper.read("fairlyuncertain", PAPERS).rows
    published = published.query("table == '2' and dataset == 'communities' and metric == 'nll'")
    rows = []
    for name, method in METHODS.items():
        values = _nlls(method, chosen.results, chosen.repeats)
        row = published[published["method"] == name].iloc[0]
        cells = [f"{np.median(v):.3f} ({np.mean(v):.3f}, {np.std(v):.3f})" for v in values]
        rows.append([name, f"{row['value']} ({row['sd']})", *cells])
    title = f"Communities, NLL: median over {chosen.repeats} splits (mean, sd)"
    print_table(title, ("method", "published", "row by row", "broadcast"), rows)


if __name__ == "__main__":
    run_main(communities_broadcast)
