"""Any table of scores is ranked: its shape, its holes, what is refused, and what is said."""

import json
import re
from dataclasses import replace
from functools import partial
from math import isinf

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairbench
from benchmarks.rank import Population, Tally, calibration, fails
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.core.text import two_digits
from fairbench_rank import new_tasks, ranking, sign_flips
from fairbench_rank.sign_flips import paired_units
from tests.harness import ROOT


def scores(methods=4, tasks=12, splits=1, *, seed=0, apart=0.02):
    random = np.random.default_rng(seed)
    names = [f"m{method}" for method in range(methods)], [f"d{task}" for task in range(tasks)]
    index = pd.MultiIndex.from_product([*names, range(splits)], names=["model", "dataset", "fold"])
    frame = index.to_frame(index=False)
    ahead = frame["model"].str[1:].astype(int) * apart
    frame["accuracy"] = (0.6 + ahead + random.normal(0, 0.01, len(frame))).round(4)
    return frame if splits > 1 else frame.drop(columns="fold")


def answers(methods=3, questions=400, *, seed=0):
    random = np.random.default_rng(seed)
    right = random.random((methods, questions)) < np.linspace(0.5, 0.9, methods)[:, None]
    index = [[f"m{method}" for method in range(methods)], range(questions)]
    index = pd.MultiIndex.from_product(index, names=["model", "question"])
    return pd.DataFrame({"correct": right.ravel().astype(int)}, index).reset_index()


def refusal(frame, **options):
    with pytest.raises(UserError) as caught:
        fairbench.rank(frame, **{"score": "accuracy", **options})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_ranks_are_those_of_the_truth_where_it_is_plain(tmp_path):
    report = fairbench.rank(scores(splits=3), score="accuracy")
    assert report.table["method"].tolist() == ["m3", "m2", "m1", "m0"]
    assert report.table["first_rank"].tolist() == [1, 2, 3, 4]
    assert report.table["may_be_best"].tolist() == [True, False, False, False]
    assert "4 methods on 12 tasks, up to 3 splits each" in report.document.title
    difference = report.difference("m0", "m3")
    assert difference.verdict == "worse" and difference.upper < 0
    assert report.difference("m3", "m0").lower == pytest.approx(-difference.upper)
    with pytest.raises(UserError, match="unknown method 'm9'"):
        report.difference("m0", "m9")
    assert len(report.findings) == 6
    for row in report.findings.itertuples():
        one = report.difference(row.first, row.second)
        found = row.difference, row.lower, row.upper, row.verdict
        assert (one.value, one.lower, one.upper, one.verdict) == found
    assert repr(report).startswith("Ranking of scores") and "All pairs" not in repr(report)
    assert report.save(tmp_path / "ranking.html").stat().st_size > 100
    assert list(report.tables)[0] == "Ranks by accuracy"


def test_lower_is_better_turns_every_rank_and_no_sign():
    frame = scores().assign(error=lambda table: 1 - table["accuracy"])
    error, accuracy = (fairbench.rank(frame, score=name).table for name in ("error", "accuracy"))
    assert error["method"].tolist() == accuracy["method"].tolist()
    for one, other in (("difference", "difference"), ("lower", "upper")):
        assert error[one].to_numpy() == pytest.approx(-accuracy[other].to_numpy())
    assert error["mean"].is_monotonic_increasing
    wrong = frame.rename(columns={"accuracy": "error_rate"})
    report = fairbench.rank(wrong, score="error_rate", better="higher")
    assert any("upside down" in sentence for sentence in report.document.data["warnings"])
    assert not fairbench.rank(wrong, score="error_rate").document.data["warnings"]


def test_families_are_the_unit_and_each_counts_alike():
    frame = scores(2, 20, apart=0)
    frame["source"] = np.where(frame["dataset"].str[1:].astype(int) < 12, "one", frame["dataset"])
    frame.loc[(frame["source"] == "one") & (frame["model"] == "m1"), "accuracy"] += 0.5
    for more, difference in (({}, 0.5 / 9), ({"mean": "tasks"}, 0.5 * 12 / 20)):
        report = fairbench.rank(frame, score="accuracy", family="source", **more)
        assert report.table["families"].tolist() == [9, 9]
        assert report.difference("m1", "m0").value == pytest.approx(difference, abs=0.01)


