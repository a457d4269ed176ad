"""Audits of several classes, numbers, rankings, times, pairs and decisions."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.assessment import assess
from fairbench.audits.kinds import kind_of
from fairbench.audits.kinds.numbers import (
    EXPOSURE,
    TOP,
    _brier_losses,
    _evaluate_numbers,
    _read_numbers,
    audit_numbers,
    audit_ranking,
    concordance,
)
from fairbench.audits.kinds.pair import _verdict, compare_tables
from fairbench.audits.question import NUMBERS, Options
from fairbench.audits.report import document_of
from fairbench.audits.sentences import can_be_concluded
from fairbench.audits.table import read_audit_table, read_frame
from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.data.download import Archive
from fairbench.evaluation.findings import OPEN, SMALL
from tests.audits.tables import audit, parse, predictions, refusal, shown_by, written

CLASSES = np.array(["cat", "dog", "emu"])
# P(right) of each predicted class, and the score that claims it.
RIGHT, SCORE = np.array([0.5, 0.9, 0.92]), np.array([0.55, 0.9, 0.6])
TOP_CLASSES = ("target=label", "prediction=predicted", "score=score")


def classified(rows=3000, *, labels=None, seed=0):
    """Return predictions of three classes; <cat> is least accurate, <emu> least calibrated."""
    generator = np.random.default_rng(seed)
    predicted = generator.integers(3, size=rows)
    wrong = (predicted + generator.integers(1, 3, size=rows)) % 3
    right = generator.random(rows) < RIGHT[predicted]
    label = CLASSES[np.where(right, predicted, wrong)].astype(object)
    label[generator.permutation(rows)[rows if labels is None else labels :]] = ""
    site = generator.choice(["north", "south"], rows)
    return pd.DataFrame(
        {"predicted": CLASSES[predicted], "score": SCORE[predicted], "label": label, "site": site}
    )


def audited(frame, folder, *words):
    path = written(frame, folder)
    run_command(["audit", str(path), *words, f"out={folder}"])
    return json.loads((folder / "audit.json").read_text())


def test_classes_are_counted_ranked_and_concluded_upon(tmp_path, capsys):
    frame = classified()
    result = audited(frame, tmp_path, *TOP_CLASSES, "group=[site]")
    classes = {part["name"]: part for part in result["classes"]}
    for name in CLASSES:
        rows = frame[frame["predicted"] == name]
        right = (rows["label"] == name).sum()
        assert classes[name]["rows"] == len(rows)
        assert classes[name]["accuracy"]["value"] == pytest.approx(right / len(rows))
    assert classes["cat"]["accuracy"]["worst_rank"] == classes["cat"]["accuracy"]["best_rank"] == 1
    assert classes["emu"]["calibration"]["extreme"] > 0.99
    assert classes["emu"]["calibration"]["value"] == pytest.approx(0.32, abs=0.04)
    assert [part["name"] for part in result["groups"]["site"]] in (
        ["north", "south"],
        ["south", "north"],
    )
    printed = capsys.readouterr().out
    assert "The predicted class of the lowest accuracy is cat" in printed
    assert max(map(len, printed.split("written")[0].splitlines())) <= 100
    page = (tmp_path / "audit.html").read_text()
    assert "of the lowest accuracy is cat" in page
    assert "hold together in 95 % of samples. What is concluded takes more certainty" in page
    assert "://" not in page.replace("http://www.w3.org", "")


def test_probabilities_of_all_classes_are_read_by_their_columns_names(tmp_path):
    frame = classified()
    code = pd.Categorical(frame["predicted"], categories=list(CLASSES)).codes
    shares = np.repeat(((1 - frame["score"]) / 2).to_numpy()[:, None], 3, axis=1)
    shares[np.arange(len(frame)), code] = frame["score"]
    named = frame.assign(**{f"p_{name}": shares[:, k] for k, name in enumerate(CLASSES)})
    words = ("target=label", "score=[p_cat,p_dog,p_emu]")
    by_class, by_confidence = (
        audited(named, tmp_path, *words),
        audited(frame, tmp_path, *TOP_CLASSES),
    )
    assert by_class["classes"] == by_confidence["classes"]
    assert by_class["mistakes"] == by_confidence["mistakes"]


@pytest.mark.parametrize(
    "text",
    ["true,emu,cat,dog\ndog,1,1,0\ncat,5,0,50\nemu,0,1,50\n",
     ";emu;cat;dog\ndog;1,0;1;0\ncat;5;0;50\nemu;0;1;50,0\n"],
)  # fmt: skip
def test_costs_follow_the_matrix_whatever_its_order(text, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text(text)
    result = audited(classified(), tmp_path, *TOP_CLASSES, f"cost={costs}")
    cost = {part["name"]: part["cost"] for part in result["classes"]}
    assert cost["cat"]["value"] == pytest.approx(1 - RIGHT[0], abs=0.06)
    assert cost["dog"]["value"] == pytest.approx(50 * (1 - RIGHT[1]), abs=2)
    assert cost["emu"]["value"] == pytest.approx(3 * (1 - RIGHT[2]), abs=0.1)
    assert cost["dog"]["extreme"] > 0.99


FAULTS = {
    "third label": (
        lambda f: f.replace({"predicted": {"emu": "dog"}}),
        TOP_CLASSES,
        "a label has two val",
    ),
    "score": (
        lambda f: f.assign(score=1.5),
        TOP_CLASSES,
        "column 'score', row 1: '1.5' is not a prob",
    ),
    "no score": (lambda f: f, TOP_CLASSES[:2], "score= is missing"),
    "no label": (lambda f: f, ("score=[score,score]",), "target= is missing"),
    "sum": (lambda f: f, ("target=label", "score=[score,site]"), "column 'site', row 1: .* number"),
    "no cost": (lambda f: f, (*TOP_CLASSES, "cost=none.csv"), "cost=none.csv cannot be read"),
    "prior": (lambda f: f, (*TOP_CLASSES, "prior=flat"), "unknown prior 'flat'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault, tmp_path):
    change, words, message = FAULTS[fault]
    with pytest.raises(UserError, match=message):
        audited(change(classified(60)), tmp_path, *words, *(["group=site"] if "third" in fault
                                                            else []))  # fmt: skip


def test_a_cost_matrix_without_a_class_is_refused(tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("true,cat,dog\ncat,0,1\ndog,1,0\n")
    with pytest.raises(UserError, match="0 columns of class 'emu', not 1"):
        audited(classified(60), tmp_path, *TOP_CLASSES, f"cost={costs}")


WORDS = ("target=income", "prediction=predicted", "group=[sex,race]")


def incomes(rows=1500, *, bias=0.0, noise=0.0, seed=0):
    """Return incomes; women's are predicted too high by `bias`, Black people's more noisily."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["Male", "Female"], rows, p=[0.6, 0.4])
    race = generator.choice(["White", "Black"], rows, p=[0.7, 0.3])
    income = generator.gamma(4, 5000, rows)
    error = generator.normal(0, 3000, rows) * (1 + noise * (race == "Black"))
    predicted = income + error + bias * (sex == "Female")
    return pd.DataFrame(
        {"sex": sex, "race": race, "income": income, "predicted": predicted,
         "low": predicted - 5000, "high": predicted + 5000}
    )  # fmt: skip


