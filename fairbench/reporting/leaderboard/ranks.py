"""Who ranks where across data sets, with ties; what explains it; and what each approach costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, log10
from typing import Any

from fairbench.comparison.atlas.findings import (
    AtlasApproach,
    AtlasFindings,
    Explanation,
    MetricStandings,
    Standing,
)
from fairbench.comparison.atlas.report import few_tasks_sentences, ranks_sentence
from fairbench.comparison.atlas.verdicts import OPEN
from fairbench.metrics.registry import find
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import Panel, Series, chart
from fairbench.reporting.document.model import (
    Block,
    Column,
    Details,
    Figure,
    Items,
    Paragraph,
    Section,
    Table,
    TableCell,
    Tags,
)
from fairbench.reporting.leaderboard.means import ERROR
from fairbench.reporting.rank import ends_in_words

_DECIMALS = 4  # of differences
Styles = Mapping[str, dict[str, Any]]


def ranks_section(findings: AtlasFindings, first: str) -> Section:
    """Return the ranking in every metric, that of `first` and of the error open."""
    blocks: list[Block] = [_how_to_read(findings)]
    approaches = {approach.name: approach for approach in findings.approaches}
    for standing in findings.standings:
        table = ranks_table(standing, approaches)
        remark = f"{_direction(standing.metric)}; {len(standing.may_be_best)} may be the best"
        blocks.append(
            Details(
                metric_label(standing.metric),
                [Items(list(standing.sentences)), table],
                remark=remark,
                name=f"ranks-{standing.metric}",
                style="metric",
                is_open=standing.metric in (ERROR, first),
                tags={"metric": standing.metric},
            )
        )
    blocks += _few_tasks(findings, approaches)
    return Section("Ranks", blocks, name="ranks")


def _few_tasks(
    findings: AtlasFindings, approaches: Mapping[str, AtlasApproach]
) -> Iterator[Details]:
    """Yield the results of approaches that were run on too few tasks to be ranked."""
    columns = [Column("metric"), Column("approach"), Column("difference", "estimate")]
    columns += [Column("tasks", "count"), Column("families", "count")]
    few_task_differences = [
        (standing, difference) for standing in findings.standings for difference in standing.few
    ]
    if not few_task_differences:
        return
    rows = [
        [
            metric_label(standing_of_metric.metric),
            difference.approach,
            (difference.difference, difference.lower, difference.upper),
            difference.tasks,
            difference.families,
        ]
        for standing_of_metric, difference in few_task_differences
    ]
    tags = [
        {**approach_tags(approaches.get(difference.approach)), "metric": standing_of_metric.metric}
        for standing_of_metric, difference in few_task_differences
    ]
    caption = (
        f"difference: from {findings.reference or 'the reference'}, over the families of these "
        "tasks alone, with the 95 % interval for new splits of them; approaches that were run on "
        "different tasks cannot be compared by it"
    )
    yield Details(
        "Run on few tasks",
        [
            *(Paragraph(sentence) for sentence in few_tasks_sentences(findings)),
            Table(columns, rows, caption=caption, sortable=True, tags=tags),
        ],
        remark="not ranked",
        name="ranks-few-tasks",
        style="metric",
    )


def _direction(metric: str) -> str:
    """Return which direction of a metric is better, in words; empty if it is unknown."""
    declared = find(metric)
    return declared.direction if declared else ""


def _how_to_read(findings: AtlasFindings) -> Items:
    """Return how the ranks are to be read."""
    return Items(
        [
            "An approach is a learner with an intervention and an uncertainty method.",
            "Compared is the mean over families, each of which counts alike; the tasks of a family "
            "are averaged, and the splits of a task, as they share its rows. Two approaches are "
            "compared on the tasks that both were run on. Claims are about new families like "
            "these.",
            ranks_sentence(findings),
        ]
    )


def ranks_table(
    standings: MetricStandings, approaches: Mapping[str, AtlasApproach], *, most: int = 0
) -> Table:
    """Return the ranking in one metric; a terminal shows the first `most` and fewer columns."""
    near = f"within {standings.epsilon:g}"
    columns = [Column("rank", right=True), Column("approach", heads=True)]
    columns += [Column("may be best", left_out=3), Column("mean", "number", left_out=4)]
    columns += [Column("minus the reference", "signed", decimals=_DECIMALS)]
    columns += [Column("simultaneous 95 %", right=True, left_out=2), Column(near, right=True)]
    columns += [Column("% best", "number", decimals=0, left_out=6)]
    columns += [Column("families", "count", left_out=5), Column("tasks", "count", left_out=1)]
    columns += [Column("cost", "number", 2, left_out=7)]
    columns += [Column("group at prediction", left_out=8)]
    rows = [
        _rank_row(standing, approaches.get(standing.approach), standings.reference)
        for standing in standings.standings
    ]
    tags = [approach_tags(approaches.get(standing.approach)) for standing in standings.standings]
    caption = (
        f"rank: the ranks that each approach can have, simultaneously; minus the "
        f"reference: mean difference from {standings.reference}; {near}, % best: probability of "
        "being so near the best, and the best, on a new task; cost: seconds of a fit over those of "
        "the reference"
    )
    return Table(columns, rows, caption=caption, sortable=True, most=most, tags=tags)


def _rank_row(standing: Standing, approach: AtlasApproach | None, reference: str) -> list[object]:
    """Return the cells of an approach in the table of ranks."""
    low, high = standing.first_rank, standing.last_rank
    needs = None if approach is None else group_need_text(approach)
    return [
        str(low) if low == high else f"{low}-{high}",
        TableCell(standing.approach, strong=standing.may_be_best),
        "yes" if standing.may_be_best else "",
        standing.mean,
        *_difference(standing, reference),
        standing.near_percent,
        100 * standing.best_new,
        standing.families,
        standing.tasks,
        None if approach is None else approach.relative_cost,
        needs,
    ]


def _difference(standing: Standing | None, reference: str) -> tuple[float | None, str | None]:
    """Return a difference and its interval in words; None for approaches that are not ranked."""
    if standing is None or standing.approach == reference:
        return None, None
    return standing.difference, ends_in_words(standing.lower, standing.upper, _DECIMALS)


def group_need_text(approach: AtlasApproach) -> str:
    """Return whether somebody's group must be known to predict, in words."""
    return "needed" if approach.group_at_prediction else "not needed"


