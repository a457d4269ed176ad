"""How the printed tables are read, and the packed cross-validations that our answers are made of.

A :class:`Reading` is one of our answers to the printed numbers on German: one setting for all of
them. The first is the text's. The others stand for a cause, and differ from it, or from the cause
before, in what their sentence in ``mapping.yaml`` says. A :class:`Setting` is what a column of the
tables asks for, and :class:`Measured` what Table 12.1 is made of under a reading. Counts come from
``counts.npz`` (one-hot columns; the study `packed` writes it) and from `grid` (the text's columns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.cli.command import Results
from fairbench.comparison.runs import Settings
from fairbench.components.papers import number_of_cvs, print_table, run_main
from fairbench.components.papers.uncertainty_matters import grid, ground_truth
from fairbench.components.papers.uncertainty_matters.ground_truth import (
    ALGORITHMS,
    Counts,
    held_out_labels,
    key_of,
    study,
)
from fairbench.core.arrays import Floats, Mask, rng
from fairbench.inference.comparing import Comparison, Region, highest_density_region, objective
from fairbench.inference.gaps import cells_of
from fairbench.inference.posterior import table_draws
from fairbench.inference.survey import half_splits, variance_ratio
from fairbench.metrics.registry import accuracy, true_negative_rate

REFERENCE, ALL_HALVINGS, AT_A_TIME = "SVM", 60, 5


def half_estimates(name: str, halvings: int = ALL_HALVINGS) -> Floats:
    """Return the rates of both halves of every halving, (J, 2, R, G).

    The rates are accuracy and the share of good loans found, by group, pooled over the ten folds
    of a cross-validation that has seen no row of the other half.
    """
    whole = study(name)
    drawn = half_splits(len(whole.dataset), halvings, rng(whole.seed, "halves"))
    halves = [rows for pair in drawn for rows in pair]
    found = []
    for repeat, rows in enumerate(halves):
        half = replace(whole, dataset=whole.dataset.take(rows))
        (counts,) = ground_truth.counted(half, [repeat])
        found.append([accuracy(counts), true_negative_rate(counts)])
    return np.reshape(found, (halvings, 2, 2, -1))


def ratios(own: Floats, reference: Floats, at_a_time: int = AT_A_TIME) -> list[float]:
    """Return r of each five halvings, or so many at a time, of estimates (J, 2, R, G)."""
    starts = range(0, len(own), at_a_time)
    parts = (slice(start, start + at_a_time) for start in starts)
    return [float(variance_ratio(own[part], reference[part], pooled=True)) for part in parts]


def halves() -> None:
    """Print variances over half-splits with a cross-validation inside each half (section 10).

    ``python -m papers.uncertainty_matters.readings halves`` prints the ratio r of an algorithm's
    variance to that of the support vector machine, by rate and group and in the mean, of all
    halvings and of the paper's five at a time. The project's own split=half_splits
    trains on one half and tests on the other, so that its r is of single fits.
    """
    reference = half_estimates(REFERENCE)
    rows = []
    for name in ALL:
        own = half_estimates(name)
        each, fives = variance_ratio(own, reference), np.sort(ratios(own, reference))
        cells = [", ".join(f"{value:.2f}" for value in row) for row in each]
        span = f"{fives[0]:.2f} to {fives[-1]:.2f}"
        rows.append([name, *cells, f"{np.nanmean(each):.2f}", span])
    headings = ("", "accuracy", "good loans found", "mean", "of five at a time")
    print_table(f"r, of {ALL_HALVINGS} halvings", headings, rows)


PACKED_FILE = ground_truth.FOLDER / "counts.npz"
ROWS, JOINT, HALVES = "rows", "joint", "halves"
PARTITIONS = 20  # that joint counts are averaged over
FEW, HALVINGS = 20, 10  # cross-validations and half-splits of what Table 12.1 alone has
OTHERS = 400  # cross-validations of what only the further readings and section 14.2.1 compare


@dataclass(frozen=True)
class _PackedOptions(Results):
    """How many cross-validations of what the reading that reproduces compares, and their place."""

    cvs: int = number_of_cvs(OTHERS)


def packed_counts(algorithm: str) -> Counts:
    """Return the counts (B, G, 4) of an algorithm."""
    wrong = _content()[algorithm].astype(np.int64).reshape(-1, 2, 2)
    right = _content()[ROWS].astype(np.int64) - wrong  # of either label, true ones
    return np.stack([right[..., 0], wrong[..., 0], wrong[..., 1], right[..., 1]], axis=-1)


def packed_joint(names: tuple[str, str]) -> Counts:
    """Return the joint counts (R, G, 8) of two algorithms."""
    return _content()[key_of(JOINT, *names)]


def half_split_estimates(algorithm: str) -> Floats:
    """Return what :func:`half_estimates` found, (J, 2, R, G)."""
    return _content()[key_of(HALVES, algorithm)].astype(float)


def joint_counts(names: tuple[str, str], partitions: int) -> Counts:
    """Compute the joint counts of two algorithms on the first partitions, (R, G, 8)."""
    part = study(names[0])
    groups = part.dataset.groups(part.protect).cat.codes.to_numpy()
    target = part.dataset.target.to_numpy()
    labels = [held_out_labels(study(name), range(partitions)) for name in names]
    both = zip(*labels, strict=True)
    return np.stack([cells_of(target, first, second, groups, groups=2) for first, second in both])


def _wrong(tables: Counts) -> NDArray[np.uint16]:
    """Return the false positives and negatives of both groups, (B, G, 4) -> (B, 4)."""
    return tables[..., 1:3].reshape(-1, 4).astype(np.uint16)


@cache
def _content() -> dict[str, NDArray[Any]]:
    with np.load(PACKED_FILE, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def packed(options: _PackedOptions) -> None:
    """Cross-validations of German with one-hot columns, packed into the checkout.

    ``python -m papers.uncertainty_matters.readings packed [cvs=10000]`` computes and packs them,
    joint counts and half-splits besides; cross-validations are kept in the results folder, so that
    a stopped command goes on. Labels are the same in every cross-validation, so that four counts of
    two groups say all.
    """
    first = {name for pair in PAIRS[:2] for name in ONE_HOT.names(pair)}
    content: dict[str, NDArray[Any]] = {}
    for name in ALL:
        cvs = options.cvs if name in first else min(options.cvs, OTHERS)
        tables = ground_truth.counts(name, cvs, options.results)
        content[ROWS] = tables[0].reshape(2, 2, 2).sum(axis=-1).astype(np.uint16)
        content[name] = _wrong(tables)
    for name in ALGORITHMS:
        if name not in ALL:
            content[name] = _wrong(ground_truth.counted(study(name), range(FEW)))
            content[key_of(HALVES, name)] = half_estimates(name, HALVINGS).astype(np.float32)
    for pair in {each.names(pair) for each in READINGS if each.paired for pair in PAIRS[:3]}:
        content[key_of(JOINT, *pair)] = joint_counts(pair, PARTITIONS).astype(np.uint16)
    for name in (REFERENCE, *ALL):  # the reference in full, too
        content[key_of(HALVES, name)] = half_estimates(name).astype(np.float32)
    ground_truth.write_arrays(PACKED_FILE, content)


# Posteriors of accuracy and equal opportunity difference from the counts of cross-validations.
#
# Counts are (..., G, 4), the reference group first, of the label that is 1 in the data (German: a
# bad loan). The paper's label is the good loan, so that every table is turned round here.

FOLDS, LEVEL = 10, 0.95
# Signed as in the published code: the other group's true positive rate minus the reference's.
OBJECTIVES = ("accuracy", "equal_opportunity_difference")
ROPE = (0.01, 0.01)


def favourable(counts: NDArray[Any]) -> NDArray[Any]:
    """Return the tables of label 0: TN, FP, FN, TP become TP, FN, FP, TN."""
    return counts[..., ::-1]


def short(name: str) -> str:
    """Return an algorithm's name as it fits a table."""
    return name.replace("Disparate impact remover", "DI remover")


