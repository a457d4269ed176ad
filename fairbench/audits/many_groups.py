"""An audit of so many groups that they are estimated together, and not compared pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.question import Options
from fairbench.audits.table import AuditTable
from fairbench.core.errors import UserError
from fairbench.core.formats import count, interval, number
from fairbench.core.seeds import rng
from fairbench.evaluation.many_groups import DRAWS, EXCEPTIONAL, SHOWN, parts_of
from fairbench.inference.flags import adjusted, differs_from_rest
from fairbench.inference.gaps import GroupLimits, surest_gap
from fairbench.inference.pooled import Pooled, pool_rates
from fairbench.inference.rates import Limits, rate_limits
from fairbench.metrics.rates import selection_rate, shares_of
from fairbench.metrics.registry import label

Floats = NDArray[np.float64]

CERTAIN = 0.95
FALSE_DISCOVERIES = 0.1  # share of the groups called unlike everyone else that may not be
FEWEST_ROWS = 10  # of a group that gaps are taken between
WITHIN, BEYOND, OPEN = "within", "beyond", "open"
_NAMED = 3  # groups in a sentence


@dataclass(frozen=True, eq=False)
class RateOfGroups:
    """One rate in all groups.

    Attributes
    ----------
    successes, sizes : (G,) counts; a group may have no rows that the rate is of.
    overall : the rate of everyone.
    pooled : the posterior of all groups together.
    adjusted : (G,) the false discovery rate at which a group would be called unlike everyone else.
    gap : the largest difference between two groups of `FEWEST_ROWS`; all pairs hold together.
    low, high : the two groups that are most surely apart, by position.
    """

    name: str
    successes: Floats
    sizes: Floats
    overall: Limits
    pooled: Pooled
    adjusted: Floats
    gap: Limits
    low: int
    high: int

    @property
    def label(self) -> str:
        """What the rate is called."""
        return label(self.name)

    def within(self, epsilon: float) -> Floats:
        """Return the probability (G,) of each group that it is under `epsilon` from everyone."""
        draws = self.pooled.draws
        everyone = draws @ self.sizes / self.sizes.sum()
        near: Floats = (np.abs(draws - everyone[:, None]) < epsilon).mean(axis=0)
        return near


@dataclass(frozen=True, eq=False)
class ManyGroups:
    """The audit of many groups.

    Attributes
    ----------
    attribute, groups : names; those of combinations join the names of their parts.
    rows : (G,) rows of each group.
    """

    options: Options
    table: AuditTable
    attribute: str
    groups: Sequence[str]
    rows: NDArray[np.int64]
    rates: Sequence[RateOfGroups]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each rate and group: counts, own rate, pooled estimate, and what is sure."""
        return pd.concat([self._of(rate) for rate in self.rates], ignore_index=True)

    def _of(self, rate: RateOfGroups) -> pd.DataFrame:
        raw = rate_limits(rate.successes, rate.sizes)
        lower, upper = rate.pooled.interval()
        within = rate.within(self.options.epsilon)
        verdict = np.select([within >= CERTAIN, within <= 1 - CERTAIN], [WITHIN, BEYOND], OPEN)
        return pd.DataFrame(
            {
                "rate": rate.name,
                "group": self.groups,
                "rows": rate.sizes.astype(int),
                "raw": raw.value,
                "raw_lower": raw.lower,
                "raw_upper": raw.upper,
                "pooled": rate.pooled.mean,
                "lower": lower,
                "upper": upper,
                "everyone": float(rate.overall.value),
                "within_epsilon": within,
                "verdict": verdict,
                "adjusted": rate.adjusted,
                "unlike_everyone": rate.adjusted <= FALSE_DISCOVERIES,
                "exception": adjusted(rate.pooled.surprise) < EXCEPTIONAL,
            }
        )

    @cached_property
    def unlike(self) -> pd.DataFrame:
        """The rows of groups that are unlike everyone else, the surest first."""
        found = self.frame[self.frame["unlike_everyone"]]
        nearer = -(found["pooled"] - found["everyone"]).abs()
        return found.iloc[np.lexsort([nearer, found["adjusted"]])]

    @property
    def least_known(self) -> pd.DataFrame:
        """All rows, those of the widest pooled intervals first."""
        narrower = self.frame["lower"] - self.frame["upper"]
        return self.frame.iloc[np.argsort(narrower, kind="stable")]


