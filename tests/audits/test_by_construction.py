"""Rates that are the same in every group by construction are no finding."""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.kinds.unknown import EVERYONE
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import GAP, NOT_MEASURED, RATIO
from tests.harness import ours

OF_DECISIONS = {"selection rate", "true positive rate", "false positive rate"}
OF_LABELS = {"precision"}
OF_COPIES = {"true positive rate", "false positive rate", "precision", "accuracy"}


def people(rows=2000, seed=0):
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": generator.choice(["f", "m"], rows),
            "age": generator.choice(["old", "young"], rows),
            "label": generator.integers(0, 2, rows),
            "d": generator.integers(0, 2, rows),
        }
    )


def audited(frame, **options):
    asked = {"groups": "sex", "target": "label", "prediction": "d", "favourable": "1"}
    return fairbench.audit(frame, **{**asked, **options})


@pytest.mark.parametrize(
    ("change", "fixed", "why"),
    [
        ({"d": 1}, OF_DECISIONS, "everyone is selected"),
        ({"d": 0}, OF_DECISIONS, "everyone is not selected"),
        ({"label": 1}, OF_LABELS, "every label is '1'"),
        ({"d": lambda frame: frame["label"]}, OF_COPIES, "every decision agrees with its label"),
        ({"d": lambda frame: 1 - frame["label"]}, OF_COPIES, "no decision agrees with its label"),
    ],
)
def test_what_decisions_or_labels_alone_decide_is_not_found(change, fixed, why):
    report = audited(people().assign(**change))
    gaps = report.findings.query("about == @GAP").set_index("measure")
    reasons = gaps["needs"][gaps["needs"].str.contains("by itself makes all groups the same")]
    assert ours(reasons.index) == fixed
    assert reasons.str.startswith(why).all()
    assert set(gaps.loc[list(fixed), "verdict"]) == {NOT_MEASURED}
    assert f": {why}, which by itself" in " ".join(report.document.verdict.cannot)
    assert f": {why}, which by itself" in " ".join(report.document.summary.unseen)
    assert not any(measure in " ".join(report.document.verdict.can) for measure in fixed)


def test_what_varies_stays_a_finding():
    report = audited(people(20_000))
    (sentence,) = [said for said in report.document.summary.found if "no two groups" in said]
    for measure in OF_DECISIONS | OF_COPIES:
        assert measure in sentence


def test_two_scores_that_select_everyone_have_no_gaps_to_compare():
    frame = people().assign(score=0.7, other=lambda f: 0.6 + 0.1 * f["d"])
    asked = {"prediction": "", "score": "score", "against": "other"}
    findings = audited(frame, **asked).findings.query("attribute == 'sex'").set_index("measure")
    assert set(findings.loc[list(OF_DECISIONS), "verdict"]) == {NOT_MEASURED}
    # Of one of them that varies, the gap is compared with the other's, which is 0.
    frame["other"] = 0.4 + 0.3 * frame["d"]
    findings = audited(frame, **asked).findings.query("attribute == 'sex'").set_index("measure")
    measured = findings.loc[list(OF_DECISIONS | OF_COPIES), "verdict"]
    assert NOT_MEASURED not in set(measured)


def test_the_column_of_decisions_makes_no_groups():
    with pytest.raises(UserError, match="names 'd', the column of decisions .prediction=."):
        audited(people(), groups=["sex", "d"])


def granted(rows=1500):
    """Return loans of which those over a threshold were granted, and only these have labels."""
    generator = np.random.default_rng(0)
    score = generator.beta(2, 2, rows).round(3)
    label = (generator.random(rows) < score).astype(float)
    frame = pd.DataFrame({"score": score, "granted": (score > 0.4).astype(int)})
    frame["sex"] = generator.choice(["f", "m"], rows)
    return frame.assign(repaid=np.where(frame["granted"] == 1, label, np.nan))


def test_of_those_whom_one_decision_selected_it_is_no_finding_and_every_sentence_says_of_whom():
    frame = granted()
    report = fairbench.audit(
        frame,
        groups="sex",
        **{"target": "repaid", "score": "score", "favourable": "1", "selected": "granted"},
        threshold=0.4,
    )
    page = report.document
    part = "of those selected ('granted')"
    findings = report.findings
    assert set(findings["scope"][findings["about"] == GAP]) == {part, EVERYONE}
    fixed = findings[(findings["scope"] == part) & (findings["verdict"] == NOT_MEASURED)]
    selected = {"share predicted '1'"}
    assert selected <= set(fixed["measure"])
    assert ours(fixed["measure"]) == OF_DECISIONS - {"selection rate"}
    sentences = [*page.verdict.can, *page.verdict.cannot, *page.summary.found]
    assert all(part in said or EVERYONE in said or "four fifths" in said for said in sentences)
    assert not any("no two groups differ" in said for said in sentences)
    labels = f"{frame['granted'].sum():,}"
    sure = f"Of 1,500 rows, {labels} are of those selected ('granted'), all of them with a known"
    assert sure in " ".join(page.summary.sure)
    rows = dict(page.summary.audited)["Rows"]
    assert rows.startswith(f"{labels} of 1,500 people, those selected ('granted'); all of them")
    ratios = findings[findings["about"] == RATIO]
    assert len(ratios) and set(ratios["scope"]) == {""}  # of everyone
