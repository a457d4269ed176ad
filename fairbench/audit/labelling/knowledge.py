"""What labels tell of each group's accuracy, now and after one label more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fairbench.audit.labelling.session import Session
from fairbench.core.seeds import rng
from fairbench.inference.beta import Beta

Floats = NDArray[np.float64]
DRAWS = 2000


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The posterior of the groups' accuracies.

    Attributes
    ----------
    accuracy : (A,).
    """

    session: Session
    accuracy: Beta

    @staticmethod
    def of(session: Session) -> Knowledge:
        """Return what a session knows."""
        posterior = session.accuracy(session.waiting()).posterior
        return Knowledge(session, Beta(posterior.successes[0], posterior.failures[0]))

    @cached_property
    def draws(self) -> Floats:
        """Accuracies, (T, A)."""
        return self.accuracy.quantile(self._uniform)

    def after(self, arm: int, *, right: bool) -> Floats:
        """Return accuracies after one label of an arm that shows its prediction right, or wrong.

        They are drawn from the same uniforms: only that arm's change, and slightly.
        """
        beta = self.one_more(arm, right=right)
        drawn = self.draws.copy()
        drawn[:, arm] = beta.quantile(self._uniform[:, arm])
        return drawn

    def one_more(self, arm: int, *, right: bool) -> Beta:
        """Return the posterior of an arm after one label."""
        won, lost = self.accuracy.successes[arm], self.accuracy.failures[arm]
        return Beta(won + right, lost + (not right))

    @cached_property
    def _uniform(self) -> Floats:
        generator = rng(self.session.state.options.seed, "what a label would settle")
        return generator.random((DRAWS, len(self.session.names)))
