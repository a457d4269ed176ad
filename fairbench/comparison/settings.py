"""How two runs are compared: by what, and what a count of their pooled folds is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.checks import check_minimum, check_share
from fairbench.core.errors import UserError, unknown_name
from fairbench.inference.effective_counts import (
    mean_relative_shrinkage,
    mean_shrinkage,
    relative_rho,
    shrinkage,
)
from fairbench.inference.objectives import objective

Array = NDArray[np.float64]
AVERAGE, AT_MOST, RELATIVE, RELATIVE_UP = "average", "1/K", "relative", "relative_up"
MEAN, GROUP = "mean", "group"


@dataclass(frozen=True)
class Settings:
    """How two runs are compared.

    Attributes
    ----------
    objectives, rope : what by, and up to which difference each is practically equivalent.
    rho : the correlation between folds: ``average`` over [0, 1/K], ``1/K``, a number, or from
        half-split runs and those of a reference learner: ``relative`` (rho_rel, the reference's
        own rho being 1/K) and ``relative_up`` (averaged over [0, rho_rel]).
    rho_per : relative rhos from the variance ratios' ``mean`` over groups and objectives, or one a
        ``group``.
    reference : the half-split run of the reference learner, by id or name; that of learner=svm
        without intervention if empty.
    paired : through the joint table of both runs' predictions on the same rows; otherwise, as the
        paper has it, by two independent posteriors.
    predictive : draw counts after the probabilities, as the published code does.
    alpha : prior pseudo-count of a confusion cell.
    protect : the sensitive attributes whose groups are compared; those of the first run if empty.
    """

    objectives: tuple[str, ...] = ("accuracy", "equal_opportunity")
    rope: tuple[float, ...] = (0.01, 0.01)
    rho: str = AVERAGE
    rho_per: str = MEAN
    reference: str = ""
    paired: bool = True
    predictive: bool = False
    alpha: float = 1.0
    draws: int = 10000
    level: float = 0.95
    protect: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing, before any run is read."""
        for name in self.objectives:
            objective(name)
        self.shrinkage(10, 1.0)
        if self.rho_per not in (MEAN, GROUP):
            raise unknown_name("rho_per", self.rho_per, (MEAN, GROUP))
        check_minimum("draws", self.draws, 100)
        check_minimum("alpha", self.alpha, 0)
        check_share("level", self.level)

    @property
    def relative(self) -> bool:
        """Whether rho comes from half-split runs."""
        return self.rho in (RELATIVE, RELATIVE_UP)

    def shrinkage(self, folds: int, ratio: float | Array | None = None) -> Array:
        """Return what a count of `folds` pooled folds is worth.

        Parameters
        ----------
        ratio : of the run's variance to the reference learner's, a number or (G, 1), which a
            relative rho needs.
        """
        if folds == 1:
            return np.asarray(1.0)
        if self.rho == AVERAGE:
            return np.asarray(mean_shrinkage(folds))
        if self.relative:
            return self._relative(folds, ratio)
        try:
            return shrinkage(1 / folds if self.rho == AT_MOST else float(self.rho), folds)
        except ValueError:
            valid = f"{AVERAGE}, {AT_MOST}, {RELATIVE}, {RELATIVE_UP}, or a number"
            raise UserError(f"rho is '{self.rho}': valid: {valid}") from None

    def _relative(self, folds: int, ratio: float | Array | None) -> Array:
        if ratio is None:
            raise UserError(f"rho={self.rho} needs half-split runs, which this comparison has not")
        if self.rho == RELATIVE_UP:
            return mean_relative_shrinkage(ratio, folds)
        return shrinkage(relative_rho(ratio, folds), folds)
