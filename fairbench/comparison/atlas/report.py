"""The findings of an atlas, computed from a table of approaches, and their summary in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from fairbench.comparison.atlas.claim_values import Claim, MarginsBySize
from fairbench.comparison.atlas.claims import ClaimRoles, claims
from fairbench.comparison.atlas.few_tasks import few_task_differences
from fairbench.comparison.atlas.findings import (
    AtlasApproach,
    AtlasFindings,
    AtlasTask,
    MetricStandings,
)
from fairbench.comparison.atlas.frontiers import (
    NONE,
    frontier_points,
    margin_series,
    mean_frontiers,
    task_verdicts,
    unprocessing_margins,
)
from fairbench.comparison.atlas.ranks import RankedValues, metric_standings
from fairbench.comparison.atlas.unprocessing import margins_by_size
from fairbench.comparison.atlas.values import THRESHOLDS_NEED, AtlasValues
from fairbench.comparison.atlas.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    pluralise,
    sign_in_words,
    signed_in_words,
)
from fairbench.comparison.rank.answer import WRONG
from fairbench.comparison.rank.sentences import simultaneous_sentences
from fairbench.components import HOME
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.evaluation.columns import COSTS
from fairbench.metrics.registry import label

METRICS = ("error_rate", "log_loss", "statistical_parity", "equalized_odds", "equal_opportunity")
_ROLES = HOME / "conf/claims.yaml"


def atlas_findings(
    table: pd.DataFrame,
    *,
    reference: str | None = None,
    metrics: Sequence[str] = METRICS,
    roles: ClaimRoles | None = None,
    remarks: Sequence[str] = (),
    draws: int = 300,
    seed: int = 0,
) -> AtlasFindings:
    """Return the findings of a table of approaches.

    Parameters
    ----------
    table : the result of :func:`fairbench.comparison.atlas.approaches.approach_table`.
    reference : the name of the approach that all are compared with; by default the cheapest that
        was run on most tasks without an intervention.
    roles : the components that claims are about; by default those of conf/claims.yaml.
    remarks : ways in which interventions were not configured on equal terms, from
        :func:`fairbench.comparison.atlas.unprocessing.unequal_terms_remarks`.
    draws : number of draws from the posterior of the effects of facts about data sets.

    Raises
    ------
    UserError : there are no binary tasks, no approach has that name, or it was run on few tasks.
    """
    values = AtlasValues.of(_binary_rows(table))
    plain = values.only(values.table["setting"] == "")
    index = reference_index(plain, reference)
    approaches = _approaches(plain, index)
    ranked_or_none = [RankedValues.of(plain, metric, index) for metric in metrics]
    ranked_values = [ranking for ranking in ranked_or_none if ranking is not None]
    series = margin_series(values)
    margins = unprocessing_margins(values, series)
    return AtlasFindings(
        tasks=tuple(_tasks(values)),
        approaches=tuple(approaches),
        standings=tuple(
            _standings(ranking, draws=draws, seed=seed, error_rate=WRONG / len(ranked_values))
            for ranking in ranked_values
        ),
        frontiers=tuple(frontier_points(values, method=_usual_method(plain))),
        margins=tuple(margins),
        verdicts=tuple(task_verdicts(margins)),
        claims=claims(
            values,
            series,
            roles or ClaimRoles.read(_ROLES),
            remarks,
        ),
        mean_frontiers=tuple(mean_frontiers(values)),
        by_size=margins_by_size(values, series),
        reference=plain.names[index],
        runs=int(table["run"].nunique()),
        repeats=int(values.cell_index[:, 2].max()) + 1,
        fewest_tasks=values.fewest_tasks,
    )


def _standings(
    ranked: RankedValues, *, draws: int, seed: int, error_rate: float
) -> MetricStandings:
    """Return the standings in one metric, with the approaches that have no rank."""
    generator = rng(seed, "ranks", ranked.metric)
    standings = metric_standings(
        ranked, generator=generator, draws=draws, error_rate=error_rate, seed=seed
    )
    return replace(standings, few=tuple(few_task_differences(ranked)))


def _binary_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of tasks with binary labels."""
    rows = table[table["error_rate"].notna()] if "error_rate" in table else table.iloc[:0]
    if rows.empty:
        raise UserError("an atlas needs finished runs with an error rate: none of these has one")
    return rows


def reference_index(plain: AtlasValues, name: str | None = None) -> int:
    """Return the index of the approach that the others are compared with."""
    if name is not None:
        if name not in plain.names:
            first_names = ", ".join(plain.names[:5])
            raise UserError(f"no approach is called '{name}': there are {first_names}, ...")
        return _check_reference(plain, plain.names.index(name))
    task_counts = np.isfinite(plain.metric("error_rate")).any(axis=2).sum(axis=1)
    seconds = np.nan_to_num(np.nanmedian(_costs(plain), axis=1), nan=np.inf)
    rows = plain.approaches
    is_plain = (rows["intervention"] == NONE).to_numpy() & (rows["method"] == _usual_method(plain))
    order = np.lexsort((seconds, -task_counts, ~is_plain))
    return int(order[0])