def approach_tags(approach: AtlasApproach | None) -> Tags:
    """Return the tags by which the page's filters find an approach."""
    if approach is None:
        return {}
    return {
        "learner": approach.learner,
        "intervention": approach.intervention,
        "method": approach.method,
        "group": "yes" if approach.group_at_prediction else "no",
    }


def cost_section(findings: AtlasFindings, gap: str, style_of: Styles) -> Section:
    """Return the section on cost: seconds of every approach, beside its error and one gap."""
    by_metric = {
        standing.metric: {
            standing_of_approach.approach: standing_of_approach
            for standing_of_approach in standing.standings
        }
        for standing in findings.standings
    }
    shown_metrics = [name for name in (ERROR, gap) if name in by_metric]
    columns = [Column("approach"), Column("tasks", "count"), Column("cost", "number", decimals=2)]
    columns += [Column("fit seconds", "number"), Column("predict seconds", "number")]
    columns += [Column("group at prediction")]
    for name in shown_metrics:
        columns += [Column(f"{metric_label(name)}, difference", "signed", decimals=_DECIMALS)]
        columns += [Column("simultaneous 95 %", right=True)]
    ordered = sorted(
        findings.approaches,
        key=lambda approach_cost: (_nan_last(approach_cost.relative_cost), approach_cost.name),
    )
    rows = [
        [
            approach.name, approach.tasks, approach.relative_cost,
            approach.fit_seconds, approach.predict_seconds,
            group_need_text(approach),
            *(
                cell
                for name in shown_metrics
                for cell in _difference(by_metric[name].get(approach.name), findings.reference)
            ),
        ]
        for approach in ordered
    ]  # fmt: skip
    caption = (
        "seconds of one processor for a split, medians over tasks; cost: over those of "
        f"{findings.reference or 'the reference'} on the same task, geometric mean; differences: "
        "means over families, as in the ranks"
    )
    tags = [approach_tags(approach) for approach in ordered]
    table = Table(columns, rows, caption=caption, sortable=True, tags=tags)
    picture = _cost_figure(ordered, {name: by_metric[name] for name in shown_metrics}, style_of)
    text = (
        "What an approach brings stands beside what it costs: the seconds, and whether somebody's "
        "group must be known when they are decided about, which law or data may forbid."
    )
    return Section("Cost and benefit", [Paragraph(text), picture, table], name="cost")


