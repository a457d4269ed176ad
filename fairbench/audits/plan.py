"""How many labels an audit will take, from what is supposed before there are any data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from fairbench.audits.findings import ErrorBudget, one_sided_level
from fairbench.audits.gaps import RATE_OF
from fairbench.audits.question import PlanOptions
from fairbench.core.formats import count, two_digits
from fairbench.core.seeds import rng
from fairbench.inference.few_labels.importance import sobol
from fairbench.inference.further_labels import (
    LIKELY,
    UNLIKELY,
    WORLDS,
    SupposedRates,
    least_number,
)
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table

MOST = 50_000_000  # labels; more are not planned


@dataclass(frozen=True)
class AuditPlan:
    """Labels that a planned audit needs.

    Rates are estimated from labels alone: scores, which may help, are not known yet.
    """

    options: PlanOptions

    @property
    def other(self) -> float:
        """The rate of the smallest group where it differs from the others'."""
        rate = self.options.rate
        gap = self.options.gap
        return rate - gap if rate >= gap else rate + gap

    @property
    def smallest(self) -> int:
        """The position of the smallest group."""
        return int(np.argmin(self.options.groups))

    @property
    def risk(self) -> float:
        """The error rate of one question: a page asks of each attribute, and of each two."""
        attributes = self.options.attributes
        return ErrorBudget(len(RATE_OF) * attributes * (attributes + 1) // 2).risk

    def labels(self, *, no_difference: bool, equally: bool) -> tuple[int | None, int | None]:
        """Return how many labels give the right verdict with a probability of 0.2, and of 0.8.

        Parameters
        ----------
        no_difference : whether all groups have the same rate, so that the right verdict is a small
            gap; otherwise the smallest group differs by the gap, and the right verdict is a gap.
        equally : whether all groups get the same number of labels; otherwise people are labelled at
            random.

        Returns
        -------
        Both numbers; None where even `MOST` labels do not suffice.
        """
        options = self.options
        gap = options.gap
        shares = np.array(options.groups)
        rates = np.full(len(options.groups), options.rate)
        label_shares = np.full(len(shares), 1 / len(shares)) if equally else shares / shares.sum()
        if not no_difference:
            rates[self.smallest] = self.other
        points = sobol(len(shares), WORLDS, rng(options.seed, "plan"))
        nothing = np.zeros(len(shares))
        added = label_shares * options.among
        supposed = SupposedRates(
            nothing, nothing, rates, lambda labels: labels * added, special.ndtri(points)
        )

        def chance(labels: float) -> float:
            """Return the power: the probability of the right verdict with so many labels."""
            if no_difference:
                return float((supposed.gap(labels, one_sided_level(self.risk)).upper < gap).mean())
            # Pairs of several groups are named at half the risk.
            level = 1 - self.risk / (2 if len(shares) > 2 else 1)
            return float((supposed.gap(labels, level).lower > 0).mean())

        few, enough = (least_number(chance, wanted, 1, MOST) for wanted in (UNLIKELY, LIKELY))
        return few, enough

    def document(self) -> Document:
        """Return the numbers of labels to two digits, and what they suppose."""
        options = self.options
        smallest = f"{100 * options.groups[self.smallest]:g} %"
        sizes = " : ".join(f"{100 * share:g} %" for share in options.groups)
        claims = {
            True: f"no two groups differ by {options.gap:g} or more, if all are alike",
            False: f"groups differ, if the one of {smallest} has a rate of {self.other:g}",
        }
        rows = [
            [claim, "as many in each group" if equally else "at random"]
            + [
                f"over {count(MOST)}" if labels is None else two_digits(labels)
                for labels in self.labels(no_difference=no_difference, equally=equally)
            ]
            for no_difference, claim in claims.items()
            for equally in (False, True)
        ]
        columns = [Column("to conclude that"), Column("labels chosen")]
        columns += [Column(f"labels, for {chance}", right=True) for chance in ("20 %", "80 %")]
        text = (
            f"How many labels an audit takes for groups of {sizes}, a rate of {options.rate:g} and "
            f"a gap of {options.gap:g}. With the first number of labels, the audit reaches the "
            "conclusion in 20 % of simulations; with the second, in 80 %. An audit concludes only "
            "what is sure: the chance of any wrong conclusion on its page is at most 5 %."
        )
        assumed = (
            "If scores predict labels well, fewer labels do; how many fewer shows once there are "
            "some. If people belong together, such as households, it takes more labels."
        )
        lead = [Paragraph(text), Paragraph(assumed, "note")]
        sections = [Section("", [Table(columns, rows)])]
        return Document("Labels that an audit will take", sections, lead=lead)
