"""People of whom two classes are predicted: cells of them, samples, and what is true of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from benchmarks.statements import simulate
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
from fairbench.inference.posterior import DIRICHLET, FREQUENTIST
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
        digits: int = 9, noise: float = 0.0, other_shift: float = 0.0,
    ) -> Cell:  # fmt: skip
        """Return people whose scores are Beta's, and whose labels' log odds are linear in theirs.

        Parameters
        ----------
        mean, spread : of the scores: Beta(mean * spread, (1 - mean) * spread).
        slope, shift : of the log odds of label 1, on those of the score.
        digits : of the scores as they are known.
        noise, other_shift : what the other classifier's log odds are off by: at random, and always.
        """
        grid = (np.arange(POINTS) + 0.5) / POINTS
        score = special.betaincinv(mean * spread, (1 - mean) * spread, grid)
        score = np.clip(score, 1e-6, 1 - 1e-6)
        odds = special.logit(score)
        # Quantiles of a normal, in an order that has nothing to do with that of the scores.
        turn = np.random.default_rng(11).permutation(POINTS)
        other = special.expit(odds + noise * special.ndtri(grid)[turn] + other_shift)
        chance, selected = special.expit(slope * odds + shift), special.expit(2 * odds + 0.5)
        return cls(np.round(score, digits), chance, np.round(other, digits), selected)

    @classmethod
    def of_rates(cls, base: float, positives: float, negatives: float) -> Cell:
        """Return people of two scores, with a base rate, and true and false positive rates."""
        among = (1 - base) * negatives + base * positives
        is_high = np.arange(POINTS) < round(POINTS * among)
        score = np.where(is_high, 0.75, 0.25)
        chances = base * positives / among, base * (1 - positives) / (1 - among)
        return cls(score, np.where(is_high, *chances), score, np.ones(POINTS))

    def moved(self, excess: float) -> Cell:
        """Return the same people with scores that are higher by so much than they should be."""
        return replace(self, score=np.clip(self.score + excess, 0, 1))

    def counts(self, score: Floats, among: Floats | float = 1.0) -> Floats:
        """Return the probabilities of TN, FP, FN and TP of people who are counted so often."""
        decided, labels = (score <= THRESHOLD, score > THRESHOLD), (1 - self.chance, self.chance)
        return np.array([(each * mine * among).mean() for each in labels for mine in decided])


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
        groups: Mapping[str, Sequence[str]],
        cell: Callable[[tuple[int, ...]], Cell],
        shares: Sequence[float] = (),
    ) -> People:
        """Return people whose cell is a function of the positions of their groups."""
        places = list(product(*(range(len(names)) for names in groups.values())))
        return cls(groups, [cell(place) for place in places], parts(list(shares), len(places)))

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


def several(cells: Sequence[Cell], shares: Sequence[float] = ()) -> People:
    """Return people of one attribute with a cell for each group."""
    return People.of({"sex": names(len(cells))}, lambda place: cells[place[0]], shares)


# What is true --------------------------------------------------------------------------------


def truth_of(
    people: People, *, right: bool = False, within: str = "",
    holds: Callable[[str, float], bool] | None = None,
) -> Truth:  # fmt: skip
    """Return what is true of people, with all that an audit of two classes may say of them.

    Parameters
    ----------
    within : the attribute whose groups are strata, and are not compared themselves.
    """
    values: Values = {}
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
    return Truth(values, scores_are_right=right, holds=holds)


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


def truth_of_selected(people: People) -> Truth:
    """Return what is true of the selected, and of everyone."""
    values: Values = {}
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


def truth_of_pair(people: People) -> Truth:
    """Return what is true of two classifiers."""
    values: Values = {}
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


def truth_of_many(people: People) -> Truth:
    """Return what is true of groups beside everyone else."""
    (attributes,) = people.attributes
    values: Values = {}
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
    within : the attribute whose groups are strata, the second of two.
    interval : how intervals are made.
    """

    people: People
    rows: int
    labels: int | None = None
    scored: bool = True
    clusters: int = 0
    constraint: str = ""
    within: str = ""
    interval: str = FREQUENTIST

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


