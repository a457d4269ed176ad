"""Which rows are next, and what labels say of rates, classes and numbers, whenever one stops."""

import json
from dataclasses import replace
from itertools import product
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from fairbench.audits.assessment import assess, calibrations
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.findings import LEVEL
from fairbench.evaluation.table import setting_text, values_of
from fairbench.inference.rates import rate_limits, rate_sequence
from fairbench_label import estimates, questions
from fairbench_label.session import PREDICTED, Answer, Session, State, open_session
from tests.audits.tables import concluded, parse, predictions, written


def pool(rows=2000, *, bias=0.25, seed=0):
    """Return unlabelled people and their labels; scores are wrong by `bias` for Black women."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["Male", "Female"], rows, p=[0.7, 0.3])
    race = generator.choice(["White", "Black"], rows, p=[0.7, 0.3])
    score = generator.beta(1, 1.5, rows)
    chance = np.clip(score + bias * ((sex == "Female") & (race == "Black")), 0, 1)
    label = (generator.random(rows) < chance).astype(int)
    return pd.DataFrame({"sex": sex, "race": race, "score": score}), label


OF_PEOPLE = "score=score", "group=[sex,race]"
OF_CLASSES = "prediction=predicted", "score=confidence", "group=place"
OF_NUMBERS = "prediction=predicted", "group=place"


def session(frame, *words, by="sex x race", question="worst", strategy="top_two", answers=()):
    """Return a session, without answers but those given."""
    options = parse(["x.csv", *(words or OF_PEOPLE)])
    state = State(options, "", len(frame), by, question, strategy, tuple(answers))
    return open_session(state, frame.astype(str))


def answer(begun, frame, rows, true):
    """Return the session once these rows have their labels."""
    given = tuple(Answer(int(row) + 1, str(true[row]), "") for row in rows)
    return open_session(begun.state.with_answers(given), frame.astype(str))


def labelled(begun, frame, true, number, *, step=1):
    """Return the session after so many labels, `step` of them chosen at a time."""
    for left in range(number, 0, -step):
        begun = answer(begun, frame, questions.next_rows(begun, min(step, left)), true)
    return begun


def are_waiting(begun, number):
    """Say whether so many rows are named, and none of them has a label."""
    rows = questions.next_rows(begun, number)
    return len(set(rows)) == number and np.isnan(begun.table.label[rows]).all()


def said(begun):
    """Return what labels say to the question of a session, with the figures by group."""
    question = questions.question_of(begun)
    return SimpleNamespace(**question.answer(), groups=question.groups())


def test_probability_of_being_worst_is_a_double_integral():
    table, label = pool(500)
    question = questions.question_of(labelled(session(table, by="sex"), table, label, 20, step=5))
    won, lost = question.about.posterior.successes, question.about.posterior.failures
    exact = stats.beta(won[1], lost[1]).expect(stats.beta(won[0], lost[0]).cdf)
    assert 0.02 < exact < 0.98
    assert question.certain() == pytest.approx([exact, 1 - exact], abs=4 * 0.5 / np.sqrt(2000))


def test_knowledge_is_the_score_s_word_worth_two_labels_and_the_labels():
    table, label = pool(1000)
    begun = labelled(session(table), table, label, 50, step=5)
    about = questions.question_of(begun).about
    known = begun.table.known
    right = begun.table.label[known] == begun.table.prediction[known]
    right, wrong = (np.bincount(begun.codes[known[mask]], minlength=4) for mask in (right, ~right))
    assert (right + wrong).sum() == 50
    np.testing.assert_allclose(about.posterior.strength, right + wrong + 2)
    np.testing.assert_allclose(about.posterior.successes, right + 2 * about.expected)
    confidence = np.maximum(table["score"], 1 - table["score"])
    assert about.expected == pytest.approx(confidence.groupby(begun.codes).mean().to_numpy())


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", questions.ONE_AT_A_TIME)
@pytest.mark.parametrize("question", questions.QUESTIONS)
def test_every_question_and_strategy_names_rows_that_wait(question, strategy):
    table, label = pool(400)
    begun = session(table, question=question, strategy=strategy)
    begun = labelled(begun, table, label, 20, step=4)
    assert len(begun.table.known) == 20 and are_waiting(begun, 5)


def test_the_same_state_gives_the_same_rows_and_only_another_seed_another_order():
    table, label = pool()
    begun = labelled(session(table), table, label, 10)
    first, again = (questions.next_rows(begun, 4) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    seeded = labelled(session(table, *OF_PEOPLE, "seed=1"), table, label, 10)
    assert set(first) != set(questions.next_rows(seeded, 4))
    # No score, question or strategy has a say in which row of a group is next.
    other = session(table.assign(score=1 - table["score"]), question="each", strategy="thompson")
    np.testing.assert_array_equal(begun.order, other.order)
    assert abs(np.corrcoef(begun.order, np.arange(len(table)))[0, 1]) < 0.1


def test_people_in_parts_never_meet_and_all_rows_are_named_in_the_end():
    table, label = pool(300)
    begun = session(table)
    parts = [questions.next_rows(begun, 300, (k, 3)) for k in (1, 2, 3)]
    assert sorted(np.concatenate(parts)) == list(range(300))
    everything = questions.next_rows(begun, 400)
    assert len(everything) == 300
    assert not len(questions.next_rows(answer(begun, table, everything, label), 3))


def test_rows_that_cannot_be_told_are_not_asked_for_again():
    table, _ = pool(50)
    begun = session(table)
    row = int(questions.next_rows(begun, 1)[0])
    asked = Session(begun.state.with_answers((Answer(row + 1, "", ""),)), begun.table)
    assert row not in questions.next_rows(asked, 100)
    (note,) = asked.audited().sampling.notes
    assert "could not be labelled: 1" in note


def test_rows_passed_over_are_noticed_and_come_first():
    table, label = pool(200)
    begun = session(table, strategy="random_arm")
    arm = begun.codes[begun.order[0]]
    first, second, third = begun.order[begun.codes[begun.order] == arm][:3]
    skipping = answer(begun, table, [third], label)
    assert set(skipping.passed_over()) == {first, second}
    assert f"{first + 1}, {second + 1}" in skipping.audited().sampling.notes[0]
    mended = answer(skipping, table, [first, second], label)
    assert not len(mended.passed_over()) and mended.audited().sampling.notes == ()


def asked(begun, **changes):
    return replace(begun, state=replace(begun.state, **changes))


@pytest.fixture(scope="module")
def of_rates():
    table, label = pool(1500, bias=0.4)
    return labelled(session(table), table, label, 200, step=20)


def test_without_scores_and_without_labels_there_is_an_answer_too():
    table, _ = pool(300)
    for name in ("accuracy", "false_positive_rate"):
        begun = asked(session(table.round(), "prediction=score", OF_PEOPLE[1]), metric=name)
        assert said(begun).sentences[0] == "No label says anything yet."
        assert are_waiting(begun, 3)
    assert "brier_score" not in questions._askable(begun)
    begun = asked(session(table), metric="brier_score")
    assert np.isfinite(questions.question_of(begun).draws).all()
    assert np.isnan(said(begun).groups["upper"][0])


def test_the_worst_is_the_highest_of_an_error(of_rates):
    right, wrong = (said(asked(of_rates, metric=name)) for name in ("accuracy", "error_rate"))
    assert right.found == wrong.found == ["Female x Black"]
    assert right.possible == wrong.possible
    np.testing.assert_allclose(right.groups["lower"], 1 - wrong.groups["upper"], atol=1e-9)


def test_groups_of_few_labels_are_named_and_settle_nothing(of_rates):
    result = said(of_rates)
    few = list(result.groups.query("labels < 30")["group"])
    assert few and list(result.groups.query("few")["group"]) == few
    assert set(few) <= set(result.possible)
    (sentence,) = (said for said in result.sentences if "Too few labels to be called fine" in said)
    assert few[0] in sentence
    assert result.found[0] in few or not result.settled


def test_intervals_fit_how_labelling_stops(of_rates):
    labels = len(of_rates.state.labels)
    forever, there, before, beyond = (
        said(asked(of_rates, stop=stop)) for stop in (0, labels, labels + 10, labels - 10)
    )
    assert "stop here" in there.sentences[-1]
    assert "10 from here" in before.sentences[-1]
    assert "There are 10 more" in beyond.sentences[-1]
    widths = [of.groups["upper"] - of.groups["lower"] for of in (forever, before, there)]
    np.testing.assert_array_equal(*widths[:2])
    assert (widths[0] > 1.2 * widths[2]).all()


@pytest.mark.thorough
def test_the_report_s_own_intervals_fit_it_too(of_rates):
    table = asked(of_rates, stop=len(of_rates.state.labels)).audited()
    options = of_rates.state.options
    once, always = (assess(people, options).metrics for people in (table, of_rates.audited()))
    both = once.join(always, rsuffix="_w")
    assert (both["metric"] == both["metric_w"]).all()
    rows = both[both["metric"].isin(["accuracy", "true_positive_rate", "brier_score"])]
    rows = rows[rows["upper"].notna() & rows["upper_w"].notna()]
    assert len(rows) > 20
    width, wider = rows["upper"] - rows["lower"], rows["upper_w"] - rows["lower_w"]
    assert (wider > 1.05 * width).all()
    known = both[both["metric"] == "selection_rate"]
    np.testing.assert_array_equal(known["lower"], known["lower_w"])


CLASSES = ("cat", "dog", "emu")


def classified(rows=900, *, seed=0):
    """Return predictions of three classes, wrong more often in the north, and their labels."""
    draw = np.random.default_rng(seed)
    place = draw.choice(["north", "south", "west"], rows)
    confidence = draw.uniform(0.5, 1, rows).round(3)
    right = draw.random(rows) < np.where(place == "north", 0.35, confidence)
    predicted = draw.integers(0, 3, rows)
    true = np.where(right, predicted, (predicted + draw.integers(1, 3, rows)) % 3)
    names = np.array(CLASSES)
    frame = {"predicted": names[predicted], "confidence": confidence, "place": place}
    return pd.DataFrame(frame), names[true]


def numeric(rows=900, *, seed=0):
    """Return predicted numbers, less exact and too small in the north, and the true ones."""
    draw = np.random.default_rng(seed)
    place = draw.choice(["north", "south", "west"], rows)
    predicted = draw.normal(10, 2, rows).round(3)
    spread = np.where(place == "north", 2.0, 1.0)
    true = predicted + (place == "north") + spread * draw.normal(size=rows)
    return pd.DataFrame({"predicted": predicted, "place": place}), true.round(3)


@pytest.mark.thorough
def test_the_worst_group_of_several_classes_is_found():
    frame, true = classified()
    begun = labelled(session(frame, *OF_CLASSES, by="place"), frame, true, 300, step=20)
    verdict = said(begun)
    assert (verdict.found, verdict.settled) == (["north"], False)
    result = said(asked(begun, stop=300))
    assert (result.possible, result.settled) == (["north"], True)
    assert set(questions._askable(begun)) == {"accuracy", "error_rate", "brier_score"}
    (worst,) = result.groups.query("group == 'north'").itertuples()
    assert worst.labels > 110
    assert worst.lower < 0.35 < worst.upper


@pytest.mark.thorough
def test_regression_is_asked_about_its_errors():
    frame, true = numeric()
    begun = asked(session(frame, *OF_NUMBERS, by="place"), metric="mae")
    begun = labelled(begun, frame, true, 300, step=20)
    assert set(questions._askable(begun)) == {"mae", "mean_residual", "rmse", "r2"}
    assert said(begun).found == ["north"]
    residual = questions.measure(begun, "mean_residual")
    groups = questions._group_figures(begun, residual, residual.limits(LEVEL))
    (north,) = groups.query("group == 'north'").itertuples()
    assert north.lower < 1 < north.upper
    assert questions._estimate_for_everyone(begun, questions.measure(begun, "rmse")) is None
    value, lower, upper = questions._estimate_for_everyone(begun, residual)
    assert lower < value < upper


def test_without_groups_rows_are_chosen_among_predicted_classes():
    frame, true = classified()
    begun = labelled(session(frame, *OF_CLASSES[:2], by=PREDICTED), frame, true, 60, step=20)
    assert begun.names == list(CLASSES)
    for question in questions.QUESTIONS:
        assert questions.question_of(asked(begun, question=question))


def of_numbers():
    frame, true = numeric(300)
    begun = asked(session(frame, *OF_NUMBERS, by="place", strategy="thompson"), metric="mae")
    return labelled(begun, frame, true, 40, step=20)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["rates", "numbers"])
def test_any_metric_that_needs_labels_can_be_asked_about(kind, of_rates):
    begun, some = {
        "rates": (of_rates, {"accuracy", "f1_score", "base_rate", "brier_score", "roc_auc"}),
        "numbers": (of_numbers(), {"mae", "mean_residual", "rmse", "r2"}),
    }[kind]
    metrics = questions._askable(begun)
    assert some <= set(metrics) and "selection_rate" not in metrics
    for (name, metric), question in product(metrics.items(), questions.QUESTIONS):
        asking = asked(begun, metric=name, question=question)
        if question == "worst" and metric.better == "neither":
            refused = "neither: ask question=gap or question=each"
        elif question == "calibration" and metric.interval != "rate":
            refused = "calibration compares a rate"
        else:
            assert are_waiting(asking, 2)
            for row in said(asking).groups.itertuples():
                assert not row.value < row.lower and not row.value > row.upper
            continue
        with pytest.raises(UserError, match=refused):
            questions.question_of(asking).reward()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("drawn", "columns", "asked", "given", "refusals"),
    [
        (classified, OF_CLASSES, "In which group are predictions least often right?", "okapi", {
            "9=emo": "did you mean emu",
            "metric=true_positive_rate": "valid: accuracy, brier_score, error_rate",
        }),
        (numeric, OF_NUMBERS, "In which group is the MAE worst?", "?", {
            "80=much": "is no number",
            "metric=accuracy": "valid: mae, mean_residual, r2, rmse",
            "question=calibration": "calibration compares a rate",
        }),
    ],
)  # fmt: skip
def test_classes_and_numbers_on_the_command_line(
    drawn, columns, asked, given, refusals, tmp_path, said_by, refused
):
    frame, true = drawn(200)
    path, state = written(frame, tmp_path), f"state={tmp_path / 's.json'}"
    assert asked in said_by("label", "next", path, state, *columns, "n=2", "stop=4")
    first = [f"{row + 1}={true[row]}" for row in range(60)]
    assert "61 stored: 6" in said_by("label", "ask", state, *first, f"70={given}")
    for word, sentence in refusals.items():
        verb = "ask" if word[0].isdigit() else "next"
        refused("label", verb, state, word, message=sentence)
    assert asked in said_by("label", "report", state, f"out={tmp_path}")
    labelling = json.loads((tmp_path / "audit.json").read_text())["labelling"]
    assert labelling["whenever"] and labelling["metric"] in ("accuracy", "mae")
    assert sum(group["labels"] for group in labelling["groups"]) == 60 + (given != "?")
    assert "of each group" in (tmp_path / "audit.html").read_text()


# Intervals that hold whenever one stops, of rows that were chosen by group.


@pytest.fixture
def without_simulation(monkeypatch):
    for name in ("with_needed", "_with_supposed"):
        monkeypatch.setattr(f"fairbench.audits.assessment.{name}", lambda gaps, *_: gaps)


def test_the_level_is_the_chance_of_no_miss():
    ours, evidence = estimates.sequence_limits(3, 10), rate_sequence(3, 10, np.log(20))
    assert (ours.lower, ours.upper) == (evidence.lower, evidence.upper)


def test_a_lasting_mean_is_never_missed_in_the_long_run():
    """Normal means looked at after each of 30 to 1000 rows."""
    draw, rows = np.random.default_rng(0), np.arange(1, 1001)
    reach = special.ndtri((1 + estimates.lasting_level(0.95, rows)) / 2) / np.sqrt(rows)
    means = draw.normal(size=(2000, 1000)).cumsum(axis=1) / rows
    assert (np.abs(means) > reach)[:, 29:].any(axis=1).mean() < 0.05
    assert reach[99] * 10 == pytest.approx(3.11, abs=0.01)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 10])
def test_a_lasting_level_of_few_rows_has_a_quantile(rows):
    assert 5 < NormalDist().inv_cdf((1 + float(estimates.lasting_level(0.95, rows))) / 2) < 9


def test_the_worst_group_is_among_the_candidates():
    right = np.random.default_rng(2).binomial(60, [0.6, 0.7, 0.9, 0.9], (1000, 4))
    level = estimates.together(0.95, 4)
    kept, same = (
        [estimates.candidates(rate_limits(hits, 60, level=level), lowest=of) for hits in each]
        for each, of in ((right, True), (60 - right, False))
    )
    assert np.mean(kept, axis=0)[0] > 0.95 and np.mean(kept, axis=0)[2] < 0.32
    np.testing.assert_array_equal(same, kept)


# Labels of rows that were chosen by group: the pool's figures, whatever the labels' shares.

SCORES = ("log_loss", "brier_score", "roc_auc", "expected_calibration_error")


def chosen_table(frame, folder, by, *more):
    words = [str(written(frame, folder)), "target=label", "score=score", "group=[sex,race]"]
    options = parse([*words, "labelled=is_labelled", *more])
    table = read_audit_table(options)
    return replace(table, sampling=estimates.GroupSampling(by, table.groups[by])), options


def unequal(rows, seed, women=0.04, men=0.4):
    """Show each sex's labels at its own rate; women's scores are wrong by a quarter."""
    frame = predictions(rows, bias=0.25, seed=seed)
    rate = np.where(frame["sex"] == "Female", women, men)
    return frame.assign(is_labelled=np.random.default_rng(seed + 1).random(rows) < rate)


def test_equal_shares_give_what_a_random_sample_gives(tmp_path, without_simulation):
    """An oracle for the weights: where all labels weigh the same, they change nothing."""
    frame = predictions(400, labels=400)
    table, options = chosen_table(frame, tmp_path, "sex")
    weighed, plain = (
        values_of(assess(replace(table, sampling=how), options).metrics).assign(
            setting=setting_text
        )
        for how in (table.sampling, None)
    )
    keys = ["metric", "attribute", "group", "setting"]
    both = weighed.merge(plain, on=keys, suffixes=("", "_plain")).query("metric in @SCORES")
    assert len(both) >= 5 * 12
    np.testing.assert_allclose(both["value"], both["value_plain"], atol=1e-12)
    everyone = both.query("attribute == '' and metric == 'log_loss'")
    width = everyone["upper"] - everyone["lower"]
    plain_width = everyone["upper_plain"] - everyone["lower_plain"]
    np.testing.assert_allclose(width, plain_width, rtol=1e-6)


def test_the_papers_evaluation_has_normal_intervals_of_means_and_no_others():
    people = predictions(500, bias=0.25)
    sex, label = people["sex"].astype("category"), people["label"].to_numpy(float)
    score = people["score"].to_numpy()
    strata = sex.cat.codes.to_numpy(np.int64)
    decisions = (score > 0.5).astype(int)
    chosen = estimates.ChosenRows(score, decisions, label, {"sex": sex}, sex, strata=strata)
    rows = chosen.evaluate(Evaluator(interval="dirichlet"), 0)[0].query("metric in @SCORES")
    assert not rows.duplicated(["metric", "attribute", "group", "binning"]).any()
    has_interval = rows["lower"].notna()
    assert set(rows.loc[has_interval, "metric"]) == {"log_loss", "brier_score"}
    assert has_interval.sum() == 2 * 3


@pytest.mark.thorough
def test_excess_of_scores_is_that_of_the_pool(tmp_path, without_simulation):
    """Races are mixtures of the sexes; the intervals of their excess hold the pool's."""
    held = []
    for seed in range(30):
        frame = unequal(4000, seed)
        table, _ = chosen_table(frame, tmp_path, "sex")
        excess = frame["score"] - frame["label"]
        truth = excess.groupby(table.groups["race"].to_numpy()).mean()
        held += [
            calibration["lower"] <= truth[calibration["group"]] <= calibration["upper"]
            for calibration in calibrations(table)
            if calibration["attribute"] == "race" and calibration["labels"] >= 20
        ]
    # One in twenty may miss, and the pool is finite: 4 standard errors.
    assert len(held) > 80
    assert np.mean(held) >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / len(held))


