"""Audits of several classes, numbers, rankings, times, pairs, decisions and many groups."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.assessment import assess
from fairbench.audits.kinds import kind_of
from fairbench.audits.kinds.numbers import EXPOSURE, TOP, _brier_losses, concordance
from fairbench.audits.kinds.pair import _verdict, compare_tables
from fairbench.audits.kinds.unknown import BEYOND, WITHIN
from fairbench.audits.question import NUMBERS
from fairbench.audits.table import read_frame
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import OPEN, SMALL
from tests.audits.tables import parse, predictions, read, text_of, written
from tests.harness import archive_with

CLASSES = np.array(["cat", "dog", "emu"])
# P(right) of each predicted class, and the score that claims it.
RIGHT, SCORE = np.array([0.5, 0.9, 0.92]), np.array([0.55, 0.9, 0.6])
OF_CLASSES = {"target": "label", "prediction": "predicted", "score": "score"}


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


def test_classes_are_counted_ranked_and_concluded_upon():
    frame = classified()
    report = fairbench.audit(frame, groups="site", **OF_CLASSES)
    result = report.document.data
    classes = {part["name"]: part for part in result["classes"]}
    for name, rows in frame.groupby("predicted"):
        assert classes[name]["rows"] == len(rows)
        right = (rows["label"] == name).mean()
        assert classes[name]["accuracy"]["value"] == pytest.approx(right)
    assert classes["cat"]["accuracy"]["worst_rank"] == classes["cat"]["accuracy"]["best_rank"] == 1
    assert classes["emu"]["calibration"]["extreme"] > 0.99
    assert classes["emu"]["calibration"]["value"] == pytest.approx(0.32, abs=0.04)
    assert {part["name"] for part in result["groups"]["site"]} == {"north", "south"}
    text = text_of(report)
    assert "The predicted class of the lowest accuracy is cat" in text
    assert "hold together in 95 % of samples. What is concluded takes more certainty" in text


@pytest.mark.parametrize(
    "text",
    ["true,emu,cat,dog\ndog,1,1,0\ncat,5,0,50\nemu,0,1,50\n",
     ";emu;cat;dog\ndog;1,0;1;0\ncat;5;0;50\nemu;0;1;50,0\n"],
)  # fmt: skip
def test_costs_follow_the_matrix_whatever_its_order(text, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text(text)
    report = fairbench.audit(classified(), cost=costs, **OF_CLASSES)
    cost = {part["name"]: part["cost"] for part in report.document.data["classes"]}
    assert cost["cat"]["value"] == pytest.approx(1 - RIGHT[0], abs=0.06)
    assert cost["dog"]["value"] == pytest.approx(50 * (1 - RIGHT[1]), abs=2)
    assert cost["emu"]["value"] == pytest.approx(3 * (1 - RIGHT[2]), abs=0.1)
    assert cost["dog"]["extreme"] > 0.99
    costs.write_text("true,cat,dog\ncat,0,1\ndog,1,0\n")
    with pytest.raises(UserError, match="0 columns of class 'emu', not 1"):
        fairbench.audit(classified(60), cost=costs, **OF_CLASSES)


OF_NUMBERS = {"target": "income", "prediction": "predicted", "groups": ["sex", "race"]}


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


STARS = np.arange(100) % 5 + 1


def stars(predicted, income=STARS):
    """Return five values of a target, and predictions made of them."""
    return incomes(100).assign(income=income, predicted=predicted(income))


@pytest.mark.parametrize("surveyed", [False, True])
def test_it_gives_what_evaluate_gives(surveyed):
    frame = incomes(400).assign(people=np.arange(400) % 3 + 1, home=np.arange(400) // 2)
    asked = {"weight": "people", "cluster": "home"} if surveyed else {}
    given = {"sample_weight": frame["people"], "clusters": frame["home"]} if surveyed else {}
    theirs = fairbench.evaluate(
        frame["income"],
        frame["predicted"],
        sensitive_features=frame[["sex", "race"]],
        privileged={"sex": "Male", "race": "White"},
        task="regression",
        **given,
    )
    ours = fairbench.audit(frame, **OF_NUMBERS, **asked).table
    same = {"check_dtype": False, "check_categorical": False}
    pd.testing.assert_frame_equal(ours, theirs[[*ours]], **same)


def test_planted_differences_are_found_and_no_others():
    frame = incomes(6000, bias=2500, noise=0.6)
    report = fairbench.audit(frame, bounds=["low", "high"], **OF_NUMBERS)
    verdicts = report.findings.set_index(["attribute", "measure"])["verdict"]
    large = [("sex", "mean residual"), ("race", "MAE"), ("race", "coverage")]
    assert set(verdicts[large]) == {"large"} and verdicts["race", "mean residual"] == "small"
    said = " ".join(report.document.verdict.can)
    assert "By sex, the mean residual of Male is higher than that of Female" in said
    residuals = report.document.data["residuals"]
    women = next(residual for residual in residuals if residual["group"] == "Female")
    assert women["mean"][1] < -2500 < women["mean"][2]


def test_whom_a_gap_leaves_out_is_said_wherever_it_is_printed():
    frame = incomes(1500).assign(race=np.repeat(["A", "B", "C"], [900, 452, 148]))
    error = (frame["predicted"] - frame["income"]).where(frame["race"] != "C", 1.0)
    frame["predicted"] = frame["income"] + error  # of the few, far smaller than of the others
    report = fairbench.audit(frame, target="income", prediction="predicted", groups="race")
    assert "MAE, without 'C'" in report.tables["Gaps between groups"]["gap in"].tolist()
    (said,) = report.findings.query("measure == 'MAE'")["sentence"]
    assert "in MAE (n=148, an interval needs 400 in group 'C'), without 'C'" in said
    assert "MAE, without 'C'" in " ".join(report.document.summary.still_open)


def test_rows_without_a_target_are_left_out_and_counted():
    frame = incomes(300)
    frame["income"] = frame["income"].where(frame.index % 3 > 0)
    document = fairbench.audit(frame, **OF_NUMBERS).document
    assert "100 rows without one are left out" in " ".join(document.verdict.basis)


NUMBERED = ("target=income", "prediction=predicted", "group=sex")
LABELLED = ("target=label", "prediction=score", "group=sex")
CODES = incomes(100).assign(income=range(100))
ROW = np.arange(3000)
POINTS = incomes(3000).assign(income=ROW % 60, predicted=(ROW + 3) % 60)
# Codes of 40 jobs, of which two thirds are predicted rightly, and the others at random.
JOBS = incomes(3000).assign(
    income=ROW * 7 % 40, predicted=np.where(ROW % 3 > 0, ROW * 7 % 40, ROW * 11 % 40), score=0.7
)
FEW_JOBS = JOBS.assign(income=JOBS["income"].where(JOBS.index % 101 == 0))


READ_AS_NUMBERS = [
    (incomes(100), NUMBERED, True),
    (incomes(100).round({"income": -5}), NUMBERED, False),  # a target of one value
    (incomes(100).assign(predicted=incomes(100)["income"].to_numpy()[::-1]), NUMBERED, True),
    (CODES.assign(predicted=range(100)), NUMBERED, False),
    (CODES.assign(predicted=range(1, 101)), NUMBERED, True),
    (stars(lambda stars: stars + 0.13), NUMBERED, True),
    (stars(lambda stars: stars + 0.5 * (stars > 3)), NUMBERED, True),
    (stars(lambda stars: stars), NUMBERED, False),
    (stars(lambda stars: stars, (STARS - 1) / 2 + 0.5), NUMBERED, False),
    (predictions(100), LABELLED, False),
    *((incomes(100).assign(income=lambda f, form=form: f["income"].map(form.format)), NUMBERED,
       True) for form in ("{:.2f} €", "{:.2f} EUR")),
    (POINTS, NUMBERED, True),
    (POINTS.assign(predicted=lambda all: all["predicted"] + 1), NUMBERED, True),
    *((jobs, (*NUMBERED, *score), False) for jobs in (JOBS, FEW_JOBS)
      for score in ([], ["score=score"])),
    (stars(lambda stars: stars), (*NUMBERED, "bounds=[low,high]"), True),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "words", "regression"), READ_AS_NUMBERS)
def test_what_is_read_as_numbers(frame, words, regression):
    options = parse(["p.csv", *words])
    assert (kind_of(options, read_frame(options, source=frame)) == NUMBERS) is regression


def candidates(lists=30, rows=20, *, shift=0.0, seed=0):
    """Return candidates of several vacancies; women's ratings are lower by `shift`."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["Male", "Female"], lists * rows, p=[0.6, 0.4])
    rating = 50 + 10 * generator.normal(size=len(sex)) - shift * (sex == "Female")
    vacancy = np.repeat(np.arange(lists), rows)
    return pd.DataFrame({"vacancy": vacancy, "sex": sex, "rating": rating})


