"""A gate in the forms that other tools read: JUnit's XML, SARIF 2.1.0, and a page's table.

What is open is an error of JUnit, which no tool shows as passed, and a result of the kind ``open``
in SARIF.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from fairbench.core import VERSION
from fairbench.core.text import digest, visible
from fairbench.evaluation.findings import OPEN
from fairbench.evaluation.gate import FAILS, PASS, PASSES, Gate, Statement
from fairbench.reporting.document.forms import finite
from fairbench.reporting.document.model import Document, Section, Table, TableCell
from fairbench.reporting.group_tables import named_table

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_junit(gate: Gate, name: str) -> str:
    """Return a gate as JUnit's XML, a test case for every statement.

    Parameters
    ----------
    name : the name of what was judged, such as a file.
    """
    verdicts = [_verdict(statement, gate) for statement in gate.statements]
    tags = {FAILS: "failure", OPEN: "error"}
    numbers = {"tests": str(len(verdicts))}
    numbers |= {f"{tag}s": str(verdicts.count(verdict)) for verdict, tag in tags.items()}
    numbers["skipped"] = "0"
    root = ElementTree.Element("testsuites", {"name": "fairbench", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": visible(name), **numbers})
    for statement, verdict in zip(gate.statements, verdicts, strict=True):
        attributes = {"classname": "fairbench.gate", "name": visible(str(statement.condition))}
        case = ElementTree.SubElement(suite, "testcase", {**attributes, "time": "0"})
        if tag := tags.get(verdict):
            message = visible(_sentence(statement))
            about = {"type": statement.outcome, "message": message}
            ElementTree.SubElement(case, tag, about).text = message
    ElementTree.SubElement(suite, "system-out").text = visible(gate.line)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def to_sarif(gate: Gate, path: str) -> str:
    """Return a gate as SARIF 2.1.0, a rule for every condition and a result for every statement.

    Parameters
    ----------
    path : the file that was judged, relative to the folder that tools run in.
    """
    rules = list(dict.fromkeys(statement.condition for statement in gate.statements))
    location = {"physicalLocation": {"artifactLocation": {"uri": quote(path.replace("\\", "/"))},
                                     "region": {"startLine": 1}}}  # fmt: skip
    results = []
    for statement in gate.statements:
        verdict = _verdict(statement, gate)
        kind = {PASSES: "pass", FAILS: "fail", OPEN: "open"}[verdict]
        results.append({
            "ruleId": str(statement.condition),
            "ruleIndex": rules.index(statement.condition),
            "kind": kind,
            "level": "error" if kind == "fail" else "none",
            "message": {"text": _sentence(statement)},
            "locations": [location],
            "partialFingerprints": {"fairbenchGate/v1": digest([str(statement.condition), path])},
            "properties": statement.row,
        })  # fmt: skip
    declared = []
    for rule in rules:
        said = {"text": f"The {rule.label} must not be {rule.bad}."}
        declared.append({"id": str(rule), "name": rule.metric, "shortDescription": said})
    versions = {"version": VERSION, "semanticVersion": VERSION}
    run = {
        "tool": {"driver": {"name": "fairbench", **versions, "rules": declared}},
        "invocations": [{"executionSuccessful": True, "exitCode": gate.exit_status}],
        "results": results,
        "properties": {"outcome": gate.outcome, "line": gate.line},
    }
    sarif = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    # Texts are as they are shown: other tools print them.
    return json.dumps(finite(sarif, visible), indent=1, ensure_ascii=False) + "\n"


def _verdict(statement: Statement, gate: Gate) -> str:
    """Return the verdict of a statement; if a pass is required, an open one counts as failed."""
    is_strict = statement.verdict == OPEN and gate.require == PASS
    return FAILS if is_strict else statement.outcome


def _sentence(statement: Statement) -> str:
    """Return a statement as a sentence of its own."""
    if statement.verdict != OPEN:
        return f"{statement.text[:1].upper()}{statement.text[1:]}."
    needs = f": {statement.needs}" if statement.needs else ""
    return f"These rows cannot tell {statement.text}{needs}."


_MARKS = {FAILS: "large", PASSES: "small", OPEN: "open"}  # the styles of verdicts on pages


def _gate_table(gate: Gate) -> Table:
    """Return a gate's statements as a table."""
    rows = [{**row, "who": " and ".join(row["groups"])} for row in gate.rows]
    for row in rows:
        row["verdict"] = TableCell(row["verdict"], mark=_MARKS[row["verdict"]])
    return named_table("gate", "statements", rows)


def with_gate(document: Document, gate: Gate) -> Document:
    """Return the report of an audit with the gate's verdict before all else, and in its data."""
    section = Section(f"Gate: {gate.outcome}", [_gate_table(gate)], "gate")
    data = {**document.data, "gate": gate.data}
    summary = document.summary
    if summary is not None:
        sentence = f"{gate.line[:1].upper()}{gate.line[1:]}."
        part = "still_open" if gate.outcome == OPEN else "found"
        said: dict[str, Any] = {part: [sentence, *getattr(summary, part)]}
        summary = replace(summary, **said)
    sections = [section, *document.sections]
    return replace(document, sections=sections, summary=summary, data=data)
