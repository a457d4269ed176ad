"""Populations of every kind of audit; those of two classes are in `two_classes`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from scipy import special, stats

from benchmarks.statements import simulate, two_classes
from benchmarks.statements.simulate import EPSILON, Found, Population, Sample, Truth, Values
from benchmarks.statements.two_classes import Cell, Drawing, names, parts
from fairbench.audits.direction import RATE_NAMES, RATE_OF
from fairbench.audits.kinds import classes, numbers, unknown
from fairbench.audits.question import PROXY, SURVIVAL, Options
from fairbench.audits.table import read_frame
from fairbench.core.arrays import Floats
from fairbench.data.columns import UNKNOWN
from fairbench.data.dataset import Task
from fairbench.data.groups import read_groups
from fairbench.evaluation.findings import GAP, SHARE, risk_of
from fairbench.evaluation.predictions import Labelled
from fairbench.inference.gaps import exposure_weights, top_weights
from fairbench.metrics.registry import label

asked = partial(Options, path=two_classes.PATH, group=("sex",))


def by_name(values: Sequence[float] | Floats) -> dict[str, float]:
    """Return values of groups by the groups' names."""
    return dict(zip(names(len(values)), map(float, values), strict=True))


def gaps_in(measures: Mapping[str, Sequence[float] | Floats]) -> Values:
    """Return the values of groups by measure, as what gaps are asked in."""
    return {(GAP, "sex", name, ""): by_name(values) for name, values in measures.items()}


def named(group: NDArray[np.int64], groups: int) -> NDArray[np.object_]:
    """Return the name of each row's group."""
    return np.array(names(groups), dtype=object)[group]


def of_last(groups: int, last: float, others: float = 0.0) -> Floats:
    """Return a value of each group, of which the last has its own."""
    return np.array([others] * (groups - 1) + [last])


def _by_sex(table: pd.DataFrame) -> Mapping[str, pd.Series]:
    """Return the only attribute of a table as an audit reads it."""
    return read_groups(table, two_classes.PATH.name, ["sex"])[0]


# Populations of audits of three classes and more.


@dataclass(frozen=True, eq=False)
class Classified:
    """People who are classified, and how often rightly.

    Attributes
    ----------
    groups, classes : how many there are.
    right : how often a prediction is right: of everyone, of each group, or evenly from one value to
        another. lowest : the same of the first classes that are predicted.
    shares : of the people, by group. predicted : of the predictions, by class. Equal ones if empty.
    """

    groups: int
    classes: int
    rows: int
    right: Any = 0.8
    lowest: Sequence[float] = ()
    shares: Sequence[float] = ()
    predicted: Sequence[float] = ()
    labels: int | None = None

    @property
    def is_right(self) -> Floats:
        """The probability (G, C) that a prediction is right, by group and predicted class."""
        right = self.right
        if isinstance(right, Mapping):
            right = np.linspace(right["from"], right["to"], self.groups)
        result = np.full((self.classes, self.groups), right).T
        result[:, : len(self.lowest)] = self.lowest
        return result

    @property
    def all_shares(self) -> tuple[Floats, Floats]:
        """The shares (G,) of the groups, and (C,) of the classes among predictions."""
        return parts(self.shares, self.groups), parts(self.predicted, self.classes)

    def truth(self) -> Truth:
        """Return the accuracies of groups and of predicted classes."""
        of_groups, predicted = self.all_shares
        of_classes = (of_groups @ self.is_right).tolist()
        values = gaps_in({classes.ACCURACY: self.is_right @ predicted})
        values[GAP, classes.CLASSES, classes.ACCURACY, ""] = dict(
            zip(class_names(len(of_classes)), of_classes, strict=True)
        )
        return Truth(values, only_lowest=[classes.CLASSES])


def class_names(count: int) -> list[str]:
    """Return names of classes, in the order of the alphabet."""
    return [f"C{number:03d}" for number in range(count)]


