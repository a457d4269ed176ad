"""What labels would settle: against closed forms, enumeration, and the two-arm comparison."""

import numpy as np
import pytest

from fairbench.components.papers.black_box.estimation import probability_less
from fairbench.inference.posterior import Beta
from fairbench_label.active import DRAWS, BetaArms, ComparisonReward, GroupPosterior, WidestGap
from fairbench_label.questions import question_of
from tests.extensions.label.sessions import label_actively, pool, session


def known(*successes):
    """Return knowledge of groups of ten labels, made up."""
    won = np.array(successes, float)
    return GroupPosterior.of(Beta(won, 10 - won), np.random.default_rng(0))


def test_the_gap_of_two_arms_is_their_comparison():
    posterior = Beta(np.array([[8.0, 3.0]]), np.array([[2.0, 4.0]]))
    arms = BetaArms(posterior, np.array([[5, 5]]))
    theta = np.array([[0.2, 0.7]])
    ours, theirs = WidestGap(0.1), ComparisonReward(0.1)
    np.testing.assert_allclose(ours.expected(arms, theta), theirs.expected(arms, theta))
    swapped = np.array([[0.7, 0.2]])
    np.testing.assert_allclose(
        ours.expected(arms, swapped), theirs.expected(arms, swapped), atol=1e-9
    )
    for mine, other in zip(ours.moments(arms), theirs.moments(arms), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-9)


def test_the_gap_of_many_arms_is_that_of_the_two_furthest_apart():
    won = np.array([[5.0, 9.0, 2.0, 6.0]])
    arms = BetaArms(Beta(won, 12 - won), np.full((1, 4), 5))
    mean, sd = WidestGap(0.05).moments(arms)
    assert set(np.flatnonzero(mean[0] > -1)) == {1, 2}
    assert set(np.flatnonzero(sd[0] > 0)) == {1, 2}
    theta = np.array([[0.9, 0.5, 0.5, 0.1]])
    assert set(np.flatnonzero(WidestGap(0.05).expected(arms, theta)[0] > -1)) == {0, 3}


def test_probability_of_being_worst_is_a_double_integral():
    knowledge = GroupPosterior.of(
        Beta(np.array([6.0, 9.0]), np.array([4.0, 3.0])), np.random.default_rng(0)
    )
    told = question_of(session(pool(500)[0], by="sex")).why(knowledge, 0)
    exact = [
        float(probability_less(Beta(won, lost), Beta(np.float64(9), np.float64(3))))
        for won, lost in ((6, 4), (7, 4), (6, 5))
    ]
    shown = [float(part) for part in told.replace(";", "").replace(",", "").split() if "." in part]
    np.testing.assert_allclose(shown, exact, atol=4 * 0.5 / np.sqrt(DRAWS))
    assert shown[1] < shown[0] < shown[2]


def test_one_label_more_changes_one_group_slightly():
    knowledge = known(3, 7, 2, 5)
    after = knowledge.after(2, up=True).draws
    changed = (after != knowledge.draws).any(axis=0)
    np.testing.assert_array_equal(changed, [False, False, True, False])
    # The same uniforms: every draw moves the same way.
    assert (after[:, 2] > knowledge.draws[:, 2]).all()
    np.testing.assert_allclose(knowledge.draws.mean(axis=0), knowledge.posterior.mean, atol=0.02)


def test_knowledge_is_the_score_s_word_worth_two_labels_and_the_labels():
    table, label = pool(1000)
    begun = label_actively(session(table), label, 50)
    posterior = question_of(begun).about.posterior
    known = begun.table.known
    right = begun.table.label[known] == begun.table.prediction[known]
    right, wrong = (np.bincount(begun.codes[known[mask]], minlength=4) for mask in (right, ~right))
    confidence = question_of(begun).about.expected
    assert (right + wrong).sum() == 50
    np.testing.assert_allclose(posterior.strength, right + wrong + 2)
    np.testing.assert_allclose(posterior.successes, right + 2 * confidence)
    for arm in range(4):
        score = table.score[begun.codes == arm]
        assert confidence[arm] == pytest.approx(np.maximum(score, 1 - score).mean())
