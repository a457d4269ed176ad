"""The values of approaches as arrays, task by task and split by split, and their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.atlas.approaches import TASK
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.multilevel import MeasuredDifferences
from fairbench.metrics.registry import find

# The share of an atlas's tasks on which an approach must have been run to be ranked, or to decide a
# claim. Tasks are few, and differ: a mean over half of them is up to 1.4 times as uncertain as one
# over all, a mean over a tenth more than three times, and those few were not drawn by chance.
LEAST_SHARE = 0.5
EPSILON = 0.01  # of a metric that declares none


# Said of every approach that must be told the group of whoever it decides about, as its components
# declare (`Capabilities.group_at_prediction`): of its name, and of what claims call it.
NEEDS_GROUP = "needs the group at prediction"
THRESHOLDS_NEED = "thresholds for each group, which need the group at prediction,"


def marked(name: str, *, needs_group: bool) -> str:
    """Return what an approach, or a part of one, is called, and whether it needs the group."""
    return f"{name} ({NEEDS_GROUP})" if needs_group else name


def epsilon_of(metric: str) -> float:
    """Return the largest difference in a metric that does not matter in practice."""
    declared = find(metric)
    return declared.epsilon if declared is not None and not declared.relative else EPSILON


def fewest_tasks(total: int) -> int:
    """Return on how many of so many tasks an approach must have been run to be ranked."""
    return ceil(LEAST_SHARE * total)


_IDENTITY = ("learner", "intervention", "method", "options", "setting")


@dataclass(frozen=True, eq=False)
class AtlasValues:
    """Where every row of a table of approaches belongs.

    Attributes
    ----------
    approaches : a row for each of A approaches: its learner, intervention, method, options and
        setting.
    tasks : a row for each of T tasks.
    place : (n, 3) of each row, which approach, task and repeat it is.
    total : on how many tasks the whole atlas is, of which these rows may be a part.
    """

    table: pd.DataFrame
    approaches: pd.DataFrame
    tasks: pd.DataFrame
    place: NDArray[np.intp]
    total: int

    @classmethod
    def of(cls, table: pd.DataFrame) -> AtlasValues:
        """Return the values of the rows of a table of `approach_table`."""
        table = table.reset_index(drop=True)
        approach = table.groupby([*_IDENTITY], sort=True, observed=True).ngroup().to_numpy()
        task = table.groupby([*TASK], sort=True, observed=True).ngroup().to_numpy()
        repeat = table.groupby(["seed", "repeat"], sort=True).ngroup().to_numpy()
        approaches, tasks = (
            table.iloc[np.unique(code, return_index=True)[1]].reset_index(drop=True)
            for code in (approach, task)
        )
        place = np.stack([approach, task, repeat], axis=1)
        return cls(table, approaches, tasks, place, len(tasks))

    def only(self, rows: pd.Series) -> AtlasValues:
        """Return the values of some rows."""
        return replace(AtlasValues.of(self.table[rows.to_numpy()]), total=self.total)

    @property
    def fewest_tasks(self) -> int:
        """On how many tasks an approach must have been run to be ranked."""
        return fewest_tasks(self.total)

    def metric(self, name: str) -> Floats:
        """Return a metric, (A, T, R); NaN where it was not measured."""
        repeats = int(self.place[:, 2].max(initial=-1)) + 1
        found = np.full((len(self.approaches), len(self.tasks), repeats), np.nan)
        if name in self.table:
            found[tuple(self.place.T)] = self.table[name].to_numpy(float)
        return found

    @cached_property
    def family(self) -> NDArray[np.intp]:
        """The family of each task, (T,)."""
        return np.asarray(pd.factorize(self.tasks["family"])[0], np.intp)

    @cached_property
    def test_share(self) -> Floats:
        """The share of rows that a split of each task tests, (T,)."""
        return np.asarray(self.tasks["test_share"], float)

    @cached_property
    def about_tasks(self) -> list[dict[str, Any]]:
        """What is known of each task: single cells of a frame are slow to read."""
        found: list[dict[str, Any]] = self.tasks.to_dict("records")
        return found

    @cached_property
    def about_approaches(self) -> list[dict[str, Any]]:
        """What is known of each approach."""
        found: list[dict[str, Any]] = self.approaches.to_dict("records")
        return found

    @cached_property
    def names(self) -> list[str]:
        """The name of each approach: its parts, with their options."""
        return [named(row) for row in self.about_approaches]

    def measured(self, differences: Floats, facts: Floats | None = None) -> MeasuredDifferences:
        """Return what was measured of differences (P, T, R)."""
        splits = np.isfinite(differences).sum(axis=2).astype(float)
        known = np.where(np.isfinite(differences), differences, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = known.sum(axis=2) / splits
            off = np.where(np.isfinite(differences), differences - means[:, :, None], 0)
            variances = (off**2).sum(axis=2) / (splits - 1)
        return MeasuredDifferences(means, variances, splits, self.test_share, self.family, facts)


def named(approach: Mapping[str, Any]) -> str:
    """Return the name of an approach: its parts with the values of their options."""
    words: dict[str, list[str]] = {}
    for option in approach["options"].split():
        part, _, rest = option.partition(".")
        words.setdefault(part, []).append(rest.partition("=")[2])
    parts = [
        " ".join([approach[part], *words.get(part, [])])
        for part in ("learner", "intervention", "method")
        if (part, approach[part]) != ("intervention", "none")
    ]
    name = ", ".join([*parts, *filter(None, [approach["setting"]])])
    return marked(name, needs_group=bool(approach.get("group_at_prediction", False)))


def without(part: str, options: str) -> str:
    """Return the options that are not of one part."""
    return " ".join(word for word in options.split() if not word.startswith(f"{part}."))


def own_options(part: str, options: str) -> str:
    """Return the values of the options of one part."""
    own = [word for word in options.split() if word.startswith(f"{part}.")]
    return " ".join(word.partition("=")[2] for word in own)


@dataclass(frozen=True)
class Contrast:
    """Approaches that differ from others in one part alone: pairs of places, and what they are.

    `needs_group` says whether the part needs the group at prediction.
    """

    label: str
    pairs: tuple[tuple[int, int], ...]
    needs_group: bool = False

    @property
    def name(self) -> str:
        """What claims call it."""
        return marked(self.label, needs_group=self.needs_group)

    def of(self, values: Floats) -> Floats:
        """Return the mean difference (T, R) of the first from the second, over pairs."""
        first, second = np.array(self.pairs).T
        return known_mean(values[first] - values[second])


def known_mean(values: Floats) -> Floats:
    """Return the mean over the first axis of what is known, (k, T, R) -> (T, R)."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        found: Floats = np.where(known, values, 0).sum(axis=0) / known.sum(axis=0)
    return found


