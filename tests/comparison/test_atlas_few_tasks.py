"""Approaches that were run on few tasks are shown, not ranked, and decide no claim."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.atlas_findings import page
from fairbench.comparison.atlas.few_tasks import family_mean_interval
from fairbench.comparison.atlas.report import (
    atlas_findings,
    few_tasks_sentences,
    sentences,
)
from fairbench.comparison.atlas.verdicts import HOLDS, OPEN
from fairbench.comparison.rank.answer import answers
from fairbench.comparison.rank.question import RankOptions
from fairbench.comparison.rank.sources import (
    approaches_as_methods,
    as_read,
    select_approaches_with_enough_tasks,
)
from fairbench.comparison.rank.table import read_scores
from fairbench.core.errors import UserError
from fairbench.data.benchmark_logs.table import with_scores
from fairbench.inference.comparing.multilevel import MeasuredDifferences
from fairbench.reporting.leaderboard.answer import answer_of
from fairbench.reporting.leaderboard.claims import evidence_text as shown_of_claim
from fairbench.reporting.leaderboard.ranks import ranks_section
from tests.comparison import generated_atlas

FEW = "logistic_regression, reductions, baseline"
TASKS = [f"data {task:02}" for task in range(4)]


def with_few(table, tasks=TASKS):
    """Return a table with an approach that is far better than all, here and there, on few tasks."""
    kept = (table["learner"] == "logistic_regression") & table["options"].str.endswith("=1.0")
    rows = table[kept & table["dataset"].isin(tasks)]
    wide = 0.2 * np.random.default_rng(1).standard_normal(len(rows))
    result = rows.assign(
        intervention="reductions",
        options="",
        error_rate=rows["error_rate"] - 0.1 + 0.1 * wide,
        statistical_parity=abs(wide),
        run="r" + rows["run"],
    )
    return pd.concat([table, result], ignore_index=True)


@pytest.fixture(scope="module")
def plain():
    return atlas_findings(generated_atlas.table(), metrics=("error_rate",), draws=60)


@pytest.fixture(scope="module")
def findings():
    return atlas_findings(with_few(generated_atlas.table()), metrics=("error_rate",), draws=60)


def test_an_approach_on_few_tasks_changes_no_rank(plain, findings):
    (without,), (ranked,) = (report.to_dict()["standings"] for report in (plain, findings))
    assert ranked["few"] and ranked | {"few": []} == without
    assert [approach.name for approach in findings.few] == [FEW]
    assert (findings.fewest_tasks, plain.few) == (5, ())
    assert {mean_frontier.intervention for mean_frontier in findings.mean_frontiers} == {
        mean_frontier.intervention for mean_frontier in plain.mean_frontiers
    }


def test_it_is_ranked_on_half_of_the_tasks():
    tasks = [f"data {task:02}" for task in range(5)]
    table = with_few(generated_atlas.table(learners=("logistic_regression",)), tasks)
    result = atlas_findings(table, metrics=("error_rate",), draws=20)
    assert result.few == () and result.standings[0].few == ()
    assert FEW in {standing.approach for standing in result.standings[0].standings}


def test_it_is_shown_with_its_own_difference(findings):
    (few,) = findings.standings[0].few
    assert (few.approach, few.tasks, few.families) == (FEW, 4, 4)
    assert few.lower < few.difference < few.upper < 0


def test_it_is_part_of_claims_and_decides_none(plain, findings):
    before = {claim.name: claim.verdict for claim in plain.claims}
    assert {claim.name: claim.verdict for claim in findings.claims} == before
    (claim,) = (claim for claim in findings.claims if claim.name == "unprocessing_dominates")
    parts = [part for part in claim.parts if part.label.startswith("reductions")]
    assert claim.verdict == HOLDS
    assert parts and {part.verdict for part in parts} - {HOLDS}
    assert all(part.few_tasks and part.families == 4 for part in parts)
    assert len(claim.deciding_parts) == len(claim.parts) - len(parts)
    assert shown_of_claim(claim).endswith(
        f" {len(parts)} differences, measured on few tasks, are not counted."
    )


def test_a_claim_of_few_tasks_alone_is_not_resolved():
    table = with_few(generated_atlas.table(learners=("logistic_regression",)))
    alone = table[table["intervention"] != "reweighing"]
    result = {claim.name: claim for claim in atlas_findings(alone, metrics=(), draws=20).claims}
    claim = result["unprocessing_dominates"]
    assert claim.parts and not claim.deciding_parts
    assert claim.verdict == OPEN
    assert shown_of_claim(claim) == "nothing on enough tasks to tell"


def test_the_pages_and_the_terminal_say_how_many_and_why(findings):
    (said,) = few_tasks_sentences(findings)
    assert said.startswith("1 of the 15 approaches is not ranked: it was run on fewer than 5 of ")
    assert said in answer_of(findings, ("statistical_parity",)).sure
    text = "\n".join(page(findings))
    assert said in text and "## Run on few tasks, and not ranked" in text
    assert "| few tasks |" in text
    assert not re.search(r"\b1 (are|hold|fail)\b", text + str(sentences(findings)))
    last = ranks_section(findings, "statistical_parity").blocks[-1]
    assert last.name == "ranks-few-tasks"


def test_a_reference_on_few_tasks_is_refused():
    table = with_few(generated_atlas.table(learners=("logistic_regression",)))
    with pytest.raises(UserError, match="run on 4 of 10 tasks: .* at least 5"):
        atlas_findings(table, reference=FEW, metrics=())


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
    assert answer.methods == tuple(standing.approach for standing in page.standings)
    assert (tuple(answer.best), answer.epsilon) == (page.may_be_best, page.epsilon)
    own = zip(answer.first_rank, answer.last_rank, strict=True)
    assert [*own] == [(standing.first_rank, standing.last_rank) for standing in page.standings]
    np.testing.assert_allclose(answer.means, [standing.mean for standing in page.standings])
    np.testing.assert_allclose(answer.new.near, [standing.near_new for standing in page.standings])
