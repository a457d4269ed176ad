"""Half-split runs, and ratios of variances to a reference learner, from which rho is estimated."""

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
from fairbench.comparison.settings import GROUP, MEAN
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.experiments.configuration import IDENTITY
from fairbench.experiments.presets import Presets
from fairbench.inference.comparing.objectives import objective
from fairbench.inference.effective_counts import variance_ratio
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

HALF_SPLITS = "half_splits"
# Settings that do not change which labels a run predicts.
_ASIDE = ("split", "evaluator", "consistency")
# Settings in which the reference's run agrees with the run that it is compared with.
_SHARED_SETTINGS = ("dataset", "method", "seed")


@dataclass(frozen=True, eq=False)
class HalfRuns:
    """The half-split runs of a results folder.

    `reference` is the id or name of the reference learner's run; if empty, it is the run of the
    components that ``conf/reference.yaml`` names.
    """

    conf: Path
    catalogue: Catalogue
    reference: str = ""

    def load_half_run(self, run: RunPredictions) -> RunPredictions:
        """Return the half-split run of a run's configuration, the one with most halvings."""
        return self._load(self._half_run_of(run), run)

    def load_reference(self, run: RunPredictions) -> RunPredictions:
        """Return the half-split run of the reference learner on the run's data."""
        return self._load(self._reference_of(run), run)

    def check(self, runs: Sequence[RunPredictions]) -> None:
        """Refuse runs without a half-split run of their own or of the reference."""
        if all(self._half_run_of(run) and self._reference_of(run) for run in runs):
            return
        raise self._missing_runs_error(runs)

    def _missing_runs_error(self, runs: Sequence[RunPredictions]) -> UserError:
        """Return an error that names the missing runs, and the commands that make them."""
        missing: dict[str, Mapping[str, str]] = {}
        presets = Presets(self.conf)
        for run in runs:
            words = presets.overrides(self._find_run(run.id))
            if self._half_run_of(run) is None:
                missing[f"run {run.id}"] = _half_split_words(words)
            if self._reference_of(run) is None:
                missing["the reference learner"] = _half_split_words(self._reference_words(words))
        commands = " and ".join(presets.commands(_unique(missing)))
        return UserError(
            f"a relative rho needs half-split runs, and those of {', '.join(missing)} are not "
            f"in {self.catalogue.folder}: run {commands}"
        )

    def _half_run_of(self, run: RunPredictions) -> Run | None:
        identity = _identity(self._find_run(run.id))
        candidates = [
            candidate for candidate in self._half_runs if _identity(candidate) == identity
        ]
        return max(candidates, key=_halvings, default=None)

    def _reference_of(self, run: RunPredictions) -> Run | None:
        """Return the half-split run of the reference for a run; None if there is none."""
        if self.reference:
            return self.catalogue.one(self.reference)
        config = self._find_run(run.id).config
        candidates = [
            candidate for candidate in self._half_runs if self._is_of_reference(candidate, config)
        ]
        candidates = [
            candidate
            for candidate in candidates
            if candidate.config["protect"] == config["protect"]
        ] or candidates
        if len({json.dumps(candidate.config["learner"]) for candidate in candidates}) > 1:
            ids = ", ".join(candidate.id for candidate in candidates)
            raise UserError(f"several half-split runs of the reference: {ids}; say reference=ID")
        return max(candidates, key=_halvings, default=None)

    @cached_property
    def _components(self) -> dict[str, str]:
        """The learner and the intervention of the reference."""
        return dict(yaml.safe_load((self.conf / "reference.yaml").read_text(encoding="utf-8")))

    def _is_of_reference(self, run: Run, config: Mapping[str, Any]) -> bool:
        has_components = all(
            run.choices[group] == option for group, option in self._components.items()
        )
        return has_components and all(run.config[name] == config[name] for name in _SHARED_SETTINGS)

    def _reference_words(self, words: Mapping[str, str]) -> dict[str, str]:
        components = self._components
        other_words = {
            name: text for name, text in words.items() if not name.startswith(tuple(components))
        }
        return other_words | components

    @cached_property
    def _half_runs(self) -> list[Run]:
        return list(self.catalogue.select(split=HALF_SPLITS))

    def _find_run(self, id_: str) -> Run:
        return self.catalogue.runs[id_]

    def _load(self, half_run: Run | None, run: RunPredictions) -> RunPredictions:
        if half_run is None:
            raise self._missing_runs_error([run])
        return load_predictions(half_run)


def _identity(run: Run) -> dict[str, Any]:
    return {name: run.config[name] for name in IDENTITY if name not in _ASIDE}


def _halvings(run: Run) -> int:
    return int(run.config["split"]["repeats"])


def _half_split_words(words: Mapping[str, str]) -> dict[str, str]:
    other_words = {name: text for name, text in words.items() if not name.startswith(_ASIDE)}
    return {**other_words, "split": HALF_SPLITS}


def _unique(missing: Mapping[str, Mapping[str, str]]) -> list[Mapping[str, str]]:
    return list({json.dumps(dict(job), sort_keys=True): job for job in missing.values()}.values())


@dataclass(frozen=True, eq=False)
class VarianceRatios:
    """Ratios of variances to the reference learner's, for the rates that `objectives` use.

    Attributes
    ----------
    per : ``group``: one ratio for each group, the mean over rates; or ``mean`` over both.
    protect : the attributes that define the groups; if empty, the run's own.
    """

    half_runs: HalfRuns
    objectives: Sequence[str]
    per: str = GROUP
    protect: tuple[str, ...] = ()

    def __call__(self, run: RunPredictions) -> Floats:
        """Return the run's ratio r: a number, or (G, 1) per group."""
        ratios = self.ratios_of_rates(run)
        is_known = ~np.isnan(ratios)
        if not is_known.any():
            raise UserError(
                f"run {run.id}: no half-split gives a variance, of it or of the reference learner; "
                "run both with a larger split.repeats"
            )
        if self.per == MEAN:
            return np.asarray(ratios[is_known].mean())
        # A group without a ratio of its own gets the mean of all ratios.
        filled = np.where(is_known.any(axis=0), ratios, ratios[is_known].mean())
        return np.asarray(np.nanmean(filled, axis=0)[:, None])

    def ratios_of_rates(self, run: RunPredictions) -> Floats:
        """Return the ratio of every rate and group, (R, G); NaN if undefined in a half."""
        estimates, reference_estimates = (
            self._estimates(half_run, run)
            for half_run in (self.half_runs.load_half_run(run), self.half_runs.load_reference(run))
        )
        shared_repeats = sorted(estimates.keys() & reference_estimates.keys())
        halves = (
            np.stack([halving_estimates[repeat] for repeat in shared_repeats])
            for halving_estimates in (estimates, reference_estimates)
        )
        return variance_ratio(*halves)

    def _estimates(self, half_run: RunPredictions, run: RunPredictions) -> dict[int, Floats]:
        """Return the rates of both halves of every halving: repeat -> (2, R, G)."""
        labels = Labels.of(run, self.protect)
        names = [rate for name in self.objectives for rate in objective(name).rates]
        estimates = {}
        for repeat, folds in half_run.repeats.items():
            counts = labels.counts(folds)
            estimates[repeat] = np.stack([rate(counts) for rate in dict.fromkeys(names)], axis=1)
        return estimates