def _nan_last(value: float) -> float:
    """Return a value to sort by, NaN last."""
    return float("inf") if isnan(value) else value


def _cost_figure(
    approaches: Sequence[AtlasApproach],
    standings: Mapping[str, Mapping[str, Standing]],
    style_of: Styles,
) -> Figure:
    """Return a panel for each metric: the difference from the reference against the cost."""
    panels = [
        Panel(
            list(_cost_points(approaches, standings_of_metric, style_of)),
            "cost: 0 as the reference, 1 ten times as much",
            f"{metric_label(metric)}, difference",
            from_zero="",
        )
        for metric, standings_of_metric in standings.items()
    ]
    shown_interventions = dict.fromkeys(approach.intervention for approach in approaches)
    key = [
        Series(name, [], [], **style_of[name]) for name in style_of if name in shown_interventions
    ]
    svg, *more = chart(panels, key=key)
    caption = (
        "Every point is an approach: its difference from the reference against its cost in powers "
        "of ten. Lower left is better. The pointer shows its name."
    )
    return Figure("Benefit against cost", svg=svg, more=more, caption=caption, name="cost-figure")


def _cost_points(
    approaches: Sequence[AtlasApproach], standings: Mapping[str, Standing], style_of: Styles
) -> Iterator[Series]:
    """Yield a point for each approach with a known cost and difference."""
    for approach in approaches:
        standing = standings.get(approach.name)
        if standing is None or not approach.relative_cost > 0 or isnan(standing.difference):
            continue
        x = log10(approach.relative_cost)
        style = style_of[approach.intervention]
        tags = approach_tags(approach)
        yield Series(approach.name, [x], [standing.difference], **style, lined=False, tags=tags)


_FACTS = {
    "rows": "more rows",
    "positive_share": "a larger base rate",
    "smallest_group_share": "a larger smallest group",
    "reference": "a larger value of the reference",
}


def explanations_section(findings: AtlasFindings) -> Section:
    """Return which facts about a data set tell where an approach does better."""
    approaches = {approach.name: approach for approach in findings.approaches}
    explanations = [
        (standing.metric, explanation)
        for standing in findings.standings
        for explanation in standing.explanations
    ]
    sure = [
        (metric, explanation) for metric, explanation in explanations if explanation.verdict != OPEN
    ]
    text = (
        f"Of {len(explanations)} pairs of an approach and a fact about data sets, {len(sure)} are "
        "resolved: with more of the fact, the approach gains or loses on the reference. A slope is "
        "the change of the difference for one standard deviation of the fact."
    )
    blocks: list[Block] = [Paragraph(text)]
    for title, selected in (
        ("Resolved", sure),
        ("Not resolved", [e for e in explanations if e not in sure]),
    ):
        if selected:
            table = _slopes_table(selected, approaches)
            blocks.append(
                Details(title, [table], remark=f"{len(selected)}", is_open=selected is sure)
            )
    return Section("What explains it", blocks, name="explained")


def _slopes_table(
    explanations: Sequence[tuple[str, Explanation]], approaches: Mapping[str, AtlasApproach]
) -> Table:
    """Return the table of slopes: of an approach's difference with a fact about data sets."""
    columns = [Column(name) for name in ("metric", "approach", "with")]
    columns += [Column("slope", "estimate", decimals=4), Column("verdict")]
    rows = [
        [
            metric_label(metric),
            explanation.approach,
            _FACTS.get(explanation.fact, explanation.fact.replace("_", " ")),
            (explanation.slope, explanation.lower, explanation.upper),
            explanation.verdict.removesuffix(" where larger"),
        ]
        for metric, explanation in explanations
    ]
    tags = [
        {**approach_tags(approaches.get(explanation.approach)), "metric": metric}
        for metric, explanation in explanations
    ]
    return Table(columns, rows, sortable=True, tags=tags)