def assess_many(table: AuditTable, options: Options) -> ManyGroups:
    """Assess a table of many groups.

    The selection rate is of all rows. Rates that need labels are of the rows that have one.

    Raises
    ------
    UserError : weights or clusters, which rates of groups estimated together do not know.
    """
    if table.design is not None:
        raise UserError(
            "weight= and cluster= are of groups that are few enough to be compared pair by pair: "
            "leave them out, or name fewer columns of groups"
        )
    attribute, cells = " x ".join(options.group), table.cells.cat.remove_unused_categories()
    codes, groups = cells.cat.codes.to_numpy(np.int64), list(map(str, cells.cat.categories))
    names, successes, sizes = _counts(table, codes, len(groups))
    posteriors = pool_rates(
        successes[:, None],
        sizes[:, None],
        [rng(options.seed, "posterior")],
        attributes=parts_of(attribute, groups),
        draws=DRAWS,
    )
    pooled = [posteriors.take(r).take(0) for r in range(len(names))]
    unlike = adjusted(differs_from_rest(successes, sizes), overlapping=True)
    rates = [_rate(*each) for each in zip(names, successes, sizes, pooled, unlike, strict=True)]
    rows = np.bincount(codes, minlength=len(groups))
    return ManyGroups(options, table, attribute, groups, rows, rates)


def _counts(
    table: AuditTable, codes: NDArray[np.int64], n_groups: int
) -> tuple[list[str], Floats, Floats]:
    """Return the names of the rates, and their counts (R, G); without labels, of decisions."""
    rows = np.bincount(codes, minlength=n_groups).astype(np.float64)
    selected = np.bincount(codes, table.prediction, n_groups).astype(np.float64)
    known = table.known
    if not len(known):
        return [selection_rate.name], selected[None], rows[None]
    outcome = 2 * table.label[known].astype(np.int64) + table.prediction[known]
    counts = np.bincount(4 * codes[known] + outcome, minlength=4 * n_groups)
    successes, sizes = shares_of(list(SHOWN), counts.reshape(n_groups, 4))
    at = list(SHOWN).index(selection_rate)
    successes[at], sizes[at] = selected, rows
    some = sizes.sum(axis=1) > 0
    names = [rate.name for rate, has in zip(SHOWN, some, strict=True) if has]
    return names, successes[some], sizes[some]


def _rate(
    name: str, successes: Floats, sizes: Floats, pooled: Pooled, unlike: Floats
) -> RateOfGroups:
    enough = np.flatnonzero(sizes >= FEWEST_ROWS)
    nan, low, high = float("nan"), -1, -1
    gap = Limits(*map(np.asarray, (nan, nan, nan)))
    if len(enough) > 1:
        gap, low, high = surest_gap(GroupLimits.of(successes[enough], sizes[enough]))
        low, high = int(enough[low]), int(enough[high])
    overall = rate_limits(successes.sum(), sizes.sum())
    return RateOfGroups(name, successes, sizes, overall, pooled, unlike, gap, low, high)


def conclude_many(found: ManyGroups) -> Conclusions:
    """Return what can and cannot be concluded of many groups."""
    can = [
        *(sentence for rate in found.rates for sentence in _unlike(found, rate)),
        *(sentence for rate in found.rates for sentence in _apart(found, rate)),
        *(sentence for rate in found.rates for sentence in _near(found, rate)),
    ]
    cannot = [_open(found, rate) for rate in found.rates]
    return Conclusions("", list(_basis(found)), can, cannot, list(_notes(found)))


