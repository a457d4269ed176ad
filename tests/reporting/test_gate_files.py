"""JUnit and SARIF: what other tools read of a gate, whatever its columns and groups are called."""

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.core import VERSION
from fairbench.core.text import visible
from fairbench.reporting.document.model import Document
from fairbench.reporting.gate_files import to_junit, to_sarif, with_gate

# What the schema of SARIF 2.1.0 (OASIS, 27 March 2020) requires of the parts that are written.
SARIF = json.loads(Path(__file__).with_name("sarif_2.1.0.json").read_text())


@pytest.fixture
def gate():
    """Return a gate that fails by sex, is open by a column of an awkward name, and passes in one.

    Nobody is selected in one of its groups of three rows.
    """
    random = np.random.default_rng(3)
    sex = np.where(np.arange(6000) % 2, "<w&m>", "\u202emen\x1b[31m")
    hired = (random.random(6000) < np.where(sex == "<w&m>", 0.3, 0.5)).astype(int)
    town = np.where(np.arange(6000) < 3, "=1+1", "a")
    hired[:3] = 0
    frame = pd.DataFrame({"sex": sex, 'town "x"': town, "hired": hired})
    conditions = ["impact_ratio<0.8", "sex:selection_rate>0.9"]
    return fairbench.gate(frame, prediction="hired", group=["sex", 'town "x"'], fail_if=conditions)


def test_junit_has_a_case_for_every_statement_and_none_that_is_open_passes(gate):
    root = ElementTree.fromstring(to_junit(gate, "a & b.csv"))
    (suite,) = root
    assert root.tag == "testsuites" and suite.get("name") == "a & b.csv"
    numbers = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert numbers == ["3", "1", "1", "0"]
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases == {
        "sex:impact_ratio<0.8": ["failure"],
        'town "x":impact_ratio<0.8': ["error"],
        "sex:selection_rate>0.9": [],
    }
    assert suite.find("system-out").text == gate.line
    (failure,) = suite.iter("failure")
    assert failure.get("message").startswith("The impact ratio by sex is 0.")
    assert "\x1b" not in to_junit(gate, "x")
    (error,) = suite.iter("error")
    assert error.get("message").startswith("These rows cannot tell whether")


def test_sarif_has_what_its_schema_requires_and_calls_open_what_is_open(gate):
    sarif = json.loads(to_sarif(gate, "data/my file.csv"))
    jsonschema.validate(sarif, SARIF)
    (run,) = sarif["runs"]
    assert run["tool"]["driver"]["version"] == VERSION
    assert run["invocations"][0]["exitCode"] == 1
    assert {result["ruleId"]: (result["kind"], result["level"]) for result in run["results"]} == {
        "sex:impact_ratio<0.8": ("fail", "error"),
        'town "x":impact_ratio<0.8': ("open", "none"),
        "sex:selection_rate>0.9": ("pass", "none"),
    }
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        # A level of anything else is for failures alone (section 3.27.10).
        assert (result["level"] == "none") == (result["kind"] != "fail")
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "data/my%20file.csv"
    assert "NaN" not in (text := to_sarif(gate, "x"))
    assert visible(text, lines=True) == text and "\\u001b" not in text


def test_where_a_pass_is_required_what_is_open_is_a_failure_in_every_form(gate):
    strict = fairbench.Gate(gate.statements[1:], "pass")
    assert strict.outcome == "open" and strict.exit_status == 1
    suite = ElementTree.fromstring(to_junit(strict, "x"))[0]
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    (run,) = json.loads(to_sarif(strict, "x"))["runs"]
    assert [result["kind"] for result in run["results"]] == ["fail", "pass"]


def test_the_table_of_a_page_has_every_statement(gate):
    (table,) = with_gate(Document("an audit", []), gate).tables
    assert [row[5].value for row in table.rows] == ["fails", "open", "passes"]