def drawn_classes(people: Classified, generator: np.random.Generator) -> Sample:
    """Draw a sample of people who are classified."""
    groups, count = people.groups, people.classes
    group, predicted = (
        generator.choice(len(shares), people.rows, p=shares) for shares in people.all_shares
    )
    is_right = generator.random(people.rows) < people.is_right[group, predicted]
    other = (predicted + generator.integers(1, count, people.rows)) % count
    label = np.where(is_right, predicted, other)
    if people.labels is not None:
        label[generator.permutation(people.rows) >= people.labels] = UNKNOWN
    confidence = generator.uniform(1 / count, 1, people.rows)
    options = asked(target="label", score="score", prediction="decision")
    of_classes = np.array([*class_names(count), ""], dtype=object)
    columns = {"label": of_classes[label], "decision": of_classes[predicted]}
    table = pd.DataFrame({"sex": named(group, groups), **columns, "score": confidence})

    def findings() -> Found:
        scores = classes.read_multiclass(options, table)
        return classes.findings_of(scores, _by_sex(table), options), []

    def alone() -> Set[simulate.Question]:
        known = label != UNKNOWN
        size, right = (
            np.bincount(group[rows], minlength=groups).astype(float)
            for rows in (known, known & is_right)
        )
        large = two_classes.shows_gap(right, size, risk_of(2))
        return {(GAP, "sex", classes.ACCURACY, "")} if large else set()

    return Sample(options, findings, lambda: table, alone)


# Populations of audits of predicted numbers.

_GRID = 2_000_000  # quantiles of an error, of which its means are taken
_EXACT = 0.8  # share of the predictions that are exact, in one of the shapes
_CONTAMINATED, _FACTOR = 0.02, 10.0


def quantiles(shape: str, grid: Floats) -> Floats:
    """Return quantiles of errors of mean 0."""
    if shape == "normal":
        return np.asarray(special.ndtri(grid))
    if shape.startswith("lognormal"):
        sigma = float(shape.split()[1])
        return np.asarray(np.exp(sigma * special.ndtri(grid)) - np.exp(sigma**2 / 2))
    if shape.startswith("t"):
        return np.asarray(stats.t.ppf(grid, float(shape.split()[1])))
    # A mixture is drawn by which part the first digits of the grid fall in.
    tail = _CONTAMINATED if shape == "contaminated" else 1 - _EXACT
    inside = grid < tail
    within = np.where(inside, grid / tail, (grid - tail) / (1 - tail))
    spread = np.where(inside, _FACTOR, 1.0) if shape == "contaminated" else inside
    return np.asarray(spread * special.ndtri(np.clip(within, 1e-12, 1 - 1e-12)))


@dataclass(frozen=True, eq=False)
class Predicted:
    """People of whom a number is predicted, in groups of which the last may be unlike the others.

    Attributes
    ----------
    shape : of the errors. shares : of the people, by group; equal ones if empty.
    level, bias, scale : of the last group: mean prediction, mean error, and what errors are
        multiplied by.
    reach : how far bounds of a prediction go to either side; 0 without bounds. wider : by how much
        further they go in the last group, times as far.
    varied : by up to which share of itself a row's reach is more or less.
    """

    shape: str
    rows: int
    groups: int = 2
    shares: Sequence[float] = ()
    level: float = 0.0
    bias: float = 0.0
    scale: float = 1.0
    reach: float = 0.0
    wider: float = 1.0
    varied: float = 0.0

    @property
    def errors(self) -> Floats:
        """The mean error of each group, and what its errors are multiplied by, (2, G)."""
        return np.array([of_last(self.groups, self.bias), of_last(self.groups, self.scale, 1.0)])

    @property
    def reaches(self) -> Floats:
        """How far bounds of a prediction go in each group, (G,)."""
        return self.reach * of_last(self.groups, self.wider, 1.0)

    @property
    def unit(self) -> float:
        """The standard deviation of the targets, about, of which epsilon is a share."""
        errors = quantiles(self.shape, (np.arange(100_000) + 0.5) / 100_000)
        return float(np.sqrt(1 + errors.var()))

    def truth(self) -> Truth:
        """Return means of predictions, of errors and of their sizes, and coverage."""
        errors = quantiles(self.shape, (np.arange(_GRID) + 0.5) / _GRID)
        errors = errors - errors.mean()
        own = [bias + scale * errors for bias, scale in self.errors.T]
        measures = {
            "mean_prediction": of_last(self.groups, self.level),
            "mean_residual": self.errors[0],
            "mae": np.array([np.abs(each).mean() for each in own]),
        }
        if self.varied:
            measures = {}
        if self.reach:
            shares = 1 + self.varied * np.linspace(-1, 1, 1 + 2000 * (self.varied > 0))
            measures[numbers.COVERAGE] = np.array(
                [
                    np.searchsorted(np.sort(np.abs(each)), reach * shares, "right").mean() / _GRID
                    for each, reach in zip(own, self.reaches, strict=True)
                ]
            )
        if self.varied:
            measures[numbers.WIDTH] = 2 * self.reaches
        bounds = {
            label(measure): EPSILON * (1 if measure == numbers.COVERAGE else self.unit)
            for measure in measures
        }
        values = gaps_in({label(measure): column for measure, column in measures.items()})
        return Truth(values, error=1e-4 * float(np.abs(errors).mean()), bounds=bounds)


