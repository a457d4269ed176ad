"""Runs on half-splits, found for the runs that are compared by their configurations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairbench.comparison.run_predictions import RunPredictions, load_predictions
from fairbench.core.errors import UserError
from fairbench.experiments.build import IDENTITY
from fairbench.experiments.presets import Presets
from fairbench.experiments.provenance import commands, overrides
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

HALF_SPLITS = "half_splits"
REFERENCE = {"learner": "svm", "intervention": "none"}
# What does not change which labels a run predicts.
_ASIDE = ("split", "evaluator", "consistency")


@dataclass(frozen=True, eq=False)
class HalfRuns:
    """The half-split runs of a results folder.

    `reference` names the reference learner's, by id or name; if empty, it is found by `REFERENCE`.
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
        for run in runs:
            words = overrides(self._finished(run.id), Presets(self.conf))
            if self._of(run) is None:
                missing[f"run {run.id}"] = _halved(words)
            if self._reference_of(run) is None:
                missing["the reference learner"] = _halved(_of_reference(words))
        return UserError(
            f"a relative rho needs half-split runs, and those of {', '.join(missing)} are not "
            f"in {self.catalogue.folder / 'runs'}: run {' and '.join(commands(_unique(missing)))}"
        )

    def _of(self, run: RunPredictions) -> Run | None:
        wanted = _identity(self._finished(run.id))
        found = [each for each in self._all if _identity(each) == wanted]
        return max(found, key=_halvings, default=None)

    def _reference_of(self, run: RunPredictions) -> Run | None:
        if self.reference:
            return self.catalogue.one(self.reference)
        own = self._finished(run.id).config
        found = [each for each in self._all if _refers_to(each, own, ("dataset", "method", "seed"))]
        found = [each for each in found if _refers_to(each, own, ("protect",))] or found
        if len({json.dumps(each.config["learner"]) for each in found}) > 1:
            ids = ", ".join(each.id for each in found)
            raise UserError(f"several half-split runs of the reference: {ids}; say reference=ID")
        return max(found, key=_halvings, default=None)

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


def _refers_to(run: Run, own: Mapping[str, Any], alike: Sequence[str]) -> bool:
    chosen = all(run.choices[group] == option for group, option in REFERENCE.items())
    return chosen and all(run.config[name] == own[name] for name in alike)


def _halvings(run: Run) -> int:
    return int(run.config["split"]["repeats"])


def _halved(words: Mapping[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in words.items() if not name.startswith(_ASIDE)}
    return {**kept, "split": HALF_SPLITS}


def _of_reference(words: Mapping[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in words.items() if not name.startswith(tuple(REFERENCE))}
    return {**kept, "learner": REFERENCE["learner"]}


def _unique(missing: Mapping[str, Mapping[str, str]]) -> list[Mapping[str, str]]:
    return list({json.dumps(dict(job), sort_keys=True): job for job in missing.values()}.values())