def values(counts: NDArray[Any], names: Sequence[str] = OBJECTIVES) -> Floats:
    """Return objectives of every table, (..., G, 4) -> (..., m)."""
    turned = favourable(counts)
    return np.stack([objective(name)(turned) for name in names], axis=-1)


def regions(draws: Floats) -> list[Region]:
    """Return the 95 % region of every cross-validation's draws (R, T, 2)."""
    return [highest_density_region(_defined(each), LEVEL) for each in draws]


def events(delta: Floats) -> dict[str, float]:
    """Return the events' shares among differences A - B, (N, 2)."""
    return Comparison(OBJECTIVES, _defined(delta), np.array(ROPE)).events()


def _defined(draws: Floats) -> Floats:
    return draws[~np.isnan(draws).any(axis=1)]


# Settings and readings.

Names = tuple[str, str]
TRUTH = "ground truth"
# The paper's choices of rho -> ours.
RHOS = {
    "rho=1/K": "1/K",
    "rho in [0,1/K]": "average",
    "rho_rel": "relative",
    "rho_rel_up": "relative_up",
}
RELATIVE = ("relative", "relative_up")
GROUPS, MEAN, NONE = "groups", "mean", "none"  # sources of the ratio r
# Accuracy, equal opportunity, demographic parity: gaps as the published code signs them, and as
# what they are in size, with a minus sign.
SIGNED = ("accuracy", "equal_opportunity_difference", "statistical_parity_difference")
ABSOLUTE = ("accuracy", "equal_opportunity", "statistical_parity")
_PRIORS = {"prior Dir(0)": 0.0, "prior Dir(1/2)": 0.5, "prior Dir(1)": 1.0}
# Published metric -> the name of the event, of both objectives' names.
_EVENTS = {
    "p_a_outperforms_b": "A >> B",
    "p_b_outperforms_a": "B >> A",
    "p_equivalent": "A ~ B",
    "p_a_accuracy_b_fairness": "A {0}, B {1}",
    "p_b_accuracy_a_fairness": "B {0}, A {1}",
}