def drawn_numbers(people: Predicted, generator: np.random.Generator) -> Sample:
    """Draw a sample of predictions."""
    groups = people.groups
    group = generator.choice(groups, people.rows, p=parts(people.shares, groups))
    prediction = of_last(groups, people.level)[group] + generator.standard_normal(people.rows)
    error = quantiles(people.shape, generator.random(people.rows))
    bias, scale = people.errors[:, group]
    target = prediction + bias + scale * error
    predicted, bounds = pd.DataFrame({"prediction": prediction}), tuple[str, ...]()
    if people.reach:
        reach, bounds = people.reaches[group], ("lower_90", "upper_90")
        if people.varied:
            reach = reach * generator.uniform(1 - people.varied, 1 + people.varied, people.rows)
        predicted = predicted.assign(lower_90=prediction - reach, upper_90=prediction + reach)
    shown = "" if people.varied else "prediction"
    options = asked(target="target", prediction=shown, bounds=bounds)
    table = predicted.assign(sex=named(group, groups), target=target)

    def findings() -> Found:
        data = Labelled(target, predicted, _by_sex(table), Task.REGRESSION)
        compared = numbers.COMPARED_INTERVALS if people.varied else numbers.COMPARED
        return numbers.gap_findings(data, options, compared), []

    return Sample(options, findings, lambda: table)


# Populations of audits of rankings, of one list or of many.

Codes = NDArray[np.intp]
_PLACES = 400_000  # that the truth is counted in, where groups differ


