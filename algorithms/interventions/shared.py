"""What interventions share: the groups they compare, a label to check, one result kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError

Array = NDArray[np.float64]
Groups = NDArray[np.str_]
P = ParamSpec("P")
R = TypeVar("R")


def group_names(sensitive_features: pd.Series) -> Groups:
    """Return each row's group, (n,): names, since codes of training and test rows can differ."""
    return np.asarray(sensitive_features, str)


def check_label(label: int) -> None:
    """Refuse an ``intervention.label`` that no row of a binary data set has."""
    if label not in (0, 1):
        raise UserError(f"intervention.label is {label}; it must be 0 or 1")


def last_call(function: Callable[P, R]) -> Callable[P, R]:
    """Keep the result of the last call; arguments, positional ones only, are told by identity.

    The strong references to the arguments keep their identities from being given to others.
    """
    kept: tuple[tuple[Any, ...], R] | None = None

    @wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal kept
        if kept is None or any(a is not b for a, b in zip(kept[0], args, strict=True)):
            kept = (args, function(*args, **kwargs))
        return kept[1]

    return remembered