def _unlike(found: ManyGroups, rate: RateOfGroups) -> Iterator[str]:
    mine = found.unlike[found.unlike["rate"] == rate.name]
    if len(mine):
        named = "; ".join(
            f"{row.group} ({number(float(row.pooled))})" for row in mine.head(_NAMED).itertuples()
        )
        more = f"; and {count(len(mine) - _NAMED)} more" if len(mine) > _NAMED else ""
        yield (
            f"{rate.label}: {count(len(mine))} of {count(len(found.groups))} groups "
            f"{'is' if len(mine) == 1 else 'are'} unlike everyone else "
            f"({number(float(rate.overall.value))}): {named}{more}."
        )


def _apart(found: ManyGroups, rate: RateOfGroups) -> Iterator[str]:
    if rate.gap.lower > 0:
        yield (
            f"{rate.label}: that of {found.groups[rate.high]} is higher than that of "
            f"{found.groups[rate.low]} by at least {number(float(rate.gap.lower))}; this is the "
            "surest of all pairs, and chance among so many is allowed for."
        )


def shares(found: ManyGroups, rate: RateOfGroups) -> dict[str, float]:
    """Return which share of the groups is surely within epsilon of everyone, beyond it, or open."""
    verdicts = found.frame.loc[found.frame["rate"] == rate.name, "verdict"]
    return {each: float((verdicts == each).mean()) for each in (WITHIN, BEYOND, OPEN)}


def _near(found: ManyGroups, rate: RateOfGroups) -> Iterator[str]:
    share, epsilon = shares(found, rate), found.options.epsilon
    if share[OPEN] < 1:
        yield (
            f"{rate.label}: {share[WITHIN]:.0%} of the groups are less than {epsilon:g} from "
            f"everyone, and {share[BEYOND]:.0%} are further, each with a probability of "
            f"{CERTAIN:.0%} or more."
        )


def _open(found: ManyGroups, rate: RateOfGroups) -> str:
    share = shares(found, rate)[OPEN]
    apart = interval(float(rate.gap.lower), float(rate.gap.upper))
    widest = f"; the two furthest apart may differ by {apart}" if apart else ""
    return (
        f"{rate.label}: of {share:.0%} of the groups it is open whether they are "
        f"{found.options.epsilon:g} from everyone{widest}."
    )


def _basis(found: ManyGroups) -> Iterator[str]:
    rows, labels = len(found.table), len(found.table.known)
    yield f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%})."
    yield (
        f"{count(len(found.groups))} groups of {found.attribute}, half of them with "
        f"{count(int(np.median(found.rows)))} rows or fewer: they are estimated together. A group "
        "is drawn towards what the others, and those that share a value with it, lead one to "
        "expect, the more the fewer its rows."
    )
    if labels < rows and labels:
        yield (
            "Rates that need labels are of the rows that have one. This assumes that rows were "
            "chosen for labelling at random."
        )
    if not labels:
        yield "Without labels nothing is said of errors: scores are not taken at their word here."


def _notes(found: ManyGroups) -> Iterator[str]:
    yield from found.table.notes
    groups = len(found.groups)
    pairs = groups * (groups - 1) // 2
    yield (
        f"Gaps between every two groups are not shown: {count(groups)} groups make {count(pairs)} "
        f"pairs, of which {count(round(0.05 * pairs))} would seem to differ by chance alone. For "
        "gaps between a few groups name fewer columns, or coarser groups."
    )
    yield (
        "Groups are unlike everyone else by an exact test of each rate and group, so chosen from "
        f"all {count(len(found.frame))} tests that one in ten of those named is wrong on average."
    )
    exceptions = int(found.frame["exception"].sum())
    if exceptions:
        yield (
            "Of groups whose rate is surprising among the others, the raw rate is the one to read: "
            f"{count(exceptions)} of all (exception in the table)."
        )
    small = int((found.rows < FEWEST_ROWS).sum())
    if small:
        yield (
            f"Groups of fewer than {FEWEST_ROWS} rows ({count(small)}) are left out of the widest "
            "gap, and their estimates rest on the other groups."
        )
