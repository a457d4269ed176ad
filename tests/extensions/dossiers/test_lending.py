"""A lender's dossier: its figures, what it asks before it says which way is good, and bad input."""

import json

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import main
from fairbench_dossiers.lending import adjusted_mean_differences, mean_differences, odds_ratios

GROUPS = ("White", "Black", "Asian")


def loans(n=900):
    draw = np.random.default_rng(4)
    race = draw.choice(GROUPS, n, p=[0.6, 0.3, 0.1])
    income = draw.gamma(3, 1, n).round(2) + (race == "White")
    risk = 1 / (1 + np.exp(0.6 * income - 1 + draw.normal(0, 0.7, n))).round(4)
    approved = risk < 0.3
    apr = (4 + 10 * risk + 0.4 * (race == "Black")).round(3)
    return pd.DataFrame(
        {
            "race": race,
            "product": draw.choice(["auto", "card"], n),
            "income": income,
            "risk": risk.round(4),
            "approved": np.where(approved, "yes", "no"),
            "apr": [
                str(price) if granted else "" for price, granted in zip(apr, approved, strict=True)
            ],
        }
    )


@pytest.fixture
def file(tmp_path):
    loans().to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path / "loans.csv"


DECIDED = ["prediction=approved", "favourable=yes", "positive=yes", "group=[race]"]


def made(file, *words):
    assert main(["dossier", "lending", str(file), *words, "formats=[json,html]"]) == 0
    place = file.parent / "loans-lending"
    return json.loads((place / "lending.json").read_text()), (place / "lending.html").read_text()


