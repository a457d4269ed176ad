"""The audit of a data frame, as Python code and notebooks ask for it: ``fairbench.audit(...)``.

Its figures for a paper or a notebook are drawn with matplotlib, from the audit's data alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairbench.audits.direction import RATE_NAMES
from fairbench.audits.gate import gate_of, policy_of
from fairbench.audits.kinds import document_of
from fairbench.audits.question import GatedOptions, Options, options_with
from fairbench.audits.table import read_frame
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import declared_names, typed_values
from fairbench.data.in_memory import is_column, is_table, names_of_table, with_columns
from fairbench.evaluation.findings import frame_of
from fairbench.evaluation.gate import Gate
from fairbench.evaluation.table import values_of
from fairbench.reporting.document.writing import DocumentReport
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
    frame : a pandas, polars or Arrow table with one row per person, or the path of a file.
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
    _check_option_names(options)
    columns = {"target": target, "score": score, "prediction": prediction, "groups": groups}
    call_arguments = {
        option: value for option, value in {**columns, **options}.items() if value is not None
    }
    audit_options, table = _options_from_call(call_arguments, frame, name, policy)
    if policy:
        call_arguments["policy"] = str(policy)
    if not _is_path(frame):
        call_arguments["name"] = name
    return _report(audit_options, table, command=_call_text(frame, call_arguments))


def _check_option_names(options: Iterable[str]) -> None:
    """Refuse keywords of a call that are no option of an audit.

    Raises
    ------
    UserError : there is one; the message names the nearest options.
    """
    own_parameters = ("path", "target", "score", "scores", "prediction", "group", "out")
    declared = declared_names(GatedOptions)
    valid = [option for option in declared if option not in own_parameters]
    for option in options:
        if option not in valid:
            raise unknown_name("option of audit", option, [*valid, "groups", "target", "score"])


def _options_from_call(
    call_arguments: Mapping[str, Any], frame: Any, name: str, policy: str | Path
) -> tuple[Options, Any]:
    """Return the checked options of an audit, and the table in memory that they are about.

    Parameters
    ----------
    call_arguments : the arguments that were given, by the names that they have in the call.
    frame : a table, or the path of a file.
    name : what messages call a table in memory.
    policy : a YAML file of options; arguments of the call go before what it says. May be empty.

    Returns
    -------
    The options, with every column by its name; and the table with the columns that were given by
    value, None if a file is audited.
    """
    file = Path(frame) if _is_path(frame) else None
    named_columns, table = _columns_by_name(call_arguments, None if file else frame, name)
    score_option = "score" if _is_one(named_columns.get("score")) else "scores"
    option_names = {"groups": "group", "score": score_option}
    values = typed_values(
        GatedOptions,
        {option_names.get(name, name): value for name, value in named_columns.items()},
    )
    if policy:
        filled = {option: value for option, value in values.items() if value not in ("", ())}
        values = {**policy_of(policy, GatedOptions), **filled}
    return options_with({**values, "path": file or Path(name)}), table


def _report(options: Options, table: Any, *, command: str) -> AuditReport:
    """Return the report of a table, with the verdict of a gate if there are conditions.

    Parameters
    ----------
    table : the table in memory; None if the file that the options name is read.
    command : the call that makes the report again.
    """
    frame = read_frame(options, source=table)
    document = document_of(options, frame)
    gate = None
    if isinstance(options, GatedOptions):
        gate = gate_of(options, frame)
        document = with_gate(document, gate)
    made = document.made and replace(document.made, command=command)
    return AuditReport(replace(document, made=made), gate)


def _columns_by_name(
    options: Mapping[str, Any], frame: Any, name: str
) -> tuple[dict[str, Any], Any]:
    """Return options that name every column, and a table that includes those given by value.

    Parameters
    ----------
    options : options whose columns are given by name or by value.
    frame : the table in memory; None if a file is audited.
    name : what messages call the table.
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
    column_options = {}
    for option, columns in names.items():
        if len(columns) > 1 and declared[option] == _COLUMNS[0] and option != "score":
            raise UserError(f"{option}= is {len(columns)} columns; it must be one")
        column_options[option] = columns[0] if len(columns) == 1 else columns
    return {**options, **column_options}, table


def _is_path(frame: Any) -> bool:
    """Say whether what is audited is the path of a file, and no table in memory."""
    return isinstance(frame, str | Path)


def _is_one(value: Any) -> bool:
    return not isinstance(value, list | tuple)


_COLUMNS = ("COLUMN", "[COLUMN,...]", "[LOWER,UPPER]")  # how options that name columns are shown


def _are_values(value: Any, frame: Any) -> bool:
    """Say whether a list of texts is a column by value: of as many rows, and no names."""
    if not isinstance(value, list | tuple) or not value or not is_table(frame):
        return False
    return len(value) == len(frame) and not {*value} <= {*names_of_table(frame)}


def _call_text(frame: Any, call_arguments: Mapping[str, Any]) -> str:
    """Return the call that makes a report again; a table in memory is written as ``table``."""
    first = repr(str(frame)) if _is_path(frame) else "table"
    keywords = [
        f"{name}={value!r}" for name, value in call_arguments.items() if _can_be_typed(value)
    ]
    return f"fairbench.audit({', '.join([first, *keywords])})"


