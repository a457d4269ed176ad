"""Populations of audits of three classes and more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.statements.simulate import Population, Sample
from benchmarks.statements.truth import EPSILON, Question, Truth
from benchmarks.statements.two_classes import DOZEN, LOWEST_ROWS, PATH, names
from fairbench.audits.findings import GAP, ErrorBudget, Finding
from fairbench.audits.gaps import Gap
from fairbench.audits.kinds import classes
from fairbench.audits.question import Options
from fairbench.core.arrays import Floats
from fairbench.data.class_scores import UNKNOWN, MulticlassScores
from fairbench.data.groups import group_columns
from fairbench.inference.gaps import GroupLimits, largest_gap


@dataclass(frozen=True, eq=False)
class Classified:
    """People who are classified, and how often rightly.

    Attributes
    ----------
    right : (G, C) the probability that a prediction is right, by group and predicted class.
    predicted : (C,) how often each class is predicted, in every group.
    shares : (G,) of the people.
    """

    right: Floats
    predicted: Floats
    shares: Floats
    rows: int
    labels: int | None = None

    @classmethod
    def of(
        cls,
        right: Floats,
        rows: int,
        *,
        predicted: Sequence[float] = (),
        shares: Sequence[float] = (),
        labels: int | None = None,
    ) -> Classified:
        """Return people in equal groups who are predicted each class as often, or as is said."""
        groups, count = right.shape
        of_classes, of_groups = (
            np.array(given or [1.0] * number, float)
            for given, number in ((predicted, count), (shares, groups))
        )
        return cls(right, of_classes / of_classes.sum(), of_groups / of_groups.sum(), rows, labels)

    def truth(self) -> Truth:
        """Return the accuracies of groups and of predicted classes."""
        groups, count = self.right.shape
        of_groups, of_classes = self.right @ self.predicted, self.shares @ self.right
        values: dict[Question, Mapping[str, float]] = {
            (GAP, "sex", classes.ACCURACY, ""): dict(
                zip(names(groups), of_groups.tolist(), strict=True)
            ),
            (GAP, classes.CLASSES, classes.ACCURACY, ""): dict(
                zip(class_names(count), of_classes.tolist(), strict=True)
            ),
        }
        return Truth(values, only_lowest=[classes.CLASSES])


def class_names(count: int) -> list[str]:
    """Return names of classes, in the order of the alphabet."""
    return [f"C{number:03d}" for number in range(count)]


def drawn(people: Classified, generator: np.random.Generator) -> Sample:
    """Draw a sample of people who are classified."""
    groups, count = people.right.shape
    group = generator.choice(groups, people.rows, p=people.shares)
    predicted = generator.choice(count, people.rows, p=people.predicted)
    is_right = generator.random(people.rows) < people.right[group, predicted]
    other = (predicted + generator.integers(1, count, people.rows)) % count
    label = np.where(is_right, predicted, other)
    if people.labels is not None:
        label[generator.permutation(people.rows) >= people.labels] = UNKNOWN
    confidence = generator.uniform(1 / count, 1, people.rows)
    options = Options(
        path=PATH, group=("sex",), target="label", score="score", prediction="decision"
    )

    def findings() -> tuple[Sequence[Finding], Sequence[Gap]]:
        read = _read(group, groups, label, predicted, confidence, count)
        return classes.findings_of(*read, options), []

    def frame() -> pd.DataFrame:
        named = np.array([*class_names(count), ""], dtype=object)
        columns = {
            "sex": np.array(names(groups), dtype=object)[group],
            "label": named[label],
            "decision": named[predicted],
            "score": confidence,
        }
        return pd.DataFrame(columns)

    known = label != UNKNOWN
    alone = partial(_alone, group[known], is_right[known], groups)
    return Sample(options, findings, frame, alone)


def _read(
    group: NDArray[np.int64],
    groups: int,
    label: NDArray[np.int64],
    predicted: NDArray[np.int64],
    confidence: Floats,
    count: int,
) -> tuple[MulticlassScores, Mapping[str, pd.Series]]:
    size = np.bincount(group, minlength=groups)
    order = np.argsort(-size, kind="stable")
    order = order[size[order] > 0]
    named = [names(groups)[g] for g in order]
    place = np.zeros(groups, np.int64)
    place[order] = np.arange(len(order))
    single = pd.DataFrame({"sex": pd.Categorical.from_codes(place[group], named)})
    # Classes are those that a file has.
    present = np.unique(np.r_[label[label != UNKNOWN], predicted])
    code = np.full(count + 1, UNKNOWN)
    code[present] = np.arange(len(present))
    scores = MulticlassScores(
        np.where(label == UNKNOWN, UNKNOWN, code[label]),
        code[predicted],
        confidence,
        tuple(np.array(class_names(count))[present].tolist()),
    )
    return scores, group_columns(single, {"sex": named[0]}, 2)


def _alone(group: NDArray[np.int64], is_right: NDArray[np.bool_], groups: int) -> Set[Question]:
    """Return whether the labelled rows alone show a large gap between groups."""
    size = np.bincount(group, minlength=groups).astype(float)
    right = np.bincount(group, is_right, minlength=groups)
    enough = size >= LOWEST_ROWS
    if enough.sum() < 2:
        return set()
    limits = GroupLimits.of(right[enough], size[enough], level=1 - ErrorBudget(2).risk)
    large = float(largest_gap(limits).lower) > EPSILON
    return {(GAP, "sex", classes.ACCURACY, "")} if large else set()


def populations() -> Iterator[Population]:
    """Yield the populations: groups and classes alike, and one or some that are not."""

    def of(name: str, people: Classified, *, short: bool = False) -> Population:
        return Population("classes", name, partial(drawn, people), people.truth, short)

    for groups, count, rows in (
        (2, 3, 300),
        (4, 3, 300),
        (10, 5, 1000),
        (30, 5, 3000),
        (3, 20, 2000),
        (3, 100, 3000),
        (4, 4, 20_000),
    ):
        alike = Classified.of(np.full((groups, count), 0.8), rows)
        yield of(
            f"{groups} groups, {count} classes alike, {rows:,} rows",
            alike,
            short=rows in (300, 1000),
        )
    yield of(
        "4 groups, 5 classes alike, rarely wrong, 2,000 rows",
        Classified.of(np.full((4, 5), 0.99), 2000),
    )
    for labels in (60, 300):
        few = Classified.of(np.full((4, 5), 0.8), 3000, labels=labels)
        yield of(f"4 groups, 5 classes alike, {labels} labels of 3,000", few, short=labels == 60)
    at = np.full((2, 3), 0.8)
    at[1] = 0.75
    yield of("2 groups at epsilon, 3 classes, 5,000 rows", Classified.of(at, 5000))
    apart = np.full((4, 5), 0.8)
    apart[3] -= 0.15
    yield of("1 of 4 groups apart, 5 classes, 1,000 rows", Classified.of(apart, 1000), short=True)
    lowest = np.full((4, 10), 0.8)
    lowest[:, 0] = 0.6
    rare = [0.3, *[1.0] * 9]
    yield of(
        "4 groups, 1 of 10 classes worse and rare, 3,000 rows",
        Classified.of(lowest, 3000, predicted=rare),
    )
    lowest[:, 1] = 0.6
    yield of("4 groups, 2 of 10 classes worst, 5,000 rows", Classified.of(lowest, 5000))
    spread = np.linspace(0.7, 0.9, 10)[:, None] * np.ones((10, 4))
    yield of("10 groups spread, 4 classes, 5,000 rows", Classified.of(spread, 5000))
    apart = np.array([[0.8] * 4, [0.8] * 4, [0.4] * 4])
    dozen = Classified.of(apart, 6000, shares=DOZEN)
    yield of("2 alike, a dozen apart, 4 classes, 6,000 rows", dozen, short=True)
