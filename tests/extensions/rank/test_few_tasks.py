"""Approaches that were run on few tasks are shown, not ranked."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fairbench_rank.approaches import MeasuredDifferences
from fairbench_rank.leaderboard import ranks_section, summary_of
from fairbench_rank.ranking import answers
from fairbench_rank.scores import RankOptions, as_read, read_scores
from fairbench_rank.sources import (
    approaches_as_methods,
    select_approaches_with_enough_tasks,
    with_scores,
)
from fairbench_rank.standings import family_mean_interval, few_tasks_sentences, findings_of
from tests.extensions.rank import generated_atlas
from tests.extensions.rank.generated_atlas import FEW, with_few


@pytest.fixture(scope="module")
def plain():
    return findings_of(generated_atlas.table(), metrics=("error_rate",))


@pytest.fixture(scope="module")
def findings():
    return findings_of(with_few(generated_atlas.table()), metrics=("error_rate",))


def test_an_approach_on_few_tasks_changes_no_rank(plain, findings):
    (without,), (ranked,) = (report.to_dict()["standings"] for report in (plain, findings))
    assert ranked["few"] and ranked | {"few": []} == without
    assert [row["name"] for row in findings.few] == [FEW]
    assert (findings.fewest_tasks, plain.few) == (5, [])
    assert {point["intervention"] for point in findings.mean_frontiers} == {
        point["intervention"] for point in plain.mean_frontiers
    }


def test_it_is_ranked_on_half_of_the_tasks():
    tasks = [f"data {task:02}" for task in range(5)]
    table = with_few(generated_atlas.table(learners=("logistic_regression",)), tasks)
    result = findings_of(table, metrics=("error_rate",))
    assert result.few == [] and result.standings[0].few == []
    assert FEW in {standing["method"] for standing in result.standings[0].rows}


def test_it_is_shown_with_its_own_difference(findings):
    (few,) = findings.standings[0].few
    assert (few["approach"], few["tasks"], few["families"]) == (FEW, 4, 4)
    assert few["lower"] < few["difference"] < few["upper"] < 0


def test_the_pages_and_the_terminal_say_how_many_and_why(findings):
    (said,) = few_tasks_sentences(findings)
    assert said.startswith("1 of the 15 approaches is not ranked: it was run on fewer than 5 of ")
    assert said in summary_of(findings, "statistical_parity").sure
    last = ranks_section(findings, "statistical_parity").blocks[-1]
    assert last.name == "ranks-few-tasks"


def evidence_text(values, family, share):
    return MeasuredDifferences(
        values.mean(2),
        values.var(2, ddof=1),
        np.full(values.shape[:2], float(values.shape[2])),
        np.full(values.shape[1], share),
        np.asarray(family),
    )


def test_one_task_has_the_corrected_t_interval():
    values = np.random.default_rng(0).standard_normal((1, 1, 7))
    mean, lower, upper = (end[0] for end in family_mean_interval(evidence_text(values, [0], 0.2)))
    half = stats.t.ppf(0.975, 6) * values.std(ddof=1) * np.sqrt(1 / 7 + 0.25)
    assert mean == pytest.approx(values.mean())
    assert [lower, upper] == pytest.approx([values.mean() - half, values.mean() + half])


@pytest.mark.parametrize(
    ("family", "least", "most"), [([0, 1, 2], 0.935, 0.97), ([0, 0, 0], 0.95, 1)]
)
def test_intervals_of_these_families_hold(family, least, most):
    """Overlapping splits of three tasks; relatives are taken to go together, which is careful."""
    draw, share = np.random.default_rng(3), 0.2
    truth = draw.standard_normal((2000, 3, 1))
    noise = np.sqrt(share) * draw.standard_normal((2000, 3, 1))
    noise = noise + np.sqrt(1 - share) * draw.standard_normal((2000, 3, 10))
    result = evidence_text(truth + np.array([0.5, 1, 2])[:, None] * noise, family, share)
    _, lower, upper = family_mean_interval(result)
    exact = truth[..., 0].mean(axis=1)
    assert least < np.mean((lower <= exact) & (exact <= upper)) <= most


def test_runs_are_ranked_as_on_the_page_of_the_atlas(findings):
    """One metric alone has all of the error rate in both, and so the very same answer."""
    (page,) = findings.standings
    scores = with_scores(approaches_as_methods(with_few(generated_atlas.table())), ["error_rate"])
    read = select_approaches_with_enough_tasks(scores)
    options = as_read(RankOptions(path=Path("runs")), read)
    (answer,) = answers(read_scores(options, read=read), options)
    assert read.notes[-1] == (
        "1 of 15 approaches is left out, as in the leaderboard: it has the score on fewer than 5 "
        "of the 10 tasks, half of them"
    )
    assert answer.methods == tuple(standing["method"] for standing in page.rows)
    assert (answer.best, answer.epsilon) == (page.answer.best, page.answer.epsilon)
    own = zip(answer.first_rank, answer.last_rank, strict=True)
    assert [*own] == [(standing["first_rank"], standing["last_rank"]) for standing in page.rows]
    np.testing.assert_allclose(answer.means, [standing["mean"] for standing in page.rows])
    np.testing.assert_allclose(
        answer.new.near, [standing["near_best_on_new"] for standing in page.rows]
    )