def ranked(frame, **options):
    """Return the report of a ranking, and what it has of women."""
    report = fairbench.audit(frame, score="rating", groups="sex", **options)
    places = pd.DataFrame(report.document.data["ranking"])
    return report, places.query("group == 'Female'").set_index("kind")


def test_shares_are_those_counted_by_hand():
    frame = candidates()
    report, mine = ranked(frame, top=5, lists="vacancy")
    place = frame.groupby("vacancy")["rating"].rank(ascending=False)
    women = frame["sex"] == "Female"
    by_hand = {
        TOP: women[place <= 5].mean(),
        EXPOSURE: (women / np.log2(1 + place)).sum() / (1 / np.log2(1 + place)).sum(),
    }
    assert mine["share"].to_dict() == pytest.approx(by_hand)
    assert mine["of_rows"].tolist() == pytest.approx([women.mean()] * 2)
    assert mine["ratio"].tolist() == pytest.approx(mine["share"] / women.mean())
    assert mine["ratio"].between(mine["ratio_lower"], mine["ratio_upper"]).all()
    assert report.document.data["lists"] == 30


def test_a_shift_is_found():
    report, women = ranked(candidates(shift=8), top=0.2)
    assert women.loc[TOP, "below"] > 0.95
    assert women.loc[TOP, "surely"]
    assert "Female gets less than its share" in " ".join(report.document.verdict.can)