def stars(predicted):
    """Return five values of a target, and predictions made of them."""
    income = pd.Series(range(100)) % 5 + 1
    return incomes(100).assign(income=income, predicted=predicted(income))


def audited_numbers(frame, folder, *more):
    options = parse([str(written(frame, folder)), *WORDS, *more])
    return audit_numbers(options, read_frame(options))


def metrics_of(frame, folder, *more):
    options = parse([str(written(frame, folder)), *WORDS, *more])
    return _evaluate_numbers(_read_numbers(options, read_frame(options))[0], options)


def test_it_gives_what_evaluate_gives(tmp_path):
    frame = incomes(400)
    ours = metrics_of(frame, tmp_path)
    theirs = fairbench.evaluate(
        frame["income"],
        frame["predicted"],
        sensitive_features=frame[["sex", "race"]],
        privileged={"sex": "Male", "race": "White"},
        task="regression",
    )
    pd.testing.assert_frame_equal(ours, theirs)


def test_planted_differences_are_found_and_no_others(tmp_path):
    result = audited_numbers(incomes(6000, bias=2500, noise=0.6), tmp_path, "bounds=[low,high]")
    verdicts = {(gap.attribute, gap.measure): gap.verdict for gap in result.findings}
    assert verdicts["sex", "mean residual"] == "large"
    assert verdicts["race", "MAE"] == "large"
    assert verdicts["race", "coverage"] == "large"
    assert verdicts["race", "mean residual"] == "small"
    said = document_of(result).data["conclusions"]["can"]
    assert any(
        "By sex, the mean residual of Male is higher than that of Female" in sentence
        for sentence in said
    )
    women = next(residual for residual in result.data["residuals"] if residual["group"] == "Female")
    assert women["mean"][1] < -2500 < women["mean"][2]