# The populations -----------------------------------------------------------------------------


def populations() -> Iterator[simulate.Population]:
    """Yield the populations of every audit of two classes."""
    return chain(
        *(_all_labels(), _within_strata(), _of_constraints(), _few_labels(), _no_labels()),
        *(_selected(), _pairs(), _many(), _of_a_dozen()),
    )


Populations = Iterator[simulate.Population]
_OTHERS = {
    "selected": (of_selected, truth_of_selected),
    "pair": (compared, truth_of_pair),
    "many": (of_many, truth_of_many),
}


def _sized(
    name: str, people: People, *sizes: int, kind: str = "binary", short: int = 0,
    right: bool = False, holds: Callable[[str, float], bool] | None = None, **how: Any,
) -> Populations:  # fmt: skip
    """Yield audits of so many rows of people; a short run has those of one size.

    Parameters
    ----------
    name : what they are called, with places for the numbers of rows and labels, or without.
    how : of :class:`Drawing`.
    """
    name = name if "{" in name else f"{name}, {{rows:,}} rows"
    draw, truth = _OTHERS.get(kind, (audited, truth_of))
    for rows in sizes:
        drawing, true = Drawing(people, rows, **how), partial(truth, people)
        if kind == "binary":
            true = partial(truth_of, people, right=right, within=drawing.within, holds=holds)
        words = name.format(rows=rows, labels=drawing.labels)
        yield simulate.Population(kind, words, partial(draw, drawing), true, rows == short)


def _all_labels() -> Populations:
    alike = Cell.of()
    two = several([alike, alike])
    yield from _sized("2 alike, {rows} rows", two, 60, 400, 2000, short=400)
    yield from _sized("2 alike", two, 20_000)
    for groups, rows in ((3, 300), (10, 1000), (30, 3000), (30, 15_000)):
        yield from _sized(f"{groups} alike", several([alike] * groups), rows, short=1000)
    three = {"sex": names(2), "race": names(3), "age": names(4)}
    yield from _sized("3 attributes alike", People.of(three, lambda _: alike), 800, 8000)
    rare, often = Cell.of(mean=0.02, spread=5), Cell.of(mean=0.95, spread=5)
    yield from _sized("2 alike, rare label", several([rare, rare]), 1000, 10_000)
    yield from _sized("10 alike, frequent label", several([often] * 10), 3000)
    yield from _sized("3 alike, rare label", several([rare] * 3), 300)
    at = several([Cell.of_rates(0.5, 0.6, 0.3), Cell.of_rates(0.5, 0.65, 0.35)])
    yield from _sized("2 at epsilon", at, 600, 6000, 20_000, short=6000)
    exactly = [Cell.of_rates(0.5, rate, 1 - rate + 0.0) for rate in (0.6, 0.65)]
    yield from _sized("2 of accuracies at epsilon", several(exactly), 6000)
    middle = [Cell.of_rates(0.5, 0.6, 0.3)] * 8
    ends = [Cell.of_rates(0.5, 0.574, 0.274), Cell.of_rates(0.5, 0.626, 0.326)]
    over = several([*middle, *ends], [0.05] * 8 + [0.3] * 2)
    yield from _sized("10, two just over epsilon apart", over, 30_000)
    apart = several([Cell.of(mean=0.5), Cell.of(mean=0.35)])
    yield from _sized("2 apart", apart, 200, 1000, 5000, short=1000)
    one = several([alike] * 9 + [Cell.of(mean=0.3)])
    yield from _sized("1 of 10 apart", one, 2000, short=2000)
    spread = several([Cell.of(mean=0.4 + 0.02 * place) for place in range(10)])
    yield from _sized("10 spread", spread, 5000)
    yield from _sized("2 alike, one of 5 %", several([alike, alike], (0.95, 0.05)), 1000)
    low = People.of(three, lambda place: Cell.of(mean=0.5 - 0.12 * (place[0] * place[1] == 1)))
    yield from _sized("3 attributes, a combination apart", low, 6000)
    off = several([alike, alike.moved(0.1)])
    yield from _sized("scores of one group too high", off, 1000, short=1000)
    off = several([Cell.of(shift=0.0), Cell.of(shift=-0.25)])
    yield from _sized("scores of one group a little too high", off, 2000)
    rounded, same = Cell.of(digits=1), Cell.of(mean=0.6, spread=1e6)
    yield from _sized("2 alike, rounded scores", several([rounded, rounded]), 1000)
    yield from _sized("2 alike, constant score", several([same, same]), 500)
    fifths = several([Cell.of_rates(0.5, 0.7, 0.3), Cell.of_rates(0.5, 0.55, 0.25)])
    yield from _sized("impact ratio of four fifths", fifths, 1000, 10_000)
    yield from _sized("2 alike, households of 4", two, 1200, clusters=4)
    yield from _sized("10 alike, households of 4", several([alike] * 10), 4000, clusters=4)


