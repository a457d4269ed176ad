"""What dossiers have in common: a document that begins with what is asked for, and the answers.

Two of them, a card of a model and what the AI Act asks for, are an audit with answers and are here,
too; so is the list of all packs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import Any

import pandas as pd

from fairbench.audits.assessment import Assessment, assess
from fairbench.audits.categories import says_nothing
from fairbench.audits.kinds.binary import audit_of
from fairbench.audits.question import Options
from fairbench.audits.report import document_of
from fairbench.audits.table import read_audit_table
from fairbench.core import VERSION
from fairbench.core.text import count
from fairbench.evaluation.findings import LARGE, SMALL
from fairbench.evaluation.table import records, values_of
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import (
    Column,
    Details,
    Document,
    ExecutiveSummary,
    Items,
    Paragraph,
    Section,
    Table,
    TableCell,
    Verdict,
    made_from,
)
from fairbench.reporting.group_tables import table_of
from fairbench_dossiers.rulebook import MEASURE, Rule, pack_names, pack_of, written_day

MEASURED, GIVEN, MISSING = "measured", "given", "missing"
NOTICE = (
    "These are measurements, and what people said. Whether a law or a rule is kept is for "
    "people to judge, who know more than is here."
)
_STYLES = {MEASURED: "small", GIVEN: "assumed", MISSING: "large"}
_READ = "Each rule's words, the text that they are from, its date, and when the rule applies"
_AGAIN = "Repeat this when the model changes, or the people it is used on."


def dossier(
    name: str,
    measured: Document,
    options: Options,
    answers: Mapping[str, str],
    day: date,
    *,
    about: str = "",
    names: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> Document:
    """Return a document of measurements, with what is asked for and the answers before them.

    Parameters
    ----------
    name : the name of the pack of rules.
    measured : the document of what was measured.
    answers : the answers to the rules by their keys, those of the predictions and of people.
    day : the day as of which the rules are taken.
    about : ``scores`` or ``decisions``, which leaves out rules that are about the other.
    names : what replaces the names in braces in the rules.
    without : keys of rules that do not apply here.
    """
    pack = pack_of(name)
    asked = [
        _answered(rule, rule.what.format(**(names or {})), answers.get(rule.key, ""), day)
        for rule in pack.on(day)
        if rule.key not in without and rule.when in ("", about)
    ]
    unseen, todo = _on_missing(asked)
    summary = measured.summary or ExecutiveSummary([])
    verdict = measured.verdict or Verdict((), ())
    warnings = pack.warnings(day)
    facts = ("title", "jurisdiction", "version", "checked", "review_by", "about")
    about_pack = {
        **{fact: str(getattr(pack, fact)) for fact in facts},
        "status": pack.status_on(day),
        "as_of": day.isoformat(),
        "verified": sum(bool(answer["quote"]) for answer in asked),
        "asked": len(asked),
        "warnings": [*warnings, *pack.unverified(day)],
    }
    return replace(
        measured,
        verdict=replace(verdict, warning=" ".join(filter(None, [*warnings, verdict.warning]))),
        sections=[
            Section("What is asked for", [_questions_table(asked)], name="asked"),
            *measured.sections,
            Section(
                "The rules in their own words",
                [Details(_READ, [_quotations(asked)], is_open=True)],
                name="rules",
            ),
        ],
        lead=[Paragraph(f"Of the predictions in {options.path.name}.", "note"), *measured.lead],
        origin=measured.origin or f"fairbench {VERSION}; seed {options.seed}.",
        made=measured.made or made_from(options.path, options.seed),
        summary=replace(
            summary,
            sure=[*pack.unverified(day), *summary.sure],
            unseen=[*unseen, *summary.unseen],
            todo=[*todo, *summary.todo],
            audited=[("Rules", pack.standing(day)), *summary.audited],
        ),
        data={
            "dossier": name,
            "version": VERSION,
            "file": options.path.name,
            "rules": about_pack,
            "asked": asked,
            **measured.data,
        },
    )


def _answered(rule: Rule, what: str, answer: str, day: date) -> dict[str, Any]:
    """Return a rule and the answer to it, empty where nobody gave it, in plain values."""
    source = rule.source
    return {
        **{name: getattr(rule, name) for name in ("key", "asks", "citation", "quote")},
        "what": what,
        "source": source and asdict(source) | {"text_date": source.text_date.isoformat()},
        "effective": rule.effective.isoformat(),
        "ends": rule.ends and rule.ends.isoformat(),
        "applies": rule.effective <= day,
        "status": MEASURED if rule.asks == MEASURE else GIVEN if answer else MISSING,
        "answer": answer,
    }


def _on_missing(asked: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Return what is not seen here, and what to do: above all, answers that only people have."""
    missing = [answer["key"] for answer in asked if answer["status"] == MISSING]
    if not missing:
        return [NOTICE], [_AGAIN]
    unseen = (
        f"Missing, as only people can say it: {len(missing)} of {len(asked)} answers, which are "
        "listed under what to do next."
    )
    todo = (
        "Answer the questions of the section 'What is asked for' in a text file, one per line, "
        f"such as '{missing[0]}: ...', and run this again with facts=FILE. Missing: "
        f"{', '.join(missing)}."
    )
    return [NOTICE, unseen], [todo, _AGAIN]


