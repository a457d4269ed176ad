"""Aleatoric and epistemic variance of the label, of methods with several members."""

from __future__ import annotations

from fairbench.experiments.contracts import RawOutputs
from fairbench.metrics.decomposition import variance_decomposition


def decomposed(raw: RawOutputs) -> RawOutputs:
    """Return the two parts of (n, members) probabilities; nothing where members give labels only.

    Labels claim no probability, so their disagreement cannot be told from noise in the label.
    """
    return variance_decomposition(raw["score"].T)._asdict() if "score" in raw else {}