OF_TIMES = {"target": "months", "score": "risk", "event": "died", "horizon": 6.0, "groups": "ward"}


def patients(rows=600, *, noise=0.0, seed=0, groups=2):
    """Return exponential times, censored at random; the last group's risks are noisy."""
    generator = np.random.default_rng(seed)
    ward = generator.integers(0, groups, rows)
    rate = np.exp(generator.normal(-2, 1, rows))
    time, end = generator.exponential(1 / rate), generator.exponential(15, rows)
    known = rate * np.exp(noise * (ward == groups - 1) * generator.normal(size=rows))
    months, risk = np.minimum(time, end).round(2), 1 - np.exp(-6 * known)
    names = [f"w{code}" for code in ward]
    return pd.DataFrame({"ward": names, "months": months, "died": time <= end, "risk": risk})


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


def test_a_noisy_group_is_found_and_named_in_its_unit_and_the_censored_are_counted():
    frame = patients(6000, noise=2.0)
    report = fairbench.audit(frame, **OF_TIMES)
    died = frame["died"].sum()
    counted = f"Rows: 6,000: {died:,} with the event, {6000 - died:,} censored"
    assert counted in text_of(report) and "percentage points" not in text_of(report)
    gap = report.findings.query("about == 'gap' and measure == 'concordance'").iloc[0]
    assert (gap["verdict"], gap["groups"]) == ("large", "w0; w1")
    assert "the concordance of w0 is higher than that of w1" in gap["sentence"]
    assert set(report.table["metric"]) == {"concordance", "Brier score at the horizon"}


def test_a_group_of_few_events_is_not_measured():
    frame = patients(100)
    frame.loc[frame["ward"] == "w1", "died"] = False
    report = fairbench.audit(frame, **OF_TIMES)
    assert report.findings["verdict"].iloc[0] == "not measured"
    assert "too few rows or events" in report.document.verdict.cannot[0]


def test_a_group_that_nobody_of_is_observed_to_the_horizon_has_no_brier_score():
    frame = patients(900, groups=3)
    late = (frame["ward"] == "w2") & (frame["months"] > 5)
    frame.loc[late, ["months", "died"]] = 5.0, False
    report = fairbench.audit(frame, **OF_TIMES)
    brier = report.table.query("metric == 'Brier score at the horizon'").set_index("group")
    assert brier.index[brier["value"].isna()].tolist() == ["w2"]
    open_gap = "Brier score at the horizon (nobody of w2 was observed beyond 6)"
    assert open_gap in " ".join(report.document.verdict.cannot)


