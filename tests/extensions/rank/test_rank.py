"""Any table of scores is ranked: its shape, its holes, what is refused, and what is said."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench_rank import ranking
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
    assert len(report.findings) == 6
    for row in report.findings.itertuples():
        one = report.difference(row.first, row.second)
        assert (one.value, one.lower, one.upper) == (row.difference, row.lower, row.upper)
        assert one.verdict == row.verdict
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


def test_questions_of_these_tasks_are_not_claims_of_new_ones():
    frame = answers(3, 400).assign(task=lambda table: table["question"] % 4)
    new = fairbench.rank(frame, score="correct", item="question")
    these = fairbench.rank(frame, score="correct", item="question", about="these")
    assert new.answers[0].unit == "task" and these.answers[0].unit == "question"
    one, other = (ranking.difference("m2", "m0") for ranking in (new, these))
    assert other.upper - other.lower < one.upper - one.lower
    assert "about=these" in refusal(scores(), about="these")


def test_scores_share_one_error_rate():
    frame = scores(apart=0.004).assign(loss=lambda table: 1 - table["accuracy"])
    alone = fairbench.rank(frame, score="accuracy").difference("m3", "m2")
    both = fairbench.rank(frame, score=["accuracy", "loss"])
    shared = both.difference("m3", "m2", "accuracy")
    assert shared.upper - shared.lower > alone.upper - alone.lower
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
    worst, none = (
        fairbench.rank(frame, score="accuracy", crashed=way).table.set_index("method")["mean"]
        for way in ("worst", "0")
    )
    first = scores(3, 12).query("model == 'm1'")["accuracy"].to_numpy()[:3]
    rest = frame.query("model == 'm0'")["accuracy"].to_numpy()[3:]
    assert worst["m0"] == pytest.approx(np.concatenate([first, rest]).mean())
    assert none["m0"] == pytest.approx(rest.sum() / 12)
    left_out = fairbench.rank(frame, score="accuracy", crashed="left-out")
    assert left_out.document.data["warnings"]


def test_rows_that_come_twice():
    frame = scores()
    again = pd.concat([frame, frame.iloc[:2]])
    report = fairbench.rank(again, score="accuracy")
    assert any("counted once: 2" in note for note in report.document.data["notes"])
    other = pd.concat([frame, frame.iloc[:1].assign(accuracy=0.1)])
    assert "(rows 1 and 49): tell them apart with split=COLUMN" in refusal(other)


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
    "an unknown column": (lambda table: table, {"score": "acuracy"}, "did you mean 'accuracy'?"),
    "a blank name": (lambda table: table.replace("m0", " "), {}, "the cell is empty"),
    "no rows": (lambda table: table.iloc[:0], {}, "no rows below the header"),
    "a family of two": (lambda table: table.assign(family=table.index // 12), {}, "a task has one"),
    "one family": (lambda table: table.assign(family="a"), {}, "holds one family"),
    "a pair of one": (lambda table: table, {"pair": ["m0", "m0"]}, "two different methods"),
    "an unknown method": (lambda table: table, {"pair": ["m0", "m9"]}, "unknown method 'm9'"),
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
    assert report.table["last_rank"].tolist() == [3, 3, 3] and report.table["may_be_best"].all()
    assert "nothing can be told apart" in report.to_markdown()


def test_a_plan_names_units_and_prices_them():
    frame = scores(2, 30, 4, apart=0.002, seed=3).assign(seconds=2.0)
    plan = fairbench.rank(frame, score="accuracy", cost="seconds", epsilon=0.002).plans.iloc[0]
    assert plan["units_needed"] > plan["units"] == 30
    assert plan["cost"] == pytest.approx((plan["units_needed"] - 30) * 2 * 4 * 2.0)
    assert 0 < plan["noise"] <= 1


def test_what_is_surely_near_the_best_lies_within_every_interval():
    report = fairbench.rank(scores(3, 40, apart=0.0), score="accuracy", epsilon=0.02)
    assert report.answers[0].surely_near == report.table["method"].tolist()
    assert "Surely within 0.02 of the best on average" in report.to_markdown()
    nothing = fairbench.rank(scores(3, 40, apart=0.0), score="accuracy", epsilon=0)
    assert not nothing.answers[0].surely_near
    assert nothing.table["near_best_on_new"].sum() >= 1
    assert "within 0 of whichever" in nothing.to_markdown()


def test_a_command_prints_and_writes_what_python_returns(tmp_path, capsys):
    path = tmp_path / "scores.csv"
    frame = scores(3, 10)
    frame.to_csv(path, index=False)
    assert main(["rank", str(path), "score=accuracy", "pair=[m0,m1]"]) == 0
    folder = tmp_path / "scores-rank"
    assert "3 methods on 10 tasks" in capsys.readouterr().out
    assert "m0 and m1" in (folder / "rank.html").read_text()
    assert {path.name for path in folder.iterdir()} == {"rank.html", "rank.json", "pairs.csv"}
    kept = json.loads((folder / "rank.json").read_text())
    report = fairbench.rank(frame, score="accuracy")
    ranks = pd.DataFrame(kept["scores"][0]["ranks"])
    assert ranks["method"].tolist() == report.table["method"].tolist()
    assert ranks["upper"].to_numpy() == pytest.approx(report.table["upper"].to_numpy())


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
