"""The verdict of a gate on predictions that somebody brings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.audits.assessment import check_design, rows_of
from fairbench.audits.columns import read_frame
from fairbench.audits.gate.options import GatedOptions
from fairbench.audits.gate.policy import policy_of
from fairbench.audits.kinds import kind_of
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.seeds import rng
from fairbench.core.typed_options import typed_values
from fairbench.data.columns import name_rows_in_errors
from fairbench.evaluation.conditions import by_attribute, conditions_of
from fairbench.evaluation.gate import ComparedGroups, Gate, decision_intervals, judge
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.predictions import Groups


def gate(frame: Any = None, *, policy: str | Path = "", **options: Any) -> Gate:
    """Judge predictions by conditions that must not hold.

    Parameters
    ----------
    frame : the path of a file, or a table of pandas, polars or Arrow with one row per person;
        without it, the file that the policy names.
    policy : a YAML file of options and conditions, as ``fairbench gate`` reads it. What is given
        here goes before what it says.
    options : any option of ``fairbench gate``, such as ``fail_if="impact_ratio<0.8"``,
        ``groups=["sex"]``, ``target="label"`` or ``require="pass"``; columns by their names.

    Returns
    -------
    The gate: true only where it passes, with ``outcome``, ``line``, ``exit_status`` and a row for
    every condition and attribute in ``rows``. ``check()`` raises an error unless it passes.

    Raises
    ------
    UserError : if a condition, an option or a column is invalid; the message says what is valid.

    Examples
    --------
    >>> import fairbench, pandas as pd
    >>> people = pd.DataFrame({"sex": ["women", "men"] * 400, "hired": [1, 1, 0, 1] * 200})
    >>> gate = fairbench.gate(people, prediction="hired", groups="sex", fail_if="impact_ratio<0.8")
    >>> gate.outcome, bool(gate), gate.exit_status
    ('fails', False, 1)
    """
    from_policy = policy_of(policy, GatedOptions) if policy else {}
    from_call = typed_values(GatedOptions, _plain_options(options))
    values = {**from_policy, **from_call}
    is_file = isinstance(frame, str | Path)
    if is_file:
        values["path"] = Path(frame)
    elif frame is not None:
        values["path"] = Path("predictions")
    if "path" not in values:
        raise UserError(
            "there is nothing to judge: give a table or a file, or name one in the policy as "
            "predictions"
        )
    gate_options = GatedOptions(**values)
    source = None if is_file else frame
    return gate_of(gate_options, read_frame(gate_options, source=source))


def _plain_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return options by the names of a command line, those that are not None."""
    valid = [name for name in GatedOptions.__dataclass_fields__ if name not in _NOT_TAKEN]
    if "groups" in options:  # as an audit has it in Python
        options = {"group": options["groups"], **options}
        del options["groups"]
    for name in options:
        if name not in valid:
            raise unknown_name("option of a gate", name, valid)
    return {name: value for name, value in options.items() if value is not None}


_NOT_TAKEN = ("path", "out", "cuts", "scores")


def gate_of(options: GatedOptions, frame: pd.DataFrame) -> Gate:
    """Return the verdict on a table that was read as text.

    Raises
    ------
    UserError : a kind of audit that has no gates, conditions that need labels where no column of
        labels is named, or what an audit refuses, too.
    """
    conditions = conditions_of(options.fail_if)
    with name_rows_in_errors(frame, options.id):
        kind_of(options, frame)
        if not options.group:
            raise UserError("a gate compares groups: name their columns, such as group=[sex,race]")
        on_labels = [condition for condition in conditions if condition.needs_labels]
        if on_labels and not options.target:
            raise UserError(
                f"fail_if={on_labels[0]} needs labels: name their column as target=, or leave the "
                "condition out"
            )
        table = read_audit_table(options, frame=frame, decisions_alone=not on_labels)
        check_design(table)
    single = by_attribute(conditions, options.group, list(table.groups))
    compared = {
        name: _groups_to_compare(table, name, options.seed, with_labels=bool(on_labels))
        for name in {condition.attribute for condition in single}
    }
    return judge(single, compared, options.require)


def _groups_to_compare(
    table: AuditTable, name: str, seed: int, *, with_labels: bool
) -> ComparedGroups:
    """Return the groups of an attribute, with what decisions and labels say of each."""
    group_labels = table.groups[name].cat.remove_unused_categories()
    groups = Groups.of(name, group_labels)
    decisions = table.prediction
    labelled: CountIntervals | None = None
    if with_labels and len(table.known) == len(table):
        labelled = decision_intervals(groups, decisions, table.design, table.label)
    elif with_labels and len(table.known):
        generator = rng(seed, "labels", name)
        counted = rows_of(table).labelled_counts(name, group_labels, generator, 0.95)
        assert isinstance(counted.intervals, CountIntervals)
        labelled = counted.intervals
    reference = table.references.get(name)
    return ComparedGroups(
        name,
        groups.names,
        np.bincount(groups.codes, minlength=len(groups)),
        decision_intervals(groups, decisions, table.design),
        decision_intervals(groups, table.favoured, table.design),
        labelled,
        None if reference is None else groups.names.index(reference),
    )
