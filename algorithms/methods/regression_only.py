"""The refusal shared by methods that need a numeric target."""

from __future__ import annotations

from fairbench.data.dataset import Dataset, Task


def regression_only(method: str, dataset: Dataset) -> str | None:
    """Return why `method` cannot work on a binary data set, or None."""
    if dataset.task is Task.REGRESSION:
        return None
    return (
        f"method={method} needs a numeric target, and dataset={dataset.name} is binary: "
        "use method=binomial_nll, ensemble or deep_ensemble"
    )
