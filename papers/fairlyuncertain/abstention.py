"""Tables 3 and 8 to 13: the rows that abstain, as the text has them.

The text's ensembles predict what most of their members predict, and people of equal uncertainty
are kept or left out together (its Figure 5 has flat lines for that reason). The share left out is
that of the least sum of error rate, statistical parity and equalized odds, each over the plain
model's, among whole percents up to a quarter, of the test rows themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairbench.components.papers import CONF
from fairbench.components.papers.fairlyuncertain.people import (
    MANY,
    REPEATS,
    job,
    repeats_of,
    tests,
)
from fairbench.core.arrays import Floats
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.summary import summarise
from fairbench.metrics import group as gaps
from fairbench.metrics.abstention import keep_weights
from fairbench.metrics.rates import error_rate, total
from fairbench.reporting.papers.matching import finished_runs
from fairbench.reporting.papers.running import Effort

EXPERIMENT, VALIDATION = "fairlyuncertain/table8_13", "fairlyuncertain/table8_13_validation"
SAMPLES = {name: f"{name}_sample" for name in ("acs_income", "acs_public_coverage")}
RATES = np.arange(26) / 100  # left out, among which the text chooses
INCLUDED = "included_percent"
METRICS: Mapping[str, Callable[[Floats], Floats]] = {
    "error_rate": lambda counts: error_rate(total(counts))[..., 0],
    "statistical_parity": gaps.statistical_parity,
    "equalized_odds": gaps.equalized_odds,
    "equal_opportunity": gaps.equal_opportunity,
    "disparate_impact": gaps.disparate_impact,
    "predictive_parity": gaps.predictive_parity,
    "false_positive_rate_gap": gaps.false_positive_rate_gap,
}
EVERY = ("error_rate", "statistical_parity", "equalized_odds")
# What a setting of Table 3 chooses the share by.
CHOSEN_BY = {
    "abstention rate chosen for demographic_parity": EVERY[:2],
    "abstention rate chosen for equalized_odds": (EVERY[0], EVERY[2]),
}
EVERY_METRIC, MEAN, SHARED = "every metric", "mean probability", "ties shared out"
SPLITS, AHEAD = "other splits", "validation"
# Whose numbers scatter more than ten splits show; of Bank, whose bags take long, the single fits.
_SINGLE = ("random", "binomial_nll")
_BAGS = ("ensemble", "selective_ensemble", "self_consistency")
FEW = {"bank": _SINGLE, "compas": (*_SINGLE, *_BAGS), "german": (*_SINGLE, *_BAGS)}


class Way(NamedTuple):
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
    kept: Floats = (uncertainty <= limits[:, None]).astype(float)
    return kept


def ways(method: str, dataset: str) -> Iterator[Way]:
    """Yield the ways in which a method of the text abstains, the text's first."""
    words: tuple[str, ...] = (f"method={method}",)
    if method == "ensemble":
        words = (*words, "method.reading=majority")
    yield Way(words, together)
    yield Way(words, together, EVERY_METRIC, tuple(METRICS))
    if method == "ensemble":
        yield Way(words[:1], together, MEAN)
    yield Way(words, keep_weights, SHARED)
    if method in FEW.get(dataset, ()):
        yield Way(words, together, SPLITS, splits=MANY)


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> pd.DataFrame:
    """Return the text's numbers for published rows that abstain, and those of other ways."""
    found = []
    for (dataset, method), part in rows.groupby(["dataset", "method"], sort=False):
        own = SAMPLES.get(str(dataset), str(dataset))
        for way in ways(str(method), own):
            repeats = repeats_of(effort, way.splits)
            plain = tests(_job(own, ("method=baseline",), results, repeats))
            splits = list(zip(tests(_job(own, way.words, results, repeats)), plain, strict=True))
            for setting, of_setting in part.groupby("setting"):
                objectives = way.objectives or CHOSEN_BY.get(str(setting), EVERY)
                chosen = [chosen_metrics(a, b, objectives, way.keep) for a, b in splits]
                values = pd.DataFrame(chosen)
                found += [
                    {"row": row, **our_number(values[metric], way.cause), "label": way.cause}
                    for row, metric in of_setting["metric"].items()
                ]
        found += list(_ahead(part, own, str(method), results))
    return pd.DataFrame(found)


def our_number(values: pd.Series, cause: str) -> dict[str, Any]:
    """Return mean, sd and number of some splits' values, as an answer under a cause.

    Of other splits, a printed mean of ten is judged by the scatter of all of ours: that of its own
    ten splits is known no better than the mean itself.
    """
    found = values.to_numpy(float)
    count = int(np.isfinite(found).sum())
    sd = float(np.nanstd(found, ddof=1)) if count > 1 else np.nan
    error = sd * np.sqrt(1 / REPEATS + 1 / count) if cause == SPLITS and count else np.nan
    mean = float(np.nanmean(found)) if count else np.nan
    return {"mean": mean, "sd": sd, "repeats": len(found), "error": error, "cause": cause}


def _job(dataset: str, words: Sequence[str], results: Path, repeats: int) -> Any:
    return job(EXPERIMENT, results, [f"dataset={dataset}", *words], repeats)


def _ahead(
    published: pd.DataFrame, dataset: str, method: str, results: Path
) -> Iterator[dict[str, Any]]:
    """Yield what runs have that chose the share on validation rows, where there are any."""
    for choice, run, metrics in finished_runs(VALIDATION, CONF, results):
        if (choice["dataset"], choice["method"]) != (dataset, method):
            continue
        summary = summarise(metrics[metrics["group"] == ""], intervals=False)
        summary = summary[summary["attribute"] == run.protect].set_index("metric")
        for row, metric in published["metric"].items():
            name = "abstention_chosen_rate" if metric == INCLUDED else f"abstained_{metric}"
            mean, sd, count = summary.loc[name, ["mean", "sd", "repeats"]]
            if metric == INCLUDED:
                mean, sd = 100 * (1 - mean), 100 * sd
            yield {"row": row, "mean": mean, "sd": sd, "repeats": count, "label": AHEAD}


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
    values = {name: float(metric(counts[best])) for name, metric in METRICS.items()}
    return {**values, INCLUDED: 100 * float(weights[best].mean())}