def test_rows_without_a_target_are_left_out_and_counted(tmp_path):
    frame = incomes(300)
    frame["income"] = frame["income"].astype(object).where(frame.index % 3 > 0, "")
    result = audited_numbers(frame, tmp_path)
    assert result.rows == 200
    assert any("100 rows without one are left out" in sentence for sentence in result.basis)


def test_weights_and_clusters_widen(tmp_path):
    frame = incomes(600)
    twice = pd.concat([frame, frame]).assign(household=np.tile(np.arange(600), 2), weight=2)
    once = metrics_of(frame, tmp_path)
    both = metrics_of(twice, tmp_path, "cluster=household", "weight=weight")
    mae = [table[table["metric"] == "mae"].iloc[0] for table in (once, both)]
    assert mae[1]["value"] == pytest.approx(mae[0]["value"])
    assert mae[1]["upper"] == pytest.approx(mae[0]["upper"], rel=0.01)


@pytest.mark.parametrize(
    ("frame", "words", "regression"),
    [
        (incomes(100), WORDS, True),
        (incomes(100).round({"income": -5}), WORDS, False),  # a target of one value
        (
            predictions(100).assign(predicted=1),
            ("target=label", "prediction=predicted", "group=sex"),
            False,
        ),
        (predictions(100), ("target=label", "score=score", "group=sex"), False),
        (incomes(100).assign(predicted="high"), WORDS, False),
        (incomes(100).assign(predicted=lambda each: each["income"].to_numpy()[::-1]), WORDS, True),
        (incomes(100).assign(income=range(100), predicted=range(100)), WORDS, False),  # codes
        (incomes(100).assign(income=range(100), predicted=range(1, 101)), WORDS, True),
        (stars(lambda stars: stars + 0.13), WORDS, True),
        (stars(lambda stars: stars + 0.5 * (stars > 3)), WORDS, True),
        (stars(lambda stars: stars), WORDS, False),
        (stars(lambda stars: stars / 2).assign(income=np.arange(100) % 5 / 2 + 0.5), WORDS, False),
        (predictions(100), ("target=label", "prediction=score", "group=sex"), False),
        (
            incomes(100).assign(income=lambda each: each["income"].map("{:.2f} €".format)),
            WORDS,
            True,
        ),
    ],
)
def test_what_is_read_as_numbers(frame, words, regression, tmp_path):
    options = parse([str(written(frame, tmp_path)), *words])
    assert (kind_of(options, read_frame(options)) == NUMBERS) is regression


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("bounds=[low]",), "bounds= names two columns"),
        (("bounds=[high,low]",), "is not at most 'low' of its row"),
        (("nominal=1.5",), "nominal"),
    ],
)
def test_what_is_of_labels_is_refused(words, complaint, tmp_path):
    with pytest.raises(UserError, match=complaint):
        audited_numbers(incomes(100), tmp_path, *words)


RANKED = ("score=rating", "group=sex")