def refused(file, capsys, *words):
    assert main(["dossier", "lending", str(file), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1, error
    return error


def by_group(rows, value):
    return {row["group"]: row[value] for row in rows}


def test_decisions_are_compared_with_the_largest_group_or_the_one_named(file):
    frame = loans()
    rates = (frame["approved"] == "yes").groupby(frame["race"]).mean()
    dossier, _ = made(file, *DECIDED)
    assert dossier["references"] == {"race": "White"}
    ratios = by_group(dossier["ratios"], "ratio")
    assert ratios == pytest.approx((rates / rates["White"]).to_dict())
    odds = rates / (1 - rates)
    assert by_group(dossier["odds_ratios"], "odds") == pytest.approx(
        (odds / odds["White"]).to_dict()
    )
    assert by_group(dossier["odds_ratios"], "refused") == pytest.approx((1 - rates).to_dict())
    other, _ = made(file, *DECIDED, "reference=[Asian]")
    assert by_group(other["ratios"], "ratio")["White"] == pytest.approx(
        rates["White"] / rates["Asian"]
    )


def test_intervals_are_those_of_the_constructions(file):
    frame = loans()
    codes = frame["race"].map(GROUPS.index).to_numpy()
    granted = (frame["approved"] == "yes").to_numpy()
    x, n = np.bincount(codes, granted), np.bincount(codes)
    dossier, _ = made(file, *DECIDED, "price=[apr]", "factors=[income,product]")
    expected = odds_ratios((x[1], x[0]), (n[1], n[0]))
    black = next(row for row in dossier["odds_ratios"] if row["group"] == "Black")
    assert [black[end] for end in ("odds", "lower", "upper")] == pytest.approx(
        [float(end) for end in expected]
    )
    priced = frame[granted]
    design = np.column_stack([priced["income"], priced["product"] == "card"]).astype(float)
    apr = priced["apr"].astype(float).to_numpy()
    of = {row["group"]: row for row in dossier["means"]}
    for name, limits in (
        ("smd", mean_differences(apr, codes[granted], 0)),
        ("adjusted", adjusted_mean_differences(apr, codes[granted], 0, design)),
    ):
        assert of["Black"][name] == pytest.approx([float(end[1]) for end in limits]), name
    assert of["White"]["smd"] == [None] * 3
    assert sum(row["rows"] for row in dossier["means"]) == granted.sum()


@pytest.mark.parametrize(("side", "sign"), [("low", -1), ("high", 1)])
def test_the_best_by_score_are_those_whose_scores_are_good(file, side, sign):
    frame = loans()
    words = ["score=risk", f"good_scores={side}", "quantiles=[0.2]"]
    dossier, _ = made(file, *DECIDED, *words)
    best = sign * frame["risk"] >= np.quantile(sign * frame["risk"], 0.8)
    rates = best.groupby(frame["race"]).mean()
    assert by_group(dossier["by_quantile"], "rate") == pytest.approx(rates.to_dict())
    assert by_group(dossier["by_quantile"], "ratio")["Black"] == pytest.approx(
        rates["Black"] / rates["White"]
    )


def test_without_decisions_the_threshold_and_the_good_label_say_who_is_granted(file):
    dossier, _ = made(file, "score=risk", "threshold=0.3", "favourable=0", "group=[race]")
    frame = loans()
    rates = (frame["risk"] <= 0.3).groupby(frame["race"]).mean()
    assert by_group(dossier["ratios"], "rate") == pytest.approx(rates.to_dict())
    best = [row for row in dossier["by_quantile"] if row["part"] == "best 10 %"]
    assert by_group(best, "ratio")["Black"] < 1


def test_segments_have_ratios_each_and_one_over_all(file):
    frame = loans()
    dossier, _ = made(file, *DECIDED, "within=[product]")
    granted = frame["approved"] == "yes"
    cells = granted.groupby([frame["race"], frame["product"]]).agg(["sum", "size"])
    own, reference = cells.loc["Black"], cells.loc["White"]
    expected = (own["size"] * reference["sum"] / reference["size"]).sum()
    rows = [row for row in dossier["by_segment"] if row["group"] == "Black"]
    assert [row["part"] for row in rows] == ["auto", "card", "all segments"]
    assert rows[-1]["ratio"] == pytest.approx(own["sum"].sum() / expected)
    auto = own.loc["auto", "sum"] / own.loc["auto", "size"]
    assert rows[0]["rate"] == pytest.approx(auto)


def test_the_first_page_says_what_changed_in_law_and_that_states_differ(file):
    dossier, page = made(file, *DECIDED)
    first = page.partition('id="asked"')[0]
    assert "21 July 2026" in first and "State law differs" in first
    rule = next(row for row in dossier["asked"] if row["key"] == "effects_test")
    assert rule["effective"] == "2026-07-21" and "effects test" in rule["quote"]
    before, _ = made(file, *DECIDED, "as_of=2026-07-20")
    rule = next(row for row in before["asked"] if row["key"] == "effects_test")
    assert rule["ends"] == "2026-07-21" and rule["quote"] == ""


def test_a_group_of_whom_nobody_is_granted_has_a_ratio_of_0(tmp_path):
    frame = pd.DataFrame({"g": ["a"] * 30 + ["b"] * 5, "ok": [1, 0, 1] * 10 + [0] * 5})
    frame.to_csv(tmp_path / "loans.csv", index=False)
    words = ["prediction=ok", "favourable=1", "group=[g]"]
    dossier, _ = made(tmp_path / "loans.csv", *words)
    few = next(row for row in dossier["odds_ratios"] if row["group"] == "b")
    assert few["odds"] == few["lower"] == 0 and few["upper"] > 0
    frame.assign(ok=[0] * 30 + [1] * 5).to_csv(tmp_path / "loans.csv", index=False)
    dossier, _ = made(tmp_path / "loans.csv", *words)
    assert "there is no ratio" in dossier["summary"]["found"][0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["prediction=approved", "group=[race]"], "which label is good is not said"),
        ([*DECIDED, "score=income"], "good_scores=high or good_scores=low"),
        ([*DECIDED, "good_scores=high"], "score= and prediction="),
        (["score=risk", "group=[race]"], "which label is good is not said"),
        ([*DECIDED, "price=[product]"], "is no price"),
        ([*DECIDED, "price=[race]"], "which group= names"),
        ([*DECIDED, "price=[apr,apr]"], "names a column twice"),
        ([*DECIDED, "price=[cost]"], "has no column 'cost'"),
        ([*DECIDED, "price=[apr]", "factors=[apr]"], "leave one out"),
        ([*DECIDED, "factors=[income]"], "name score= or price="),
        ([*DECIDED, "score=risk", "good_scores=low", "factors=[apr]"], "every row needs one"),
        ([*DECIDED, "quantiles=[0]"], "above 0 and under 1"),
        ([*DECIDED, "quantiles=[0.5,0.5]"], "different shares"),
        ([*DECIDED, "within=[race]"], "within= names 'race'"),
        ([*DECIDED, "weight=income"], "counts people"),
        ([*DECIDED, "reference=[Nobody]"], "reference group"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(file, capsys, words, said):
    assert said in refused(file, capsys, *words)


@pytest.mark.parametrize("price", [["x"], [""], ["4.1.2"]])
def test_prices_that_are_none_are_refused(file, capsys, price):
    frame = loans().assign(apr=price[0])
    frame.to_csv(file, index=False)
    assert "apr" in refused(file, capsys, *DECIDED, "price=[apr]")


def test_people_of_unknown_groups_are_counted_and_compared_with_nobody(file):
    frame = loans()
    silent = np.arange(len(frame)) % 3 == 0
    answers = np.where(np.arange(len(frame)) % 2, "Decline To Self Identify", "no form")
    frame["race"] = np.where(silent, answers, frame["race"])
    frame.to_csv(file, index=False)
    words = [*DECIDED, "unknown=[no form]", "score=risk", "good_scores=low", "price=[apr]",
             "within=[product]", "factors=[income]"]  # fmt: skip
    dossier, _ = made(file, *words)
    assert dossier["unknown"] == {"race": int(silent.sum())}
    assert dossier["references"] == {"race": "White"}  # the largest of the known
    for table in ("ratios", "odds_ratios", "by_quantile", "by_segment", "means"):
        assert {row["group"] for row in dossier[table]} == set(GROUPS), table
    granted = (frame["approved"] == "yes").groupby(frame["race"]).mean()
    assert by_group(dossier["ratios"], "rate") == pytest.approx(granted[list(GROUPS)].to_dict())
    best = frame["risk"] <= np.quantile(frame["risk"], 0.1)  # of everyone
    rows = [row for row in dossier["by_quantile"] if row["part"] == "best 10 %"]
    rates = best.groupby(frame["race"]).mean()
    assert by_group(rows, "rate") == pytest.approx(rates[list(GROUPS)].to_dict())
    assert any("counted as unknown" in line for line in dossier["summary"]["sure"])
