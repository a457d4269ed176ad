"""What labels say to a question: for any metric, whenever one stops, never of too few labels."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench.audits.assessment import assess
from fairbench.core.errors import UserError
from fairbench_label.questions import (
    QUESTIONS,
    _askable,
    _metric_named,
    next_rows,
    question_of,
)
from tests.extensions.label.sessions import label_actively, pool, said, session


def asked(begun, **changes):
    return replace(begun, state=replace(begun.state, **changes))


@pytest.fixture(scope="module")
def labelled():
    table, label = pool(1500, bias=0.4)
    return label_actively(session(table), label, 200, step=20)


@pytest.mark.thorough
def test_any_metric_that_needs_labels_can_be_asked_about(labelled):
    metrics = _askable(labelled)
    assert {"accuracy", "f1_score", "base_rate", "brier_score", "roc_auc"} <= set(metrics)
    assert "selection_rate" not in metrics
    for name, metric in metrics.items():
        for question in QUESTIONS:
            begun = asked(labelled, metric=name, question=question)
            try:
                question_of(begun).reward()
            except UserError:
                neither = question == "worst" and metric.better == "neither"
                assert neither or (question == "calibration" and metric.interval != "rate")
                continue
            result = said(begun)
            assert len(next_rows(begun, 2)) == 2
            for row in result.groups.itertuples():
                assert not row.value < row.lower
                assert not row.value > row.upper
                if not np.isnan(row.whenever[0]):
                    width, fixed = np.diff(row.whenever), np.diff(row.fixed)
                    assert width >= fixed


def test_without_scores_and_without_labels_there_is_an_answer_too():
    table, _ = pool(300)
    for name in ("accuracy", "false_positive_rate"):
        begun = asked(session(replace(table, score=None)), metric=name)
        assert said(begun).sentences[0] == "No label says anything yet."
        assert len(next_rows(begun, 3)) == 3
    assert "brier_score" not in _askable(begun)
    begun = asked(session(table), metric="brier_score")
    assert np.isfinite(question_of(begun).known().draws).all()
    assert np.isnan(said(begun).groups["upper"][0])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("equalized_odds", "is of true_positive_rate and false_positive_rate"),
        ("acuracy", "unknown metric 'acuracy': did you mean accuracy"),
        ("statistical_parity", "valid: accuracy"),
        ("mae", "valid: accuracy"),
    ],
)
def test_a_metric_that_cannot_be_asked_about_lists_those_that_can(labelled, name, sentence):
    with pytest.raises(UserError, match=sentence):
        _metric_named(name, labelled)


def test_the_worst_is_the_highest_of_an_error(labelled):
    right, wrong = (said(asked(labelled, metric=name)) for name in ("accuracy", "error_rate"))
    assert right.found == wrong.found == ["Female x Black"]
    assert right.possible == wrong.possible
    np.testing.assert_allclose(right.groups["lower"], 1 - wrong.groups["upper"], atol=1e-9)


def test_groups_of_few_labels_are_named_and_settle_nothing(labelled):
    result = said(labelled)
    few = list(result.groups.query("labels < 30")["group"])
    assert few
    assert list(result.groups.query("few")["group"]) == few
    assert set(few) <= set(result.possible)
    assert any("Too few labels to be called fine" in sentence and few[0] in sentence
               for sentence in result.sentences)  # fmt: skip
    if result.found[0] not in few:
        assert not result.settled


def test_intervals_fit_how_labelling_stops(labelled):
    labels = len(labelled.state.labels)
    forever, there = said(labelled), said(asked(labelled, stop=labels))
    before, beyond = (said(asked(labelled, stop=stop)) for stop in (labels + 10, labels - 10))
    assert "stop here" in there.sentences[-1]
    assert "10 from here" in before.sentences[-1]
    assert "There are 10 more" in beyond.sentences[-1]
    for one, other in zip(forever.groups.itertuples(), there.groups.itertuples(), strict=True):
        assert (one.lower, one.upper) == one.whenever == other.whenever
        assert (other.lower, other.upper) == other.fixed == one.fixed


@pytest.mark.parametrize(
    ("name", "expected"),
    [("equal_opportunity", "true_positive_rate"), ("accuracy_gap", "accuracy")],
)
def test_a_gap_is_asked_about_by_its_rate(labelled, name, expected):
    assert _metric_named(name, labelled) == expected


@pytest.mark.thorough
def test_the_report_s_own_intervals_fit_it_too(labelled):
    table = asked(labelled, stop=len(labelled.state.labels)).audited()
    options = labelled.state.options
    once, always = (assess(people, options).metrics for people in (table, labelled.audited()))
    both = once.join(always, rsuffix="_w")
    assert (both["metric"] == both["metric_w"]).all()
    rows = both[both["metric"].isin(["accuracy", "true_positive_rate", "brier_score"])]
    rows = rows[rows["upper"].notna() & rows["upper_w"].notna()]
    assert len(rows) > 20
    width, wider = rows["upper"] - rows["lower"], rows["upper_w"] - rows["lower_w"]
    assert (wider > 1.05 * width).all()
    known = both[both["metric"] == "selection_rate"]
    np.testing.assert_array_equal(known["lower"], known["lower_w"])