def contrasts(values: AtlasValues, part: str, base: str) -> list[Contrast]:
    """Return for every choice of a part, and its options, its pairs with `base` of that part.

    The two of a pair agree in everything else; the pairs of all learners are one contrast.
    """
    others = [name for name in _IDENTITY if name not in (part, "options")]
    records = values.approaches.to_dict("records")
    keys = [(*(row[name] for name in others), without(part, row["options"])) for row in records]
    bases = {
        key: place
        for place, (key, row) in enumerate(zip(keys, records, strict=True))
        if row[part] == base
    }
    found: dict[str, list[tuple[int, int]]] = {}
    for place, (key, row) in enumerate(zip(keys, records, strict=True)):
        if row[part] != base and key in bases:
            label = " ".join([row[part], own_options(part, row["options"])]).strip()
            found.setdefault(label, []).append((place, bases[key]))
    # What the rest of the two needs is no matter of this part.
    needs = [bool(row.get("group_at_prediction", False)) for row in records]
    return [
        Contrast(label, tuple(pairs), any(needs[own] and not needs[other] for own, other in pairs))
        for label, pairs in sorted(found.items())
    ]


def differences(values: Floats, made: Sequence[Contrast]) -> Floats:
    """Return the mean difference of every contrast, (P, T, R)."""
    if not made:
        return np.full((0, *values.shape[1:]), np.nan)
    return np.stack([margin.of(values) for margin in made])