def _within_strata() -> Populations:
    """Yield people whose groups are compared within strata of different rates, too."""
    means = (0.3, 0.5, 0.7)

    def of(groups: int = 2, moved: float = 0.0, shares: Sequence[float] = ()) -> People:
        return People.of(
            {"sex": names(groups), "age": [f"A{place}" for place in range(3)]},
            lambda place: Cell.of(mean=means[place[1]] + moved * (place[0] == 0)),
            shares,
        )

    within = partial(_sized, within="age")
    otherwise = (0.1, 0.15, 0.25, 0.25, 0.15, 0.1)  # the first group is mostly in the last stratum
    spread, reverse = of(shares=otherwise), of(moved=-0.1, shares=otherwise)
    rare = of(3, shares=(*(0.3,) * 6, 0.02, 0.01, 0.0))
    yield from within("2 alike in 3 strata", of(), 150, 1000, 8000, short=1000)
    yield from within(
        "2 alike in 3 strata, spread otherwise", spread, 400, 4000, 20_000, short=4000
    )
    yield from within("10 alike in 3 strata", of(10), 1500, 15_000)
    yield from within("3 alike in 3 strata, one rare", rare, 2000)
    yield from within("2 the other way round in 3 strata", reverse, 4000)
    yield from within("2 apart in 3 strata", of(moved=0.1), 3000)
    yield from within("2 alike in 3 strata, {labels} labels of {rows:,}", spread, 4000, labels=300)


def _of_constraints() -> Populations:
    for name, mean in (("alike", 0.5), ("apart", 0.4)):
        people = several([Cell.of(), Cell.of(mean=mean)])

        def holds(_: str, threshold: float, people: People = people) -> bool:
            rates = [float((cell.score > threshold).mean()) for cell in people.cells]
            return min(rates) / max(rates) >= 0.8

        words = f"constraint, 2 {name}"
        yield from _sized(words, people, 1500, constraint="ratio:0.8", holds=holds)


def _few_labels() -> Populations:
    two_humps = Cell.of(spread=1.2)
    maps = {
        "calibrated": two_humps,
        "half as sure": Cell.of(spread=1.2, slope=0.5),
        "shifted": Cell.of(spread=1.2, shift=-1.0),
        "inverted": Cell.of(spread=1.2, slope=-1.0),
    }

    def few(
        name: str, people: People, *labelled: int, rows: int = 4000, short: bool = False
    ) -> Populations:
        words = f"few labels, {name}, {{labels:,}} of {{rows:,}}"
        for labels in labelled:
            in_short = rows if short and labels == 100 else 0
            yield from _sized(words, people, rows, labels=labels, short=in_short)

    for name, cell in maps.items():
        people, short = several([two_humps, cell], (0.6, 0.4)), name in ("calibrated", "inverted")
        yield from few(f"second group {name}", people, 30, 100, 300, 1000, short=short)
    yield from few("5 % inverted", several([two_humps, maps["inverted"]], (0.95, 0.05)), 300)
    yield from few("10 alike", several([two_humps] * 10), 100, 300, 1000)
    rare, easy = Cell.of(mean=0.03, spread=3), Cell.of(spread=0.2)
    yield from few("2 alike, rare label", several([rare, rare]), 100, 1000, rows=10_000)
    yield from few("2 alike, nearly sure scores", several([easy, easy]), 30, 100, 400)


