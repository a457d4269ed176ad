"""Names of groups that their combinations, such as ``Female x Black``, can be told apart by."""

from __future__ import annotations

import pandas as pd

from fairbench.core.errors import UserError


def check_combinable(sensitive: pd.DataFrame, source: str) -> None:
    """Refuse attributes and labels with an x of their own, as combinations are joined by one.

    ``a x b`` with ``c`` would be named as ``a`` with ``b x c``, and an attribute ``sex x race``
    that of the combination of ``sex`` and ``race``. A single attribute is combined with none.

    Parameters
    ----------
    sensitive : (n, a) categorical labels. source : where they are from, for the error.
    """
    if len(sensitive.columns) < 2:
        return
    for column in sensitive.columns:
        if _has_x(column):
            raise UserError(
                f"{source}: column '{column}' has an x between spaces, which joins the names of "
                "combined attributes: rename it"
            )
        for label in sensitive[column].cat.categories:
            if _has_x(label):
                raise UserError(
                    f"{source}: label '{label}' of column '{column}' has an x between spaces, "
                    "which joins the labels of combined attributes: rename it"
                )


def _has_x(name: object) -> bool:
    # At an end too: 'a x' with 'b' is 'a x x b', and so is 'a' with 'x b'. 'x' itself is not.
    return name != "x" and " x " in f" {name} "
