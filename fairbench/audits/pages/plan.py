"""The document of a planned audit: how many labels it will take."""

from __future__ import annotations

from collections.abc import Iterator

from fairbench.audits.labels_needed import rounded
from fairbench.audits.plan import MOST, AuditPlan, LabelsFor
from fairbench.core.formats import count
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table


def plan_document(plan: AuditPlan) -> Document:
    """Return the numbers of labels, and what they suppose."""
    options = plan.options
    sizes = " : ".join(f"{100 * share:g} %" for share in options.groups)
    columns = [
        Column("to show that"),
        Column("labels"),
        Column("perhaps from", right=True),
        Column("probably from", right=True),
    ]
    table = Table(columns, list(_rows(plan)))
    text = (
        f"Groups of {sizes}, a rate of {options.rate:g}, a gap of {options.gap:g}. With the first "
        "number of labels the audit says so in 20 % of simulations, with the second in 80 %. It "
        "speaks only when sure: in at most one audit of twenty any of its verdicts is wrong."
    )
    assumed = (
        "Scores that predict labels well make do with fewer labels; how many fewer is known once "
        "there are some. People who belong together, such as households, count for fewer."
    )
    lead = [Paragraph(text), Paragraph(assumed, "note")]
    return Document("Labels that an audit will take", [Section("", [table])], lead=lead)


def _rows(plan: AuditPlan) -> Iterator[list[str]]:
    gap, smallest = plan.options.gap, plan.options.groups[plan.smallest]
    small = f"no two groups differ by {gap:g} or more, if all are alike"
    apart = f"groups differ, if the one of {100 * smallest:g} % has a rate of {plan.other:g}"
    for claim, answered in ((small, plan.alike), (apart, plan.apart)):
        for equally, how in ((False, "at random"), (True, "as many in each group")):
            yield [claim, how, *_numbers(answered(equally=equally))]


def _numbers(answer: LabelsFor) -> list[str]:
    """Return both numbers to two digits."""
    return [
        f"over {count(MOST)}" if each is None else count(rounded(each))
        for each in (answer.few, answer.enough)
    ]
