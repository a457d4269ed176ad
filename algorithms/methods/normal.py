"""The reading shared by methods whose model gives a normal distribution."""

from __future__ import annotations

from fairbench.experiments.contracts import RawOutputs


def normal_predictions(raw: RawOutputs) -> RawOutputs:
    """Return mean and standard deviation; the latter is the uncertainty."""
    mean, sd = raw["mean"], raw["sd"]
    return {"prediction": mean, "mean": mean, "sd": sd, "uncertainty": sd}
