"""Evaluates groups within strata, such as bands of age, and over one mix of strata.

Two kinds of rows are added to the long table: every rate, difference, ratio and gap in each stratum
(``in_stratum``), and standardised to everyone's mix of strata (``standardised``). The column
``within`` names the columns that make the strata. See :mod:`fairbench.inference.gaps` for
the estimator and its estimand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.core.errors import UserError
from fairbench.core.text import quoted, some_of
from fairbench.data.dataset import check_combinable, combine
from fairbench.data.groups import CROSSED, in_order
from fairbench.evaluation import table as tables
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.groups import counted_rates
from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.inference import gaps
from fairbench.inference.pooled import Generators
from fairbench.inference.rates import Limits
from fairbench.metrics import registry

MOST_STRATA = 500


def strata_of(columns: Mapping[str, pd.Series], source: str) -> pd.Series:
    """Return the strata (n,): the combinations of the columns' levels. Named after the columns.

    Parameters
    ----------
    columns : name -> categorical labels (n,).
    source : the option that the columns come from, which an error names.

    Raises
    ------
    UserError : if there are too many strata, or names that would make combinations ambiguous.
    """
    frame = pd.DataFrame(dict(columns))
    check_combinable(frame, source)
    name = CROSSED.join(columns)
    # Counted before they are named: two columns of numbers would make millions of names.
    if (strata := len(frame.drop_duplicates())) > MOST_STRATA:
        raise UserError(
            f"{source}: {quoted(name)} makes {strata:,} strata of {len(frame):,} rows; groups are "
            f"compared within up to {MOST_STRATA}: name fewer columns, or make bands of numbers"
        )
    parts = []
    for labels in columns.values():
        levels = labels.cat.remove_unused_categories()
        parts.append(levels.cat.reorder_categories(in_order(levels.cat.categories)))
    return combine(parts).cat.remove_unused_categories().rename(name)


@dataclass(frozen=True, eq=False)
class Stratified:
    """The confusion counts (G, K, 4) of an attribute's groups in K strata.

    Attributes
    ----------
    attribute : the attribute whose groups they are.
    groups : the names of the groups, the reference first.
    within : the columns that the strata are made of, such as ``age``.
    strata : the names of the strata.
    counts : the confusion counts.
    """

    attribute: str
    groups: tuple[str, ...]
    within: str
    strata: tuple[str, ...]
    counts: registry.Counts

    @classmethod
    def of(cls, groups: Groups, strata: pd.Series, target: Floats, hard: Floats) -> Stratified:
        """Count rows (n,) of one split."""
        levels = tuple(map(str, strata.cat.categories))
        cell = groups.codes * len(levels) + strata.cat.codes.to_numpy(np.intp)
        counts = registry.binary_confusion(target, hard, cell, n_groups=len(groups) * len(levels))
        counts = counts.reshape(len(groups), len(levels), 4)
        return cls(groups.attribute, groups.names, str(strata.name), levels, counts)

    def rows(self, rate: registry.Rate) -> NDArray[np.int64]:
        """Return the number of rows (G, K) in a rate's denominator."""
        return registry.shares_of([rate], self.counts)[1][0].astype(np.int64)

    @cached_property
    def standardised(self) -> Mapping[registry.Rate, gaps.StandardisedRates]:
        """The standardised rates of all pairs of groups."""
        rates = counted_rates()
        shares = registry.shares_of(rates, self.counts)
        return dict(zip(rates, map(gaps.StandardisedRates.of, *shares), strict=True))

    def left_out(self, rate: registry.Rate, pairs: Mask) -> list[str]:
        """Return the strata that have rows, but not of both groups of each of the pairs (G, G)."""
        has_rows = self.rows(rate) > 0
        shared = has_rows[:, None] & has_rows[None]
        missing = np.asarray(has_rows.any(axis=0) & (~shared & pairs[..., None]).any(axis=(0, 1)))
        return [name for name, out in zip(self.strata, missing, strict=True) if out]

    def weakest(
        self, metric: registry.Metric, pairs: Sequence[tuple[int, int]], minimum: int
    ) -> tuple[int, str]:
        """Return the size of the smallest group of the pairs, and the reason of a flag, if any.

        Pairs that share no stratum are left out, unless no pair shares any.
        """
        fewest = []
        reasons = []
        for rate in metric.rates:
            rates = self.standardised[rate]
            compared = [pair for pair in pairs if rates.rows[pair]]
            if not compared:
                return 0, self._why_no_rows(rate, pairs[0])
            are_compared = np.zeros(rates.value.shape, bool)
            are_compared[tuple(zip(*compared, strict=True))] = True
            both_ways = [*compared, *((other, g) for g, other in compared)]
            fewest.append(min((int(rates.rows[pair]), self.groups[pair[0]]) for pair in both_ways))
            if len(compared) < len(pairs):
                lacking = next(pair for pair in pairs if not rates.rows[pair])
                why = self._why_no_rows(rate, lacking)
                reasons.append(f"without a pair of groups: {why}")
            elif names := self.left_out(rate, are_compared):
                # The share of these people that comparisons are of.
                covered = min(rates.covered[pair] for pair in compared)
                without = some_of(list(map(quoted, names)))
                why = f"without {without}, where a group has no rows"
                reasons.append(f"of {covered:.1%} of these people: {why}")
        n_rows, group = min(fewest)
        if n_rows < minimum:
            return n_rows, f"n={n_rows} in group '{group}'"
        return n_rows, reasons[0] if reasons else ""

    def _why_no_rows(self, rate: registry.Rate, pair: tuple[int, int]) -> str:
        """Return why a rate cannot be compared between two groups: one is empty, or no overlap."""
        sizes = self.rows(rate).sum(axis=1)
        for g in pair:
            if not sizes[g]:
                return f"{rate.empty} in group '{self.groups[g]}'"
        return f"no stratum has rows of both '{self.groups[pair[0]]}' and '{self.groups[pair[1]]}'"