@pytest.mark.parametrize(("labels", "first"), [(None, "Audit more rows"), (250, "Label more rows")])
def test_more_labels_are_asked_for_where_rows_lack_one(labels, first):
    report = fairbench.audit(classified(300, labels=labels), groups="site", **OF_CLASSES)
    frame = pair(300, labels=labels)
    if labels:
        frame["label"] = frame["label"].astype(str).where(frame["is_labelled"], "")
    for each in (report, fairbench.audit(frame, **OF_TWO)):
        assert each.document.summary.todo[-1].startswith(first)


OF_TWO = {"target": "label", "score": "score", "against": "other", "groups": "sex"}


def pair(rows=1500, labels=None):
    """Return predictions with a second score, which is noisy for women."""
    generator = np.random.default_rng(1)
    frame = predictions(rows, labels=labels)
    noise = generator.normal(0, 3, rows) * (frame["sex"] == "Female")
    odds = np.log(frame["score"] / (1 - frame["score"])) + noise
    return frame.assign(other=1 / (1 + np.exp(-odds)))


def compared(frame, *words):
    asked = ("target=label", "group=sex", "labelled=is_labelled")
    table, options = read(frame, "score=score", "against=other", *asked, *words)
    other, _ = read(frame, "score=other", *asked)
    return {(row.attribute, row.measure): row for row in compare_tables(table, other, options)}


def test_labels_for_all_rows_give_the_gaps_that_there_are():
    frame = pair()
    rows = compared(frame)
    for place, name in enumerate(("score", "other")):
        right = (frame[name] > 0.5) == frame["label"]
        assert rows["", "accuracy"].values[place] == pytest.approx(right.mean(), abs=0.01)
        by_sex = right.groupby(frame["sex"]).mean()
        gap = rows["sex", "accuracy"].values[place]
        assert gap == pytest.approx(np.ptp(by_sex), abs=0.01)
    assert rows["sex", "accuracy"].lower > 0
    assert _verdict(rows["", "accuracy"]) == "lower"
    assert _verdict(rows["sex", "accuracy"]) == "larger"
    assert {row.verdict for row in compared(frame, "epsilon=0.9").values()} == {SMALL}
    assert compared(pair(labels=40))["sex", "precision"].verdict == OPEN


def test_a_score_against_itself_is_alike():
    report = fairbench.audit(pair().assign(other=lambda f: f["score"]), **OF_TWO)
    assert set(report.findings["verdict"]) <= {SMALL, OPEN}
    said = " ".join(report.document.verdict.can)
    assert "For everyone, score and other differ by less than 0.05 in accuracy" in said


def test_without_labels_only_decisions_are_concluded_on():
    frame = pair().drop(columns=["label", "is_labelled"])
    report = fairbench.audit(frame, score="score", against="other", groups="sex")
    assert "Without labels, only decisions are compared" in text_of(report)
    assert all("selection rate" in said for said in report.document.verdict.can)
    everyone, _, sex = report.document.verdict.cannot
    assert everyone == "For everyone, accuracy is not compared: there are no labels."
    assert sex.startswith("By sex, the gap in true positive rate, false positive rate, precision")


def difference_and_error(y, group, cluster):
    """Return the difference of two means, and its standard error by sums over clusters."""
    sizes = np.bincount(group)[group]
    means = np.bincount(group, y / sizes)
    totals = np.bincount(cluster, np.where(group, 1, -1) * (y - means[group]) / sizes)
    count = len(np.unique(cluster))
    return means[1] - means[0], np.sqrt((totals**2).sum() * count / (count - 1))


def decided(seed=30):
    """Return decisions in clusters."""
    draw = np.random.default_rng(seed)
    cluster, group = np.repeat(np.arange(300), 4), np.tile([0, 1, 0, 1], 300)
    easy = draw.random(300)[cluster] < 0.3
    called = (draw.random(1200) < 0.1 + 0.4 * easy + 0.05 * group).astype(int)
    return pd.DataFrame({"called": called, "race": group, "ad": cluster, "row": np.arange(1200)})


def audited_decisions(frame, *words):
    return assess(*read(frame, "prediction=called", "group=race", *words))


@pytest.mark.parametrize("clusters", ["ad", "row"])
def test_gap_and_standard_error_are_those_of_clusters(clusters):
    frame = decided()
    (gap,) = audited_decisions(frame, *[f"cluster={clusters}"] * (clusters == "ad")).gaps
    columns = [frame[name].to_numpy() for name in ("called", "race", clusters)]
    value, error = difference_and_error(*columns)
    assert gap.metric == "statistical_parity"
    assert abs(gap.value) == pytest.approx(abs(value), abs=1e-12)
    # Rows of their own are counted by p (1 - p) / n, without n / (n - 1).
    assert gap.standard_error == pytest.approx(error, rel=1e-9 if clusters == "ad" else 2e-3)
    assert gap.upper - gap.lower == pytest.approx(2 * 1.96 * error, rel=0.05)