def _check_reference(plain: AtlasValues, index: int) -> int:
    """Return the index of the reference, or refuse one that was run on too few tasks."""
    tasks = int(np.isfinite(plain.metric("error_rate"))[index].any(axis=1).sum())
    if tasks < plain.fewest_tasks:
        raise UserError(
            f"'{plain.names[index]}' was run on {tasks} of {plain.total} tasks: what others are "
            f"compared with must have been run on at least {plain.fewest_tasks}"
        )
    return index


def _usual_method(plain: AtlasValues) -> str:
    """Return the uncertainty method of most interventions, or of most approaches."""
    rows = plain.approaches
    changed = rows[rows["intervention"] != NONE]
    return str((changed if len(changed) else rows)["method"].mode().iloc[0])


def _costs(plain: AtlasValues) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the mean seconds of a fit, (A, T)."""
    seconds = plain.metric("fit_seconds")
    is_known = np.isfinite(seconds)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(is_known, seconds, 0).sum(axis=2) / is_known.sum(axis=2))


def _approaches(plain: AtlasValues, reference: int) -> Iterator[AtlasApproach]:
    """Yield every approach with its costs, absolute and relative to the reference."""
    fit_seconds = _costs(plain)
    by_approach = plain.table.groupby(plain.cell_index[:, 0])
    medians = by_approach[[name for name in COSTS if name in plain.table]].median()
    needs_group = by_approach["group_at_prediction"].any()
    for index, row in enumerate(plain.approaches.to_dict("records")):
        with np.errstate(invalid="ignore", divide="ignore"):
            all_log_ratios = np.log(fit_seconds[index] / fit_seconds[reference])
        log_ratios = all_log_ratios[np.isfinite(all_log_ratios)]
        yield AtlasApproach(
            name=plain.names[index],
            learner=row["learner"],
            intervention=row["intervention"],
            method=row["method"],
            options=row["options"],
            group_at_prediction=bool(needs_group[index]),
            tasks=int(np.isfinite(fit_seconds[index]).sum()),
            fit_seconds=float(medians.get("fit_seconds", {}).get(index, np.nan)),
            predict_seconds=float(medians.get("predict_seconds", {}).get(index, np.nan)),
            relative_cost=float(np.exp(log_ratios.mean())) if len(log_ratios) else float("nan"),
        )


def _tasks(values: AtlasValues) -> Iterator[AtlasTask]:
    """Yield every task with the facts about its data."""
    facts = ("rows", "features", "positive_share", "smallest_group_share", "groups")
    for row in values.tasks.to_dict("records"):
        yield AtlasTask(
            *(row[name] for name in ("dataset", "protect", "family")),
            *(float(row.get(name, np.nan)) for name in facts),
        )


MEAN_OVER_FAMILIES = (
    "A mean over families first averages the tasks of each family, and then counts every family "
    "equally. Its interval is for new families like these."
)


def sentences(findings: AtlasFindings) -> list[tuple[str, list[str]]]:
    """Return the summary of an atlas: titles, each with the sentences under it."""
    return [
        ("What was run", list(_run_sentences(findings))),
        ("What is best", list(_rank_sentences(findings))),
        ("Claims of the literature", list(claim_sentences(findings))),
        (
            "Thresholds for each group against interventions, task by task",
            list(_task_sentences(findings)),
        ),
    ]


def _run_sentences(findings: AtlasFindings) -> Iterator[str]:
    """Yield how much was run, and from what differences are taken."""
    yield (
        f"The atlas has {findings.runs} runs of {len(findings.approaches)} approaches on "
        f"{len(findings.tasks)} tasks from {findings.families} families of data. Each task has "
        f"{findings.repeats} splits, the same for every approach."
    )
    yield (
        f"Approaches are compared with a reference: {findings.reference}. {MEAN_OVER_FAMILIES} "
        "A new task means a task of a family that is not here."
    )
    yield from few_tasks_sentences(findings)


def left_out_sentences(findings: AtlasFindings, runs: int) -> Iterator[str]:
    """Yield a sentence on how many of the runs were not used; nothing if all were."""
    left = runs - findings.runs
    if left > 0:
        are = "is" if left == 1 else "are"
        yield (
            f"{pluralise(left, 'more run', 'more runs')} {are} not part of these answers. A run is "
            "left out if it has other splits or other data than most runs of the same task, if it "
            "was evaluated once more, or if it predicts numbers, which have no error rate."
        )


def few_tasks_sentences(findings: AtlasFindings) -> Iterator[str]:
    """Yield a sentence on how many approaches are not ranked, and why; nothing if all are."""
    few = len(findings.few)
    if few:
        are, were, they = ("is", "was", "it") if few == 1 else ("are", "were", "they")
        yield (
            f"{few} of the {len(findings.approaches)} approaches {are} not ranked: {they} {were} "
            f"run on fewer than {findings.fewest_tasks} of the {len(findings.tasks)} tasks, that "
            f"is on fewer than half of them. This is too little to say how {they} would do on "
            f"other tasks. What {they} did on the tasks that {they} {were} run on is shown without "
            "a rank."
        )


def ranks_sentence(findings: AtlasFindings) -> str:
    """Return the sentence that ranks and differences of all metrics hold simultaneously."""
    metrics_text = "all metrics" if len(findings.standings) > 1 else ""
    shares = [standing.unseen for standing in findings.standings]
    return simultaneous_sentences(metrics_text, on_new_tasks=True, unseen=shares)


def _rank_sentences(findings: AtlasFindings) -> Iterator[str]:
    """Yield the findings on ranks and on explanations, metric by metric."""
    for standing in findings.standings:
        yield from (f"{standing.label}: {sentence}" for sentence in standing.sentences)
        resolved = [
            explanation for explanation in standing.explanations if explanation.verdict != OPEN
        ]
        yield (
            f"{standing.label}, what tells where an approach does better: {len(resolved)} of "
            f"{len(standing.explanations)} slopes are resolved"
            + "".join(
                f"; {explanation.approach} is {explanation.verdict} ({explanation.fact})"
                for explanation in resolved[:3]
            )
            + "."
        )
    if findings.standings:
        yield ranks_sentence(findings)


def claim_sentences(findings: AtlasFindings) -> Iterator[str]:
    """Yield every claim with its verdict and what was measured, with all remarks."""
    for claim in findings.claims:
        told = [claim.evidence, counts_sentence(claim), *claim.remarks]
        yield " ".join([f"{claim.statement} {claim.verdict.upper()} ({claim.source}).", *told])


def size_sentence(by_size: MarginsBySize) -> str:
    """Return sentences on errors of thresholds and interventions at one gap, by size of data."""
    families = " and ".join(str(data.families) for data in by_size.classes)
    tasks = " and ".join(f"on {data.positive} of {data.tasks}" for data in by_size.classes)
    return (
        f"{size_means(by_size)} These are means over all interventions, and over {families} "
        f"families of data. Thresholds err more {tasks} tasks. Where to divide small data from "
        "large was chosen after seeing the results."
    )


def size_means(by_size: MarginsBySize) -> str:
    """Return the first of these sentences."""
    means = ", and ".join(
        f"{signed_in_words(data.difference, data.lower, data.upper, ('less', 'more'))} on data of "
        f"{data.label}"
        for data in by_size.classes
    )
    return f"At the same gap, {THRESHOLDS_NEED} err {means}."


def counts_sentence(claim: Claim) -> str:
    """Return sentences on how many differences of a claim are above 0, too small, or open."""
    parts = claim.deciding_parts
    few = len(claim.parts) - len(parts)
    few_text = f" {few_tasks_not_counted(few)}" if few else ""
    if not parts:
        return f"No difference was measured on enough tasks to decide.{few_text}"
    small = f"under {parts[0].epsilon:g}"
    at_once = [sign_in_words(part) for part in parts]
    alone = [sign_in_words(part, alone=True) for part in parts]
    return (
        f"Of {pluralise(len(parts), 'difference', 'differences')}, by intervals for all at once: "
        f"{at_once.count('above 0')} surely above 0, {at_once.count(small)} surely {small}, "
        f"{at_once.count('open')} open. By the interval of each by itself: "
        f"{alone.count('above 0')} above 0, {alone.count(small)} {small}.{few_text}"
    )


def few_tasks_not_counted(few: int) -> str:
    """Return the sentence that some differences were measured on too few tasks to count."""
    return (
        f"{pluralise(few, 'difference', 'differences')}, measured on few tasks, "
        f"{'is' if few == 1 else 'are'} not counted."
    )


def _task_sentences(findings: AtlasFindings) -> Iterator[str]:
    """Yield for each gap on how many tasks thresholds do no worse than every intervention."""
    for gap in dict.fromkeys(verdict.gap_metric for verdict in findings.verdicts):
        verdicts = [verdict for verdict in findings.verdicts if verdict.gap_metric == gap]
        counts = [
            [task_verdict.verdict for task_verdict in verdicts].count(kind)
            for kind in (HOLDS, FAILS, OPEN)
        ]
        yield (
            f"At the same {label(gap)}, {THRESHOLDS_NEED} do no worse than any intervention on "
            f"{counts[0]} of {len(verdicts)} tasks, and worse than some intervention on "
            f"{counts[1]}. On the other {counts[2]} tasks it is open."
        )
