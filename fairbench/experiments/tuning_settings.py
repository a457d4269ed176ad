"""Settings of tuning: the objectives, and how much may be spent on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.errors import UserError, check_minimum, check_share
from fairbench.core.options import option

FORMATS = ("text", "json", "html", "markdown", "latex")


@dataclass(frozen=True)
class Tuning:
    """Settings of tuning: the objectives, and how much may be spent on them."""

    objectives: tuple[str, ...] = option(
        ("error_rate",),
        "What is to be small on validation rows: rates, mean losses, gaps between groups; what is "
        "better large, such as accuracy, is to be large.",
        shown="[METRIC,...]",
    )
    weights: tuple[float, ...] = option(
        (), "Of several objectives, what is chosen has the smallest sum, with these weights.",
        shown="[NUMBER,...]",
    )  # fmt: skip
    trials: int = option(50, "How many trials are made at most, beside the untuned default.")
    cpu_seconds: float | None = option(
        None, "After how many CPU seconds of fitting no further trial is begun."
    )
    level: float = option(0.95, "How sure the intervals are.")
    study: str = option(
        "", "A name, to begin another study of the same default beside the first.", shown="NAME"
    )

    def __post_init__(self) -> None:
        """Refuse values that mean nothing, before anything is composed."""
        check_minimum("trials", self.trials, 1)
        check_share("level", self.level)
        if self.cpu_seconds is not None and not self.cpu_seconds > 0:
            raise UserError(f"cpu_seconds is {self.cpu_seconds:g}; it must be above 0")
        if self.weights and len(self.weights) != len(self.objectives):
            raise UserError(
                f"weights= has {len(self.weights)} and objectives= {len(self.objectives)}: give "
                "one for each"
            )
        if self.weights and not (min(self.weights) >= 0 < max(self.weights)):
            raise UserError("weights= must be at least 0, and one above it")

    def score(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums that are to be small, (..., M) -> (...)."""
        return np.asarray(values @ np.array(self.weights or [1.0] * len(self.objectives)))


@dataclass(frozen=True)
class TuningOptions(Tuning):
    """How options are tuned, and how the answer is printed: ``hydra.sweeper.*`` of the sweeper."""

    format: str = option("text", "How the result is printed.", choices=FORMATS)
