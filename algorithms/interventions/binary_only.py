"""The refusal shared by interventions that need a binary label."""

from __future__ import annotations

from fairbench.data.dataset import Dataset, Task


def binary_only(intervention: str, dataset: Dataset) -> str | None:
    """Return why `intervention` cannot work on a regression data set, or None."""
    if dataset.task is Task.BINARY:
        return None
    return (
        f"intervention={intervention} needs a binary target, and dataset={dataset.name} is a "
        "regression: use intervention=none"
    )
