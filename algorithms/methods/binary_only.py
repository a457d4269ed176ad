"""The refusal shared by methods that need a binary label."""

from __future__ import annotations

from fairbench.data.dataset import Dataset, Task


def binary_only(method: str, dataset: Dataset) -> str | None:
    """Return why `method` cannot work on a regression data set, or None."""
    if dataset.task is Task.BINARY:
        return None
    return (
        f"method={method} needs a binary target, and dataset={dataset.name} is a regression: "
        "use method=baseline, random or ensemble"
    )
