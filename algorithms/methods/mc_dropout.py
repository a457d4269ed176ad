"""Networks thinned by dropout, read by their mean and their disagreement."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.methods.drawn_networks import DrawnNetworks
from fairbench.experiments.contracts import Capabilities


@dataclass(frozen=True)
class MCDropout(DrawnNetworks):
    """Gal & Ghahramani 2016: dropout left on when predicting."""

    capabilities = Capabilities(
        reads_score=True, needs="dropout", advice="use learner=mlp learner.dropout=0.1"
    )
