"""The audit of a data frame, as Python code and notebooks ask for it: ``fairbench.audit(...)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairbench.audits.columns import read_frame
from fairbench.audits.findings import frame_of
from fairbench.audits.gate.asking import GatedOptions, options_with
from fairbench.audits.gate.judging import gate_of
from fairbench.audits.gate.policy import policy_of
from fairbench.audits.kinds import document_of
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.typed_options import typed_values
from fairbench.data.in_memory import is_column, is_table, names_of_table, with_columns
from fairbench.evaluation.gate import Gate
from fairbench.reporting.document.report import DocumentReport
from fairbench.reporting.gate_files import with_gate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def audit(
    frame: Any,
    *,
    target: Any = "",
    score: Any = "",
    prediction: Any = "",
    groups: Any = (),
    name: str = "predictions",
    policy: str | Path = "",
    **options: Any,
) -> AuditReport:
    """Say which groups predictions treat worse, and how sure that is.

    Parameters
    ----------
    frame : a row a person: a pandas, polars or Arrow table, or the path of a file.
    target : the column of labels, empty where a label is unknown.
    score : the column of the predicted probability of the positive label; of three classes and
        more, a list with one column for each class.
    prediction : the column of decisions, where they are not ``score > threshold``.
    groups : the column of groups, or several; their combinations are assessed too.
    name : what the report calls the table.
    policy : a YAML file of options and conditions; what is given here goes before what it says.
    options : any other option of ``fairbench audit``, which ``fairbench audit --help`` lists, such
        as ``positive="yes"``, ``threshold=0.4``, ``epsilon=0.02`` or ``weight="weight"``.

    Every column may be given by its name, or by value: ``score=frame.PD``, an array or a list. A
    Series belongs to the rows by its index, and what has no index by its order.

    Returns
    -------
    A report that a notebook shows as a page, and that can be saved as a whole or in parts.

    Raises
    ------
    UserError : a column that is not there or has other rows than the table, or values that cannot
        be what they are said to be; the message names the column and the row.

    Examples
    --------
    >>> import fairbench, numpy as np, pandas as pd
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame({"sex": random.choice(["women", "men"], 500)})
    >>> people["score"] = random.uniform(size=500).round(3)
    >>> people["label"] = (random.uniform(size=500) < people["score"]).astype(int)
    >>> report = fairbench.audit(people, target="label", score="score", groups="sex")
    >>> values = report.table.query("statistic == 'value'")
    >>> rates = values.query("metric == 'selection_rate' and attribute == 'sex'")
    >>> rates[["group", "value", "lower", "upper"]].round(2).values.tolist()
    [['men', 0.54, 0.48, 0.6], ['women', 0.49, 0.42, 0.55]]
    """
    named = ("path", "target", "score", "scores", "prediction", "group", "out")
    shown = [field.name for field in fields(GatedOptions) if not field.metadata.get("hidden")]
    further = [option for option in shown if option not in named]
    for option in options:
        if option not in further:
            raise unknown_name("option of audit", option, [*further, "groups", "target", "score"])
    given = {"target": target, "score": score, "prediction": prediction, "groups": groups}
    given = {option: value for option, value in {**given, **options}.items() if value is not None}
    file = Path(frame) if isinstance(frame, str | Path) else None
    typed = given
    given, table = _options_and_table(given, None if file else frame, name)
    renamed = {"groups": "group", "score": "score" if _is_one(given.get("score")) else "scores"}
    given = {renamed.get(option, option): value for option, value in given.items()}
    values = typed_values(GatedOptions, given)
    if policy:
        own = {option: value for option, value in values.items() if value not in ("", ())}
        values = {**policy_of(policy, GatedOptions), **own}
        typed = {**typed, "policy": str(policy)}
    asked = options_with({**values, "path": file or Path(name)})
    read = read_frame(asked, source=table)
    document, verdict = document_of(asked, read), None
    if isinstance(asked, GatedOptions):
        verdict = gate_of(asked, read)
        document = with_gate(document, verdict)
    called = {**typed, **({} if file else {"name": name})}
    made = document.made and replace(document.made, command=_call(frame, called))
    return AuditReport(replace(document, made=made), verdict)


def _options_and_table(
    options: Mapping[str, Any], frame: Any, name: str
) -> tuple[dict[str, Any], Any]:
    """Return options with every column by its name, and a table that has those given by value.

    Parameters
    ----------
    frame : the table, none of a file. name : what messages call it.
    """
    declared = {field.name: str(field.metadata.get("shown")) for field in fields(GatedOptions)}
    declared |= {"groups": declared["group"]}
    by_value = {}
    for option, value in options.items():
        if declared[option] in _COLUMNS and (is_column(value) or _are_values(value, frame)):
            by_value[option] = value
    if not by_value:
        return dict(options), frame
    if frame is None:
        raise UserError(
            f"{min(by_value)}= is given by value, and the table is a file: name the column, or "
            "read the file into a DataFrame first"
        )
    if not is_table(frame):
        raise UserError(f"a {type(frame).__name__} is no table: give a DataFrame")
    table, names = with_columns(frame, name, by_value)
    for option, called in names.items():
        if len(called) > 1 and declared[option] == _COLUMNS[0] and option != "score":
            raise UserError(f"{option}= is {len(called)} columns; it must be one")
    plain = {option: called[0] if len(called) == 1 else called for option, called in names.items()}
    return {**options, **plain}, table


def _is_one(value: Any) -> bool:
    return not isinstance(value, list | tuple)


_COLUMNS = ("COLUMN", "[COLUMN,...]", "[LOWER,UPPER]")  # how options that name columns are shown


def _are_values(value: Any, frame: Any) -> bool:
    """Say whether a list of texts is a column by value: of as many rows, and no names."""
    if not isinstance(value, list | tuple) or not value or not is_table(frame):
        return False
    return len(value) == len(frame) and not {*value} <= {*names_of_table(frame)}


def _call(frame: Any, given: Mapping[str, Any]) -> str:
    """Return the call that makes a report again; a table in memory goes by no name of its own."""
    first = repr(str(frame)) if isinstance(frame, str | Path) else "table"
    named = [f"{name}={value!r}" for name, value in given.items() if _is_told(value)]
    return f"fairbench.audit({', '.join([first, *named])})"


def _is_told(value: Any) -> bool:
    """Say whether an option was given, as something that can be typed again."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, str | int | float) for item in value)
    return isinstance(value, int | float) or (isinstance(value, str) and bool(value))


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport(DocumentReport):
    """What an audit found: a notebook shows it, ``print`` prints it, and it can be saved.

    Attributes
    ----------
    gate : whether the conditions of `fail_if` hold; None where none were given.
    """

    gate: Gate | None = None
    name = "audit"

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every figure of the report in one tidy table, a row each.

        Of two classes and of numbers, in the columns that `fairbench.evaluate` returns: metric,
        attribute, group, value, lower and upper end of the 95 % interval, n, status and reason.
        """
        data = self.document.data
        return pd.DataFrame(data.get("metrics") or data.get("figures") or [])

    @cached_property
    def findings(self) -> pd.DataFrame:
        """What the report says of the people that its rows are a sample of, a row each.

        Columns are about, attribute, groups, measure, value, lower, upper, n, verdict and sentence,
        then the others of :class:`fairbench.audits.findings.Finding`.
        """
        return frame_of(self.document.data.get("findings", []))

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Figures for a paper, drawn with matplotlib: save one with ``.savefig("gaps.pdf")``."""
        from fairbench.audits.pages.figures import figures_of

        return dict(figures_of(self.document.data))