def test_questions_are_paired():
    report = fairbench.rank(answers(), score="correct")
    assert "400 questions" in report.document.title
    assert report.table["first_rank"].tolist() == [1, 2, 3]
    assert np.isnan(report.table["near_best_on_new"]).all()
    frame = answers().pivot(index="question", columns="model", values="correct")
    assert report.difference("m2", "m0").value == pytest.approx((frame["m2"] - frame["m0"]).mean())


def test_scores_share_one_error_rate():
    frame = scores(apart=0.004).assign(loss=lambda table: 1 - table["accuracy"])
    alone, both = (fairbench.rank(frame, score=of) for of in ("accuracy", ["accuracy", "loss"]))
    one, shared = (report.difference("m3", "m2", "accuracy") for report in (alone, both))
    assert shared.upper - shared.lower > one.upper - one.lower
    assert set(both.table["score"]) == {"accuracy", "loss"}


def test_methods_with_holes_are_compared_on_what_both_have():
    frame = scores(3, 20)
    hard = frame["dataset"].str[1:].astype(int) >= 10
    frame.loc[hard, "accuracy"] -= 0.3
    part = frame[~((frame["model"] == "m0") & hard)]
    report = fairbench.rank(part, score="accuracy")
    assert report.table["method"].tolist() == ["m2", "m1", "m0"]
    assert report.table.set_index("method")["tasks"].to_dict() == {"m0": 10, "m1": 20, "m2": 20}
    assert any("1 method lacks" in note for note in report.document.data["notes"])


def test_what_crashed_counts_as_is_said():
    frame = scores(3, 12)
    frame.loc[:2, "accuracy"] = np.nan
    said = refusal(frame)
    assert "3 scores are empty or not finite, of m0 (3)" in said and "crashed=worst" in said
    reports = {
        way: fairbench.rank(frame, score="accuracy", crashed=way)
        for way in ("worst", "0", "left-out")
    }
    worst, none = (reports[way].table.set_index("method")["mean"]["m0"] for way in ("worst", "0"))
    own, next_best = (frame.query(f"model == '{of}'")["accuracy"].to_numpy() for of in ("m0", "m1"))
    assert worst == pytest.approx((next_best[:3].sum() + own[3:].sum()) / 12)
    assert none == pytest.approx(own[3:].sum() / 12)
    assert reports["left-out"].document.data["warnings"]


def test_rows_that_come_twice():
    frame = scores()
    again = pd.concat([frame, frame.iloc[:2]])
    report = fairbench.rank(again, score="accuracy")
    assert any("counted once: 2" in note for note in report.document.data["notes"])
    other = pd.concat([frame, frame.iloc[:1].assign(accuracy=0.1)])
    assert "(rows 1 and 49): keep one of them, or tell them apart with split=" in refusal(other)


@pytest.mark.parametrize("over", [[1.2], [1.6, 3.4], [0.9, 12.5, 1.7]])
def test_a_score_that_may_exceed_1_is_no_mixture_of_shares_and_percents(over):
    frame = scores()
    frame.loc[frame.index[: len(over)], "accuracy"] = over
    report = fairbench.rank(frame.rename(columns={"accuracy": "rmse"}), score="rmse")
    assert len(report.table) == 4