def _no_labels() -> Populations:
    for name, *means in (("alike", 0.5, 0.5), ("apart", 0.5, 0.35), ("3 apart", 0.5, 0.45, 0.3)):
        people = several([Cell.of(mean=mean) for mean in means])
        how: dict[str, Any] = {"short": 300 * (name == "alike"), "right": True, "labels": 0}
        yield from _sized(f"no labels, {name}", people, 300, 3000, **how)
    yield from _no_labels_of_many()
    wrong, three = several([Cell.of(), Cell.of(slope=0.3)]), several([Cell.of()] * 3)
    yield from _sized("no labels, scores wrong", wrong, 1000, labels=0)
    yield from _sized("decisions alone, 3 alike", three, 100, 3000, labels=0, scored=False)


def _no_labels_of_many() -> Populations:
    """Yield people without labels in many groups, where pairs need more certainty than one has."""
    alike, rare, often = Cell.of(), Cell.of(mean=0.02, spread=5), Cell.of(mean=0.95, spread=5)

    def crossed(*counts: int) -> People:
        return People.of({f"of {count}": names(count) for count in counts}, lambda _: alike)

    def unlabelled(name: str, people: People, rows: int, short: int = 0) -> Populations:
        return _sized(f"no labels, {name}", people, rows, short=short, right=True, labels=0)

    unequal = list(special.expit(np.linspace(-4, 2, 20)))
    spread = [Cell.of(mean=0.4 + 0.01 * place) for place in range(20)]
    yield from unlabelled("10 alike", several([alike] * 10), 1000)
    yield from unlabelled("30 alike", several([alike] * 30), 4500)
    yield from unlabelled("8 x 5 alike", crossed(8, 5), 3000, 3000)
    yield from unlabelled("10 x 2 alike", crossed(10, 2), 1500, 1500)
    yield from unlabelled("40 alike", several([alike] * 40), 800)
    yield from unlabelled("20 alike", several([alike] * 20), 20_000)
    yield from unlabelled("20 alike of all sizes", several([alike] * 20, unequal), 3000)
    yield from unlabelled("20 alike, few selected", several([rare] * 20), 4000)
    yield from unlabelled("20 alike, most selected", several([often] * 20), 4000)
    yield from unlabelled("2 x 3 x 4 alike", crossed(2, 3, 4), 2000)
    yield from unlabelled("6 x 6 alike", crossed(6, 6), 7200)
    yield from unlabelled("1 of 20 apart", several([alike] * 19 + [Cell.of(mean=0.35)]), 4000)
    yield from unlabelled("20 spread", several(spread), 6000)
    name = "decisions alone, 8 x 5 alike"
    yield from _sized(name, crossed(8, 5), 3000, labels=0, scored=False)
    name, people = "interval=dirichlet, all labels, 30 alike", several([alike] * 30)
    yield from _sized(name, people, 4500, right=True, interval=DIRICHLET)


def _selected() -> Populations:
    of = partial(_sized, kind="selected")
    for name, mean, short in (("alike", 0.5, 400), ("apart", 0.3, 0)):
        yield from of(f"2 {name}", several([Cell.of(), Cell.of(mean=mean)]), 400, 4000, short=short)
    most = replace(Cell.of(spread=0.5), selected=np.full(1000, 0.97))
    worse = replace(Cell.of(mean=0.3, spread=0.5, slope=0.3), selected=np.full(1000, 0.97))
    yield from of("2 apart, nearly all selected", several([most, worse]), 4000)


