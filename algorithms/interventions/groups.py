"""The groups that `protect` names, as interventions compare them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Groups = NDArray[np.str_]


def group_names(sensitive_features: pd.Series) -> Groups:
    """Return each row's group, (n,): names, since codes of training and test rows can differ."""
    return np.asarray(sensitive_features, str)
