"""People of whom two classes are predicted: cells of them, samples, and what is true of groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, cycle, islice, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from benchmarks.statements.simulate import EPSILON, PART, Found, Question, Sample, Truth, Values
from fairbench.audits.assessment import assess
from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_NAMES, RATE_OF, Direction
from fairbench.audits.kinds import binary, pair, unknown
from fairbench.audits.question import MANY, Options
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Floats, Mask
from fairbench.data.dataset import combine
from fairbench.data.groups import group_columns
from fairbench.evaluation.by_group import LARGE_ENOUGH, SMALLEST_SHARE
from fairbench.evaluation.findings import COMPARISON, EXCESS, GAP, RATIO, UNLIKE, risk_of
from fairbench.evaluation.many_groups import SHOWN
from fairbench.evaluation.stratified import strata_of
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.posterior import FREQUENTIST
from fairbench.inference.survey import Design
from fairbench.metrics.registry import Rate, accuracy, binary_confusion, label

Codes = NDArray[np.int64]
POINTS = 1000  # equally likely scores of a cell, so that every truth is a sum
THRESHOLD = 0.5


@dataclass(frozen=True, eq=False)
class Cell:
    """People of whom everything is alike but their score, (K,) points that are equally likely.

    Attributes
    ----------
    score : of the classifier. chance : of label 1.
    other : of another classifier. selected : how often somebody of such a score is selected.
    """

    score: Floats
    chance: Floats
    other: Floats
    selected: Floats

    @classmethod
    def of(
        cls, *, mean: float = 0.5, spread: float = 2.0, slope: float = 1.0, shift: float = 0.0,
        digits: int = 9, excess: float = 0.0, noise: float = 0.0, other_shift: float = 0.0,
        selected: float | None = None,
    ) -> Cell:  # fmt: skip
        """Return people whose scores are Beta's, and whose labels' log odds are linear in theirs.

        Parameters
        ----------
        mean, spread : of the scores: Beta(mean * spread, (1 - mean) * spread).
        slope, shift : of the log odds of label 1, on those of the score.
        digits : of the scores as they are known. excess : by how much they are higher than they
            should be.
        noise, other_shift : what the other classifier's log odds are off by: at random, and always.
        selected : the share of those who are selected; more of higher scores if it is None.
        """
        grid = (np.arange(POINTS) + 0.5) / POINTS
        score = special.betaincinv(mean * spread, (1 - mean) * spread, grid)
        score = np.clip(score, 1e-6, 1 - 1e-6)
        odds = special.logit(score)
        # Quantiles of a normal, in an order that has nothing to do with that of the scores.
        turn = np.random.default_rng(11).permutation(POINTS)
        other = special.expit(odds + noise * special.ndtri(grid)[turn] + other_shift)
        known = np.clip(np.round(score, digits) + excess, 0, 1)
        chance, among = special.expit(slope * odds + shift), special.expit(2 * odds + 0.5)
        if selected is not None:
            among = np.full(POINTS, selected)
        return cls(known, chance, np.round(other, digits), among)

    @classmethod
    def of_rates(cls, base: float, positives: float, negatives: float) -> Cell:
        """Return people of two scores, with a base rate, and true and false positive rates."""
        among = (1 - base) * negatives + base * positives
        is_high = np.arange(POINTS) < round(POINTS * among)
        score = np.where(is_high, 0.75, 0.25)
        chances = base * positives / among, base * (1 - positives) / (1 - among)
        return cls(score, np.where(is_high, *chances), score, np.ones(POINTS))

    def counts(self, score: Floats, among: Floats | float = 1.0) -> Floats:
        """Return the probabilities of TN, FP, FN and TP of people who are counted so often."""
        decided, labels = (score <= THRESHOLD, score > THRESHOLD), (1 - self.chance, self.chance)
        return np.array([(each * mine * among).mean() for each in labels for mine in decided])


def _cells(declared: Mapping[str, Any]) -> Sequence[Cell]:
    """Return so many cells as are declared, alike or with means evenly between two."""
    times = declared.get("times", 1)
    rest = {name: value for name, value in declared.items() if name != "times"}
    if isinstance(rest.get("mean"), list):
        low, high = rest["mean"]
        return [Cell.of(**rest | {"mean": mean}) for mean in np.linspace(low, high, times)]
    return [Cell.of_rates(*rest["rates"]) if "rates" in rest else Cell.of(**rest)] * times


@dataclass(frozen=True, eq=False)
class People:
    """Cells of people by their groups.

    Attributes
    ----------
    groups : attribute -> the names of its groups. cells : a cell for each combination.
    shares : (N,) of the people, by combination.
    """

    groups: Mapping[str, Sequence[str]]
    cells: Sequence[Cell]
    shares: Floats

    @classmethod
    def of(
        cls,
        cells: Sequence[Mapping[str, Any]],
        groups: Mapping[str, int] | None = None,
        shares: Any = (),
    ) -> People:
        """Return people as `populations.yaml` declares them."""
        every = list(chain.from_iterable(map(_cells, cells)))
        groups = groups or {"sex": len(every)}
        count = prod(groups.values())
        if isinstance(shares, Mapping):
            low, high = shares["logits"]
            shares = special.expit(np.linspace(low, high, count)).tolist()
        named = {name: names(of) for name, of in groups.items()}
        return cls(named, list(islice(cycle(every), count)), parts(shares, count))

    @property
    def attributes(self) -> list[tuple[str, ...]]:
        """The attributes, and their pairs, whose groups an audit compares."""
        names = list(self.groups)
        return [(name,) for name in names] + list(combinations(names, 2))

    def members(self, attributes: Sequence[str]) -> Mapping[str, Mask]:
        """Return which cells (N,) make up each group of some attributes' combinations."""
        places = list(product(*self.groups.values()))
        at = [list(self.groups).index(name) for name in attributes]
        return {
            " x ".join(which): np.array([tuple(place[a] for a in at) == which for place in places])
            for which in product(*(self.groups[name] for name in attributes))
        }

    def of_groups(
        self, attributes: Sequence[str], value: Callable[[Cell], Floats]
    ) -> Mapping[str, Floats]:
        """Return of each group what is linear in people, such as their counts."""
        values = np.array([value(cell) for cell in self.cells])
        shares = {name: self.shares * of for name, of in self.members(attributes).items()}
        return {
            name: np.einsum("n,n...->...", of, values) / of.sum() for name, of in shares.items()
        }

    def rates(
        self, attributes: Sequence[str], rate: Rate, score: str = "score", selected: bool = False
    ) -> dict[str, float]:
        """Return a rate of each group.

        Parameters
        ----------
        score : ``other`` for the other classifier. selected : of those who are selected.
        """

        def counts(cell: Cell) -> Floats:
            return cell.counts(getattr(cell, score), cell.selected if selected else 1.0)

        of_groups = self.of_groups(attributes, counts)
        return {name: float(rate(value)) for name, value in of_groups.items()}

    def draw(self, rows: int, generator: np.random.Generator) -> Rows:
        """Draw people at random."""
        cell = generator.choice(len(self.cells), rows, p=self.shares)
        point = generator.integers(0, POINTS, rows)
        score, other, chance, selected = (
            np.stack([getattr(each, name) for each in self.cells])[cell, point]
            for name in ("score", "other", "chance", "selected")
        )
        luck, more = generator.random((2, rows))
        codes = np.stack(np.unravel_index(cell, [len(group) for group in self.groups.values()]))
        label = (luck < chance).astype(float)
        return Rows(self.groups, codes, score, other, label, more < selected)