def candidates(lists=30, rows=20, *, shift=0.0, seed=0):
    """Return candidates of several vacancies; women's ratings are lower by `shift`."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["Male", "Female"], lists * rows, p=[0.6, 0.4])
    rating = 50 + 10 * generator.normal(size=len(sex)) - shift * (sex == "Female")
    vacancy = np.repeat(np.arange(lists), rows)
    return pd.DataFrame({"vacancy": vacancy, "sex": sex, "rating": rating})


def assessed(frame, folder, *more):
    options = parse([str(written(frame, folder)), *RANKED, *more])
    return audit_ranking(options, read_frame(options))


def places(audit):
    return pd.DataFrame(audit.data["ranking"])


def test_shares_are_those_counted_by_hand(tmp_path):
    frame = candidates()
    assessment = assessed(frame, tmp_path, "top=5", "lists=vacancy")
    place = frame.groupby("vacancy")["rating"].rank(ascending=False)
    women = frame["sex"] == "Female"
    by_hand = {
        TOP: women[place <= 5].mean(),
        EXPOSURE: (women / np.log2(1 + place)).sum() / (1 / np.log2(1 + place)).sum(),
    }
    mine = places(assessment).query("group == 'Female'").set_index("kind")
    assert mine["share"].to_dict() == pytest.approx(by_hand)
    assert mine["of_rows"].tolist() == pytest.approx([women.mean()] * 2)
    assert mine["ratio"].tolist() == pytest.approx(mine["share"] / women.mean())
    assert (mine["ratio_lower"] < mine["ratio"]).all()
    assert (mine["ratio"] < mine["ratio_upper"]).all()
    assert assessment.data["lists"] == 30


def test_a_shift_is_found(tmp_path):
    assessment = assessed(candidates(shift=8), tmp_path, "top=0.2")
    (women,) = places(assessment).query("group == 'Female' and kind == @TOP").itertuples()
    assert women.below > 0.95
    assert women.surely
    said = can_be_concluded(assessment.findings)
    assert any("Female gets less than its share" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("top=2.5",), "a whole number, or a share under 1"),
        (("lists=vacancy",), "say how many are the first by top="),
        (("top=5", "lists=one"), "has one mark in all rows"),
    ],
)
def test_what_is_no_ranking_is_refused(words, complaint, tmp_path):
    with pytest.raises(UserError, match=complaint):
        assessed(candidates(2).assign(one=1), tmp_path, *words)


def test_decisions_are_not_ranked(tmp_path):
    options = parse([str(written(candidates(2), tmp_path)), "prediction=vacancy", "group=sex",
                     "top=3"])  # fmt: skip
    with pytest.raises(UserError, match="name their column by score="):
        audit_ranking(options, read_frame(options))


SURVIVED = {"target": "months", "score": "risk", "event": "died", "horizon": 6.0}


def patients(rows=600, *, noise=0.0, seed=0, groups=2):
    """Return exponential times, censored at random; the last group's risks are noisy."""
    generator = np.random.default_rng(seed)
    ward = generator.integers(0, groups, rows)
    rate = np.exp(generator.normal(-2, 1, rows))
    time, end = generator.exponential(1 / rate), generator.exponential(15, rows)
    known = rate * np.exp(noise * (ward == groups - 1) * generator.normal(size=rows))
    return pd.DataFrame(
        {
            "ward": [f"w{code}" for code in ward],
            "months": np.minimum(time, end).round(2),
            "died": time <= end,
            "risk": 1 - np.exp(-6 * known),
        }
    )


# concordance_index_censored and brier_score of scikit-survival 0.28 on these rows.
ORACLE = {
    "w0": (0.7092971976105521, 0.18611151261327422),
    "w1": (0.6154745338157529, 0.26531073495207913),
}


def test_both_measures_are_those_of_scikit_survival():
    frame = patients(noise=1.0)
    for ward, (share, loss) in ORACLE.items():
        part = frame[frame["ward"] == ward]
        rows = [part[name].to_numpy() for name in ("months", "died", "risk")]
        assert concordance(*rows)[0] == pytest.approx(share, abs=1e-12)
        assert _brier_losses(*rows, 6.0).mean() == pytest.approx(loss, abs=1e-12)


def test_a_noisy_group_is_found_and_named():
    report = fairbench.audit(patients(6000, noise=2.0), groups="ward", **SURVIVED)
    gap = report.findings.query("about == 'gap' and measure == 'concordance'").iloc[0]
    assert (gap["verdict"], gap["groups"]) == ("large", "w0; w1")
    assert "the concordance of w0 is higher than that of w1" in gap["sentence"]
    assert set(report.table["metric"]) == {"concordance", "Brier score at the horizon"}


def test_a_group_of_few_events_is_not_measured():
    frame = patients(100)
    frame.loc[frame["ward"] == "w1", "died"] = False
    report = fairbench.audit(frame, groups="ward", **SURVIVED)
    assert report.findings["verdict"].iloc[0] == "not measured"
    assert "too few rows or events" in report.document.verdict.cannot[0]


