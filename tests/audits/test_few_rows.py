"""A group of a handful of people who differ: nothing is said that leaves them out in silence."""

import re

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.kinds.many_groups import estimate_groups
from fairbench.audits.table import read_audit_table
from fairbench.data.groups import codes_of
from fairbench.evaluation.findings import LARGE, OPEN, SMALL
from tests.audits.tables import parse, written

LARGE_GROUP, FEW = 3000, 9
GAPS = {
    "statistical_parity": "selection rate",
    "equal_opportunity": "true positive rate",
    "false_positive_rate_gap": "false positive rate",
    "predictive_parity": "precision",
    "accuracy_gap": "accuracy",
}


def people(few=FEW):
    """Return people of three groups: two alike, and a few who are all decided for wrongly."""
    frame = pd.concat(
        pd.DataFrame(
            {
                "label": np.arange(LARGE_GROUP) % 2,
                "d": np.arange(LARGE_GROUP) // 2 % 2,
                "group": name,
            }
        )
        for name in "ab"
    )
    label = np.arange(few) % 2
    rest = pd.DataFrame({"label": label, "d": 0 * label, "group": "c"})
    return pd.concat([frame, rest], ignore_index=True)


def scored():
    """Return the same with scores on the side of the decisions, and another classifier's."""
    frame = people()
    step = np.arange(len(frame)) % 50 / 120
    other = np.where(frame["group"] == "c", 1 - frame["d"], frame["d"])
    return frame.assign(score=0.5 * frame["d"] + step + 0.01, other=0.5 * other + step + 0.01)


def numbers():
    generator = np.random.default_rng(0)
    frame = people()
    prediction = generator.normal(size=len(frame))
    target = prediction + generator.normal(size=len(frame)) / 2 + 2.0 * (frame["group"] == "c")
    return frame.assign(target=target, prediction=prediction)


def times():
    """Return people whose risks are ordered rightly, but those of the few the other way round."""
    generator = np.random.default_rng(0)
    frame = people(12)
    ends = generator.exponential(3, len(frame))
    odds = np.where(frame["group"] == "c", ends - 3, 3 - ends)
    return frame.assign(time=ends, event=True, score=1 / (1 + np.exp(-odds)))


def classes():
    """Return three classes, of which those of the few are never predicted rightly."""
    frame = people()
    label = np.arange(len(frame)) % 3
    wrong = (np.arange(len(frame)) // 3 % 5 == 0) | (frame["group"] == "c")
    names = np.array(["x", "y", "z"])
    confidence = np.linspace(0.4, 0.99, len(frame))
    return frame.assign(label=names[label], prediction=names[(label + wrong) % 3], score=confidence)


TWO = {"target": "label", "prediction": "d", "favourable": "1"}
KINDS = {
    "two classes": (people, TWO),
    "two classes of households": (
        lambda: people().assign(home=lambda frame: frame.index // 2),
        {**TWO, "cluster": "home"},
    ),
    "decisions alone": (people, {"prediction": "d", "favourable": "1"}),
    "the papers' posterior": (people, {**TWO, "interval": "dirichlet"}),
    "some labels": (
        lambda: scored().assign(label=lambda f: f["label"].where(f.index % 3 > 0)),
        {"target": "label", "score": "score", "favourable": "1"},
    ),
    "no labels": (scored, {"score": "score", "favourable": "1"}),
    "within strata": (
        lambda: people().assign(stratum=lambda frame: frame.index // 4 % 2),
        {**TWO, "within": ["stratum"]},
    ),
    "a constraint": (
        scored,
        {
            **{"target": "label", "score": "score", "favourable": "1"},
            "constraint": "selection_rate:0.1",
        },
    ),
    "the selected": (
        lambda: scored().assign(s=lambda f: f.index % 7 > 0, label=lambda f: f["label"].where(f.s)),
        {"target": "label", "score": "score", "favourable": "1", "selected": "s"},
    ),
    "two scores": (
        scored,
        {"target": "label", "score": "score", "against": "other", "favourable": "1"},
    ),
    "several classes": (classes, {"target": "label", "prediction": "prediction", "score": "score"}),
    "numbers": (numbers, {"target": "target", "prediction": "prediction"}),
    "times until an event": (
        times,
        {"target": "time", "event": "event", "score": "score", "horizon": 3},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_small_of_all_groups_where_a_few_people_may_differ(kind):
    make, options = KINDS[kind]
    report = fairbench.audit(make(), groups="group", **options)
    findings = report.findings.query("attribute == 'group' and about != 'impact ratio'")
    assert SMALL not in set(findings["verdict"])
    assert findings["verdict"].isin([OPEN, LARGE]).any()
    said = [*report.document.verdict.can, *report.document.summary.found]
    assert not any("no two groups differ" in sentence for sentence in said)
    page = report.document
    named = " ".join([*page.verdict.cannot, *page.verdict.can, *page.notes, *page.summary.unseen])
    assert re.search(r"\bc\b", named)


@pytest.mark.parametrize("few", [1, 5, FEW, 25])
def test_page_gate_and_evaluate_agree_on_one_file(few):
    frame = people(few)
    report = fairbench.audit(
        frame, groups="group", **TWO, fail_if=[f"{name}>0.05" for name in GAPS]
    )
    gate = {row["metric"]: row for row in report.document.data["gate"]["statements"]}
    table = fairbench.evaluate(
        frame["label"], frame["d"], sensitive_features={"group": frame["group"]}
    ).query("attribute == 'group' and group == '' and statistic == 'value'")
    rows = table.set_index("metric")
    findings = report.findings.query("about == 'gap'").set_index("measure")
    for metric, measure in GAPS.items():
        finding, row = findings.loc[measure], rows.loc[metric]
        assert {finding["verdict"], gate[metric]["verdict"]} not in (
            {SMALL, "fails"},
            {LARGE, "passes"},
        )
        ends = ["lower", "upper"]
        assert finding[ends].tolist() == pytest.approx(row[ends].tolist())
        assert finding["value"] == gate[metric]["value"] == row["value"]
        assert few > FEW or row["status"] == "insufficient"


def test_whom_there_are_too_few_rows_of_is_named_on_both_pages():
    report = fairbench.audit(people(), groups="group", **TWO)
    (sentence,) = report.document.verdict.cannot
    assert "selection rate (95 % interval" in sentence
    assert "; there are too few rows of c" in sentence
    unseen = " ".join(report.document.summary.unseen)
    assert "c has too few rows to show that it is like the others in selection rate," in unseen


def test_of_few_people_who_surely_differ_it_is_said():
    frame = people(9)
    frame["d"] = np.where(frame["group"] == "c", 0, 1)
    frame.loc[:100, "d"] = 0
    report = fairbench.audit(frame, groups="group", prediction="d", favourable="1")
    (finding,) = report.findings.query("about == 'gap' and verdict == 'large'").itertuples()
    assert finding.groups == "b; c"


def test_of_hundreds_of_groups_none_is_small_either(tmp_path):
    frame = people()
    frame["d"] = 1
    path = written(frame, tmp_path)
    options = parse([str(path), "target=label", "prediction=d", "group=group", "favourable=1"])
    table = read_audit_table(options)
    _, _, findings = estimate_groups(table, options, *codes_of(table.cells))
    assert {f.verdict for f in findings if f.about == "gap"} <= {OPEN, "not measured"}
