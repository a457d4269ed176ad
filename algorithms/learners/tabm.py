"""TabM: one network that makes many predictions, an ensemble for free (Gorishniy et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.components.algorithms.learners.tabular_networks import LOSSES, TabularNetworkLearner
from fairbench.core.errors import check_minimum, check_share
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Loss


@dataclass(frozen=True)
class TabM(TabularNetworkLearner):
    """`members` networks of `blocks` layers that share most of their weights.

    They are trained side by side, each by its own loss, and stopped where their mean prediction
    is best. `bins` is how many pieces of a line a number is encoded by, each piece a vector of
    `embedding` numbers; 0 leaves numbers as they are. The authors' default is 32 members of 3
    layers of 512 units, 2 layers where numbers are encoded.
    """

    members: int = 16
    blocks: int = 2
    width: int = 64
    dropout: float = 0.1
    bins: int = 64
    embedding: int = 8
    learning_rate: float = 0.002
    weight_decay: float = 0.0003

    def __post_init__(self) -> None:
        """Refuse what could not be trained."""
        super().__post_init__()
        check_minimum("learner.members", self.members, 2)
        check_minimum("learner.bins", self.bins, 0)
        for name in ("blocks", "width", "embedding"):
            check_minimum(f"learner.{name}", getattr(self, name), 1)
        check_share("learner.dropout", self.dropout, zero=True)

    @property
    def capabilities(self) -> Capabilities:
        """Every loss but the reference's, which are of trees; and its members, one by one."""
        return Capabilities(
            tasks=ANY_TASK,
            packages=("torch", "tabm", "rtdl_num_embeddings"),
            requires=("torch", "tabm"),
            losses=LOSSES,
            seeded=True,
            gives=frozenset({"members of its own"}),
        )

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.tabm import build
        from fairbench.components.algorithms.estimators.tabular_network import (
            TabularEnsembleEstimator,
        )

        return TabularEnsembleEstimator(loss, self, build, seed)
