"""The refusal shared by learners that predict labels."""

from __future__ import annotations

from fairbench.data.dataset import Dataset, Task


def labels_only(learner: str, dataset: Dataset) -> str | None:
    """Return why `learner` cannot learn a regression data set, or None."""
    if dataset.task is Task.BINARY:
        return None
    return f"learner={learner} predicts labels, not values: use learner=xgboost"