def test_it_says_how_rows_were_chosen(tmp_path, without_simulation):
    frame = unequal(600, 0).assign(is_labelled=lambda f: f["is_labelled"] & (f["sex"] == "Male"))
    table, options = chosen_table(frame, tmp_path, "sex")
    conclusions = concluded(assess(table, options))
    basis = " ".join(conclusions.basis)
    assert "How many rows of each group of sex were labelled was decided while labelling" in basis
    assert "assumes" not in basis
    assert "No row of Female has a label yet" in " ".join(conclusions.notes)


def test_a_combination_without_a_label_is_counted_and_what_needs_its_labels_is_unknown():
    """Each group is selected as often as the other of its attribute; combinations are not."""
    people, label = pool(4000)
    often = (people["sex"] == "Male") == (people["race"] == "White")
    score = np.where(np.random.default_rng(0).random(4000) < np.where(often, 0.7, 0.3), 0.9, 0.1)
    people = people.assign(score=score)
    begun = session(people)
    places = [np.flatnonzero(begun.codes == arm)[:40] for arm in range(1, 4)]
    audited = answer(begun, people, np.concatenate(places), label).audited()
    metrics = values_of(assess(audited, begun.state.options).metrics)
    found = metrics.set_index(["metric", "group"])["value"].groupby(level=[0, 1]).first()
    without = begun.names[0].split(" x ")
    for groups in audited.groups.values():
        for group, selected in pd.Series(score > 0.5).groupby(groups.to_numpy()).mean().items():
            assert found["selection_rate", group] == pytest.approx(selected)
            is_unknown = group in (*without, begun.names[0])
            for metric in ("accuracy", "brier_score", "roc_auc"):
                assert np.isnan(found.get((metric, group), np.nan)) == is_unknown, (metric, group)
