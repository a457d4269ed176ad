"""FT-Transformer: attention between the columns of a table (Gorishniy et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.components.algorithms.learners.tabular_networks import LOSSES, TabularNetworkLearner
from fairbench.core.errors import UserError, check_minimum, check_share
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Loss


@dataclass(frozen=True)
class FTTransformer(TabularNetworkLearner):
    """Every column is a vector of `width` numbers; `blocks` layers let each attend to the others.

    The authors' smallest default has a width of 96 and dropout 0.1 of the attention alone; they
    tune widths up to 512. Smaller ones here keep a fit within minutes on one core. Their rule for
    the layer after the attention is kept: it has 4 / 3 of the width.
    """

    blocks: int = 2
    width: int = 32
    heads: int = 4
    attention_dropout: float = 0.1
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what could not be trained."""
        super().__post_init__()
        for name in ("blocks", "width", "heads"):
            check_minimum(f"learner.{name}", getattr(self, name), 1)
        for name in ("attention_dropout", "dropout"):
            check_share(f"learner.{name}", getattr(self, name), zero=True)
        if self.width % self.heads:
            raise UserError(
                f"learner.width is {self.width}; it must be a multiple of learner.heads, "
                f"which is {self.heads}"
            )

    @property
    def capabilities(self) -> Capabilities:
        """Every loss but the reference's, which are of trees."""
        return Capabilities(
            tasks=ANY_TASK,
            packages=("torch", "rtdl_revisiting_models"),
            requires=("torch", "rtdl_revisiting_models"),
            losses=LOSSES,
            seeded=True,
        )

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.ft_transformer import build
        from fairbench.components.algorithms.estimators.tabular_network import (
            TabularNetworkEstimator,
        )

        return TabularNetworkEstimator(loss, self, build, seed)