def by_size(codes: Codes, names: Sequence[str]) -> pd.Categorical:
    """Return the group of each row as a category, of those that there are, the largest first."""
    size = np.bincount(codes, minlength=len(names))
    order = np.argsort(-size, kind="stable")
    there = [names[g] for g in order if size[g]]
    return pd.Categorical.from_codes(np.argsort(order)[codes], there)


def parts(given: Sequence[float], count: int) -> Floats:
    """Return shares that sum to 1, of what is given; equal ones where nothing is."""
    weights = np.array(given or [1.0] * count, float)
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a sample.

    Attributes
    ----------
    groups : attribute -> names. codes : (A, n) the group of each row.
    score, other : (n,) of two classifiers. label : (n,) NaN where unknown. selected : (n,).
    """

    groups: Mapping[str, Sequence[str]]
    codes: NDArray[np.intp]
    score: Floats
    other: Floats
    label: Floats
    selected: Mask

    def take(self, rows: Codes) -> Rows:
        """Return some rows, each as often as it is named."""
        names = ("score", "other", "label", "selected")
        some = {name: getattr(self, name)[rows] for name in names}
        return replace(self, codes=self.codes[:, rows], **some)

    def with_labels(self, known: Mask) -> Rows:
        """Return the same of which only some labels are known."""
        return replace(self, label=np.where(known, self.label, np.nan))

    def columns(self) -> pd.DataFrame:
        """Return the groups as categories, the largest first, as they are read from a file."""
        attributes = zip(self.groups.items(), self.codes, strict=True)
        columns = {name: by_size(codes, names) for (name, names), codes in attributes}
        return pd.DataFrame(columns, copy=False)

    def table(self, *, score: Floats | None = None) -> AuditTable:
        """Return the table that an audit would read.

        Parameters
        ----------
        score : instead of the first classifier's.
        """
        singles = self.columns()
        first = {name: str(singles[name].cat.categories[0]) for name in singles}
        shown = self.score if score is None else score
        return AuditTable(
            shown,
            (shown > THRESHOLD).astype(np.int64),
            self.label,
            group_columns(singles, first, 2),
            combine([singles[name] for name in singles]),
            Direction(("0", "1")),
        )

    def frame(self) -> pd.DataFrame:
        """Return the table as somebody would bring it."""
        label = pd.Series(self.label).map({0.0: "0", 1.0: "1"}).fillna("").astype(str)
        attributes = zip(self.groups.items(), self.codes, strict=True)
        groups = {name: np.array(names, object)[codes] for (name, names), codes in attributes}
        return pd.DataFrame(groups).assign(
            label=label.to_numpy(),
            score=self.score,
            other=self.other,
            selected=np.where(self.selected, "true", "false"),
            decision=np.where(self.score > THRESHOLD, "1", "0"),
        )


# Populations of audits of two classes: of all labels, some or none, selected, compared, many.

PATH = Path("people.csv")
LOWEST_ROWS = 10  # of a group that labels alone compare


def names(count: int) -> list[str]:
    """Return names of groups, none of which is part of another or a word of a sentence."""
    return [f"G{number:03d}" for number in range(count)]


# What is true --------------------------------------------------------------------------------


def truth_of(drawing: Drawing) -> Truth:
    """Return what is true of people, with all that an audit of two classes may say of them."""
    people, within, values = drawing.people, drawing.within, Values()
    for attributes in people.attributes:
        if within in attributes:
            continue
        attribute = " x ".join(attributes)
        for metric, rate in RATE_OF.items():
            values[GAP, attribute, RATE_NAMES[metric], ""] = people.rates(attributes, rate)
        if len(attributes) == 1:
            chosen = people.rates(attributes, RATE_OF[NEEDS_NO_LABELS])
            values |= ratios(people, attribute, chosen)
            values[EXCESS, attribute, _EXCESS, ""] = excess(people, attributes)
        if within:
            scope = f"on average among people of the same {within}"
            for metric, rate in RATE_OF.items():
                values[GAP, attribute, RATE_NAMES[metric], scope] = standardised(people, rate)
    return Truth(values, scores_are_right=drawing.right, holds=drawing.holds)


_EXCESS = "mean score less share of label 1"


def excess(people: People, attributes: Sequence[str], selected: bool = False) -> dict[str, float]:
    """Return by how much mean scores are higher than shares of label 1, of all or the selected."""

    def among(cell: Cell) -> Floats:
        return cell.selected if selected else np.ones(1)

    def sums(cell: Cell) -> Floats:
        off = (cell.score - cell.chance) * among(cell)
        return np.array([off.mean(), among(cell).mean()])

    return {name: float(np.divide(*of)) for name, of in people.of_groups(attributes, sums).items()}


def ratios(people: People, attribute: str, chosen: Mapping[str, float]) -> Values:
    """Return impact ratios over the highest rate of all groups, and over that of larger ones."""
    members = people.members([attribute])
    shares = {name: people.shares[cells].sum() for name, cells in members.items()}
    larger = [rate for name, rate in chosen.items() if shares[name] >= SMALLEST_SHARE]
    highest = {"": max(chosen.values()), f"of the groups {LARGE_ENOUGH}": max(larger)}
    return {
        (RATIO, attribute, "impact ratio", scope): {name: chosen[name] / most for name in chosen}
        for scope, most in highest.items()
    }


def standardised(people: People, rate: Rate) -> dict[str, float]:
    """Return a rate of each group of the first attribute, with one mix of those of the second."""
    groups, strata = people.groups.values()
    counts = np.array([cell.counts(cell.score) for cell in people.cells])
    counts = counts.reshape(len(groups), len(strata), 4)
    shares = people.shares.reshape(len(groups), len(strata))
    weight = (shares * rate.size(counts)).sum(axis=0)
    return dict(zip(groups, rate(counts) @ (weight / weight.sum()), strict=True))


_PLAIN = Direction(("0", "1"))
_OF_SELECTED = _PLAIN.as_predictions()  # beside the decisions that selected them


def truth_of_selected(drawing: Drawing) -> Truth:
    """Return what is true of the selected, and of everyone."""
    people, values = drawing.people, Values()
    for attributes in people.attributes:
        attribute = " x ".join(attributes)
        for metric, rate in RATE_OF.items():
            measure = _OF_SELECTED.rate_names[metric]
            values[GAP, attribute, measure, PART] = people.rates(attributes, rate, selected=True)
            values[GAP, attribute, measure, unknown.EVERYONE] = people.rates(attributes, rate)
        if len(attributes) == 1:
            among = people.of_groups(attributes, lambda cell: np.asarray(cell.selected.mean()))
            values |= ratios(people, attribute, {name: float(rate) for name, rate in among.items()})
        values[EXCESS, attribute, _EXCESS, PART] = excess(people, attributes, selected=True)
    return Truth(values)


def truth_of_pair(drawing: Drawing) -> Truth:
    """Return what is true of two classifiers."""
    people, values = drawing.people, Values()
    for attributes, (metric, rate) in product(people.attributes, RATE_OF.items()):
        values[COMPARISON, " x ".join(attributes), RATE_NAMES[metric], ""] = {
            name: float(np.ptp(list(people.rates(attributes, rate, name).values())))
            for name in ("score", "other")
        }
    values[COMPARISON, "", "accuracy", ""] = {
        name: float(
            people.shares
            @ [float(accuracy(cell.counts(getattr(cell, name)))) for cell in people.cells]
        )
        for name in ("score", "other")
    }
    return Truth(values)


def truth_of_many(drawing: Drawing) -> Truth:
    """Return what is true of groups beside everyone else."""
    people, values = drawing.people, Values()
    (attributes,) = people.attributes
    counts = people.of_groups(attributes, lambda cell: cell.counts(cell.score))
    everyone = people.shares @ np.array(list(counts.values()))
    for rate in SHOWN:
        rates = people.rates(attributes, rate)
        values[GAP, attributes[0], label(rate.name), ""] = rates
        values[UNLIKE, attributes[0], label(rate.name), ""] = {
            name: rates[name] - float(rate(everyone - share * counts[name]))
            for name, share in zip(rates, people.shares, strict=True)
        }
    return Truth(values)


# What is drawn -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Drawing:
    """How rows of people are drawn, and what is asked of them.

    Attributes
    ----------
    rows : how many. labels : how many of them have one, at random; None of all.
    scored : whether scores are given, or decisions alone.
    clusters : into how large clusters of identical people they fall; 0 of none.
    within : the attribute whose groups are strata, which are not compared, the second of two.
    interval : how intervals are made.
    right : whether what is said on the assumption that scores are right is to be true.
    """

    people: People
    rows: int
    labels: int | None = None
    scored: bool = True
    clusters: int = 0
    constraint: str = ""
    within: str = ""
    interval: str = FREQUENTIST
    right: bool = False

    @classmethod
    def of(
        cls,
        cells: Sequence[Mapping[str, Any]],
        groups: Mapping[str, int] | None = None,
        shares: Sequence[float] = (),
        **how: Any,
    ) -> Drawing:
        """Return how people are drawn as `populations.yaml` declares them."""
        return cls(People.of(cells, groups, shares), **how)

    def holds(self, threshold: float) -> bool:
        """Say whether what is asked of the selection rates holds at a threshold."""
        rates = [float((cell.score > threshold).mean()) for cell in self.people.cells]
        kind, bound = self.constraint.split(":")
        if kind == "ratio":
            return min(rates) >= float(bound) * max(rates)
        return max(rates) - min(rates) <= float(bound)

    def draw(self, generator: np.random.Generator) -> tuple[Rows, Options, Design | None]:
        """Draw rows, and return them with what is asked."""
        design = None
        rows = self.people.draw(self.rows // max(self.clusters, 1), generator)
        if self.clusters:
            of = np.repeat(np.arange(len(rows.label)), self.clusters)
            rows, design = rows.take(of), Design.of(len(of), clusters=of)
        if self.labels is not None:
            rows = rows.with_labels(generator.permutation(len(rows.label)) < self.labels)
        options = Options(
            path=PATH,
            group=tuple(name for name in self.people.groups if name != self.within),
            within=(self.within,) if self.within else (),
            target="label" if self.labels != 0 else "",
            score="score" if self.scored else "",
            prediction="" if self.scored else "decision",
            cluster="cluster" if self.clusters else "",
            constraint=self.constraint,
            interval=self.interval,
        )
        return rows, options, design


def audited(drawing: Drawing, generator: np.random.Generator) -> Sample:
    """Draw a sample for an audit of two classes."""
    rows, options, design = drawing.draw(generator)

    def findings() -> Found:
        table = replace(rows.table(), design=design)
        if drawing.within:
            strata = strata_of({drawing.within: rows.columns()[drawing.within]}, PATH.name)
            groups = {name: table.groups[name] for name in options.group}
            table = replace(table, groups=groups, strata=strata)
        if not drawing.scored:
            table = replace(table, score=None)
        assessment = assess(table, options, only_findings=True)
        return binary.findings_of(assessment), assessment.gaps

    def frame():  # type: ignore[no-untyped-def]
        table = rows.frame()
        size = max(drawing.clusters, 1)
        return table.assign(cluster=[f"c{row // size}" for row in range(len(table))])

    constrained = len(drawing.people.groups) * bool(drawing.constraint)
    questions = len(drawing.people.attributes) * len(RATE_OF) + constrained
    alone = drawing.scored and not design and not drawing.within
    risk = risk_of(questions)
    return Sample(options, findings, frame, partial(gaps_alone, rows, risk) if alone else None)


def gaps_alone(
    rows: Rows, risk: float, direction: Direction = _PLAIN, scope: str = ""
) -> set[Question]:
    """Return the gaps that the labelled rows alone show to be large."""
    table = rows.table()
    known, large = table.known, set()
    for attribute, groups in table.groups.items():
        code, count = groups.cat.codes.to_numpy(np.int64), len(groups.cat.categories)
        everyone, labelled = (
            binary_confusion(label, table.prediction[rows], code[rows], n_groups=count)
            for label, rows in ((np.zeros(len(code)), slice(None)), (table.label[known], known))
        )
        for metric, rate in RATE_OF.items():
            counts = everyone if metric == NEEDS_NO_LABELS else labelled
            if shows_gap(rate.successes(counts), rate.size(counts), risk):
                large.add((GAP, attribute, direction.rate_names[metric], scope))
    return large


def shows_gap(successes: Floats, sizes: Floats, risk: float) -> bool:
    """Say whether counts (G,) alone show a large gap between groups of enough rows."""
    enough = sizes >= LOWEST_ROWS
    if enough.sum() < 2:
        return False
    limits = GroupLimits.of(successes[enough], sizes[enough], level=1 - risk)
    return float(largest_gap(limits).lower) > EPSILON


def of_selected(drawing: Drawing, generator: np.random.Generator) -> Sample:
    """Draw a sample of whom only the selected can have labels."""
    rows, options, _ = drawing.draw(generator)
    rows = rows.with_labels(rows.selected & ~np.isnan(rows.label))
    options = replace(options, selected="selected")
    table = replace(rows.table(), selected=rows.selected, direction=_OF_SELECTED)
    chosen = rows.take(np.flatnonzero(rows.selected))
    risk = risk_of(2 * len(drawing.people.attributes) * len(RATE_OF))

    def findings() -> Found:
        assessment = assess(table.of_selected(), options, only_findings=True)
        of_everyone, _, _ = unknown.bound_everyone(table, options, assessment.risk)
        return [*binary.findings_of(assessment), *of_everyone], []

    alone = partial(gaps_alone, chosen, risk, _OF_SELECTED, PART)
    return Sample(options, findings, rows.frame, alone)


def compared(drawing: Drawing, generator: np.random.Generator) -> Sample:
    """Draw a sample of two classifiers' decisions."""
    rows, options, _ = drawing.draw(generator)
    options = replace(options, against="other")
    tables = rows.table(), rows.table(score=rows.other)
    return Sample(options, lambda: (pair.compare_tables(*tables, options), []), rows.frame)


def of_many(drawing: Drawing, generator: np.random.Generator) -> Sample:
    """Draw a sample of so many groups that they are estimated together."""
    rows, options, _ = drawing.draw(generator)
    frame = rows.frame()
    audit = unknown.AUDITS[MANY]
    return Sample(options, lambda: (audit(options, frame).findings, []), lambda: frame)