@dataclass(frozen=True)
class Setting:
    """What a column of these tables is computed with.

    Attributes
    ----------
    rho : the choice of rho, or ``ground truth``.
    level : of the highest-density region that events are restricted to; 0 for none. Where a table
        does not say it is 95 %: Table 2's last column is that of Table 12.2's 95 % region.
    objectives : how many, from accuracy on.
    """

    rho: str
    level: float = LEVEL
    rope: float = ROPE[0]
    alpha: float = 1.0
    objectives: int = 2

    @classmethod
    def read(cls, text: str) -> Setting:
        """Read ``rho_rel_up, 95 % hdr; rope=0.01; prior Dir(1)`` and its like."""
        first, *others = text.split("; ")
        rho, _, region = first.partition(", ") if "hdr" in first else (first, "", "")
        options: dict[str, Any] = {"level": 0.0} if rho == TRUTH or region == "no hdr" else {}
        if region.endswith("% hdr"):
            options["level"] = float(region.split()[0]) / 100
        for each in others:
            if each in _PRIORS:
                options["alpha"] = _PRIORS[each]
            elif each.startswith("objectives"):
                options["objectives"] = len(each.split(", "))
            else:
                options["rope"] = float(each.removeprefix("rope=")) if "=" in each else 0.0
        return cls(rho, **options)