def evaluate_within(
    table: tables.MetricTable,
    evaluator: Evaluator,
    data: Labelled,
    strata: pd.Series,
    generators: Generators,
) -> None:
    """Add the rows of every attribute within strata, and over one mix of strata.

    Parameters
    ----------
    evaluator : the settings; the rows of single strata are made as those of everyone are.
    strata : (n,) the stratum of each row of one split, as :func:`strata_of` returns them.
    """
    hard = data.column("prediction")
    names = tuple(map(str, strata.cat.categories))
    each = [*generators] * len(names)
    for groups in data.coded.values():
        counted = Stratified.of(groups, strata, data.target, hard)
        # The values of every stratum, evaluated as if each were a split.
        of_strata = replace(table.without_rows(), splits=tuple(range(len(names))))
        codes = strata.cat.codes.to_numpy(np.intp) * len(groups) + groups.codes
        cells = replace(groups, codes=codes, splits=len(names))
        counts = evaluator.count(cells, data.target, hard, each)
        evaluator.add_counts(of_strata, counts, each)
        for block in of_strata.blocks:
            of_values = [m for m, name in enumerate(block.statistics) if name == tables.VALUE]
            values = block.subset(of_values)
            table.add(
                np.repeat(values.metrics, len(names)).tolist(),
                values.limits.value,
                values.n,
                values.attribute,
                values.groups,
                statistic=tables.IN_STRATUM,
                setting=[
                    setting._replace(within=str(strata.name), stratum=name)
                    for setting, name in product(values.settings, names)
                ],
                interval=values.limits[1:],
                status=values.status,
                bounded=True,
                is_row=values.is_row,
            )
        _add_standardised(table, counted)


def _add_standardised(table: tables.MetricTable, counted: Stratified) -> None:
    """Add the standardised rates, differences and ratios to the reference, and largest gaps."""

    def add(
        metric: registry.Metric,
        names: tuple[str, ...],
        limits: Limits,
        pairs_of_values: Sequence[Sequence[tuple[int, int]]],
    ) -> None:
        """Add values (V,) with their statuses, from the pairs of groups that each compares."""
        weakest = [counted.weakest(metric, pairs, table.minimum) for pairs in pairs_of_values]
        n_rows = np.array([rows for rows, _ in weakest], np.int64)
        status = tables.Statuses.ok(limits.value.shape)
        no_rows = n_rows == 0
        status.flag(no_rows, "undefined", lambda i: weakest[i][1])
        status.flag(np.isnan(limits.value) & ~no_rows, "undefined", "the rate compared with is 0")
        lacking = np.array([bool(reason) for _, reason in weakest]) & status.is_ok
        status.flag(lacking, "insufficient", lambda i: weakest[i][1])
        table.add(
            metric.name,
            limits.value,
            n_rows,
            counted.attribute,
            names,
            statistic=tables.STANDARDISED,
            setting=tables.Setting(within=counted.within),
            interval=limits[1:],
            status=status,
            bounded=bool((~no_rows).all()),
        )

    groups, others = range(len(counted.groups)), range(1, len(counted.groups))
    # Each group's rates over the strata that it has rows in.
    for metric in registry.metrics_of(registry.BINARY, "rate").values():
        if len(metric.rates) == 1 and metric.rates[0].weights == (1, 1):
            limits = counted.standardised[metric.rates[0]].limits(level=table.level)
            add(metric, counted.groups, limits.apply(np.diagonal), [[(g, g)] for g in groups])
    if len(groups) == 1:
        return
    for metric in registry.metrics_of(registry.BINARY, "difference", "ratio").values():
        standardised = counted.standardised[metric.rates[0]]
        is_ratio = metric.interval == "ratio"
        limits = (standardised.ratios if is_ratio else standardised.differences)(level=table.level)
        to_reference = limits.apply(lambda limit: limit[1:, 0])
        add(metric, counted.groups[1:], to_reference, [[(g, 0)] for g in others])
    all_pairs = [(group, other) for group in groups for other in groups if group < other]
    for metric in registry.metrics_of(registry.BINARY, "widest").values():
        rates = [counted.standardised[rate] for rate in metric.rates]
        among = [of_pairs.compared() for of_pairs in rates]
        if metric.is_gap:
            limits, _ = gaps.largest_difference(rates, among, level=table.level)
        elif len(groups) == 2:
            limits = rates[0].ratios(level=table.level).apply(lambda limit: limit[1, 0])
        else:
            limits = gaps.smallest_standardised_ratio(rates[0], among[0], level=table.level)
        add(metric, ("",), limits.apply(lambda limit: np.reshape(limit, 1)), [all_pairs])
