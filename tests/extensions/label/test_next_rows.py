"""Which rows are next: the same for the same state, at random within a group, useful among them."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench_label.questions import ONE_AT_A_TIME, QUESTIONS, next_rows
from fairbench_label.session import Answer, Session
from tests.extensions.label.sessions import answer, label_actively, pool, session


@pytest.mark.parametrize("strategy", ONE_AT_A_TIME)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_and_strategy_names_rows_that_wait(question, strategy):
    table, label = pool(400)
    begun = label_actively(session(table, question=question, strategy=strategy), label, 20, step=4)
    assert len(begun.table.known) == 20
    rows = next_rows(begun, 5)
    assert len(set(rows)) == 5
    assert np.isnan(begun.table.label[rows]).all()


def test_the_same_state_gives_the_same_rows_and_only_another_seed_another_order():
    table, label = pool()
    begun = label_actively(session(table), label, 10)
    first, again = (next_rows(begun, 4) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(next_rows(label_actively(session(table, seed=1), label, 10), 4))
    other = Session(replace(begun.state, question="each", strategy="thompson"), begun.table)
    np.testing.assert_array_equal(begun.order, other.order)


@pytest.mark.thorough
def test_scores_of_labelled_rows_are_those_of_their_group():
    """Rows are drawn at random within a group: 200 first rows of 50 pools against all rows."""
    errors = []
    for seed in range(50):
        table, label = pool(600, seed=seed)
        begun = label_actively(session(table, seed=seed), label, 40, step=4)
        known, score = begun.table.known, table.score
        for arm in range(4):
            mine = score[known[begun.codes[known] == arm]]
            errors += list(mine - score[begun.codes == arm].mean())
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))


def test_people_in_parts_never_meet():
    table, _ = pool(300)
    begun = session(table)
    parts = [set(next_rows(begun, 300, (k, 3))) for k in (1, 2, 3)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 300


def test_all_rows_are_named_in_the_end_and_then_none():
    table, label = pool(60)
    begun = session(table)
    everything = next_rows(begun, 100)
    assert sorted(everything) == list(range(60))
    assert not len(next_rows(answer(begun, everything, label), 3))


def test_rows_that_cannot_be_told_are_not_asked_for_again():
    table, _ = pool(50)
    begun = session(table)
    row = int(next_rows(begun, 1)[0])
    asked = Session(begun.state.with_answers((Answer(row + 1, "", ""),)), table)
    assert row not in next_rows(asked, 100)
    (note,) = asked.audited().sampling.notes
    assert "could not be labelled: 1" in note


def test_rows_passed_over_are_noticed_and_come_first():
    table, label = pool(200)
    begun = session(table, strategy="random_arm")
    arm = begun.codes[begun.order[0]]
    first, second, third = begun.order[begun.codes[begun.order] == arm][:3]
    skipping = answer(begun, [third], label)
    assert set(skipping.passed_over()) == {first, second}
    assert f"{first + 1}, {second + 1}" in skipping.audited().sampling.notes[0]
    mended = answer(skipping, [first, second], label)
    assert not len(mended.passed_over())
    assert mended.audited().sampling.notes == ()