def test_a_rating_decides_by_its_own_threshold_and_is_no_probability():
    draw = np.random.default_rng(32)
    group, rating = draw.choice(["a", "b"], 400), draw.integers(1, 11, 400)
    label = (draw.random(400) < rating / 11).astype(int)
    frame = pd.DataFrame({"group": group, "rating": rating, "label": label})
    frame["high"] = (rating > 6).astype(int)
    asked = ("target=label", "group=group", "favourable=0")
    rated = (*asked, "score=rating", "scale=rating")
    with pytest.raises(UserError, match="name the rating above which"):
        read(frame, *rated)
    assert read(frame, *rated, "threshold=0.5")[0].prediction.all()
    table, options = read(frame, *rated, "threshold=6")
    result = assess(table, options)
    of_decisions = assess(*read(frame, *asked, "prediction=high"))
    pd.testing.assert_frame_equal(result.metrics, of_decisions.metrics)
    assert not result.calibrations and not result.scores
    assert table.read_as[0].startswith(
        "'rating' is read as a rating, whose high values are for '1'"
    )
    with pytest.raises(UserError, match="labels are '0' and '1'; it is unclear which"):
        read(frame.assign(rating=-rating), *rated, "threshold=-6")


def test_the_report_has_no_word_of_labels():
    frame = decided()
    asked = {"prediction": "called", "groups": "race", "cluster": "ad"}
    report = fairbench.audit(frame, **asked)
    said = text_of(report)
    assert "1,200 rows with decisions, and neither labels nor scores" in said
    assert "Rows with the same 'ad' belong together" in said
    assert "standard error" in said and "TPR" not in said
    assert "There are no labels. Whatever needs them" not in said
    (missing,) = re.findall(
        r"By race, groups cannot be compared in (.*?): there are no labels\.", said
    )
    labels = ["true positive rate", "false positive rate", "precision", "accuracy"]
    assert sorted(labels, key=missing.index) == labels
    assert "more labels" not in report.to_html().casefold()


@pytest.mark.data
def test_the_resume_experiment_comes_out():
    from fairbench.components.datasets.resume import RESUME

    asked = {"prediction": "received_callback", "groups": "race", "cluster": "job_ad_id"}
    report = fairbench.audit(archive_with(RESUME).locate(RESUME), epsilon=0.01, **asked)
    (gap,) = report.document.data["gaps"]
    assert round(100 * gap["value"], 2) == 3.20
    assert round(100 * gap["standard_error"], 2) == 0.62
    assert (round(gap["lower"], 3), round(gap["upper"], 3)) == (0.020, 0.045)
    said = "By race, the selection rate of white is higher than that of black by more than 0.01"
    assert said in " ".join(report.document.verdict.can)


SPELLED = [
    (("no", "yes"), ("0", "1"), ""),
    (("False", "True"), ("no", "yes"), ""),
    (("good", "bad"), ("0", "1"), "bad"),
]


@pytest.mark.parametrize(("labels", "decisions", "positive"), SPELLED)
def test_decisions_may_be_spelled_otherwise_than_labels(labels, decisions, positive):
    label, decision, group = np.random.default_rng(4).integers(2, size=(3, 300))
    repaid, called = np.array(labels)[label], np.array(decisions)[decision]
    frame = pd.DataFrame({"repaid": repaid, "called": called, "race": group})
    words = [f"positive={positive}"] * bool(positive) + ["favourable=bad"] * (positive == "bad")
    table, _ = read(frame, "target=repaid", "prediction=called", "group=race", *words)
    np.testing.assert_array_equal(table.prediction, decision)
    np.testing.assert_array_equal(table.label, label)
    no, yes = table.labels
    (said,) = [note for note in table.notes if "spelled otherwise" in note]
    assert f"'{decisions[0]}' stands for '{no}' and '{decisions[1]}' stands for '{yes}'" in said