@dataclass(frozen=True, eq=False)
class Ranked:
    """People who are ranked.

    Attributes
    ----------
    groups : how many there are, of which the last may have a rare share of the people. shift : by
        how much its scores are lower.
    size, lists : how many are in a list, and how many lists there are; one of no lists.
    mixed : how much groups' shares differ from list to list: 1 over Dirichlet's concentration.
    digits : of the scores, so that some tie.
    """

    groups: int
    size: int
    shift: float = 0.0
    rare: float = 0.0
    lists: int = 1
    top: float = 10
    mixed: float = 0.0
    digits: int = 9

    @property
    def shares(self) -> Floats:
        """The share (G,) of each group; of lists, their mean."""
        others = (1 - self.rare) / (self.groups - 1) if self.rare else 1 / self.groups
        return of_last(self.groups, self.rare or others, others)

    def rows(self, lists: int, generator: np.random.Generator) -> tuple[Floats, Codes, Codes]:
        """Draw scores, groups and lists."""
        of = np.repeat(np.arange(lists), self.size)
        shares = np.tile(self.shares, (lists, 1))
        if self.mixed:
            shares = generator.dirichlet(self.shares / self.mixed, lists)
        edges = np.cumsum(shares, axis=1)[of, :-1]
        group = (generator.random(len(of))[:, None] > edges).sum(axis=1)
        score = generator.standard_normal(len(of)) + of_last(self.groups, -self.shift)[group]
        return np.round(score, self.digits), group.astype(np.intp), of

    def truth(self) -> Truth:
        """Return what groups get of the places over their shares: 1 of all where they are alike."""
        first = f"the {numbers.first_places(self.top, of_each=self.lists > 1)}"
        ratios = dict.fromkeys((first, "the exposure"), np.ones(self.groups))
        if self.shift:
            lists = max(1, _PLACES // self.size)
            score, group, of = self.rows(lists, np.random.default_rng(3))
            size = np.bincount(group, minlength=self.groups) / len(group)
            weights = top_weights(score, of, self.top), exposure_weights(score, of)
            for measure, weight in zip(ratios, weights, strict=True):
                ratios[measure] = np.bincount(group, weight, self.groups) / weight.sum() / size
        values = {(SHARE, "sex", measure, ""): by_name(of) for measure, of in ratios.items()}
        return Truth(values, error=0.02 if self.shift else 0.0)


def drawn_ranking(people: Ranked, generator: np.random.Generator) -> Sample:
    """Draw a ranking."""
    score, group, of = people.rows(people.lists, generator)
    many = people.lists > 1
    options = asked(score="score", top=float(people.top), lists="list" if many else "")
    lists = [f"L{which}" for which in of]
    table = pd.DataFrame({"sex": named(group, people.groups), "score": score, "list": lists})

    def findings() -> Found:
        first = numbers.first_places(people.top, of_each=many)
        groups = _by_sex(table)
        shares = numbers.shares_of_places(score, groups, of if many else None, people.top)
        return numbers.places_findings(shares, first), []

    return Sample(options, findings, lambda: table)


# Populations of audits of times until an event.

HORIZON = 6.0
_LARGE = 10_000  # rows of a sample that a concordance is taken from, of which there are so many:
_SAMPLES = 6
_ERROR = 0.004  # of their mean, about twice its standard error


@dataclass(frozen=True, eq=False)
class Observed:
    """People with exponential times until an event, observed for an exponential time.

    Attributes
    ----------
    shares : of the people, by group; equal ones if empty. noise : standard deviation of the
        logarithm of what the last group's risks are off by. observed, last_observed : mean time
        that groups are observed for, and the last.
    """

    rows: int
    groups: int = 2
    shares: Sequence[float] = ()
    noise: float = 0.0
    observed: float = 15.0
    last_observed: float = 15.0

    @property
    def noises(self) -> Floats:
        """The noise of each group."""
        return of_last(self.groups, self.noise)

    @property
    def ends(self) -> Floats:
        """The mean time that each group is observed for."""
        return of_last(self.groups, self.last_observed, self.observed)

    def truth(self) -> Truth:
        """Return concordances, of large samples, and Brier scores."""
        pairs = list(zip(self.noises.tolist(), self.ends.tolist(), strict=True))
        values = gaps_in(
            {
                numbers.CONCORDANCE: [_concordance(*pair) for pair in pairs],
                numbers.BRIER: [_brier(noise) for noise, _ in pairs],
            }
        )
        return Truth(values, error=_ERROR if len(set(pairs)) > 1 else 0.0)


def times(
    noise: Floats, observed: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Draw times until the event, ends of observation, and risks, each (n,)."""
    rate = np.exp(generator.normal(-2, 1, len(noise)))
    off = np.exp(noise * generator.standard_normal(len(noise)))
    ends = generator.exponential(observed)
    return generator.exponential(1 / rate), ends, 1 - np.exp(-HORIZON * rate * off)


@cache
def _concordance(noise: float, observed: float) -> float:
    """Return a group's concordance, which depends on who is censored as well as on the risks."""
    generator, shares = np.random.default_rng(5), []
    for _ in range(_SAMPLES):
        time, end, risk = times(np.full(_LARGE, noise), np.full(_LARGE, observed), generator)
        shares.append(numbers.concordance(np.minimum(time, end), time <= end, risk)[0])
    return float(np.mean(shares))


@cache
def _brier(noise: float) -> float:
    """Return the mean squared distance of risks from who has the event by the horizon."""
    people = np.full(1_000_000, noise)
    time, _, risk = times(people, np.ones_like(people), np.random.default_rng(6))
    return float(((time <= HORIZON) - risk) ** 2 @ np.full(len(people), 1 / len(people)))


def drawn_survival(people: Observed, generator: np.random.Generator) -> Sample:
    """Draw a sample of people, censored where observation ended before the event."""
    groups = people.groups
    group = generator.choice(groups, people.rows, p=parts(people.shares, groups))
    time, end, risk = times(people.noises[group], people.ends[group], generator)
    columns = {"time": np.minimum(time, end), "event": time <= end, "risk": risk}
    table = pd.DataFrame({"sex": named(group, groups), **columns})
    options = asked(target="time", event="event", score="risk", horizon=HORIZON)
    audit = numbers.AUDITS[SURVIVAL]
    return Sample(options, lambda: (audit(options, table).findings, []), lambda: table)


# Populations of audits where nobody's group is known, only how probable each is.


@dataclass(frozen=True, eq=False)
class Guessed:
    """People whose group is one of two, known with a probability.

    Attributes
    ----------
    probability : values of that of the second group, equally frequent.
    mean : of the second group's scores, whatever its probability was.
    """

    probability: Sequence[float]
    rows: int
    mean: float = 0.5

    @property
    def cells(self) -> tuple[Cell, Cell]:
        """The people of either group."""
        return Cell.of(), Cell.of(mean=self.mean)

    def truth(self) -> Truth:
        """Return the rates of either group."""
        groups = dict(zip(("not G1", "G1"), self.cells, strict=True))
        values: Values = {
            (GAP, "", RATE_NAMES[metric], unknown.WHOEVER): {
                name: float(rate(cell.counts(cell.score))) for name, cell in groups.items()
            }
            for metric, rate in RATE_OF.items()
        }
        return Truth(values)


def drawn_proxy(people: Guessed, generator: np.random.Generator) -> Sample:
    """Draw people whose groups are not shown."""
    share = generator.choice(np.array(people.probability), people.rows)
    second = generator.random(people.rows) < share
    point = generator.integers(0, two_classes.POINTS, people.rows)
    score, chance = (
        np.where(second, *(getattr(cell, name)[point] for cell in reversed(people.cells)))
        for name in ("score", "chance")
    )
    label = (generator.random(people.rows) < chance).astype(int)
    options = asked(group=(), proxy=("G1",), target="label", score="score")
    options = replace(options, threshold=two_classes.THRESHOLD)
    table = pd.DataFrame({"G1": share, "label": label.astype(str), "score": score})

    def findings() -> Found:
        return unknown.AUDITS[PROXY](options, read_frame(options, source=table)).findings, []

    return Sample(options, findings, lambda: table)


# Of each kind of audit: what a declaration is of, how a sample of it is drawn, and what is true.
_MADE: Mapping[str, tuple[Callable[..., Any], Callable[..., Sample], Callable[..., Truth]]] = {
    "binary": (Drawing.of, two_classes.audited, two_classes.truth_of),
    "selected": (Drawing.of, two_classes.of_selected, two_classes.truth_of_selected),
    "pair": (Drawing.of, two_classes.compared, two_classes.truth_of_pair),
    "many": (Drawing.of, two_classes.of_many, two_classes.truth_of_many),
    "classes": (Classified, drawn_classes, Classified.truth),
    "numbers": (Predicted, drawn_numbers, Predicted.truth),
    "intervals": (Predicted, drawn_numbers, Predicted.truth),
    "ranking": (Ranked, drawn_ranking, Ranked.truth),
    "proxy": (Guessed, drawn_proxy, Guessed.truth),
    "survival": (Observed, drawn_survival, Observed.truth),
}
KINDS = tuple(_MADE)
DECLARED = yaml.safe_load(Path(__file__).with_name("populations.yaml").read_text(encoding="utf-8"))


@cache
def populations() -> Sequence[Population]:
    """Return the populations of every kind of audit."""
    return tuple(chain.from_iterable(map(_declared, KINDS)))


def _declared(kind: str) -> Iterator[Population]:
    """Yield the populations of a kind of audit that `populations.yaml` declares."""
    make, drawn, truth = _MADE[kind]
    for name, known in DECLARED[kind].items():
        given = {**known}
        varied, short = re.findall(r"{(\w+)", name), given.pop("short", None)
        for values in product(*(_listed(given[each]) for each in varied)):
            own = given | dict(zip(varied, values, strict=True))
            people, is_short = make(**own), {True, *values}.intersection(_listed(short))
            draw, true = partial(drawn, people), partial(truth, people)
            yield Population(kind, name.format(**own), draw, true, bool(is_short))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
