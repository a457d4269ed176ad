"""What every kind of audit may say, and what none may: one battery over all kinds.

The populations are groups that are alike, a handful of people who differ, such a handful beside one
group alone, a group without labels, and everyone in one group. Nothing is said that leaves a few
people out in silence; and the page, its gate and ``fairbench.evaluate`` agree on one file.
"""

import re

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.direction import RATE_NAMES
from fairbench.audits.kinds.unknown import _estimate_groups
from fairbench.core.errors import UserError
from fairbench.data.groups import codes_of
from fairbench.evaluation.findings import LARGE, OPEN, SMALL, risk_of
from tests.audits.tables import read

LARGE_GROUP, FEW = 3000, 9


def people(few=FEW, names="ab"):
    """Return people of some groups that are alike, and a few who are all decided for wrongly."""
    step = np.arange(LARGE_GROUP)
    alike = [pd.DataFrame({"label": step % 2, "d": step // 2 % 2, "group": name}) for name in names]
    label = np.arange(few) % 2
    rest = pd.DataFrame({"label": label, "d": 0 * label, "group": "c"})
    return pd.concat([*alike, rest], ignore_index=True).assign(odd=lambda f: f["group"] == "c")


def everyone_alike(names="abc"):
    """Return people of groups that are exactly alike."""
    return people(0, names).assign(odd=False)


def with_marks(frame):
    """Add households of two, and strata."""
    return frame.assign(home=frame.index // 2, stratum=frame.index // 4 % 2)


def with_scores(frame):
    """Add scores on the side of the decisions, and another classifier's."""
    step = np.arange(len(frame)) % 50 / 120
    other = np.where(frame["odd"], 1 - frame["d"], frame["d"])
    return frame.assign(score=0.5 * frame["d"] + step + 0.01, other=0.5 * other + step + 0.01)


def with_numbers(frame):
    step = np.arange(len(frame)) % 500 / 100
    noise = np.sin(np.arange(len(frame)) % 500)
    return frame.assign(prediction=step, target=step + noise + 2.0 * frame["odd"])


def with_intervals(frame):
    """Add intervals that cover everyone but the few, who have the widest."""
    frame = with_numbers(frame)
    reach = 1.2 + np.arange(len(frame)) % 500 / 1000 + 0.6 * frame["odd"]
    middle = frame.pop("prediction")
    return frame.assign(lower=middle - reach, upper=middle + reach)


def with_times(frame):
    """Add risks that are ordered rightly, but those of the few the other way round."""
    generator = np.random.default_rng(0)
    ends = np.resize(generator.exponential(3, LARGE_GROUP), len(frame))
    odds = np.where(frame["odd"], ends - 3, 3 - ends)
    return frame.assign(time=ends, event=True, score=1 / (1 + np.exp(-odds)))


def with_classes(frame):
    """Add three classes, of which those of the few are never predicted rightly."""
    step = np.arange(len(frame)) % LARGE_GROUP
    names = np.array(["x", "y", "z"])
    wrong = (step // 3 % 5 == 0) | frame["odd"]
    score = 0.4 + 0.59 * step / LARGE_GROUP
    label = pd.Series(names[step % 3]).where(frame["label"].notna().to_numpy())
    return frame.assign(label=label, prediction=names[(step % 3 + wrong) % 3], score=score)


def partly_labelled(frame):
    frame = with_scores(frame)
    return frame.assign(label=frame["label"].where(frame.index % 3 > 0))


def selected(frame):
    frame = with_scores(frame).assign(s=frame.index % 7 > 0)
    return frame.assign(label=frame["label"].where(frame["s"]))


TWO = {"target": "label", "prediction": "d", "favourable": "1"}
SCORED = {"target": "label", "score": "score", "favourable": "1"}
# How each kind makes its columns of people, and its options.
KINDS = {
    "two classes": (with_marks, TWO),
    "two classes of households": (with_marks, {**TWO, "cluster": "home"}),
    "decisions alone": (with_marks, {"prediction": "d", "favourable": "1"}),
    "the papers' posterior": (with_marks, {**TWO, "interval": "dirichlet"}),
    "some labels": (partly_labelled, SCORED),
    "no labels": (with_scores, {"score": "score", "favourable": "1"}),
    "within strata": (with_marks, {**TWO, "within": ["stratum"]}),
    "a constraint": (with_scores, {**SCORED, "constraint": "selection_rate:0.1"}),
    "the selected": (selected, {**SCORED, "selected": "s"}),
    "two scores": (with_scores, {**SCORED, "against": "other"}),
    "several classes": (with_classes, {**SCORED, "prediction": "prediction", "favourable": ""}),
    "numbers": (with_numbers, {"target": "target", "prediction": "prediction"}),
    "predicted intervals": (with_intervals, {"target": "target", "bounds": ["lower", "upper"]}),
    "times until an event": (with_times, {
        "target": "time", "event": "event", "score": "score", "horizon": 3,
    }),
    "a ranking": (with_scores, {"score": "score", "top": 0.1}),
}  # fmt: skip
# Rows without a number, or a time, are left out, as the page says: they are no people of a group.
OF_LABELS = [kind for kind, (_, options) in KINDS.items() if options.get("target") == "label"]


def asked(kind, frame, **more):
    """Return the report of people as a kind of audit takes them."""
    make, options = KINDS[kind]
    return fairbench.audit(make(frame).drop(columns="odd"), groups="group", **{**options, **more})


def of_groups(report):
    """Return the findings that compare all groups: impact ratios and scores are of one each."""
    findings = report.findings[report.findings["attribute"] == "group"]
    return findings[~findings["about"].isin(["impact ratio", "excess of scores"])]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_small_of_all_groups_where_a_few_people_may_differ(kind):
    report = asked(kind, people(12 if "event" in kind else FEW))
    findings = of_groups(report)
    assert SMALL not in set(findings["verdict"])
    assert findings["verdict"].isin([OPEN, LARGE]).any()
    page = report.document
    said = [*page.verdict.can, *page.summary.found]
    assert not any("no two groups differ" in sentence for sentence in said)
    parts = [page.verdict.cannot, page.verdict.can, page.notes, page.summary.unseen]
    assert re.search(r"\bc\b", " ".join(sentence for part in parts for sentence in part))


def verdicts(kind, frame):
    return set(of_groups(asked(kind, frame))["verdict"])


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_of_groups_that_are_alike_few_or_one_no_more_is_said_than_they_show(kind):
    alike = verdicts(kind, everyone_alike())
    assert LARGE not in alike
    assert SMALL in alike or kind == "a ranking"  # whose questions are never answered so
    assert SMALL not in verdicts(kind, people(3, "a"))
    try:
        assert not {SMALL, LARGE} & verdicts(kind, everyone_alike("a"))
    except UserError as error:
        assert "group" in str(error)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", OF_LABELS)
def test_of_a_group_without_labels_nothing_that_needs_them_is_small(kind):
    frame = everyone_alike()
    frame["label"] = frame["label"].where(frame["group"] != "c")
    if kind in ("two classes of households", "the papers' posterior"):
        with pytest.raises(UserError, match="a label in every row"):
            asked(kind, frame)
        return
    findings = of_groups(asked(kind, frame))
    needing = findings[~findings["measure"].str.fullmatch("selection rate|share predicted '1'")]
    assert SMALL not in set(needing.query("about == 'gap'")["verdict"])


@pytest.mark.thorough
@pytest.mark.parametrize("few", [1, 5, FEW, 25])
def test_page_gate_and_evaluate_agree_on_one_file(few):
    frame = people(few).drop(columns="odd")
    conditions = [f"{name}>0.05" for name in RATE_NAMES]
    report = fairbench.audit(frame, groups="group", **TWO, fail_if=conditions)
    gate = {row["metric"]: row for row in report.document.data["gate"]["statements"]}
    groups = {"group": frame["group"]}
    table = fairbench.evaluate(frame["label"], frame["d"], sensitive_features=groups)
    asked = "attribute == 'group' and group == '' and statistic == 'value'"
    rows = table.query(asked).set_index("metric")
    findings = report.findings.query("about == 'gap'").set_index("measure")
    for metric, measure in RATE_NAMES.items():
        finding, row = findings.loc[measure], rows.loc[metric]
        verdicts = finding["verdict"], gate[metric]["verdict"]
        assert verdicts not in ((SMALL, "fails"), (LARGE, "passes"))
        ends = ["lower", "upper"]
        assert finding[ends].tolist() == pytest.approx(row[ends].tolist())
        assert finding["value"] == gate[metric]["value"] == row["value"]
        assert few > FEW or row["status"] == "insufficient"


def test_whom_there_are_too_few_rows_of_is_named_on_both_pages():
    report = asked("two classes", people())
    (sentence,) = report.document.verdict.cannot
    assert "selection rate (95 % interval" in sentence
    assert "; there are too few rows of c" in sentence
    unseen = " ".join(report.document.summary.unseen)
    assert "c has too few rows to show that it is like the others in selection rate," in unseen


def test_of_few_people_who_surely_differ_it_is_said():
    frame = people(9).drop(columns="odd")
    frame["d"] = np.where(frame["group"] == "c", 0, 1)
    frame.loc[:100, "d"] = 0
    report = fairbench.audit(frame, groups="group", prediction="d", favourable="1")
    (finding,) = report.findings.query("about == 'gap' and verdict == 'large'").itertuples()
    assert finding.groups == "b; c"


def test_of_hundreds_of_groups_none_is_small_either():
    frame = people().assign(d=1)
    table, options = read(frame, "target=label", "prediction=d", "group=group", "favourable=1")
    _, _, findings = _estimate_groups(table, options, *codes_of(table.cells), risk_of(2))
    assert {f.verdict for f in findings if f.about == "gap"} <= {OPEN, "not measured"}