def _questions_table(asked: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of what is asked for, by which rule, and the answers."""

    def cited(answer: Mapping[str, Any]) -> TableCell:
        since = f"from {written_day(date.fromisoformat(answer['effective']))}"
        return TableCell(answer["citation"], note="" if answer["applies"] else since)

    def status(answer: Mapping[str, Any]) -> TableCell:
        return TableCell(answer["status"], mark=_STYLES[answer["status"]])

    return table_of(
        asked,
        [
            ("what", Column("asked for")),
            (cited, Column("asked by")),
            (status, Column("status")),
            ("answer", Column("answer")),
        ],
        by="",
    )


def _quotations(asked: Sequence[Mapping[str, Any]]) -> Table:
    """Return the sentences that are quoted, each with its text and the date of that."""
    places: dict[tuple[str, str], Mapping[str, Any]] = {}
    texts: list[Mapping[str, str]] = []
    for answer in asked:
        places.setdefault((answer["citation"], answer["quote"]), answer)
        if answer["source"] and answer["source"] not in texts:
            texts.append(answer["source"])

    def quotation(answer: Mapping[str, Any]) -> str:
        if not answer["source"]:
            return "not verified: no published text was found"
        return f"“{answer['quote']}” [{texts.index(answer['source']) + 1}]"

    named = (f"[{i}] {text['title']}, {text['address']}" for i, text in enumerate(texts, start=1))
    return table_of(
        list(places.values()),
        [
            ("citation", Column("asked by")),
            (quotation, Column("words")),
            (
                lambda answer: answer["source"]["text_date"] if answer["source"] else "",
                Column("text dated"),
            ),
            ("effective", Column("applies from")),
        ],
        by="",
        caption=f"quoted texts: {'; '.join(named) or 'none'}",
    )


def list_of_packs(day: date) -> Document:
    """Return a table of all packs as they are on a day, with a sentence on each."""
    packs = [pack_of(name) for name in pack_names()]
    table = table_of(
        packs,
        [
            ("name", Column("dossier")),
            ("jurisdiction", Column("jurisdiction")),
            (lambda pack: pack.status_on(day), Column("status")),
            (lambda pack: pack.version.isoformat(), Column("text dated")),
            (lambda pack: pack.checked.isoformat(), Column("checked on", left_out=1)),
            (lambda pack: pack.review_by.isoformat(), Column("check again by")),
            (lambda pack: pack.verified(day) if pack.rules else "no rules", Column("verified")),
        ],
        by="",
        caption="text dated: the date of the rules' text; verified: how many of the rules that "
        "hold on that day were checked against a published text",
    )
    sentences = []
    for pack in packs:
        said = [*pack.warnings(day), *pack.unverified(day)] if pack.rules else []
        about = f"{pack.title}. {pack.about}"
        sentences += [f"{pack.name}: {text}" for text in (about, *said)]
    title = f"Rules of dossiers, as of {written_day(day)}"
    return Document(title, [Section("", [table]), Section("", [Items(sentences)])])


_OF_EVERYONE = (
    "accuracy", "error_rate", "true_positive_rate", "false_positive_rate",
    "positive_predictive_value", "negative_predictive_value", "roc_auc", "log_loss", "brier_score",
    "expected_calibration_error",
)  # fmt: skip


def model_card(
    options: Options, frame: pd.DataFrame, human_answers: Mapping[str, str], day: date
) -> Document:
    """Return a model card (Mitchell et al. 2019) whose figures have intervals."""
    assessment = assess(read_audit_table(options, frame=frame).of_selected(), options)
    combined = [name for name in assessment.table.groups if name not in options.group]
    decided = f"a score above {options.threshold:g} is a positive decision"
    if options.prediction:
        decided = f"decisions are those of '{options.prediction}'"
    answers = {
        "factors": ", ".join(options.group),
        "metrics": f"rates and scores with 95 % intervals; {decided}",
        "evaluated_rows": _rows_and_labels(assessment),
        "unitary_results": "in the tables by group",
        "intersectional_results": f"in the tables by group, of {', '.join(combined)}"
        if combined
        else "there is one attribute alone",
        "caveats": "under notes, and under what was not looked at",
    }
    return _with_audit("model-card", "Model card", assessment, {**human_answers, **answers}, day)


_ONE_FILE = (
    "Only the rows of this file were measured. Articles 10(2) and (3) ask the same of the "
    "training, validation and testing data, which may be others."
)


def ai_act(
    options: Options, frame: pd.DataFrame, human_answers: Mapping[str, str], day: date
) -> Document:
    """Return what the AI Act asks to be measured of a high-risk system, and what is missing."""
    assessment = assess(read_audit_table(options, frame=frame).of_selected(), options)
    single = [size for size in assessment.sizes if size["attribute"] in options.group]
    smallest = sorted(single, key=lambda size: size["rows"])[:3]
    small = [f"{row['attribute']}: {row['group']} ({count(row['rows'])})" for row in smallest]
    unknown = [
        f"{row['attribute']}: {count(row['rows'])}" for row in single if says_nothing(row["group"])
    ]
    answers = {
        "quantity": f"of this file: {_rows_and_labels(assessment)}; what is open stands with the "
        "gaps",
        "biases": _verdicts(assessment),
        "shortcomings": f"of this file: {count(len(assessment.table) - assessment.labels)} rows "
        f"without a label; group not known: {'; '.join(unknown) or 'of nobody'}",
        "representativeness": "rows of every group of this file are in the tables; the smallest: "
        f"{'; '.join(small)}",
        "accuracy": "overall, with intervals, in the tables",
        "accuracy_by_group": "by group, with intervals, in the tables",
    }
    title = "AI Act: what was measured of a high-risk system, and what is missing"
    document = _with_audit("ai-act", title, assessment, {**human_answers, **answers}, day)
    summary = document.summary or ExecutiveSummary([])
    return replace(document, summary=replace(summary, unseen=[_ONE_FILE, *summary.unseen]))


def _verdicts(assessment: Assessment) -> str:
    """Return how many gaps are large, small, and open: of those these rows cannot tell."""
    gaps = [gap for gap in assessment.gaps if not gap.fixed]
    counts = {verdict: sum(gap.verdict == verdict for gap in gaps) for verdict in (LARGE, SMALL)}
    still_open = len(gaps) - sum(counts.values())
    said = f"{len(gaps)} gaps were examined: {counts[LARGE]} large, {counts[SMALL]} small, "
    return f"{said}{still_open} open, of which these rows cannot tell; in the table"


def _rows_and_labels(assessment: Assessment) -> str:
    return f"{count(len(assessment.table))} rows, {count(assessment.labels)} with a label"


def _with_audit(
    kind: str, title: str, assessment: Assessment, answers: Mapping[str, str], day: date
) -> Document:
    """Return the answers, the metrics of everyone, and the audit."""
    audit = replace(audit_of(assessment), title=title)
    metrics = values_of(assessment.metrics)
    metrics = metrics[(metrics["attribute"] == "") & metrics["metric"].isin(_OF_EVERYONE)]
    everyone = table_of(
        records(metrics.drop_duplicates("metric")),
        [
            (lambda row: label(row["metric"]), Column("metric")),
            ("value", Column("value", "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            ("n", Column("n", "count")),
        ],
        by="",
    )
    sections = [Section("Everyone", [everyone]), *audit.sections]
    measured = document_of(replace(audit, sections=sections))
    return dossier(kind, measured, assessment.options, answers, day)
