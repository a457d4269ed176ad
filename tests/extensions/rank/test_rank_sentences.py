"""Sentences of a ranking: names with commas, and whether more splits or more families would do."""

import numpy as np
import pytest

from fairbench_rank import ranking
from fairbench_rank.scores import RankOptions, Scores, ScoreTable

FAMILIES, SPLITS, METHODS = 12, 5, 6


def answer(between, noise, *, holes=False):
    """Return what is said of methods of one mean that differ between families, and by noise."""
    draw = np.random.default_rng(0)
    own = between * draw.standard_normal((METHODS, FAMILIES, 1))
    values = own + noise * draw.standard_normal((METHODS, FAMILIES, SPLITS))
    if holes:
        values[0, 0] = np.nan
    table = ScoreTable(
        methods=tuple(f"model {name}, plain" for name in "abcdef"),
        tasks=tuple(f"task {task}" for task in range(FAMILIES)),
        families=tuple(f"family {task}" for task in range(FAMILIES)),
        task=np.repeat(np.arange(FAMILIES), SPLITS),
        family=np.arange(FAMILIES),
        splits=SPLITS,
        questions=0,
        scores=(Scores("auc", "higher", 0.8 + values.reshape(METHODS, -1), None),),
    )
    return ranking.answers(table, RankOptions(epsilon=0.01))[0]


def test_no_number_of_splits_resolves_what_varies_between_families():
    ranked = answer(0.05, 0.001)
    few, share = ranking.limits_of_cells(ranked)
    assert few.startswith("By these estimates, no number of splits of the same tasks would tell ")
    assert few.endswith(" from any of its 5 rivals if their true difference is 0.01.")
    assert share.startswith("For half of the rivals, >99 % or more of the variance of the paired ")
    assert "(now 12)" in share
    needed = int(share.split("about ")[1].split()[0].replace(",", ""))
    assert needed == pytest.approx(np.median([p["units_needed"] for p in ranked.plans]), rel=0.3)
    assert needed > 100


def test_splits_resolve_their_own_noise():
    noisy = answer(0.0, 0.05)
    assert len(noisy.best) > 1
    assert max(plan["times_as_many"] for plan in noisy.plans) < np.inf
    assert list(ranking.limits_of_cells(noisy)) == []
    assert "times as many splits of each task" in " ".join(ranking.resolving_sentences(noisy))


def test_names_that_hold_commas_are_divided_by_semicolons():
    assert ranking.join_words(["a", "b", "c"]) == "a, b and c" and ranking.join_words(["a"]) == "a"
    assert ranking.join_words(["a, x", "b", "c"], "or") == "a, x; b; or c"
    assert ranking.first_names([f"{letter}, x" for letter in "abcdefgh"]).endswith(
        "; f, x and 2 more"
    )


def test_a_winner_among_those_that_ran_everywhere_is_said_to_be_one():
    (whole,), (part,) = (ranking.fresh_sentences(answer(0.0, 0.05, holes=h)) for h in (False, True))
    assert "disagree on which mean is best" in whole
    assert "which mean of the 5 methods that were run everywhere is best" in part


def test_what_is_too_rare_to_be_seen_is_left_out_in_words():
    ranked = answer(0.0, 0.05)
    exact, said = ranking.unseen_in_words(ranked)
    share = float(said.partition("fewer than ")[2].partition(" %")[0]) / 100
    # A failure on so many tasks is seen by each of the methods at once, with half of the 5 %.
    unseen = len(ranked.methods) * (1 - share) ** ranked.units
    assert unseen == pytest.approx(0.025, rel=0.1)
    assert f"{ranked.units} families may show none of it" in said
    assert exact <= share < exact + 0.001
    some = [(exact, said), (0.0, ""), (exact / 2, "less")]
    assert ranking.simultaneous_sentences(on_new_tasks=False, unseen=some).endswith(f" {said}")
