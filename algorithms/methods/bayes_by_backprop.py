"""Weight samples of a Bayesian network, read by their mean and their disagreement."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.methods.drawn_networks import DrawnNetworks
from fairbench.experiments.contracts import Capabilities


@dataclass(frozen=True)
class BayesByBackprop(DrawnNetworks):
    """Networks drawn from a posterior over weights (Blundell et al. 2015, Kuzucu et al. 2024)."""

    capabilities = Capabilities(reads_score=True, needs="a posterior over weights")
