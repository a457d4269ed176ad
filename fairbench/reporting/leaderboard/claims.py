"""The page's section on claims of the literature: verdicts, evidence and figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairbench.comparison.atlas.claim_values import (
    Claim,
    ClaimPart,
    MarginsBySize,
)
from fairbench.comparison.atlas.findings import (
    AtlasFindings,
    TaskVerdict,
    UnprocessingMargin,
)
from fairbench.comparison.atlas.report import (
    MEAN_OVER_FAMILIES,
    few_tasks_not_counted,
    size_sentence,
)
from fairbench.comparison.atlas.verdicts import FAILS, FEW_TASKS, HOLDS, sign_in_words
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.charts import forest
from fairbench.reporting.document.model import (
    Block,
    Column,
    Details,
    Figure,
    Gallery,
    Items,
    Paragraph,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.leaderboard.means import gap_label

_DRAWN = 12  # parts that a figure shows
_MARKS = {HOLDS: "agrees", FAILS: "differs"}


def claims_section(findings: AtlasFindings) -> Section:
    """Return every claim with its verdict, then each with its parts."""
    text = (
        "A claim holds, or fails, where the interval over families of data leaves no other "
        "answer; otherwise it is not resolved. A difference that does not matter in practice "
        f"counts as none. {MEAN_OVER_FAMILIES} {FEW_TASKS}"
    )
    blocks: list[Block] = [Paragraph(text), _overview(findings.claims)]
    blocks += [_details(claim) for claim in findings.claims]
    if findings.by_size is not None:
        blocks.append(_size_details(findings.by_size))
    if findings.verdicts:
        blocks.append(_task_verdicts_details(findings))
    return Section("Claims", blocks, name="claims")


def _overview(claims: Sequence[Claim]) -> Table:
    """Return the table of all claims, with their verdicts and what was measured."""
    columns = [Column("claim"), Column("verdict")]
    columns += [Column("what was measured"), Column("source")]
    rows = [
        [
            TableCell(claim.statement, link=f"#claim-{_slug(claim.name)}"),
            verdict_cell(claim.verdict),
            evidence_text(claim),
            claim.source,
        ]
        for claim in claims
    ]
    return Table(columns, rows)


def verdict_cell(verdict: str) -> TableCell:
    """Return a verdict as a badge that can be told from others without colour."""
    return TableCell(verdict, mark=_MARKS.get(verdict, "not-resolved"))


def _part_cell(part: ClaimPart) -> TableCell:
    """Return what is known of a difference; its mark says whether that agrees with the claim."""
    return TableCell(sign_in_words(part), mark=verdict_cell(part.verdict).mark)


def _slug(name: str) -> str:
    return "-".join(name.split())


def evidence_text(claim: Claim) -> str:
    """Return what was measured of a claim, and how many differences do not count."""
    if not claim.evidence:
        return "nothing on enough tasks to tell"
    few = len(claim.parts) - len(claim.deciding_parts)
    return f"{claim.evidence} {few_tasks_not_counted(few)}" if few else claim.evidence


def _details(claim: Claim) -> Details:
    """Return a claim with its rule, its figure, and the table of its parts."""
    columns = [Column("what"), Column("metric"), Column("mean over families", "estimate")]
    columns += [Column("all at once", "interval"), Column("matters from", "number")]
    columns += [Column("families", "count"), Column("tasks", "count")]
    columns += [Column("tasks above 0", "count"), Column("difference")]
    rows = [
        [
            part.label, metric_label(part.metric), (part.mean, part.lower, part.upper),
            (part.all_lower, part.all_upper), part.epsilon, part.families, part.tasks,
            part.positive, "few tasks" if part.few_tasks else _part_cell(part),
        ]
        for part in claim.parts
    ]  # fmt: skip
    tags = [{"metric": part.metric} for part in claim.parts]
    caption = (
        "mean over families: with its own 95 % interval; all at once: the same, for all rows "
        "together; tasks above 0: on how many of the tasks the difference is above 0; difference: "
        "whether it is surely above 0, surely under what matters, or open, all at once"
    )
    blocks: list[Block] = [
        Paragraph(f"{claim.criterion} Source: {claim.source}"),
        *([Items(claim.remarks)] if claim.remarks else []),
        *_picture(claim),
        Table(columns, rows, caption=caption, sortable=True, tags=tags),
    ]
    return Details(
        claim.statement, blocks, remark=claim.verdict, name=f"claim-{_slug(claim.name)}",
        style="metric",
    )  # fmt: skip


def _size_details(margins: MarginsBySize) -> Details:
    """Return the table of errors of thresholds minus those of interventions, by size of data."""
    columns = [Column("data"), Column("tasks", "count"), Column("families", "count")]
    columns += [Column("error of thresholds minus that of interventions", "estimate")]
    columns += [Column("tasks above 0", "count"), Column("comparisons", "count")]
    columns += [Column("comparisons above 0", "count")]
    rows = [
        [
            size.label, size.tasks, size.families, (size.difference, size.lower, size.upper),
            size.positive, size.compared, size.above,
        ]
        for size in margins.classes
    ]  # fmt: skip
    caption = (
        "at the same gap, the mean over all interventions and strengths; tasks averaged within "
        "families, families equally; comparisons: of an intervention and a gap"
    )
    return Details(
        "Thresholds of each group against interventions, by the size of the data",
        [Paragraph(size_sentence(margins)), Table(columns, rows, caption=caption)],
        name="unprocessing-by-size",
        style="metric",
        is_open=True,
    )


def _picture(claim: Claim) -> Iterator[Gallery]:
    """Yield the parts that decide with their intervals, drawn one below the other."""
    metrics = dict.fromkeys(part.metric for part in claim.deciding_parts)
    figures = []
    for metric in metrics:
        parts = [
            part
            for part in claim.deciding_parts
            if part.metric == metric and part.mean == part.mean
        ]
        if not parts:
            continue
        limits = np.array([[part.lower, part.upper] for part in parts])
        reach = float(np.ceil(100 * np.nanmax(np.abs(limits))) / 100) or 0.01
        estimates = [(part.label, part.mean, part.lower, part.upper) for part in parts[:_DRAWN]]
        title = metric_label(metric)
        svg = forest(title, [estimates], span=(-reach, reach), mark=0.0)
        name = f"claim-{_slug(claim.name)}-{metric}"
        figures.append(Figure(f"{claim.statement} {title}", svg=svg, style="panel", name=name))
    if figures:
        yield Gallery(figures, "Dots: mean differences. Lines: intervals. Dashed: no difference.")


def _task_verdicts_details(findings: AtlasFindings) -> Details:
    """Return the table of verdicts on thresholds against interventions, a row per task and gap."""
    columns = [Column("task"), Column("gap"), Column("compared", "count")]
    columns += [Column("no worse", "count"), Column("worse", "count"), Column("verdict")]
    columns += [Column("worst margin", "estimate")]
    rows = [
        [
            f"{verdict.dataset} by {verdict.protect}",
            gap_label(verdict.gap_metric),
            verdict.compared,
            verdict.holds,
            verdict.fails,
            verdict_cell(verdict.verdict),
            _least_margin(verdict, findings.margins),
        ]
        for verdict in findings.verdicts
    ]
    families = {(task.dataset, task.protect): task.family for task in findings.tasks}
    tags = [
        {
            "family": families.get((verdict.dataset, verdict.protect), ""),
            "metric": verdict.gap_metric,
        }
        for verdict in findings.verdicts
    ]
    caption = (
        "compared: interventions and strengths; worst margin: how much larger the error of the "
        "intervention is that does best against thresholds with the same gap: below 0 it wins"
    )
    table = Table(columns, rows, caption=caption, sortable=True, tags=tags)
    count = sum(verdict.verdict == HOLDS for verdict in findings.verdicts)
    return Details(
        "Thresholds of each group against every intervention, task by task",
        [table],
        remark=f"no worse in {count} of {len(findings.verdicts)} tasks and gaps",
        name="unprocessing",
        style="metric",
    )


def _least_margin(
    verdict: TaskVerdict, margins: Sequence[UnprocessingMargin]
) -> tuple[float, float, float] | None:
    """Return the least margin of a task with its interval; None if it has none."""
    task_and_gap = (verdict.dataset, verdict.protect, verdict.gap_metric)
    margins_of_task = [
        margin
        for margin in margins
        if (margin.dataset, margin.protect, margin.gap_metric) == task_and_gap
    ]
    least = min(margins_of_task, key=lambda margin: margin.margin, default=None)
    return None if least is None else (least.margin, least.lower, least.upper)
