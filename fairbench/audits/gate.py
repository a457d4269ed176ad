"""A policy: one YAML file of options and conditions, for Python, pytest and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.audits.assessment import check_design, rows_of
from fairbench.audits.kinds import kind_of
from fairbench.audits.question import GatedOptions
from fairbench.audits.table import AuditTable, read_audit_table, read_frame
from fairbench.core.arrays import rng
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.files import read_bytes
from fairbench.core.options import declared_names, typed_values
from fairbench.core.text import shortened
from fairbench.data.columns import name_rows_in_errors
from fairbench.evaluation.gate import (
    ComparedGroups,
    Gate,
    by_attribute,
    conditions_of,
    decision_intervals,
    judge,
)
from fairbench.evaluation.intervals import CountIntervals
from fairbench.evaluation.predictions import Groups

PREDICTIONS = "predictions"
_MOST = 100_000  # bytes


def policy_of(path: str | Path, options: type) -> dict[str, Any]:
    """Return the options that a policy gives, by their names on the command line.

    Every value is read as text, so that ``yes``, ``no`` and ``0.10`` are labels as they stand.

    Parameters
    ----------
    path : the policy file.
    options : the dataclass that declares the options. A policy may also name the file to judge as
        ``predictions``, relative to its own folder; that is returned as ``path``.

    Raises
    ------
    UserError : no such file, or one that is no mapping of names to texts or lists of texts; an
        option that is unknown or stands there twice.
    """
    path = Path(path)
    declared = declared_names(options)
    valid = [PREDICTIONS, *(name for name in declared if name not in _OF_A_COMMAND)]
    given: dict[str, Any] = {}
    for name, value in _entries(path):
        if name not in valid:
            raise unknown_name(f"option in {path.name}", name, valid)
        if name in given:
            raise UserError(f"{path.name} gives {name} twice: leave one of them out")
        given[name] = value
    predictions = given.pop(PREDICTIONS, "")
    values = typed_values(options, {name: value for name, value in given.items() if value})
    if predictions:
        if not isinstance(predictions, str):
            raise UserError(f"{path.name}: {PREDICTIONS} is one file, not several")
        values["path"] = path.parent / predictions
    return values


# What a policy leaves to whoever gives the command.
_OF_A_COMMAND = ("path", "out", "results", "formats", "repeat", "policy", "junit", "sarif",
                 "state")  # fmt: skip


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a policy, values as texts or lists of them."""
    import yaml

    try:
        text = read_bytes(path, _MOST).decode()
    except FileNotFoundError:
        raise UserError(f"policy={path}: there is no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"policy={path} is no text in UTF-8") from None
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except RecursionError:
        raise UserError(f"{path.name} cannot be read: its lists are nested too deep") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or "it is no YAML"
        raise UserError(f"{path.name}{line} cannot be read: {why}") from None
    if not isinstance(root, yaml.MappingNode) or not root.value:
        raise UserError(
            f"{path.name} is no policy: it has a line for each option, such as "
            "fail_if: impact_ratio<0.8"
        )
    for key, value in root.value:
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"{path.name}, line {key.start_mark.line + 1}: a name is one word")
        items = value.value if isinstance(value, yaml.SequenceNode) else [value]
        if not all(isinstance(item, yaml.ScalarNode) for item in items):
            raise UserError(
                f"{path.name}, line {value.start_mark.line + 1}: {shortened(key.value)} is a text "
                "or a list of texts"
            )
        texts = [item.value for item in items]
        yield key.value, texts if isinstance(value, yaml.SequenceNode) else texts[0]


# The verdict of a gate on predictions that somebody brings.


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
