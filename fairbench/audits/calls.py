"""Audits and gates as Python code asks for them: ``fairbench.audit(...)``, ``fairbench.gate(...)``.

A policy is one YAML file of options and conditions, for Python, pytest and the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.audits.kinds import document_of, kind_of
from fairbench.audits.question import GatedOptions, Options, column_options
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.core.arrays import rng
from fairbench.core.errors import UserError, check_choice, note
from fairbench.core.files import read_bytes
from fairbench.core.options import declared_names, typed_values
from fairbench.core.text import shortened
from fairbench.data.columns import name_rows_in_errors
from fairbench.data.in_memory import is_by_value, is_table, with_columns
from fairbench.evaluation import gate as gates
from fairbench.evaluation.findings import Finding
from fairbench.evaluation.gate import VERDICT, ComparedGroups, Gate
from fairbench.evaluation.groups import CountIntervals
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.writing import DocumentReport
from fairbench.reporting.gate_files import with_gate
from fairbench.reporting.group_tables import sentence_of

_said = partial(sentence_of, "options")
PREDICTIONS = "predictions"
_MOST_BYTES = 100_000  # of a policy
# What a policy leaves to whoever gives the command.
_OF_A_COMMAND = ("path", "out", "results", "formats", "repeat", "policy", "junit", "sarif",
                 "state")  # fmt: skip


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
        check_choice(f"option in {path.name}", name, valid)
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


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a policy, values as texts or lists of them."""
    import yaml

    try:
        text = read_bytes(path, _MOST_BYTES).decode()
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
        raise UserError(_said("policy", file=path.name))
    for key, value in root.value:
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"{path.name}, line {key.start_mark.line + 1}: a name is one word")
        items = value.value if isinstance(value, yaml.SequenceNode) else [value]
        if not all(isinstance(item, yaml.ScalarNode) for item in items):
            place, line = f"{path.name}, line", value.start_mark.line + 1
            raise UserError(f"{place} {line}: {shortened(key.value)} is a text or a list of texts")
        texts = [item.value for item in items]
        yield key.value, texts if isinstance(value, yaml.SequenceNode) else texts[0]


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
    valid = [name for name in GatedOptions.__dataclass_fields__ if name not in _NOT_TAKEN]
    for name in sorted(options.keys() - {"groups"}):  # as an audit has it in Python
        check_choice("option of a gate", name, valid)
    values = _filled(options, policy)
    is_file = isinstance(frame, str | Path)
    if frame is not None:
        values["path"] = Path(frame if is_file else PREDICTIONS)
    if "path" not in values:
        raise UserError(_said("nothing"))
    return judged(GatedOptions(**values), None if is_file else frame)


_NOT_TAKEN = ("path", "out", "cuts", "scores")
_OF_AUDITS = ("within", "epsilon", "constraint")  # of two classes; no verdict depends on them


def _filled(given: Mapping[str, Any], policy: str | Path) -> dict[str, Any]:
    """Return options of a call by the names of fields, with what a policy says of the others."""
    fields_of = {"groups": "group"}
    if isinstance(given.get("score"), list | tuple):  # the classes of a score
        fields_of["score"] = "scores"
    stated = {fields_of.get(name, name): value for name, value in given.items()}
    values = typed_values(
        GatedOptions, {name: value for name, value in stated.items() if value is not None}
    )
    told = {name: value for name, value in values.items() if value not in ("", ())}
    return {**values, **(policy_of(policy, GatedOptions) if policy else {}), **told}


def judged(options: GatedOptions, source: Any = None) -> Gate:
    """Return the verdict on a file, or on a table that is given; options of pages are noted."""
    for name in _OF_AUDITS:  # which are for the audit's page
        if getattr(options, name) != GatedOptions.__dataclass_fields__[name].default:
            note(_said("of_page", name=name))
    return gate_of(options, read_frame(options, source=source))


