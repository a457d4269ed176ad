"""Whether two seeds agree: the share that is expected, and a disagreement that was planted."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers.atlas.seeds import chance_apart, compared_seeds, lines_of

TASKS, APPROACHES, SHARE = 30, 21, 0.2


def tables(*, same_rows, planted=0.0):
    """Return the tables of two seeds, of ten and of five splits; the reference has no noise.

    Splits of one seed have a part of their noise in common; those of the other seed have the same
    part if it splits the same rows.
    """
    draw, result = np.random.default_rng(4), []
    truth = 0.02 * draw.standard_normal((APPROACHES, TASKS, 1))
    size = 0.01 * np.exp(0.5 * draw.standard_normal((APPROACHES, TASKS, 1)))
    shared = np.sqrt(SHARE) * draw.standard_normal((2, APPROACHES, TASKS, 1))
    for seed, repeats in enumerate((10, 5)):
        noise = np.sqrt(1 - SHARE) * draw.standard_normal((APPROACHES, TASKS, repeats))
        values = truth + size * (shared[0 if same_rows else seed] + noise)
        values[3, 2] += planted * seed
        values[:2] = 0  # the reference, and one that predicts as it does
        result.append(table(0.2 + values, seed))
    return result


def table(values, seed):
    place = np.stack(np.indices(values.shape), axis=-1).reshape(-1, 3)
    return pd.DataFrame(
        {
            "family": [f"family {task}" for task in place[:, 1]],
            "dataset": [f"data {task:02}" for task in place[:, 1]],
            "protect": "sex",
            "learner": [f"learner {approach:02}" for approach in place[:, 0]],
            "intervention": "none",
            "method": "baseline",
            "options": "",
            "setting": "",
            "seed": seed,
            "repeat": place[:, 2],
            "run": [f"{seed} {approach} {task}" for approach, task in place[:, :2]],
            "test_share": SHARE,
            "fit_seconds": 1.0 + place[:, 0],
            "error_rate": values.ravel(),
        }
    )


@pytest.mark.thorough
@pytest.mark.parametrize("same_rows", [True, False])
def test_as_many_agree_as_are_expected(same_rows):
    """Of 570 differences; three standard errors are 2.8 points."""
    result = compared_seeds(*tables(same_rows=same_rows), ("error_rate",))
    assert len(result.table) == (APPROACHES - 2) * TASKS
    assert (result.reference, result.repeats) == ("learner 00, baseline", (10, 5))
    corrected, splits, band = (result.share(name) for name in ("corrected", "splits", "band"))
    low, high = np.quantile(result.dealt, [0.025, 0.975])
    assert abs(result.dealt.mean() - 0.95) < 0.01
    if same_rows:
        assert low <= splits <= high
        assert corrected > 0.97 and band > 0.95
    else:
        assert abs(corrected - 0.95) < 0.03
        assert splits < low - 0.03
    assert result.surely_apart.empty


@pytest.mark.thorough
def test_a_planted_disagreement_is_found_and_told():
    result = compared_seeds(*tables(same_rows=True, planted=0.4), ("error_rate",))
    (row,) = result.surely_apart.itertuples()
    assert (row.approach, row.task) == ("learner 03, baseline", "data 02 by sex")
    assert row.second - row.first == pytest.approx(0.4, abs=0.05)
    text = "\n".join(lines_of(result))
    assert "on 1 of them: learner 03, baseline on data 02 by sex, error rate" in text
    assert "nan" not in text


@pytest.mark.thorough
def test_tasks_and_approaches_of_one_seed_alone_are_left_out():
    first, second = tables(same_rows=True)
    part = second[(second["dataset"] < "data 04") & (second["learner"] != "learner 05")]
    result = compared_seeds(first, part, ("error_rate", "log_loss"))
    assert set(result.table["task"]) == {f"data {task:02} by sex" for task in range(4)}
    assert len(result.table) == 4 * (APPROACHES - 3)
    assert "4 tasks for 18 approaches" in "\n".join(lines_of(result))
    other = second.assign(dataset="another")
    (said,) = lines_of(compared_seeds(first, other, ("error_rate",)))
    assert said.startswith("Seed 1 has no difference in common")


def test_the_chance_is_welchs():
    from scipy import stats

    draw = np.random.default_rng(0)
    first, second = draw.standard_normal(8), 0.5 + 2 * draw.standard_normal(5)
    errors = [(sample.var(ddof=1) / len(sample), len(sample) - 1.0) for sample in (first, second)]
    exact = stats.ttest_ind(first, second, equal_var=False).pvalue
    assert chance_apart(first.mean() - second.mean(), *errors) == pytest.approx(exact)
    sure = (np.zeros(2), np.ones(2))
    assert chance_apart(np.array([0.0, 0.1]), sure, sure).tolist() == [1, 0]
