"""What dossiers have in common: rules, and a document that begins with them and the answers.

A pack of rules is what a law or a format asks for, sentence by sentence, with sources and dates: a
file ``rules/NAME.toml``. Its table ``[pack]`` says whose rules these are, of which date their text
is, when it was read, and by when it has to be read again. ``[sources.NAME]`` names the texts that
were read. Each ``[[rule]]`` says what it asks, where, in which words, and from when to when. A rule
without a quotation is not verified: no text of it was found. What only people can tell of a model
is in a file of facts (:func:`read_facts`).

Two dossiers, a card of a model and what the AI Act asks for, are an audit with answers and are
here, too; so is the list of all packs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.audits.assessment import Assessment, assess
from fairbench.audits.kinds.binary import audit_of
from fairbench.audits.kinds.counts import says_nothing
from fairbench.audits.question import Options
from fairbench.audits.report import document_of
from fairbench.audits.table import read_audit_table
from fairbench.core import VERSION
from fairbench.core.errors import UserError, check_choice, refused
from fairbench.core.text import count, counted
from fairbench.evaluation.findings import LARGE, SMALL
from fairbench.evaluation.table import records, values_of
from fairbench.metrics.registry import label
from fairbench.reporting.document import model
from fairbench.reporting.group_tables import named_table, sentence_of, sentences_of

MEASURE, FACT, DOCUMENT = "measure", "fact", "document"
SCORES, DECISIONS = "scores", "decisions"  # what a rule may be about, where not about both
_FOLDER = files("fairbench_dossiers").joinpath("rules")
_PAGE = "fairbench_dossiers:dossier"
_said = partial(sentence_of, _PAGE)


@dataclass(frozen=True)
class Rule:
    """One thing that a pack asks for.

    Attributes
    ----------
    key : its name in the JSON, and in a file of facts.
    asks : a measure, which the predictions answer; a fact or a document, which people answer.
    what : what is asked for; a dossier fills in the names in braces.
    citation : the article or section that asks for it.
    quote : its words, verbatim; empty where no text was found.
    source : ``title``, ``address`` and ``text_date`` of the text that was read; None where none was
        found.
    effective : the first day on which it applies.
    ends : the first day on which it no longer applies.
    when : ``scores`` or ``decisions``, where a rule is about one of them alone.
    """

    key: str
    asks: str
    what: str
    citation: str
    effective: date
    ends: date | None = None
    quote: str = ""
    source: Mapping[str, Any] | None = None
    when: str = ""

    @property
    def verified(self) -> bool:
        """Whether its words were read."""
        return bool(self.quote)


@dataclass(frozen=True)
class _RulePack:
    """The rules of one law or format.

    Attributes
    ----------
    status : whether the law applies, such as ``in force``.
    about : a sentence on the status.
    version : the date of the text.
    checked : the day on which it was read.
    review_by : the day after which it has to be read again.
    """

    name: str
    title: str
    jurisdiction: str
    status: str
    about: str
    version: date
    checked: date
    review_by: date
    rules: Sequence[Rule] = ()

    def on(self, day: date) -> list[Rule]:
        """Return each rule in the version of a day: the one in force, or else the next to come.

        Raises
        ------
        UserError : nothing of it is in force on that day, nor will be.
        """
        kept: dict[tuple[str, str], Rule] = {}
        for rule in self.rules:
            if rule.ends is not None and rule.ends <= day:
                continue
            before = kept.setdefault((rule.key, rule.when), rule)
            if before.effective > rule.effective:
                kept[rule.key, rule.when] = rule
        if not kept:
            raise UserError(f"{self.name}: {self.title}: {self.status}. {self.about}")
        return list(kept.values())

    def warnings(self, day: date) -> list[str]:
        """Return what a reader has to know before relying on the pack on a day.

        That it is past its date, that the day is before its text, and that some of it does not
        apply yet.
        """
        rules = self.on(day)
        later = [rule.effective for rule in rules if rule.effective > day]
        said = {"overdue": day > self.review_by, "older": day < self.version, "waiting": later}
        starts = " and ".join(map(_written_day, sorted({*later})))
        counts = {"waiting": len(later), "rules": len(rules)}
        return sentences_of(_PAGE, said, starts=starts, **counts, **self._days(day))

    def _days(self, day: date) -> dict[str, str]:
        """Return its days, and the day as of which it is read, in words."""
        days = {name: getattr(self, name) for name in ("version", "checked", "review_by")}
        return {name: _written_day(of) for name, of in {**days, "day": day}.items()}

    def unverified(self, day: date) -> list[str]:
        """Return a sentence that names the rules whose words were not read; none if all were."""
        rules = self.on(day)
        unread = [f"{rule.what} ({rule.citation})" for rule in rules if not rule.verified]
        counts = {"unread": len(unread), "items": counted(len(rules), "item")}
        return [_said("unverified", named="; ".join(unread), **counts)] * bool(unread)

    def status_on(self, day: date) -> str:
        """Return its status, unless nothing of it applies yet on a day."""
        waits = self.rules and all(rule.effective > day for rule in self.rules)
        return "not yet in force" if waits else self.status

    def standing(self, day: date) -> str:
        """Return whose rules these are, whether they are in force, and how many are verified."""
        status, verified = self.status_on(day), self.verified(day)
        return _said("standing", pack=self, status=status, verified=verified, **self._days(day))

    def verified(self, day: date) -> str:
        """Return how many of its rules were read in a text, such as "7 of 8"."""
        rules = self.on(day)
        return f"{sum(rule.verified for rule in rules)} of {len(rules)}"


def today() -> date:
    """Return the day that it is."""
    return datetime.now(UTC).date()


def day_of(text: str) -> date:
    """Return the day that ``as_of=`` names; today, where it names none.

    Raises
    ------
    UserError : it is no day in the form 2026-11-23.
    """
    if not text:
        return today()
    with suppress(ValueError):
        if (day := date.fromisoformat(text)).isoformat() == text:
            return day
    raise UserError(f"as_of={text}: write a day as year-month-day, such as 2026-11-23")


def _written_day(day: date) -> str:
    """Return a day in words, such as 6 May 2023."""
    return f"{day.day} {day:%B %Y}"


def pack_names() -> list[str]:
    """Return the names of all packs."""
    return sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir())


@cache
def pack_of(name: str) -> _RulePack:
    """Return a pack by its name.

    Raises
    ------
    UserError : there is none of that name.
    """
    check_choice("rule pack", name, pack_names())
    return read_pack(_FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def read_pack(text: str) -> _RulePack:
    """Return the pack that a TOML text of this project holds."""
    content = tomllib.loads(text)
    sources, rules = {None: None, **content.get("sources", {})}, content.get("rule", [])
    read = tuple(Rule(**{**about, "source": sources[about.get("source")]}) for about in rules)
    return _RulePack(**content["pack"], rules=read)


def names_told(rules: Iterable[Rule]) -> list[str]:
    """Return the names of what only people can tell."""
    return [rule.key for rule in rules if rule.asks != MEASURE]


def read_facts(path: str, rules: Iterable[Rule]) -> dict[str, str]:
    """Return what people say of a model, by the names of rules; nothing where there is no file.

    Parameters
    ----------
    path : a file with ``name: text`` on each line, of which blank ones and those that begin with
        ``#`` are left out.
    rules : what is asked for; only what is not measured can be given.

    Raises
    ------
    UserError : no such file, a line without a name, or a name that the rules do not ask for.
    """
    if not path:
        return {}
    where = f"facts={path}"
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = refused(error) if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UserError(f"{where} cannot be read: {reason}") from error
    texts, valid = {}, names_told(rules)
    for number, line in enumerate(text.splitlines(), start=1):
        name, colon, value = line.partition(":")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not colon:
            raise UserError(f"{where}, line {number}: what is needed is 'name: text'")
        check_choice("fact", name.strip(), valid)
        texts[name.strip()] = value.strip()
    return texts


# What is asked for, and the answers.

MEASURED, GIVEN, MISSING = "measured", "given", "missing"
_STYLES = {MEASURED: "small", GIVEN: "assumed", MISSING: "large"}


def dossier(
    name: str,
    measured: model.Document,
    options: Options,
    answers: Mapping[str, str],
    day: date,
    *,
    about: str = "",
    names: Mapping[str, str] | None = None,
    without: Collection[str] = (),
) -> model.Document:
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
    texts = names or {}
    rules = [of for of in pack.on(day) if of.key not in without and of.when in ("", about)]
    asked = [_answered(of, of.what.format(**texts), answers.get(of.key, ""), day) for of in rules]
    # Above all, what is missing are answers that only people have.
    missing = [answer["key"] for answer in asked if answer["status"] == MISSING]
    told = {"count": len(missing), "asked": len(asked), "first": missing[:1]}
    tell = partial(sentences_of, named=", ".join(missing), **told)
    unseen = tell(_PAGE, {"notice": True, "missing": missing})
    todo = tell(_PAGE, {"answer": missing, "again": True})
    summary = measured.summary or model.ExecutiveSummary([])
    verdict = measured.verdict or model.Verdict((), ())
    warnings = pack.warnings(day)
    in_words = model.Details(_said("read"), [_quotations(asked)], is_open=True)
    about_file = model.Paragraph(f"Of the predictions in {options.path.name}.", "note")
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
            model.Section("What is asked for", [_questions_table(asked)], name="asked"),
            *measured.sections,
            model.Section("The rules in their own words", [in_words], name="rules"),
        ],
        lead=[about_file, *measured.lead],
        origin=measured.origin or f"fairbench {VERSION}; seed {options.seed}.",
        made=measured.made or model.made_from(options.path, options.seed),
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
        "source": source and {**source, "text_date": source["text_date"].isoformat()},
        "effective": rule.effective.isoformat(),
        "ends": rule.ends and rule.ends.isoformat(),
        "applies": rule.effective <= day,
        "status": MEASURED if rule.asks == MEASURE else GIVEN if answer else MISSING,
        "answer": answer,
    }


def _questions_table(asked: Sequence[Mapping[str, Any]]) -> model.Table:
    """Return the table of what is asked for, by which rule, and the answers."""
    shown = []
    for answer in asked:
        since = f"from {_written_day(date.fromisoformat(answer['effective']))}"
        cited = model.TableCell(answer["citation"], note="" if answer["applies"] else since)
        status = model.TableCell(answer["status"], mark=_STYLES[answer["status"]])
        shown.append({**answer, "cited": cited, "status": status})
    return named_table(_PAGE, "asked", shown)


def _quotations(asked: Sequence[Mapping[str, Any]]) -> model.Table:
    """Return the sentences that are quoted, each with its text and the date of that."""
    quoted: dict[tuple[str, str], Mapping[str, Any]] = {}
    texts: list[Mapping[str, str]] = []
    for answer in asked:
        words, source = _said("not_verified"), answer["source"] or {}
        if source:
            texts += [source] if source not in texts else []
            words = f"“{answer['quote']}” [{texts.index(source) + 1}]"
        shown = {**answer, "words": words, "dated": source.get("text_date", "")}
        quoted.setdefault((answer["citation"], answer["quote"]), shown)
    named = (f"[{i}] {text['title']}, {text['address']}" for i, text in enumerate(texts, start=1))
    return named_table(_PAGE, "quoted", quoted.values(), texts="; ".join(named) or "none")


_OF_PACKS = ("name", "jurisdiction", "version", "checked", "review_by")


def list_of_packs(day: date) -> model.Document:
    """Return a table of all packs as they are on a day, with a sentence on each."""
    rows, sentences = [], []
    for pack in map(pack_of, pack_names()):
        verified = pack.verified(day) if pack.rules else "no rules"
        row = {name: str(getattr(pack, name)) for name in _OF_PACKS}
        rows.append({**row, "status": pack.status_on(day), "verified": verified})
        said = [*pack.warnings(day), *pack.unverified(day)] if pack.rules else []
        about = f"{pack.title}. {pack.about}"
        sentences += [f"{pack.name}: {text}" for text in (about, *said)]
    blocks = named_table(_PAGE, "packs", rows), model.Items(sentences)
    title = f"Rules of dossiers, as of {_written_day(day)}"
    return model.Document(title, [model.Section("", [block]) for block in blocks])


_OF_EVERYONE = (
    "accuracy", "error_rate", "true_positive_rate", "false_positive_rate",
    "positive_predictive_value", "negative_predictive_value", "roc_auc", "log_loss", "brier_score",
    "expected_calibration_error",
)  # fmt: skip


def model_card(
    options: Options, frame: pd.DataFrame, human_answers: Mapping[str, str], day: date
) -> model.Document:
    """Return a model card (Mitchell et al. 2019) whose figures have intervals."""
    assessment = assess(read_audit_table(options, frame=frame).of_selected(), options)
    combined = ", ".join(name for name in assessment.table.groups if name not in options.group)
    by_combined = f"in the tables by group, of {combined}" if combined else ""
    decided = f"a score above {options.threshold:g} is a positive decision"
    if options.prediction:
        decided = f"decisions are those of '{options.prediction}'"
    answers = {
        **human_answers,
        "factors": ", ".join(options.group),
        "metrics": f"rates and scores with 95 % intervals; {decided}",
        "evaluated_rows": _rows_and_labels(assessment),
        "unitary_results": "in the tables by group",
        "intersectional_results": by_combined or "there is one attribute alone",
        "caveats": "under notes, and under what was not looked at",
    }
    return _with_audit("model-card", "Model card", assessment, answers, day)


def ai_act(
    options: Options, frame: pd.DataFrame, human_answers: Mapping[str, str], day: date
) -> model.Document:
    """Return what the AI Act asks to be measured of a high-risk system, and what is missing."""
    assessment = assess(read_audit_table(options, frame=frame).of_selected(), options)
    single = [size for size in assessment.sizes if size["attribute"] in options.group]
    smallest = sorted(single, key=lambda size: size["rows"])[:3]
    small = [f"{row['attribute']}: {row['group']} ({count(row['rows'])})" for row in smallest]
    silent = (row for row in single if says_nothing(row["group"]))
    unknown = [f"{row['attribute']}: {count(row['rows'])}" for row in silent]
    unlabelled = count(len(assessment.table) - assessment.labels)
    # How many gaps are large, small, and open: of those these rows cannot tell.
    verdicts = [gap.verdict for gap in assessment.gaps if not gap.fixed]
    found = {"large": verdicts.count(LARGE), "small": verdicts.count(SMALL), "gaps": len(verdicts)}
    still_open = found["gaps"] - found["large"] - found["small"]
    answers = {
        **human_answers,
        "quantity": f"of this file: {_rows_and_labels(assessment)}; what is open stands with the "
        "gaps",
        "biases": _said("verdicts", still_open=still_open, **found),
        "shortcomings": f"of this file: {unlabelled} rows without a label; group not known: "
        f"{'; '.join(unknown) or 'of nobody'}",
        "representativeness": "rows of every group of this file are in the tables; the smallest: "
        f"{'; '.join(small)}",
        "accuracy": "overall, with intervals, in the tables",
        "accuracy_by_group": "by group, with intervals, in the tables",
    }
    title = "AI Act: what was measured of a high-risk system, and what is missing"
    document = _with_audit("ai-act", title, assessment, answers, day)
    summary = document.summary or model.ExecutiveSummary([])
    return replace(document, summary=replace(summary, unseen=[_said("one_file"), *summary.unseen]))


def _rows_and_labels(assessment: Assessment) -> str:
    return f"{count(len(assessment.table))} rows, {count(assessment.labels)} with a label"


def _with_audit(
    kind: str, title: str, assessment: Assessment, answers: Mapping[str, str], day: date
) -> model.Document:
    """Return the answers, the metrics of everyone, and the audit."""
    audit = replace(audit_of(assessment), title=title)
    metrics = values_of(assessment.metrics)
    metrics = metrics[(metrics["attribute"] == "") & metrics["metric"].isin(_OF_EVERYONE)]
    rows = records(metrics.drop_duplicates("metric"))
    shown = [{**row, "label": label(row["metric"])} for row in rows]
    everyone = named_table(_PAGE, "everyone", shown)
    sections = [model.Section("Everyone", [everyone]), *audit.sections]
    measured = document_of(replace(audit, sections=sections))
    return dossier(kind, measured, assessment.options, answers, day)