def _can_be_typed(value: Any) -> bool:
    """Say whether the value of an option is not empty, and short enough to be typed again."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, str | int | float) for item in value)
    return isinstance(value, int | float) or (isinstance(value, str) and bool(value))


@dataclass(frozen=True, eq=False, repr=False)
class AuditReport(DocumentReport):
    """The report of an audit, which :func:`fairbench.audit` returns.

    A notebook and ``print(report)`` show its summary, and ``report.save("audit.html")`` writes all
    of it; other endings give other forms, such as ``.docx``,
    ``.pdf``, ``.tex``, ``.md``, ``.json`` and ``.csv``.

    Attributes
    ----------
    findings : a data frame of the conclusions about the people that the rows are a sample of, each
        with its value, interval, verdict (``large``, ``small``, ``open`` or ``not measured``) and
        sentence.
    table : a data frame of every figure, a row each.
    tables : the tables of the page as data frames, by their titles.
    figures : the figures as matplotlib drawings, by their names.
    gate : the verdict on the conditions of `fail_if`; None if none were given.
    document : the report as headings, sentences, tables and figures.

    Examples
    --------
    Men are hired above a lower score than women:

    >>> import fairbench, numpy as np, pandas as pd
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame({"sex": random.choice(["women", "men"], 2000)})
    >>> threshold = np.where(people["sex"] == "men", 0.4, 0.6)
    >>> people["hired"] = (random.uniform(size=2000) > threshold).astype(int)
    >>> report = fairbench.audit(people, prediction="hired", groups="sex")
    >>> gap = report.findings.iloc[0]
    >>> gap["verdict"], gap["groups"], gap["measure"]
    ('large', 'men; women', 'selection rate')
    >>> gap[["value", "lower", "upper"]].astype(float).round(2).tolist()
    [0.2, 0.16, 0.24]
    >>> rates = report.table.query("metric == 'selection_rate' and attribute == 'sex'")
    >>> rates.query("statistic == 'value'")["value"].round(1).tolist()
    [0.6, 0.4]
    >>> list(report.tables)[:3]
    ['Impact ratios', 'Gaps between groups', 'Rates by group']
    """

    gate: Gate | None = None
    name = "audit"

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every figure of the report in one tidy table, one per row.

        Of two classes and of numbers, in the columns that `fairbench.evaluate` returns: metric,
        attribute, group, value, lower and upper end of the 95 % interval, n, status and reason.
        """
        data = self.document.data
        return pd.DataFrame(data.get("metrics") or data.get("figures") or [])

    @cached_property
    def findings(self) -> pd.DataFrame:
        """What the report says of the people that its rows are a sample of, one finding per row.

        Columns are about, attribute, groups, measure, value, lower, upper, n, verdict and sentence,
        then the others of :class:`fairbench.evaluation.findings.Finding`.
        """
        return frame_of(self.document.data.get("findings", []))

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Figures for a paper, drawn with matplotlib: save one with ``.savefig("gaps.pdf")``."""
        return dict(figures_of(self.document.data))


_JOINED = " x "  # between the attributes of a combination
_MOST = 40  # rows of a figure
_OF_A_GAP = ["attribute", "metric", "value", "difference", "lower", "upper"]


def figures_of(data: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    """Yield (name, figure) for every figure that an audit's data allow.

    Parameters
    ----------
    data : the data of the document of an audit, as in its JSON.
    """
    from fairbench.reporting.figures import (
        group_rates_figure,
        group_reliability_figure,
        intervals_figure,
    )

    epsilon = float(data.get("options", {}).get("epsilon", 0))
    for name, label in (("gaps", "gap between groups"), ("comparison", "difference of the gaps")):
        gaps = pd.DataFrame(data.get(name, [])).reindex(columns=_OF_A_GAP)
        gaps = gaps.fillna({"attribute": "", "metric": ""})
        ends = gaps[["lower", "upper"]].apply(pd.to_numeric, errors="coerce")
        gaps = gaps[np.isfinite(ends).all(axis=1)].head(_MOST)
        if len(gaps):
            titles = [
                ": ".join(filter(None, (of, RATE_NAMES.get(metric, metric.replace("_", " ")))))
                for of, metric in zip(gaps["attribute"], gaps["metric"], strict=True)
            ]
            values = gaps["value"].fillna(gaps["difference"]).astype(float)
            yield name, intervals_figure(gaps.assign(title=titles, value=values), epsilon, label)
    metrics = pd.DataFrame(data.get("metrics", []))
    if len(metrics):
        metrics = values_of(metrics)
        rates = metrics[metrics["metric"] == "selection_rate"]
        for attribute in rates["attribute"].unique():
            if attribute and _JOINED not in attribute:
                drawn = group_rates_figure(metrics, "", attribute, label="rate, with 95 % interval")
                yield f"rates_{attribute}", drawn
    groups = {
        f"{group['attribute']}: {group['group']}": pd.DataFrame(list(group["bins"]))
        for group in data.get("calibration", [])
        if len(group["bins"]) and _JOINED not in group["attribute"]
    }
    if groups:
        yield "calibration", group_reliability_figure(dict(list(groups.items())[:_MOST]))
