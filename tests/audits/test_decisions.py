"""Audits of decisions alone, without labels; the résumé experiment; audits of runs in clusters."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.assessment import assess
from fairbench.audits.question import Options
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from fairbench.data.download import Archive
from tests.audits.tables import audit


def difference_and_error(y, group, cluster):
    """Return the difference of two means, and its standard error by sums over clusters."""
    sizes = np.bincount(group)
    means = np.bincount(group, y) / sizes
    residuals = np.where(group == 1, 1, -1) * (y - means[group]) / sizes[group]
    totals = np.bincount(cluster, residuals)
    count = len(totals)
    return means[1] - means[0], np.sqrt((totals**2).sum() * count / (count - 1))


@pytest.fixture
def decided(tmp_path):
    """Return a file of decisions in clusters, and its columns."""
    draw = np.random.default_rng(30)
    cluster = np.repeat(np.arange(300), 4)
    group = np.tile([0, 1, 0, 1], 300)
    easy = draw.random(300)[cluster] < 0.3
    decision = (draw.random(1200) < 0.1 + 0.4 * easy + 0.05 * group).astype(int)
    frame = pd.DataFrame({"called": decision, "race": np.array(["b", "w"])[group], "ad": cluster})
    frame.to_csv(tmp_path / "decided.csv", index=False)
    return tmp_path / "decided.csv", decision, group, cluster


def audited(path, **options):
    asked = Options(path=path, prediction="called", group=("race",), **options)
    return assess(read_audit_table(asked), asked)


@pytest.mark.parametrize("clustered", [True, False])
def test_gap_and_standard_error_are_those_of_clusters(decided, clustered):
    path, decision, group, cluster = decided
    own = cluster if clustered else np.arange(len(group))
    (gap,) = audited(path, cluster="ad" if clustered else "").gaps
    value, error = difference_and_error(decision, group, own)
    assert gap.metric == "statistical_parity"
    assert abs(gap.value) == pytest.approx(abs(value), abs=1e-12)
    # Rows of their own are counted by p (1 - p) / n, without n / (n - 1).
    assert gap.standard_error == pytest.approx(error, rel=1e-9 if clustered else 2e-3)
    assert gap.upper - gap.lower == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_a_rating_decides_by_its_own_threshold_and_is_no_probability(tmp_path):
    draw = np.random.default_rng(32)
    group, rating = draw.choice(["a", "b"], 400), draw.integers(1, 11, 400)
    label = (draw.random(400) < rating / 11).astype(int)
    frame = pd.DataFrame({"group": group, "rating": rating, "label": label})
    frame.assign(high=(rating > 6).astype(int)).to_csv(tmp_path / "rated.csv", index=False)

    def assessed(**options):
        asked = Options(
            path=tmp_path / "rated.csv", target="label", group=("group",), favourable="0", **options
        )
        table = read_audit_table(asked)
        return assess(table, asked), table

    rated, table = assessed(score="rating", scale="rating", threshold=6)
    decided, _ = assessed(prediction="high")
    pd.testing.assert_frame_equal(rated.metrics, decided.metrics)
    assert not rated.calibrations and not rated.scores
    assert table.read_as[0].startswith(
        "'rating' is read as a rating, whose high values are for '1'"
    )
    with pytest.raises(UserError, match="labels are '0' and '1'; it is unclear which"):
        frame.assign(rating=-rating).to_csv(tmp_path / "rated.csv", index=False)
        assessed(score="rating", scale="rating", threshold=-6)


def test_groups_that_share_no_cluster_and_weights(tmp_path):
    draw = np.random.default_rng(31)
    weight, called, group = draw.random(400), draw.integers(2, size=400), draw.integers(2, size=400)
    unit = 50 * group + draw.integers(50, size=400)
    totals = []
    for g in (0, 1):
        mine = group == g
        share = weight[mine] / weight[mine].sum()
        mean = (share * called[mine]).sum()
        totals.append(np.bincount(unit[mine], share * (called[mine] - mean), 100))
    both, count = totals[1] - totals[0], len(np.unique(unit))
    expected = np.sqrt((both**2).sum() * count / (count - 1))
    frame = pd.DataFrame({"called": called, "race": group, "unit": unit, "weight": weight})
    frame.to_csv(tmp_path / "weighted.csv", index=False)
    (gap,) = audited(tmp_path / "weighted.csv", cluster="unit", weight="weight").gaps
    assert gap.standard_error == pytest.approx(expected)


def test_the_report_has_no_word_of_labels(decided, tmp_path, capsys):
    place = tmp_path / "out"
    words = [decided[0], "prediction=called", "group=race", "cluster=ad"]
    assert audit([*words, f"out={place}"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1,200 rows with decisions, and neither labels nor scores" in said
    assert "Rows with the same 'ad' belong together" in said
    assert "standard error" in said and "TPR" not in said and "more labels" not in said
    assert "There are no labels. Whatever needs them" not in said
    (missing,) = re.findall(
        r"By race, groups cannot be compared in (.*?): there are no labels\.", said
    )
    labels = ["true positive rate", "false positive rate", "precision", "accuracy"]
    assert sorted(labels, key=missing.index) == labels
    page = (place / "audit.html").read_text()
    assert "more labels" not in page.casefold()


def _real():
    from fairbench.components.datasets.resume import RESUME

    path = Archive.of(download=False).locate(RESUME)
    if path is None:
        pytest.skip(f"raw file {RESUME.path} is not found")
    return path


@pytest.mark.data
def test_the_resume_experiment_comes_out(tmp_path, capsys):
    words = ["prediction=received_callback", "group=race", "cluster=job_ad_id", "epsilon=0.01"]
    assert audit([_real(), *words, f"out={tmp_path}"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    (gap,) = json.loads((tmp_path / "audit.json").read_text())["gaps"]
    assert round(100 * gap["value"], 2) == 3.20
    assert round(100 * gap["standard_error"], 2) == 0.62
    assert (round(gap["lower"], 3), round(gap["upper"], 3)) == (0.020, 0.045)
    assert (
        "By race, the selection rate of white is higher than that of black by more than 0.01"
        in said
    )


SPELLINGS = {
    "yes and no": (("no", "yes"), ("0", "1"), ""),
    "truths": (("False", "True"), ("no", "yes"), ""),
    "labels made plain": (("nein", "ja"), ("0", "1"), "ja"),
    "labels that are bad": (("good", "bad"), ("0", "1"), "bad"),
}


@pytest.mark.parametrize(("labels", "decisions", "positive"), SPELLINGS.values(), ids=SPELLINGS)
def test_decisions_may_be_spelled_otherwise_than_labels(labels, decisions, positive, tmp_path):
    draw = np.random.default_rng(4)
    label, decision, group = draw.integers(2, size=(3, 300))
    frame = pd.DataFrame({
        "repaid": np.array(labels)[label],
        "called": np.array(decisions)[decision],
        "race": np.array(["b", "w"])[group],
    })  # fmt: skip
    frame.to_csv(tmp_path / "decided.csv", index=False)
    asked = Options(path=tmp_path / "decided.csv", prediction="called", group=("race",),
                    target="repaid", positive=positive,
                    favourable=labels[1] if positive == "bad" else "")  # fmt: skip
    table = read_audit_table(asked)
    np.testing.assert_array_equal(table.prediction, decision)
    np.testing.assert_array_equal(table.label, label)
    no, yes = table.labels
    (said,) = [note for note in table.notes if "spelled otherwise" in note]
    assert f"'{decisions[0]}' stands for '{no}' and '{decisions[1]}' stands for '{yes}'" in said


@pytest.mark.parametrize("groups", [2, 30])
def test_without_labels_scores_say_of_selection_what_decisions_alone_say(tmp_path, groups):
    draw = np.random.default_rng(groups)
    score = draw.random(150 * groups)
    group = np.arange(len(score)) % groups
    frame = pd.DataFrame({"score": score, "called": (score > 0.5).astype(int), "race": group})
    frame.to_csv(tmp_path / "scored.csv", index=False)
    path = tmp_path / "scored.csv"
    asked = Options(path=path, score="score", group=("race",))
    scored, decided = assess(read_audit_table(asked), asked), audited(path)
    (gap,) = (gap for gap in scored.gaps if gap.metric == "statistical_parity")
    (alone,) = decided.gaps
    assert (gap.value, gap.lower, gap.upper) == (alone.value, alone.lower, alone.upper)
    assert not gap.assumed and not gap.pairs  # of groups that are alike
    names = set(decided.metrics["metric"])
    rows = scored.metrics[scored.metrics["metric"].isin(names)].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows.astype(str), decided.metrics.astype(str))