def test_a_group_that_nobody_of_is_observed_to_the_horizon_has_no_brier_score():
    frame = patients(900, groups=3)
    late = (frame["ward"] == "w2") & (frame["months"] > 5)
    frame.loc[late, ["months", "died"]] = 5.0, False
    report = fairbench.audit(frame, groups="ward", **SURVIVED)
    brier = report.table.query("metric == 'Brier score at the horizon'").set_index("group")
    assert brier.index[brier["value"].isna()].tolist() == ["w2"]
    open_gap = "Brier score at the horizon (nobody of w2 was observed beyond 6)"
    assert open_gap in " ".join(report.document.verdict.cannot)


@pytest.mark.parametrize(
    ("change", "options", "complaint"),
    [
        ({}, {"horizon": 0.0}, "event= needs horizon="),
        ({}, {"horizon": 900.0}, "horizon=900: no row of .* is observed beyond"),
        ({"risk": 1.5}, {}, "column 'risk', row 1: '1.5' is not a probability"),
        ({"months": -1}, {}, "column 'months', row 1: '-1' is not a time of 0 or more"),
        ({}, {"threshold": 0.3}, "threshold= does not apply to an audit of times until an event"),
    ],
)
def test_what_is_no_survival_table_is_refused(change, options, complaint):
    with pytest.raises(UserError, match=complaint):
        fairbench.audit(patients(50).assign(**change), groups="ward", **{**SURVIVED, **options})


@pytest.mark.parametrize(("labels", "first"), [(None, "Audit more rows"), (250, "Label more rows")])
def test_more_labels_are_asked_for_where_rows_lack_one(labels, first):
    classes = classified(300, labels=labels)
    asked = {"target": "label", "prediction": "predicted", "score": "score", "groups": "site"}
    todo = [fairbench.audit(classes, **asked).document.summary.todo]
    two = {"target": "label", "score": "score", "against": "other", "groups": "sex"}
    frame = pair(300, labels=labels)
    if labels:
        frame["label"] = frame["label"].astype(str).where(frame["is_labelled"], "")
    todo.append(fairbench.audit(frame, **two).document.summary.todo)
    assert [sentences[-1][: len(first)] for sentences in todo] == [first, first]


def pair(rows=1500, labels=None):
    """Return predictions with a second score, which is noisy for women."""
    generator = np.random.default_rng(1)
    frame = predictions(rows, labels=labels)
    noise = generator.normal(0, 3, rows) * (frame["sex"] == "Female")
    odds = np.log(frame["score"] / (1 - frame["score"])) + noise
    return frame.assign(other=1 / (1 + np.exp(-odds)))


def compared(frame, folder, *words):
    path = written(frame, folder)
    options = ["target=label", "score=score", "against=other", "group=sex", "labelled=is_labelled"]
    parsed = parse([str(path), *options, *words])
    other = parse([str(path), "target=label", "score=other", "group=sex", "labelled=is_labelled"])
    tables = read_audit_table(parsed), read_audit_table(other)
    return {(row.attribute, row.measure): row for row in compare_tables(*tables, parsed)}


def test_labels_for_all_rows_give_the_gaps_that_there_are(tmp_path):
    frame = pair()
    rows = compared(frame, tmp_path)
    for place, name in enumerate(("score", "other")):
        right = (frame[name] > 0.5) == frame["label"]
        assert rows["", "accuracy"].values[place] == pytest.approx(right.mean(), abs=0.01)
        by_sex = right.groupby(frame["sex"]).mean()
        gap = rows["sex", "accuracy"].values[place]
        assert gap == pytest.approx(np.ptp(by_sex), abs=0.01)
    worse = rows["sex", "accuracy"]
    assert worse.lower > 0


def test_few_labels_know_less_and_do_not_contradict(tmp_path):
    few, all_ = (compared(pair(labels=n), tmp_path) for n in (60, None))
    for key, row in few.items():
        if key[1] != "selection rate":
            assert row.upper - row.lower > all_[key].upper - all_[key].lower
            assert row.lower < all_[key].upper
            assert row.upper > all_[key].lower