REFUSED = {
    "one method": (lambda table: table[table["model"] == "m0"], {}, "holds one method, 'm0'"),
    "one task": (lambda table: table[table["dataset"] == "d0"], {}, "holds one task, 'd0'"),
    "two scales": (
        lambda table: pd.concat([table[:12].assign(accuracy=60.0), table[12:]]), {},
        "holds shares and percents",
    ),
    "a text": (lambda table: table.assign(accuracy="x"), {}, "row 1: 'x' is no number"),
    "no methods": (lambda table: table.rename(columns={"model": "x"}), {}, "give method=COLUMN"),
    "no tasks": (lambda table: table.rename(columns={"dataset": "x"}), {}, "give task=COLUMN"),
    "no scores": (lambda table: table, {"score": ()}, "give score=COLUMN, one of accuracy"),
    "a blank name": (lambda table: table.replace("m0", " "), {}, "the cell is empty"),
    "no rows": (lambda table: table.iloc[:0], {}, "no rows below the header"),
    "a family of two": (lambda table: table.assign(family=table.index // 12), {}, "a task has one"),
    "a wrong direction": (lambda table: table, {"better": "up"}, "must be higher or lower"),
    "a wrong crash": (lambda table: table, {"crashed": "zero"}, "worst, left-out or a number"),
    "a margin below 0": (lambda table: table, {"epsilon": -1}, "at least 0"),
    "too many methods": (lambda _: scores(2001, 2), {}, "2,001 methods; at most 2,000 are ranked"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_ranked_is_refused_in_a_line(name):
    change, options, said = REFUSED[name]
    assert said in refusal(change(scores()), **options)


def test_two_tasks_tell_nothing_and_say_so():
    report = fairbench.rank(scores(3, 2), score="accuracy")
    assert (report.table["last_rank"] == 3).all() and report.table["may_be_best"].all()
    assert "nothing can be told apart" in report.to_markdown()


def test_a_plan_names_units_and_prices_them():
    frame = scores(2, 30, 4, apart=0.002, seed=3).assign(seconds=2.0)
    plan = fairbench.rank(frame, score="accuracy", cost="seconds", epsilon=0.002).plans.iloc[0]
    assert plan["units_needed"] > plan["units"] == 30
    assert plan["cost"] == pytest.approx((plan["units_needed"] - 30) * 2 * 4 * 2.0)
    assert 0 < plan["noise"] <= 1


def test_what_is_surely_near_the_best_lies_within_every_interval():
    report, nothing = (
        fairbench.rank(scores(3, 40, apart=0.0), score="accuracy", epsilon=epsilon)
        for epsilon in (0.02, 0)
    )
    assert report.answers[0].surely_near == report.table["method"].tolist()
    assert "Surely within 0.02 of the best on average" in report.to_markdown()
    assert not nothing.answers[0].surely_near
    assert nothing.table["near_best_on_new"].sum() >= 1
    assert "within 0 of whichever" in nothing.to_markdown()


def test_a_command_prints_and_writes_what_python_returns(tmp_path, capsys):
    frame, folder = scores(3, 10), tmp_path / "scores-rank"
    frame.to_csv(tmp_path / "scores.csv", index=False)
    assert main(["rank", str(tmp_path / "scores.csv"), "score=accuracy"]) == 0
    assert "3 methods on 10 tasks" in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {"rank.html", "rank.json", "pairs.csv"}
    ranks = pd.DataFrame(json.loads((folder / "rank.json").read_text())["scores"][0]["ranks"])
    table = fairbench.rank(frame, score="accuracy").table
    assert ranks["method"].tolist() == table["method"].tolist()
    assert ranks["upper"].to_numpy() == pytest.approx(table["upper"].to_numpy())


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    page = (ROOT / "extensions/rank/README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], "rank.md", "exec"), {})


FAMILIES, SPLITS, METHODS = 12, 5, 6


def answer(between, noise, *, holes=False):
    """Return what is said of methods of one mean that differ between families, and by noise."""
    draw = np.random.default_rng(0)
    own = between * draw.standard_normal((METHODS, FAMILIES, 1))
    values = own + noise * draw.standard_normal((METHODS, FAMILIES, SPLITS))
    if holes:
        values[0, 0] = np.nan
    names = [f"model {name}, plain" for name in "abcdef"], range(FAMILIES), range(SPLITS)
    index = pd.MultiIndex.from_product(names, names=["model", "dataset", "fold"])
    frame = pd.Series(0.8 + values.ravel(), index, name="auc").dropna().reset_index()
    frame = frame.assign(family=frame["dataset"])
    return fairbench.rank(frame, score="auc", epsilon=0.01).answers[0]


def test_splits_resolve_their_own_noise_and_not_what_varies_between_families():
    for ranked, said in (
        (answer(0.05, 0.001), "More splits of the same tasks would not do: >99 % of the variance"),
        (answer(0.0, 0.05), "times as many splits of each task"),
    ):
        hardest = max(ranked.plans, key=lambda plan: plan["units_needed"])
        assert len(ranked.best) > 1 and isinf(hardest["times_as_many"]) == ("not do" in said)
        needed, told = ranking.resolving_sentences(ranked)
        assert f"about {two_digits(hardest['units_needed'])} families" in needed and said in told


def test_names_that_hold_commas_are_divided_by_semicolons():
    names = [f"{letter}, x" for letter in "abcdefgh"]
    assert ranking.first_names(names[:3], "or") == "a, x; b, x; or c, x"
    assert ranking.first_names(names).endswith("; f, x and 2 more")


def test_a_winner_among_those_that_ran_everywhere_is_said_to_be_one():
    (whole,), (part,) = (ranking.fresh_sentences(answer(0.0, 0.05, holes=h)) for h in (False, True))
    assert "disagree on which mean is best" in whole
    assert "which mean of the 5 methods that were run everywhere is best" in part


def test_what_is_too_rare_to_be_seen_is_left_out_in_words():
    ranked = answer(0.0, 0.05)
    exact, said = ranked.unseen, ranking.unseen_in_words(ranked)
    (share,) = (float(percent) / 100 for percent in re.findall("fewer than (.*?) %", said))
    # A failure on so many tasks is seen by each of the methods at once, with half of the 5 %.
    assert len(ranked.methods) * (1 - share) ** ranked.units == pytest.approx(0.025, rel=0.1)
    assert f"{ranked.units} families may show none of it" in said
    assert exact <= share < exact + 0.001
    some = [replace(ranked, error_rate=0.5), ranked]
    told = ranking.simultaneous_sentences(some)
    assert "differences of all scores are valid" in told and f" {said} " in told


# All pairs of methods at once, what holds on a new task, plans, and winners on fresh splits.


def judged(values, *, seed=0, flips=499, unit=None, **options):
    places = np.arange(values.shape[1])
    unit = places if unit is None else unit
    generator = np.random.default_rng(seed)
    paired = sign_flips.paired_units(values, places, unit, generator=generator, **options)
    return paired, sign_flips.simultaneous(paired, generator=generator, flips=flips)


def test_differences_are_those_of_a_paired_t_test():
    values = np.random.default_rng(1).normal(size=(3, 12))
    paired, _ = judged(values)
    for place, (one, other) in enumerate([(0, 1), (0, 2), (1, 2)]):
        oracle = stats.ttest_rel(values[one], values[other])
        assert paired.means[place] / paired.errors[place] == pytest.approx(oracle.statistic)
        assert paired.skewness[place] == pytest.approx(stats.skew(values[one] - values[other]))


@pytest.mark.parametrize("equal_unit_weights", [True, False])
def test_holes_change_nothing_of_pairs_without_them(equal_unit_weights):
    random = np.random.default_rng(2)
    values, group = random.normal(size=(4, 60)), np.repeat(np.arange(20), 3)
    unit = random.permutation(np.repeat(np.arange(10), 2))
    unit[:3] = unit[0]
    part = np.concatenate([values, np.full((1, 60), np.nan)])
    part[4, :30] = random.normal(size=30)
    how = {"equal_unit_weights": equal_unit_weights, "generator": np.random.default_rng(0)}
    unit = np.unique(unit, return_inverse=True)[1]
    full, holed = (paired_units(each, group, unit, **how) for each in (values, part))
    kept = holed.second < 4
    for name in ("means", "errors", "squares", "centred", "skewness", "sizes"):
        assert getattr(holed, name)[kept] == pytest.approx(getattr(full, name), abs=1e-12), name


def test_a_pair_is_compared_on_what_both_have():
    values = np.array([[1.0, 2, 3, 9], [0, 1, 2, np.nan], [5, 5, 5, 5]])
    paired, _ = judged(values)
    assert paired.means[0] == pytest.approx(1) and paired.sizes.tolist() == [3, 4, 3]


def test_splits_of_a_task_count_once_and_families_alike():
    values, group = np.array([[1.0, 1, 5, 5, 5, 5], [0.0] * 6]), np.array([0, 0, 1, 1, 1, 2])
    for by_family, mean in ((True, 3), (False, 11 / 3)):
        how = {"equal_unit_weights": by_family, "generator": np.random.default_rng(0)}
        paired = paired_units(values, group, np.array([0, 1, 1]), **how)
        assert paired.means[0] == pytest.approx(mean)


def test_few_questions_right_and_wrong_are_judged_as_by_mcnemars_exact_test():
    _, held = judged(np.array([[1.0] * 9 + [0], [0] * 9 + [1]]), flips=19999, binary=True)
    exact = 2 * stats.binom.cdf(1, 10, 0.5)
    assert held.p_values[0] == pytest.approx(exact, abs=0.003)


def test_methods_that_are_equal_are_not_told_apart_nor_those_whose_difference_does_not_vary():
    values = np.tile(np.random.default_rng(0).normal(size=20), (3, 1))
    _, held = judged(values)
    assert not held.better.any() and held.may_be_best.all()
    assert (held.limits.lower == 0).all() and (held.limits.upper == 0).all()
    _, held = judged(np.array([[1.0] * 4, [0.0] * 4]))
    assert not held.better.any()
    assert np.isinf([held.limits.lower[0], held.limits.upper[0]]).all()


def test_methods_that_beat_each_other_in_a_circle_may_all_be_the_best():
    random = np.random.default_rng(7)
    values = np.full((3, 60), np.nan)
    for place, (better, worse) in enumerate([(0, 1), (1, 2), (2, 0)]):
        cells = slice(20 * place, 20 * place + 20)
        values[better, cells] = 1 + 0.1 * random.normal(size=20)
        values[worse, cells] = 0.1 * random.normal(size=20)
    _, held = judged(values)
    assert held.better.sum() == 3 and held.may_be_best.all()


def test_what_is_told_apart_and_nothing_else_has_an_interval_on_one_side():
    random = np.random.default_rng(4)
    for _ in range(30):
        values = random.normal(size=(5, 9)) + random.normal(size=(5, 1))
        paired, held = judged(values)
        told = held.p_values <= held.level
        assert ((held.limits.lower >= 0) | (held.limits.upper <= 0))[told].all()
        assert ((held.limits.lower <= 0) & (held.limits.upper >= 0))[~told].all()
        assert ((held.limits.lower <= paired.means) & (paired.means <= held.limits.upper)).all()


def test_normal_quantiles_and_students_turn_into_each_other():
    freedom = np.array([2.0, 5, 50])
    again = float(sign_flips.as_normal(sign_flips.as_student(2.5, 5.0), 5.0))
    as_student = sign_flips.as_student
    assert as_student(2.5, freedom) == pytest.approx(as_student(again, freedom))
    exact = stats.norm.isf(stats.t.sf(4.0, 20))
    assert float(sign_flips.as_normal(np.array(4.0), 20.0)) == pytest.approx(exact, abs=0.01)


SIMULATED = (
    Population(8, 3, truth="alike", tails="t2"),
    Population(4, 7, truth="alike", tails="lognormal"),
    Population(10, 15, truth="tied", splits=3, tails="one skewed"),
    Population(3, 60, truth="alike", holes="random", family=2),
    Population(4, 1, truth="alike", questions=100),
    Population(5, 30, truth="near", holes="half", tails="t3"),
    Population(12, 8, truth="near"),
    Population(2, 8, truth="far"),
)


@pytest.mark.thorough
def test_what_is_said_of_simulated_benchmarks_is_right():
    """All that is said at once, of each population; of new tasks, to 5 points in each tenth."""
    tallies = [Tally() for _ in SIMULATED]
    for population, tally in zip(SIMULATED, tallies, strict=True):
        random = np.random.default_rng(6)
        for _ in range(100):
            tally.add(population, random)
        assert not fails(tally.held["page"], tally.runs), population
    off, error, share = calibration(tallies)
    assert (np.abs(off) < 0.05 + 2 * error)[share > 0.02].all()
    came, number = np.sum([tally.capped for tally in tallies], axis=0)
    assert came / number >= new_tasks.MOST_OF_FEW - 0.05


def on_new_task(values, unit=None, *, epsilon=0.1, seed=0):
    unit = np.arange(values.shape[1]) if unit is None else unit
    generator = np.random.default_rng(seed)
    return new_tasks.on_new_task(values, unit, epsilon=epsilon, generator=generator)


def test_probabilities_are_those_counted_where_tasks_are_many():
    values = np.random.default_rng(0).normal(size=(3, 4000)) + [[0.5], [0], [0]]
    new, largest = on_new_task(values, epsilon=0.3), values.max(axis=0)
    assert new.near == pytest.approx((values >= largest - 0.3).mean(axis=1), abs=0.003)
    assert new.best == pytest.approx((values == largest).mean(axis=1), abs=0.003)
    assert new.best.sum() == pytest.approx(1)


def test_few_tasks_carry_no_large_probability():
    new = on_new_task(np.zeros((2, 8)) + [[1], [0.0]])
    assert new.few and new.near[0] == new_tasks.MOST_OF_FEW and new.near[1] < 0.3


def test_a_large_family_of_tasks_counts_once():
    values = np.zeros((2, 12))
    values[0, :10], values[1, 10:] = 1, 1
    new = on_new_task(values, np.array([0] * 10 + [1, 2]))
    assert new.best[1] > new.best[0]


def test_units_needed_are_the_fewest_with_which_the_interval_is_short_enough():
    spread = np.array([0.02, 0.2, 0.0001])
    needed = new_tasks.units_needed(spread, 0.01, 3.0)
    assert (new_tasks.reach(needed, 3.0) * spread <= 0.01).all()
    assert (new_tasks.reach(needed[:2] - 1, 3.0) * spread[:2] > 0.01).all()
    assert needed[2] == 3 and new_tasks.units_needed(np.array([1e9]), 0.01, 3.0)[0] == np.inf


def test_the_noise_of_splits_is_told_from_what_tasks_differ_by():
    random = np.random.default_rng(3)
    group = np.repeat(np.arange(400), 5)
    difference = random.normal(0, 0.03, 400)[group] + random.normal(0, 0.05, 2000)
    parts = new_tasks.variance_parts(difference, group, np.arange(400))
    variance, noise = parts
    assert noise == pytest.approx(0.05**2 / 5, rel=0.1)
    assert variance - noise == pytest.approx(0.03**2, rel=0.2)
    assert new_tasks.times_as_many(parts, 0.001, 400, 3.0) == np.inf
    assert new_tasks.times_as_many(parts, 1.0, 400, 3.0) < 1
    assert new_tasks.variance_parts(difference[:3], np.arange(3), np.arange(3)) is None


def test_halves_of_noise_name_another_winner_and_halves_of_a_difference_do_not():
    random = np.random.default_rng(4)
    group = np.repeat(np.arange(10), 4)
    noise = random.normal(size=(5, 40))
    clear = noise + 10 * np.arange(5)[:, None]
    winner = partial(new_tasks.fresh_winner, generator=random)
    one, other = (winner(values, group, np.arange(10)) for values in (noise, clear))
    assert one["halved"] == new_tasks.SPLITS and one["overall"] > 0.4 and one["within_task"] > 0.4
    assert other["overall"] == other["within_task"] == 0
    by_unit = winner(noise, np.arange(40), np.arange(40))
    assert by_unit["halved"] == new_tasks.UNITS and np.isnan(by_unit["within_task"])


def test_few_tasks_of_a_rival_leave_a_probability_as_open_as_these_few():
    """Drawn rivals add no successes: 10 of 10 shared tasks are 10, whatever else was run."""
    values = np.tile([[0.8], [0.7]], 40) + 0.001 * np.random.default_rng(1).random((2, 40))
    few, many = (on_new_task(values[:, :tasks], epsilon=0.01) for tasks in (10, 40))
    assert few.near[0] < many.near[0]
    values[1, 10:] = np.nan
    np.testing.assert_allclose(on_new_task(values, epsilon=0.01).near, few.near, atol=0.02)


def test_plans_have_the_power_of_the_noncentral_t():
    for units in (10, 40, 200):
        quantile = float(sign_flips.as_student(3.0, units - 1))
        distance = float(new_tasks.reach(units, 3.0)) * units**0.5
        assert stats.nct.sf(quantile, units - 1, distance) == pytest.approx(0.8, abs=0.04)
        # The sd of a unit whose sample's sd is as often too small as too large.
        sd = 0.1 * (units * (units - 1) / stats.chi2.median(units - 1)) ** 0.5
        assert new_tasks.usual_spread(0.1, units) == pytest.approx(sd, rel=0.01)
    variance, noise = parts = 0.0016, 0.0005
    times = new_tasks.times_as_many(parts, 0.008, 400, 3.0)
    left = (variance - noise + noise / times) ** 0.5
    assert left * new_tasks.reach(400, 3.0) == pytest.approx(0.008)
