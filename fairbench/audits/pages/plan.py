"""The document of a planned audit: how many labels it will take."""

from __future__ import annotations

from fairbench.audits.labels_needed import rounded
from fairbench.audits.plan import MOST, AuditPlan
from fairbench.core.formats import count
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table


def plan_document(plan: AuditPlan) -> Document:
    """Return the numbers of labels to two digits, and what they suppose."""
    options, smallest = plan.options, plan.options.groups[plan.smallest]
    sizes = " : ".join(f"{100 * share:g} %" for share in options.groups)
    claims = {
        True: f"no two groups differ by {options.gap:g} or more, if all are alike",
        False: f"groups differ, if the one of {100 * smallest:g} % has a rate of {plan.other:g}",
    }
    rows = [
        [claim, "as many in each group" if equally else "at random"]
        + [
            f"over {count(MOST)}" if labels is None else count(rounded(labels))
            for labels in plan.labels(alike=alike, equally=equally)
        ]
        for alike, claim in claims.items()
        for equally in (False, True)
    ]
    columns = [Column("to show that"), Column("labels")]
    columns += [Column(f"{chance} from", right=True) for chance in ("perhaps", "probably")]
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
    sections = [Section("", [Table(columns, rows)])]
    return Document("Labels that an audit will take", sections, lead=lead)