def gate_of(options: GatedOptions, frame: pd.DataFrame) -> Gate:
    """Return the verdict on a table that was read as text.

    Raises
    ------
    UserError : a kind of audit that has no gates, conditions that need labels where no column of
        labels is named, or what an audit refuses, too.
    """
    conditions = gates.conditions_of(options.fail_if)
    with name_rows_in_errors(frame, options.id):
        kind_of(options, frame)
        if not options.group:
            raise UserError("a gate compares groups: name their columns, such as group=[sex,race]")
        on_labels = [condition for condition in conditions if condition.needs_labels]
        if on_labels and not options.target:
            raise UserError(_said("fail_if", condition=on_labels[0]))
        table = read_audit_table(options, frame=frame, decisions_alone=not on_labels)
        table.check_design()

    def compared(name: str) -> ComparedGroups:
        """Return the groups of an attribute, with what decisions and labels say of each."""
        all_labelled = len(table.known) == len(table)
        groups = ComparedGroups.of(
            table.groups[name],
            table.prediction,
            table.design,
            favoured=table.favoured,
            target=table.label if on_labels and all_labelled else None,
            reference=table.references.get(name, ""),
        )
        if not on_labels or all_labelled or not len(table.known):
            return groups
        labels, generator = table.groups[name], rng(options.seed, "labels", name)
        labels = labels.cat.remove_unused_categories()
        intervals = table.as_chosen.labelled_counts(name, labels, generator, 0.95).intervals
        assert isinstance(intervals, CountIntervals)
        return replace(groups, labelled=intervals)

    single = gates.by_attribute(conditions, options.group, list(table.groups))
    return gates.judge(single, compared, options.require)


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
    valid = [name for name in declared_names(GatedOptions) if name not in _OWN]
    for option in options:
        check_choice("option of audit", option, [*valid, "groups", "target", "score"])
    columns = {"target": target, "score": score, "prediction": prediction, "groups": groups}
    given = {option: value for option, value in {**columns, **options}.items() if value is not None}
    is_file = isinstance(frame, str | Path)
    named, table = _columns_by_name(given, None if is_file else frame, name)
    if policy:
        given["policy"] = str(policy)
    values = {**_filled(named, policy), "path": Path(frame if is_file else name)}
    is_gate = values.get("fail_if") or values.get("require", VERDICT) != VERDICT
    kind = GatedOptions if is_gate else Options
    asked = kind(**{key: values[key] for key in kind.__dataclass_fields__ if key in values})
    document, verdict = report_of(asked, read_frame(asked, source=table))
    if not is_file:
        given["name"] = name
    call = [repr(str(frame)) if is_file else "table"]
    call += [f"{option}={value!r}" for option, value in given.items() if _can_be_typed(value)]
    made = document.made and replace(document.made, command=f"fairbench.audit({', '.join(call)})")
    return AuditReport(replace(document, made=made), verdict)


def report_of(options: Options, frame: pd.DataFrame) -> tuple[Document, Gate | None]:
    """Return the report of a table, and the verdict of its gate if there are conditions."""
    document = document_of(options, frame)
    if not isinstance(options, GatedOptions):
        return document, None
    verdict = gate_of(options, frame)
    return with_gate(document, verdict), verdict


# What is no further option of `audit`: it is one of its arguments, or not for Python.
_OWN = ("path", "target", "score", "scores", "prediction", "group", "out")


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
    shown = {field.name: str(field.metadata.get("shown")) for field in fields(GatedOptions)}
    naming = {"groups", *column_options(GatedOptions)}
    by_value = {
        option: value
        for option, value in options.items()
        if option in naming and is_by_value(value, frame)
    }
    if not by_value:
        return dict(options), frame
    if frame is None:
        raise UserError(_said("by_value", name=min(by_value)))
    if not is_table(frame):
        raise UserError(f"a {type(frame).__name__} is no table: give a DataFrame")
    table, names = with_columns(frame, name, by_value)
    named: dict[str, Any] = dict(options)
    for option, columns in names.items():
        if len(columns) > 1 and shown.get(option) == "COLUMN" and option != "score":
            raise UserError(f"{option}= is {len(columns)} columns; it must be one")
        named[option] = columns[0] if len(columns) == 1 else columns
    return named, table


def _can_be_typed(value: Any) -> bool:
    """Say whether the value of an option is not empty, and short enough to be typed again."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(item, str | int | float) for item in value)
    return isinstance(value, int | float) or (isinstance(value, str) and bool(value))


# The columns of findings that come first.
_FIRST = (
    *("about", "attribute", "groups", "measure", "value", "lower", "upper", "n", "verdict"),
    "sentence",
)


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
    figures : the drawings of the page, by their titles.
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
        found = self.document.data.get("findings", [])
        plain = [{**row, "groups": "; ".join(row["groups"])} for row in found]
        more = [name for name in Finding.__dataclass_fields__ if name not in (*_FIRST, "values")]
        return pd.DataFrame(plain, columns=[*_FIRST, *more])