def test_verdicts_are_those_of_the_intervals(tmp_path):
    rows = compared(pair(), tmp_path)
    assert _verdict(rows["", "accuracy"]) == "lower"
    assert _verdict(rows["sex", "accuracy"]) == "larger"
    assert {row.verdict for row in compared(pair(), tmp_path, "epsilon=0.9").values()} == {SMALL}
    few = compared(pair(labels=40), tmp_path)["sex", "precision"]
    assert few.lower < 0 < few.upper
    assert few.verdict == OPEN


def test_a_score_against_itself_is_alike(tmp_path, capsys):
    frame = pair().assign(other=lambda f: f["score"])
    rows = compared(frame, tmp_path)
    assert {row.verdict for row in rows.values()} <= {SMALL, OPEN}
    assert rows["", "accuracy"].verdict == rows["sex", "accuracy"].verdict == SMALL
    path = written(frame, tmp_path)
    words = ["target=label", "score=score", "against=other", "group=sex", f"out={tmp_path / 'out'}"]
    said = shown_by([str(path), *words], capsys)
    assert "For everyone, score and other differ by less than 0.05 in accuracy" in said


def test_without_labels_only_decisions_are_concluded_on(tmp_path, capsys):
    path = written(pair().drop(columns=["label", "is_labelled"], errors="ignore"), tmp_path)
    out = tmp_path / "<out>"
    assert audit([str(path), "score=score", "against=other", "group=sex", f"out={out}"]) == 0
    assert "Without labels, only decisions are compared" in capsys.readouterr().out
    conclusions = json.loads((out / "pair.json").read_text())["conclusions"]
    assert all("selection rate" in sentence for sentence in conclusions["can"])
    everyone, _, sex = conclusions["cannot"]
    assert everyone == "For everyone, accuracy is not compared: there are no labels."
    assert sex.startswith("By sex, the gap in true positive rate, false positive rate, precision")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["score=score", "against=othre"], "no column 'othre'; did you mean 'other'"),
        (["score=score", "against=other", "prediction=label"], "give score= alone"),
        (["prediction=label", "against=other"], "give score= alone"),
        (["score=score", "against=score"], "against= and score= both name 'score'"),
        (["prediction=other", "threshold=0.9"], "threshold= is of scores, and prediction= names"),
        (["prediction=other", "scale=percent"], "scale= is of scores and rates"),
        (["prediction=score", "nominal=0.8"], "nominal= is of prediction intervals"),
        (["score=score", "require=pass"], "require= is of a gate: give a condition"),
        (["score=score", "repeat=2"], "repeat= is of a run"),
        (["score=score", "formats=[]"], "formats=[] writes nothing"),
        (
            ["score=score", "against=other", "weight=score"],
            "weight= does not apply to a comparison of two scores (against=), but to an audit of",
        ),
    ],
)
def test_faults(words, sentence, tmp_path, capsys):
    path = written(pair(60), tmp_path)
    assert sentence in refusal([str(path), "target=label", "group=sex", *words], capsys)


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


def audited_decisions(path, **options):
    asked = Options(path=path, prediction="called", group=("race",), **options)
    return assess(read_audit_table(asked), asked)


@pytest.mark.parametrize("clustered", [True, False])
def test_gap_and_standard_error_are_those_of_clusters(decided, clustered):
    path, decision, group, cluster = decided
    own = cluster if clustered else np.arange(len(group))
    (gap,) = audited_decisions(path, cluster="ad" if clustered else "").gaps
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

    with pytest.raises(UserError, match="name the rating above which"):
        assessed(score="rating", scale="rating")
    half, _ = assessed(score="rating", scale="rating", threshold=float("0.5"))
    assert half.table.prediction.all()
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
    (gap,) = audited_decisions(tmp_path / "weighted.csv", cluster="unit", weight="weight").gaps
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

    path = Archive(download=False).locate(RESUME)
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
    scored, decided = assess(read_audit_table(asked), asked), audited_decisions(path)
    (gap,) = (gap for gap in scored.gaps if gap.metric == "statistical_parity")
    (alone,) = decided.gaps
    assert (gap.value, gap.lower, gap.upper) == (alone.value, alone.lower, alone.upper)
    assert not gap.assumed and not gap.pairs  # of groups that are alike
    names = set(decided.metrics["metric"])
    rows = scored.metrics[scored.metrics["metric"].isin(names)].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows.astype(str), decided.metrics.astype(str))
