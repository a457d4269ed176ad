"""Correlations of folds, from how much more an algorithm varies than a reference learner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fairbench.comparison.run_predictions import RunPredictions, load_predictions
from fairbench.comparison.runs import Labels
from fairbench.comparison.settings import MEAN
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.experiments.configuration import IDENTITY
from fairbench.experiments.presets import Presets
from fairbench.inference.comparing.objectives import objective
from fairbench.inference.effective_counts import variance_ratio
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

HALF_SPLITS = "half_splits"
# What does not change which labels a run predicts.
_ASIDE = ("split", "evaluator", "consistency")
# What the reference's runs share with those that they are set beside.
_ALIKE = ("dataset", "method", "seed")


@dataclass(frozen=True, eq=False)
class HalfRuns:
    """The half-split runs of a results folder.

    `reference` names the reference learner's, by id or name; if empty, it is found by what
    ``conf/reference.yaml`` chooses.
    """

    conf: Path
    catalogue: Catalogue
    reference: str = ""

    def of(self, run: RunPredictions) -> RunPredictions:
        """Return the half-split run of a run's configuration, the one of most halvings."""
        return self._load(self._of(run), run)

    def reference_of(self, run: RunPredictions) -> RunPredictions:
        """Return the half-split run of the reference learner on the run's data."""
        return self._load(self._reference_of(run), run)

    def check(self, runs: Sequence[RunPredictions]) -> None:
        """Refuse runs whose half-split runs, or the reference's, are not there."""
        if all(self._of(run) and self._reference_of(run) for run in runs):
            return
        raise self._missing(runs)

    def _missing(self, runs: Sequence[RunPredictions]) -> UserError:
        """Say which runs are missing, and the commands that make them."""
        missing: dict[str, Mapping[str, str]] = {}
        presets = Presets(self.conf)
        for run in runs:
            words = presets.overrides(self._finished(run.id))
            if self._of(run) is None:
                missing[f"run {run.id}"] = _halved(words)
            if self._reference_of(run) is None:
                missing["the reference learner"] = _halved(self._of_reference(words))
        commands = " and ".join(presets.commands(_unique(missing)))
        return UserError(
            f"a relative rho needs half-split runs, and those of {', '.join(missing)} are not "
            f"in {self.catalogue.folder}: run {commands}"
        )

    def _of(self, run: RunPredictions) -> Run | None:
        wanted = _identity(self._finished(run.id))
        found = [candidate for candidate in self._all if _identity(candidate) == wanted]
        return max(found, key=_halvings, default=None)

    def _reference_of(self, run: RunPredictions) -> Run | None:
        if self.reference:
            return self.catalogue.one(self.reference)
        own = self._finished(run.id).config
        found = [candidate for candidate in self._all if self._refers_to(candidate, own)]
        found = [
            candidate for candidate in found if candidate.config["protect"] == own["protect"]
        ] or found
        if len({json.dumps(candidate.config["learner"]) for candidate in found}) > 1:
            ids = ", ".join(candidate.id for candidate in found)
            raise UserError(f"several half-split runs of the reference: {ids}; say reference=ID")
        return max(found, key=_halvings, default=None)

    @cached_property
    def _components(self) -> dict[str, str]:
        """The learner and the intervention of the reference."""
        return dict(yaml.safe_load((self.conf / "reference.yaml").read_text(encoding="utf-8")))

    def _refers_to(self, run: Run, own: Mapping[str, Any]) -> bool:
        chosen = all(run.choices[group] == option for group, option in self._components.items())
        return chosen and all(run.config[name] == own[name] for name in _ALIKE)

    def _of_reference(self, words: Mapping[str, str]) -> dict[str, str]:
        chosen = self._components
        kept = {name: text for name, text in words.items() if not name.startswith(tuple(chosen))}
        return kept | chosen

    @cached_property
    def _all(self) -> list[Run]:
        return list(self.catalogue.select(split=HALF_SPLITS))

    def _finished(self, id_: str) -> Run:
        return self.catalogue.runs[id_]

    def _load(self, found: Run | None, run: RunPredictions) -> RunPredictions:
        if found is None:
            raise self._missing([run])
        return load_predictions(found)


def _identity(run: Run) -> dict[str, Any]:
    return {name: run.config[name] for name in IDENTITY if name not in _ASIDE}


def _halvings(run: Run) -> int:
    return int(run.config["split"]["repeats"])


def _halved(words: Mapping[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in words.items() if not name.startswith(_ASIDE)}
    return {**kept, "split": HALF_SPLITS}


def _unique(missing: Mapping[str, Mapping[str, str]]) -> list[Mapping[str, str]]:
    return list({json.dumps(dict(job), sort_keys=True): job for job in missing.values()}.values())


@dataclass(frozen=True, eq=False)
class VarianceRatios:
    """Variances over the reference learner's, of the rates that `objectives` rest on.

    Attributes
    ----------
    per : ``mean`` over rates and groups, or ``group``.
    protect : the attributes whose groups are meant; a run's own if empty.
    """

    half_runs: HalfRuns
    objectives: Sequence[str]
    per: str = MEAN
    protect: tuple[str, ...] = ()

    def __call__(self, run: RunPredictions) -> Floats:
        """Return the run's ratio r: a number, or (G, 1) per group."""
        each = self.each(run)
        known = ~np.isnan(each)
        if not known.any():
            raise UserError(
                f"run {run.id}: no half-split gives a variance, of it or of the reference learner; "
                "run both with a larger split.repeats"
            )
        if self.per == MEAN:
            return np.asarray(each[known].mean())
        # A group without a ratio of its own has the mean of all.
        filled = np.where(known.any(axis=0), each, each[known].mean())
        return np.asarray(np.nanmean(filled, axis=0)[:, None])

    def each(self, run: RunPredictions) -> Floats:
        """Return the ratio of every rate and group, (R, G); NaN where a half lacks it."""
        own, reference = (
            self._estimates(half_run, run)
            for half_run in (self.half_runs.of(run), self.half_runs.reference_of(run))
        )
        shared = sorted(own.keys() & reference.keys())
        halves = (np.stack([each[j] for j in shared]) for each in (own, reference))
        return variance_ratio(*halves, pooled=False)

    def _estimates(self, half_run: RunPredictions, run: RunPredictions) -> dict[int, Floats]:
        """Return the rates of both halves of every halving, j -> (2, R, G)."""
        labels = Labels.of(run, self.protect)
        names = [rate for name in self.objectives for rate in objective(name).rates]
        estimates = {}
        for repeat, folds in half_run.repeats.items():
            counts = labels.counts(folds)
            estimates[repeat] = np.stack([rate(counts) for rate in dict.fromkeys(names)], axis=1)
        return estimates
