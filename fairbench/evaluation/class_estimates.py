"""Predictions of several classes, measured by group or by predicted class, in plain columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairbench.core.arrays import Floats
from fairbench.data.class_scores import MulticlassScores
from fairbench.evaluation.columns import records
from fairbench.inference import confusion_matrix, reliability
from fairbench.inference.beta import Beta, uniform
from fairbench.inference.gaps import GroupLimits, leads
from fairbench.inference.posterior import central_interval
from fairbench.inference.rates import Limits, rate_limits

DRAWS = 4000
_MISTAKES = 10
_METRICS = {
    "accuracy": "accuracy",
    "calibration": "expected_calibration_error",
    "cost": "expected_cost",
}
# The columns of an estimate. ``extreme`` is the probability that it is the worst of all, if it has
# a posterior; the ranks are the interval of its rank, 1 being the worst. Both NaN for everyone.
_ESTIMATE = ("value", "lower", "upper", "extreme", "worst_rank", "best_rank")


def counts_of(scores: MulticlassScores, groups: pd.Series) -> pd.DataFrame:
    """Return the rows, labels and right predictions of the groups that have rows."""
    by_group = pd.Series(scores.correct).groupby(groups.array, observed=True)
    return by_group.agg(rows="size", labels="count", right="sum")


def estimates_by_group(
    scores: MulticlassScores,
    groups: pd.Series,
    generator: np.random.Generator,
    *,
    strength: float,
    informed: bool = False,
    frequentist: bool = True,
    costs: Floats | None = None,
) -> list[dict[str, Any]]:
    """Return accuracy, calibration error and cost of the groups that have rows.

    The accuracy is estimated from the labels alone, unless scores are its prior. Other quantities
    are posterior means.

    Parameters
    ----------
    groups : (n,) categorical labels.
    strength : the number of labels that a prior counts as.
    informed : whether scores are the prior.
    frequentist : whether intervals of accuracies come from the labels alone; ignored if `informed`.
    costs : (C, C) the costs of mistakes, if groups are the predicted classes.

    Returns
    -------
    A mapping for each group: its name, rows, labels, and ``accuracy``, ``calibration`` and
    ``cost``. Each of these is None or a mapping of value, lower, upper, extreme (the probability
    that it is the worst), worst_rank and best_rank.
    """
    names = groups.cat.categories
    code = groups.cat.codes.to_numpy(np.int64)
    n = len(names)
    counts = counts_of(scores, groups)
    kept = names.get_indexer(counts.index)
    diagram = reliability.reliability_diagram(
        scores.confidence, scores.correct, code, n_groups=n, strength=strength
    )
    error = diagram.calibration_error_draws(DRAWS, generator)[:, kept]
    calibration = _draw_estimates(diagram.expected_calibration_error()[kept], error)
    cost: Sequence[Mapping[str, Any] | None] = [None] * len(kept)
    if costs is not None:
        shares = confusion_matrix.uninformative_prior(n, strength=strength)
        if informed:
            shares = confusion_matrix.score_prior(scores, strength=strength)
        mistakes = confusion_matrix.confusion_posterior(scores, shares)
        draws = confusion_matrix.cost_draws(mistakes, costs, DRAWS, generator)[:, kept]
        cost = _draw_estimates(confusion_matrix.expected_cost(mistakes, costs)[0][kept], draws)
    limits = rate_limits(counts["right"], counts["labels"])
    if informed or not frequentist:
        prior = uniform(n, strength)
        if informed:
            prior = reliability.score_prior(scores.confidence, code, n, strength=strength)
        posterior = reliability.accuracy_posterior(scores.correct, code, prior)
        draws = posterior.draws(DRAWS, generator)[:, kept]
        limits = Limits(posterior.mean[kept], *central_interval(draws))
    # Ranks come from the labels alone.
    above = leads(GroupLimits.of(counts["right"], counts["labels"])) > 0
    worst = 1 + above.sum(axis=1)
    best = len(kept) - above.sum(axis=0)
    accuracy = _estimates(limits, worst_rank=worst, best_rank=best)
    table = counts.drop(columns="right").rename_axis("name").reset_index()
    return records(table.assign(accuracy=accuracy, calibration=calibration, cost=cost))


def in_long_form(
    estimates: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[dict[str, Any]]:
    """Yield every estimate of what `estimates_by_group` returns, one per row.

    Parameters
    ----------
    estimates : attribute, empty of everyone -> the rows of its groups.

    Yields
    ------
    metric, attribute, group, value, lower, upper, n, the group's labels, and rows.
    """
    for attribute, of_groups in estimates.items():
        for of_group, (quantity, metric) in itertools.product(of_groups, _METRICS.items()):
            if estimate := of_group[quantity]:
                yield {
                    "metric": metric,
                    "attribute": attribute,
                    "group": of_group["name"] if attribute else "",
                    "value": estimate["value"],
                    "lower": estimate["lower"],
                    "upper": estimate["upper"],
                    "n": of_group["labels"],
                    "rows": of_group["rows"],
                }


def _draw_estimates(mean: Floats, draws: Floats) -> list[dict[str, Any]]:
    """Return the estimates of groups by draws (T, G); the group with the largest is the worst."""
    order = reliability.ranks(draws, largest=True)
    ranked = {"extreme": order.first, "worst_rank": order.lower, "best_rank": order.upper}
    return _estimates(Limits(mean, *central_interval(draws)), **ranked)


def _estimates(limits: Limits, **order: Floats) -> list[dict[str, Any]]:
    """Return the estimates of groups, with what is known of their order if there are several."""
    columns = limits._asdict() | (order if len(limits.value) > 1 else {})
    return records(pd.DataFrame(columns, columns=list(_ESTIMATE), dtype=float))


def frequent_mistakes(scores: MulticlassScores) -> list[dict[str, Any]]:
    """Return the most frequent mistakes, with their shares of those predicted so.

    Returns
    -------
    Of each: target, prediction, count, and share: value, lower and upper.
    """
    n = len(scores.classes)
    classes = np.array(scores.classes, object)
    counts = confusion_matrix.confusion_posterior(scores, np.zeros((n, n))).alpha
    mistakes = counts * (1 - np.eye(n))
    cells = np.argsort(-mistakes, axis=None, kind="stable")[:_MISTAKES]
    predicted, true = np.divmod(cells[mistakes.flat[cells] > 0], n)
    number_wrong = mistakes[predicted, true]
    total = counts.sum(axis=1)[predicted]
    lower, upper = Beta(1 + number_wrong, 1 + total - number_wrong).interval()
    share = Limits(number_wrong / total, lower, upper)
    mistakes = pd.DataFrame({"target": classes[true], "prediction": classes[predicted]})
    return records(mistakes.assign(count=number_wrong.astype(int), share=_estimates(share)))


def reliability_bins(scores: MulticlassScores, strength: float) -> pd.DataFrame:
    """Return the bins of the reliability diagram of all rows.

    Parameters
    ----------
    strength : how many labels the prior of a bin is worth.

    Returns
    -------
    A row for each bin: share_of_rows, score (their mean), labels, accuracy, lower and upper.
    """
    diagram = reliability.reliability_diagram(scores.confidence, scores.correct, strength=strength)
    lower, upper = diagram.accuracy.interval()
    columns = {"share_of_rows": diagram.weight, "score": diagram.score, "labels": diagram.labels}
    columns |= {"accuracy": diagram.accuracy.mean, "lower": lower, "upper": upper}
    return pd.DataFrame({name: values[0] for name, values in columns.items()})