@dataclass(frozen=True)
class Reading:
    """One answer to all of the numbers.

    Attributes
    ----------
    label : what is printed beside an answer that is neither the text's nor a cause's.
    cause : the name of the cause that it stands for; nothing for the text.
    choices : algorithm -> which of `grid.choices` is compared, where not the first.
    stands_for : algorithm of the tables -> which packed one of :mod:`packed` is compared, whose
        columns are one-hot; nothing where all are of the grid.
    signed : whether a gap in favour of the other group counts as better than none.
    ratio : where relative rhos come from: ``groups``, one ratio from half-splits for each group;
        ``mean``, one for both; ``none``: every algorithm varies as the reference learner does.
    predictive : whether a table is drawn after its probabilities (equation (1), step ii).
    paired : whether the posterior is that of the joint table, of the mean of several partitions and
        with rho = 0, in place of two independent ones of one partition.
    nine : whether each of the nine outcomes of two objectives is a conclusion of its own; else
        better in both and better in one are one, as in section 3.
    """

    label: str = ""
    cause: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    stands_for: Mapping[str, str] | None = None
    signed: bool = False
    ratio: str = GROUPS
    predictive: bool = False
    paired: bool = False
    nine: bool = False

    def counts(self, name: str) -> NDArray[np.int64]:
        """Return an algorithm's cross-validations, (B, G, 4)."""
        if self.stands_for is None:
            return grid.counts(name, self.choices.get(name, ""))
        return packed_counts(self.stands_for.get(name, name))

    def variance_ratio(self, name: str, place: int) -> Floats:
        """Return the ratio r of each group, (G, 1), of the `place`-th five half-splits.

        Where there are fewer, those at hand are taken in turn.
        """
        if self.ratio == NONE:
            return np.ones((2, 1))
        own, reference = self._estimates(name), self._estimates(REFERENCE)
        whole = min(len(own), len(reference))
        first = AT_A_TIME * (place % max(whole // AT_A_TIME, 1))
        part = slice(first, min(first + AT_A_TIME, whole))
        ratio = variance_ratio(own[part], reference[part])
        ratio[np.isinf(ratio)] = np.nan  # a reference that did not vary
        if self.ratio == MEAN:
            return np.full((2, 1), np.nanmean(ratio))
        return np.asarray(np.nanmean(ratio, axis=0)[:, None])

    def _estimates(self, name: str) -> Floats:
        if self.stands_for is None:
            return grid.estimates(name, self.choices.get(name, ""))
        return half_split_estimates(self.stands_for.get(name, name))

    def names(self, pair: Names) -> Names:
        """Return the algorithms of ours that are compared."""
        first, second = ((self.stands_for or {}).get(name, name) for name in pair)
        return first, second

    def objectives(self, count: int) -> tuple[str, ...]:
        """Return the names of the first objectives."""
        return (SIGNED if self.signed else ABSOLUTE)[:count]

    def values(self, counts: NDArray[Any], count: int = 2) -> Floats:
        """Return objectives of every table, (..., G, 4) -> (..., m)."""
        return values(counts, self.objectives(count))

    def conclusions(self, delta: Floats, rope: float = ROPE[0]) -> list[str]:
        """Return the event that each difference (N, 2) shows."""
        names, ropes = self.objectives(delta.shape[1]), np.full(delta.shape[1], rope)
        if self.nine:
            return list(map(str, Comparison(names, delta, ropes).codes))
        shown = (Comparison(names, each[None], ropes).events() for each in delta)
        return [max(events, key=lambda name: events[name]) for events in shown]

    def events(
        self, delta: Floats, setting: Setting, inside: Mask | None = None
    ) -> dict[str, float]:
        """Return the shares of the published events among differences (N, m), by metric.

        `inside` are the draws of the setting's region, which is found where they are not given.
        """
        known = delta[~np.isnan(delta).any(axis=1)]
        names = self.objectives(setting.objectives)
        if inside is None and setting.level:
            inside = highest_density_region(known, setting.level).inside
        found = Comparison(names, known, np.full(len(names), setting.rope)).events(inside)
        return {metric: found[text.format(*names)] for metric, text in _EVENTS.items()}


TEXT = Reading(predictive=True)
ALONE = Reading(cause="step (i) alone")
POOLED = Reading(cause="one ratio for both groups", ratio=MEAN)
FAIREST = Reading(
    cause="FERM validated for fairness",
    choices={"FERM": grid.FAIREST, "Linear FERM": grid.FAIREST},
)
_FERM = {"FERM": grid.EXACT_BETWEEN, "Linear FERM": grid.FAIREST}
ONE_MACHINE = Reading(
    cause="one machine",
    choices=_FERM
    | dict.fromkeys(("SVM", "Reweighing + SVM", "SVM + Hardt"), grid.WIDE)
    | {"Disparate impact remover + SVM": grid.NARROW},
)
BETWEEN = Reading(cause="FERM with C = 0.5", choices=_FERM)
APART = Reading(
    cause="Hardt's rule apart", choices=_FERM | dict.fromkeys(grid.APART, grid.RULE_APART)
)
REFERENCE_RATIO = Reading(cause="no half-splits", choices=BETWEEN.choices, ratio=NONE)
ONE_HOT = Reading(cause="one-hot columns", stands_for={"FERM": "FERM, C = 0.4"})
SIGNED_GAPS = Reading(cause="signed gaps", stands_for={}, signed=True, nine=True)
RIGHT = Reading("right intervals", stands_for=ONE_HOT.stands_for, paired=True)
READINGS = (
    TEXT,
    ALONE,
    POOLED,
    BETWEEN,
    APART,
    REFERENCE_RATIO,
    FAIREST,
    ONE_HOT,
    SIGNED_GAPS,
    RIGHT,
)
# The two algorithms of each comparison, and all of them of one-hot columns.
PAIRS: tuple[Names, ...] = (
    ("Disparate impact remover + SVM", "FERM"),
    ("Linear SVM + Hardt", "FERM"),
    ("SVM + Hardt", "Linear SVM + Hardt"),  # of section 14.2, case 1
    ("Linear SVM + Hardt", "Linear FERM"),  # of section 14.2, case 2
)
_ENCODED = [each for each in READINGS if each.stands_for is not None]
ALL = tuple(dict.fromkeys(n for each in _ENCODED for pair in PAIRS[:3] for n in each.names(pair)))


# What Table 12.1 of Uncertainty Matters is made of: counts, variance ratios, and posteriors.


@dataclass(frozen=True, eq=False)
class Measured:
    """What the table is made of, by algorithm.

    Attributes
    ----------
    counts : (B, G, 4) of cross-validations; the same index is the same partition.
    ratios : (R, G, 1) the variance over the reference learner's in each group, of five half-splits
        for each posterior.
    posteriors : how many of the cross-validations give a posterior, R.
    """

    counts: Mapping[str, Counts]
    ratios: Mapping[str, Floats] = field(default_factory=dict)
    posteriors: int = 20
    draws: int = 10000

    def effective_fraction(self, name: str, rho: str) -> Floats:
        """Return what a count of an algorithm is worth, a number or (R, G, 1)."""
        settings = Settings(rho=RHOS[rho])
        ratio = self.ratios[name][: self.posteriors] if settings.relative else None
        return settings.shrinkage(FOLDS, ratio)

    def cloud(self, name: str, rho: str, *, predictive: bool = False) -> Floats:
        """Return draws (R, T, 2) of both objectives of an algorithm, drawn on its own."""
        worth = self.effective_fraction(name, rho)
        kept = min(self.posteriors, len(self.counts[name]), len(worth) if worth.ndim else 10**9)
        counts = self.counts[name][:kept] * (worth[:kept] if worth.ndim else worth)
        generator = rng(0, "uncertainty matters", name, rho, int(predictive))
        tables = table_draws(counts, self.draws, generator, predictive=predictive)
        return np.moveaxis(values(tables), 1, 0)


def measure(
    reading: Reading = ALONE,
    names: Sequence[str] = tuple(ALGORITHMS),
    *,
    cvs: int | None = None,
    posteriors: int = 20,
    draws: int = 10000,
) -> Measured:
    """Read the packed cross-validations and half-splits of algorithms under a reading.

    Parameters
    ----------
    cvs : at most so many; all that there are if None.
    """
    places = range(posteriors)
    return Measured(
        {name: reading.counts(name)[:cvs] for name in names},
        {name: np.stack([reading.variance_ratio(name, each) for each in places]) for name in names},
        posteriors,
        draws,
    )


if __name__ == "__main__":
    run_main(halves, packed)
