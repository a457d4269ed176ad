"""The section of a page on gaps within strata: over one mix of them, and in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairbench.audits.findings import NOT_MEASURED
from fairbench.audits.gaps import NEEDS_NO_LABELS, Gap
from fairbench.audits.within import StandardisedGap, StratumGap
from fairbench.core.formats import number, signed
from fairbench.reporting.document.model import (
    Block,
    Column,
    Details,
    Items,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.group_tables import MOST_ROWS, bars, table_of

_WEIGHTS = (
    "Each stratum counts by its share of all people that the rate is of (everyone, or those with "
    "label 1 for the true positive rate, with label 0 for the false positive rate, predicted 1 for "
    "precision), in every group alike. Strata without rows of both groups are left out of a pair, "
    "and the shares of the others add up to 1."
)


def within_section(
    gaps: Sequence[StandardisedGap], raw: Sequence[Gap], same: str, epsilon: float
) -> Iterator[Section]:
    """Yield the section, where gaps within strata were asked for.

    Parameters
    ----------
    gaps : the gaps over one mix of strata.
    raw : the gaps of everyone, without regard to strata, shown for comparison.
    same : what people of one stratum have in common.
    epsilon : the gap that matters.
    """
    if not gaps:
        return
    blocks: list[Block] = [_standardised(gaps, raw, epsilon)]
    if reversed_ := list(_reversed(gaps, raw)):
        blocks.append(Items(reversed_))
    blocks += [_strata(gap, epsilon) for gap in gaps if gap.metric == NEEDS_NO_LABELS]
    if others := [gap for gap in gaps if gap.metric != NEEDS_NO_LABELS]:
        tables = [_strata(gap, epsilon) for gap in others]
        blocks.append(Details("Other rates in each stratum", tables))
    yield Section(f"Among people of the same {same}", blocks)


def _standardised(gaps: Sequence[StandardisedGap], raw: Sequence[Gap], epsilon: float) -> Table:
    """Return the table of gaps over one mix of strata, with those of everyone for comparison."""
    of_everyone = {(gap.attribute, gap.metric): gap for gap in raw}
    drawn_bars = bars([(gap.lower, gap.value, gap.upper) for gap in gaps], epsilon)
    bar_of = dict(zip(gaps, drawn_bars, strict=True))

    def size(gap: StandardisedGap | Gap) -> str:
        return signed(gap.value) if gap.signed else number(gap.value)

    def raw_size(gap: StandardisedGap) -> str:
        return size(of_everyone[gap.attribute, gap.metric])

    def verdict(gap: StandardisedGap) -> TableCell:
        text = "too few rows" if gap.verdict == NOT_MEASURED else gap.verdict
        return TableCell(text, mark=gap.verdict)

    return table_of(
        gaps,
        [
            ("attribute", Column("groups")),
            ("rate_name", Column("gap in")),
            (raw_size, Column("of everyone", right=True)),
            (size, Column("standardised", right=True)),
            (("lower", "upper"), Column("95 % interval", "interval")),
            (bar_of.get, Column("", "bar")),
            (verdict, Column("verdict")),
        ],
        caption=(
            "standardised: the mean of the differences in each stratum, by the strata's shares of "
            "all people; of everyone: without regard to strata"
        ),
        reading=_WEIGHTS,
    )


def _reversed(gaps: Sequence[StandardisedGap], raw: Sequence[Gap]) -> Iterator[str]:
    """Yield where a difference of two groups is the other way round within strata."""
    of_everyone = {(gap.attribute, gap.metric): gap for gap in raw}
    for gap in gaps:
        raw_gap = of_everyone[gap.attribute, gap.metric]
        if not (gap.signed and raw_gap.signed):
            continue
        is_reversed = gap.value * raw_gap.value < 0
        if is_reversed and min(abs(gap.value), abs(raw_gap.value)) >= 0.01:
            yield (
                f"In these rows the difference in {gap.rate_name} by {gap.attribute} is "
                f"{signed(raw_gap.value)} of everyone and {signed(gap.value)} within strata: the "
                "groups are spread over strata differently (Simpson's paradox)."
            )


def _strata(gap: StandardisedGap, epsilon: float) -> Table:
    """Return the table of one gap in each stratum."""
    pairs = {(stratum.low, stratum.high) for stratum in gap.strata if stratum.low}
    is_signed = len(pairs) == 1 and gap.signed
    drawn_bars = bars([(row.lower, row.value, row.upper) for row in gap.strata], epsilon)
    bar_of = dict(zip(gap.strata, drawn_bars, strict=True))

    def rate(index: int) -> Callable[[StratumGap], str]:
        """Return the function that writes the lower (0) or the higher (1) rate of a stratum."""

        def cell(row: StratumGap) -> str:
            if not row.low:
                return "one group alone" if index == 0 else ""
            name = (row.low, row.high)[index]
            return number(row.rates[index]) if is_signed else f"{number(row.rates[index])} ({name})"

        return cell

    def size(row: StratumGap) -> str:
        return signed(row.value) if is_signed else number(row.value)

    def limits(row: StratumGap) -> TableCell | None:
        few = f" (n={row.smallest})" if row.smallest < gap.minimum else ""
        return TableCell((row.lower, row.upper), after=few) if row.low else None

    titles = next(iter(pairs)) if is_signed else ("lowest", "highest")
    return table_of(
        gap.strata,
        [
            ("stratum", Column(gap.within)),
            (lambda row: 100 * row.weight, Column("weight, %", "number", decimals=1)),
            ("rows", Column("rows", "count")),
            (rate(0), Column(titles[0], right=True)),
            (rate(1), Column(titles[1], right=True)),
            (size, Column("difference", right=True)),
            (limits, Column("95 % interval", "interval")),
            (bar_of.get, Column("", "bar")),
        ],
        by="",
        title=f"{gap.rate_name} by {gap.attribute}, in each stratum",
        caption=(
            "weight: the stratum's share of all people that the rate is of; n: rows of the "
            f"smallest group there, where it has under {gap.minimum}"
        ),
        most=MOST_ROWS,
    )