def _pairs() -> Populations:
    of = partial(_sized, kind="pair")
    for count, short, *sizes in ((2, 200, 200, 2000), (3, 300, 300, 2000, 10_000), (10, 0, 3000)):
        yield from of(f"{count} alike", several([Cell.of(noise=0.7)] * count), *sizes, short=short)
    apart = [Cell.of(mean=mean, noise=0.3) for mean in (0.55, 0.4, 0.45)]
    yield from of("2 apart in both alike", several(apart[:2]), 3000)
    yield from of("3 apart in both alike", several(apart), 3000, short=3000)
    nearly = [Cell.of(mean=0.55, noise=0.05), Cell.of(mean=0.4, noise=0.05)]
    yield from of("2 apart in both nearly the same", several(nearly), 3000)
    for count in (2, 3, 10):
        cells = [Cell.of(noise=0.5)] * (count - 1) + [Cell.of(noise=0.5, other_shift=0.6)]
        yield from of(f"{count}, the second with a gap", several(cells), 3000)
    mirrored = several([Cell.of(noise=0.3, other_shift=-0.5), Cell.of(mean=0.42, noise=0.3)])
    yield from of("2, gaps of opposite sign", mirrored, 3000)
    labelled = "3 apart in both alike, {labels} labels of {rows:,}"
    yield from of(labelled, several(apart), 3000, labels=300)
    yield from of(
        "3 alike, rare label", several([Cell.of(mean=0.04, spread=4, noise=0.5)] * 3), 2000
    )


def _many() -> Populations:
    of = partial(_sized, kind="many")
    alike = several([Cell.of()] * 150)
    yield from of("150 alike", alike, 1500, 6000, short=1500)
    yield from of("150 alike, rare label", several([Cell.of(mean=0.03, spread=4)] * 150), 6000)
    sizes = list(special.expit(np.linspace(-5, 2, 150)))
    yield from of("150 alike of all sizes", several([Cell.of()] * 150, sizes), 5000)
    few = several([Cell.of()] * 145 + [Cell.of(mean=0.2)] * 5)
    yield from of("5 of 150 apart", few, 6000)
    yield from of("150 alike, {labels} labels of {rows:,}", alike, 3000, labels=600)


DOZEN = (1.0, 1.0, 0.004)  # shares of groups, of which the last has a dozen of 6,000 rows


def _of_a_dozen() -> Populations:
    """Yield two groups that are alike, and a dozen people who differ from them by 0.4."""
    alike, apart = Cell.of_rates(0.5, 0.75, 0.25), Cell.of_rates(0.5, 0.35, 0.0)
    people, name = several([alike, alike, apart], DOZEN), "2 alike, a dozen apart"
    bound: dict[str, Any] = {"constraint": "selection_rate:0.05", "holds": lambda *_: False}
    strata = People.of(
        {"sex": names(3), "age": ["A0", "A1"]},
        lambda place: apart if place[0] == 2 else alike,
        np.repeat(DOZEN, 2).tolist(),
    )
    yield from _sized(name, people, 6000, short=6000)
    yield from _sized(f"households of 4, {name}", people, 6000, clusters=4)
    yield from _sized(f"decisions alone, {name}", people, 6000, labels=0, scored=False)
    yield from _sized(f"no labels, {name}", people, 6000, labels=0, right=True)
    yield from _sized(f"3,000 labels, {name}", people, 6000, labels=3000)
    yield from _sized(f"in 2 strata, {name}", strata, 6000, within="age")
    yield from _sized(f"constraint, {name}", people, 6000, **bound)
    yield from _sized(name, people, 6000, kind="selected")
    same = Cell.of(noise=0.05)
    pair = several([same, same, Cell.of(noise=0.05, other_shift=3.0)], DOZEN)
    yield from _sized(name, pair, 6000, kind="pair")
