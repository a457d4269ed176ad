"""The groups that a table's columns name, and those of their combinations."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from fairbench.audit.columns import Place, groups_of
from fairbench.audit.options import Options
from fairbench.core.errors import UserError
from fairbench.data.dataset import combine
from fairbench.data.group_names import check_combinable
from fairbench.evaluation.evaluator import group_columns

MOST_CELLS = 100


def read_groups(
    frame: pd.DataFrame, places: Mapping[str, Place], options: Options
) -> tuple[dict[str, pd.Series], pd.Series]:
    """Return the groups of each attribute and each two, and the combinations of all attributes.

    Raises
    ------
    UserError : no groups, one group, too many to be groups or to be combined, or names that
        combinations could not be told apart by.
    """
    if not options.group:
        raise UserError("no groups to compare: name their columns, such as group=[sex,race]")
    singles = pd.DataFrame({name: groups_of(frame[name], places[name]) for name in options.group})
    check_combinable(singles, options.path.name)
    references = {name: str(singles[name].cat.categories[0]) for name in options.group}
    cells = combine([singles[name] for name in options.group])
    if len(cells.cat.categories) > MOST_CELLS:
        raise UserError(
            f"{options.path.name}: {' x '.join(options.group)} has {len(cells.cat.categories)} "
            f"combinations; up to {MOST_CELLS} can be assessed: name fewer columns, or coarser "
            "groups"
        )
    return group_columns(singles, references, 2), cells