@pytest.mark.parametrize("groups", [2, 30])
def test_without_labels_scores_say_of_selection_what_decisions_alone_say(groups):
    draw = np.random.default_rng(groups)
    score = draw.random(150 * groups)
    group = np.arange(len(score)) % groups
    frame = pd.DataFrame({"score": score, "called": (score > 0.5).astype(int), "race": group})
    scored = assess(*read(frame, "score=score", "group=race"))
    decided = audited_decisions(frame)
    (gap,) = (gap for gap in scored.gaps if gap.metric == "statistical_parity")
    (alone,) = decided.gaps
    assert (gap.value, gap.lower, gap.upper) == (alone.value, alone.lower, alone.upper)
    assert not gap.assumed and not gap.pairs  # of groups that are alike
    names = set(decided.metrics["metric"])
    rows = scored.metrics[scored.metrics["metric"].isin(names)].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows.astype(str), decided.metrics.astype(str))


# Many groups: what it says, what it writes, and what it refuses.


RATES = ("selection_rate", "error_rate", "true_positive_rate", "false_positive_rate")


def crossed(rows=6000, *, labelled=1.0, odd=0.5, seed=0):
    """Return predictions for 6 x 5 x 5 groups, of which one is selected more often by `odd`."""
    generator = np.random.default_rng(seed)
    codes = [generator.integers(k, size=rows) for k in (6, 5, 5)]
    frame = pd.DataFrame({n: [f"{n}{c}" for c in v] for n, v in zip("abc", codes, strict=True)})
    chance = 0.4 + odd * (frame[["a", "b", "c"]] == ["a1", "b2", "c3"]).all(axis=1)
    prediction = (generator.random(rows) < chance).astype(int)
    label = np.where(generator.random(rows) < 0.8, prediction, 1 - prediction).astype(str)
    shown = generator.random(rows) < labelled
    return frame.assign(prediction=prediction, label=np.where(shown, label, ""))


OF_MANY = {"target": "label", "prediction": "prediction", "groups": ["a", "b", "c"]}


def test_the_groups_that_stand_out_come_first_and_all_are_in_a_file(tmp_path, said_by):
    words = ["target=label", "prediction=prediction", "group=[a,b,c]", f"out={tmp_path / 'out'}"]
    said_by("audit", written(crossed(), tmp_path), *words)
    printed = text_of(fairbench.audit(crossed(), **OF_MANY))
    assert "By a x b x c, 1 group is unlike everyone else in selection rate" in printed
    assert "a1 x b2 x c3" in printed
    assert "150 groups make 11,175 pairs, of which 559 would seem to differ by chance" in printed
    assert "Only groups by a, b and c were compared" in printed
    page = (tmp_path / "out" / "audit.html").read_text()
    assert page.count("<tr") < 40
    table = pd.read_csv(tmp_path / "out" / "groups.csv")
    assert table["rate"].value_counts().to_dict() == dict.fromkeys(RATES, 150)
    assert ((table["lower"] <= table["pooled"]) & (table["pooled"] <= table["upper"])).all()
    data = json.loads((tmp_path / "out" / "audit.json").read_text())
    selection = data["rates"][0]
    assert selection["surest_pair"][0] == "a1 x b2 x c3"
    assert sum(selection[name] for name in (WITHIN, BEYOND, OPEN)) == pytest.approx(1)
    assert len(data["figures"]) == 600


def test_columns_of_few_groups_are_compared_by_themselves_too():
    frame = crossed().assign(zip=np.arange(6000) % 60)
    frame["prediction"] |= (frame["a"] == "a3").astype(int)
    report = fairbench.audit(frame, prediction="prediction", groups=["a", "b", "zip"])
    gaps = report.findings.query("about == 'gap'").set_index("attribute")
    assert gaps["verdict"].to_dict() == {"a": "large", "b": "open", "a x b x zip": "large"}
    assert gaps["groups"]["a"].startswith("a3; ")
    assert "By a, the selection rate is 100.0 % for a3" in text_of(report)
    assert "Groups by zip were compared only where a, b and zip are combined" in text_of(report)


def test_rates_of_many_groups_that_need_labels_are_of_the_rows_that_have_one():
    frame = crossed(labelled=0.3)
    report = fairbench.audit(frame, **OF_MANY)
    assert "chosen for labelling at random" in text_of(report)
    rows = report.table.groupby("rate")["rows"].sum()
    known = (frame["label"] != "").sum()
    assert (rows["selection_rate"], rows["error_rate"]) == (6000, known)
    assert rows["true_positive_rate"] + rows["false_positive_rate"] == known
