"""A lender's dossier: its figures, what it asks before it says which way is good, and bad input."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from fairbench.cli.main import main
from fairbench.inference.gaps import StandardisedRates, ratios_to_group
from fairbench.inference.rates import rate_limits
from fairbench_dossiers import lending
from fairbench_dossiers.lending import adjusted_mean_differences, mean_differences, odds_ratios

GROUPS = ("White", "Black", "Asian")


def loans(n=900):
    draw = np.random.default_rng(4)
    race = draw.choice(GROUPS, n, p=[0.6, 0.3, 0.1])
    income = draw.gamma(3, 1, n).round(2) + (race == "White")
    risk = 1 / (1 + np.exp(0.6 * income - 1 + draw.normal(0, 0.7, n))).round(4)
    product, granted = draw.choice(["auto", "card"], n), risk < 0.3
    apr = pd.Series((4 + 10 * risk + 0.4 * (race == "Black")).round(3).astype(str))
    columns = {"race": race, "product": product, "income": income, "risk": risk.round(4)}
    said = {"approved": np.where(granted, "yes", "no"), "apr": apr.where(granted, "")}
    return pd.DataFrame(columns | said)


@pytest.fixture
def file(tmp_path):
    loans().to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path / "loans.csv"


DECIDED = ["prediction=approved", "favourable=yes", "positive=yes", "group=[race]"]


def made(file, *words):
    assert main(["dossier", "lending", str(file), *words, "formats=[json,html]"]) == 0
    return json.loads((file.parent / "loans-lending" / "lending.json").read_text())


def by_group(rows, value):
    return {row["group"]: row[value] for row in rows}


def test_decisions_are_compared_with_the_largest_group_or_the_one_named(file):
    frame = loans()
    rates = (frame["approved"] == "yes").groupby(frame["race"]).mean()
    dossier = made(file, *DECIDED)
    assert dossier["references"] == {"race": "White"}
    ratios = by_group(dossier["ratios"], "ratio")
    assert ratios == pytest.approx((rates / rates["White"]).to_dict())
    odds = rates / (1 - rates)
    for name, values in {"odds": odds / odds["White"], "refused": 1 - rates}.items():
        assert by_group(dossier["odds_ratios"], name) == pytest.approx(values.to_dict())
    of_white = by_group(made(file, *DECIDED, "reference=[Asian]")["ratios"], "ratio")["White"]
    assert of_white == pytest.approx(rates["White"] / rates["Asian"])


def test_intervals_and_segments_are_those_of_the_constructions(file):
    frame = loans()
    codes = frame["race"].map(GROUPS.index).to_numpy()
    granted = (frame["approved"] == "yes").to_numpy()
    x, n = np.bincount(codes, granted), np.bincount(codes)
    dossier = made(file, *DECIDED, "price=[apr]", "factors=[income,product]", "within=[product]")
    (odds,), (means,), cells = (
        [row for row in dossier[table] if row["group"] == "Black"]
        for table in ("odds_ratios", "means", "by_segment")
    )
    expected = odds_ratios((x[1], x[0]), (n[1], n[0]))
    assert (odds["odds"], odds["lower"], odds["upper"]) == pytest.approx(
        tuple(map(float, expected))
    )
    priced = frame[granted]
    design = np.column_stack([priced["income"], priced["product"] == "card"]).astype(float)
    prices = priced["apr"].astype(float).to_numpy(), codes[granted], 0
    for name, limits in (
        ("smd", mean_differences(*prices)),
        ("adjusted", adjusted_mean_differences(*prices, design)),
    ):
        assert means[name] == pytest.approx([end[1] for end in limits]), name
    assert by_group(dossier["means"], "smd")["White"] == [None] * 3
    assert sum(row["rows"] for row in dossier["means"]) == granted.sum()
    counts = pd.Series(granted).groupby([frame["race"], frame["product"]]).agg(["sum", "size"])
    own, reference = counts.loc["Black"], counts.loc["White"]
    expected = (own["size"] * reference["sum"] / reference["size"]).sum()
    assert [row["part"] for row in cells] == ["auto", "card", "all segments"]
    assert cells[-1]["ratio"] == pytest.approx(own["sum"].sum() / expected)
    assert cells[0]["rate"] == pytest.approx(own.loc["auto", "sum"] / own.loc["auto", "size"])


def test_the_best_by_score_are_those_whose_scores_are_good(file):
    risk, race = loans()["risk"], loans()["race"]
    words = ["score=risk", "good_scores=high", "quantiles=[0.2]"]
    rows = made(file, *DECIDED, *words)["by_quantile"]
    rates = (risk >= np.quantile(risk, 0.8)).groupby(race).mean()
    assert by_group(rows, "rate") == pytest.approx(rates.to_dict())
    assert by_group(rows, "ratio")["Black"] == pytest.approx(rates["Black"] / rates["White"])


def test_without_decisions_the_threshold_and_the_good_label_say_who_is_granted(file):
    dossier = made(file, "score=risk", "threshold=0.3", "favourable=0", "group=[race]")
    frame = loans()
    rates = (frame["risk"] <= 0.3).groupby(frame["race"]).mean()
    assert by_group(dossier["ratios"], "rate") == pytest.approx(rates.to_dict())
    best = [row for row in dossier["by_quantile"] if row["part"] == "best 10 %"]
    assert by_group(best, "ratio")["Black"] < 1


def test_the_first_page_says_what_changed_in_law_and_that_states_differ(file):
    dossier = made(file, *DECIDED)
    page = (file.parent / "loans-lending" / "lending.html").read_text()
    first = page.partition('id="asked"')[0]
    assert "21 July 2026" in first and "State law differs" in first
    (rule,) = (row for row in dossier["asked"] if row["key"] == "effects_test")
    assert rule["effective"] == "2026-07-21" and "effects test" in rule["quote"]


def test_a_group_of_whom_nobody_is_granted_has_a_ratio_of_0(tmp_path):
    frame = pd.DataFrame({"g": ["a"] * 30 + ["b"] * 5, "ok": [1, 0, 1] * 10 + [0] * 5})
    frame.to_csv(tmp_path / "loans.csv", index=False)
    words = ["prediction=ok", "favourable=1", "group=[g]"]
    dossier = made(tmp_path / "loans.csv", *words)
    few = next(row for row in dossier["odds_ratios"] if row["group"] == "b")
    assert few["odds"] == few["lower"] == 0 and few["upper"] > 0
    frame.assign(ok=[0] * 30 + [1] * 5).to_csv(tmp_path / "loans.csv", index=False)
    dossier = made(tmp_path / "loans.csv", *words)
    assert "there is no ratio" in dossier["summary"]["found"][0]


REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "said"), REFUSED["lending"].items())
def test_what_cannot_be_is_refused_in_a_line(file, refused, words, said):
    loans().assign(words="x", blanks="", dots="4.1.2").to_csv(file, index=False)
    refused("dossier", "lending", file, *words.split(), message=said)


def test_people_of_unknown_groups_are_counted_and_compared_with_nobody(file):
    frame = loans()
    silent = frame.index % 3 == 0
    answers = np.where(frame.index % 2, "Decline To Self Identify", "no form")
    frame["race"] = np.where(silent, answers, frame["race"])
    frame.to_csv(file, index=False)
    words = [*DECIDED, "unknown=[no form]", "score=risk", "good_scores=low", "price=[apr]",
             "within=[product]", "factors=[income]"]  # fmt: skip
    dossier = made(file, *words)
    assert dossier["unknown"] == {"race": int(silent.sum())}
    assert dossier["references"] == {"race": "White"}  # the largest of the known
    for table in ("ratios", "odds_ratios", "by_quantile", "by_segment", "means"):
        assert {row["group"] for row in dossier[table]} == set(GROUPS), table
    best = [row for row in dossier["by_quantile"] if row["part"] == "best 10 %"]
    for rows, chosen in (
        (dossier["ratios"], frame["approved"] == "yes"),
        (best, frame["risk"] <= np.quantile(frame["risk"], 0.1)),  # of everyone
    ):
        rates = chosen.groupby(frame["race"]).mean()[list(GROUPS)]
        assert by_group(rows, "rate") == pytest.approx(rates.to_dict())
    assert any("counted as unknown" in line for line in dossier["summary"]["sure"])


# Tables of loans and what solas-ai 0.6.0 says of them: ratios of rates, of odds, by quantile and
# by segment, mean differences, and those of residuals of least squares on income and product.
SOLAS = json.loads(Path(__file__).with_name("solas.json").read_text())


@pytest.fixture(params=SOLAS["tables"], ids=range(len(SOLAS["tables"])))
def case(request):
    frame = pd.DataFrame(request.param["rows"])
    return frame, frame["race"].map(GROUPS.index).to_numpy(), request.param["answers"]


def factors(frame):
    product = pd.get_dummies(frame["product"], drop_first=True, dtype=float)
    return np.column_stack([frame["income"], product])


def of_groups(values):
    return pytest.approx(dict(zip(GROUPS[1:], values[1:], strict=True)), rel=1e-6, abs=1e-6)


def counts(codes, chosen):
    return np.bincount(codes, chosen, minlength=3), np.bincount(codes, minlength=3)


def test_ratios_of_rates_and_of_odds_equal_solas(case):
    frame, codes, answers = case
    granted, people = counts(codes, frame["granted"])
    assert answers["air"] == of_groups(ratios_to_group(rate_limits(granted, people), 0)[0].value)
    odds = lending.odds_ratios((granted, granted[0]), (people, people[0]))
    assert answers["odds_ratio"] == of_groups(odds.value)
    for side in ("high", "low"):
        expected = answers[f"air_of_best_{side}"]
        for share in {float(key.partition("|")[2]) for key in expected}:
            best, _ = lending.among_best(frame["score"].to_numpy(), share, high=side == "high")
            chosen, people = counts(codes, best)
            rates = chosen / people
            of_share = {name: expected[f"{name}|{share}"] for name in GROUPS[1:]}
            assert of_share == of_groups(rates / rates[0])


def test_ratios_in_and_over_segments_equal_solas(case):
    frame, _, answers = case
    cells = frame.groupby(["race", "product"])["granted"].agg(["sum", "size"])
    granted, people = (cells[name].unstack().loc[[*GROUPS]] for name in ("sum", "size"))
    rates = granted / people
    for key, value in answers["air_by_segment"].items():
        name, _, part = key.partition("|")
        if part == "CMH Test":
            both = [name, "White"]
            pair = StandardisedRates.of(
                granted.loc[both].to_numpy(), people.loc[both].to_numpy(), mix=people.loc[name]
            )
            ours = pair.ratios().value[0, 1]
        else:
            ours = rates.loc[name, part] / rates.loc["White", part]
        assert ours == pytest.approx(value, rel=1e-6, abs=1e-6), key


def test_mean_differences_equal_solas_and_adjusted_ones_the_coefficients_of_a_regression(case):
    frame, codes, answers = case
    apr, legitimate = frame["apr"].to_numpy(), factors(frame)
    for name in ("score", "apr"):
        ours = lending.mean_differences(frame[name].to_numpy(), codes, 0)
        assert answers[f"smd_{name}"] == of_groups(100 * ours.value)
    left = lending.mean_differences(apr, codes, 0, legitimate)
    assert answers["residual_smd_apr"] == of_groups(100 * left.value)
    members = [(codes == 1).astype(float), codes == 2, np.ones(len(apr))]
    coefficients = np.linalg.lstsq(np.column_stack([*members, legitimate]), apr, rcond=None)[0]
    ours = lending.adjusted_mean_differences(apr, codes, 0, legitimate)
    np.testing.assert_allclose(ours.value[1:], coefficients[:2] / apr.std(ddof=1), rtol=1e-8)


def test_units_of_prices_and_factors_do_not_matter():
    draw = np.random.default_rng(1)
    codes, x = draw.integers(0, 3, 300), draw.normal(size=(300, 2))
    y = x @ [1, 2] + 0.3 * codes + draw.normal(size=300)
    for function in (lending.adjusted_mean_differences, lending.mean_differences):
        plain, other = function(y, codes, 0, x), function(1e4 * y - 7, codes, 0, 1e3 * x + 5)
        for one, two in zip(plain, other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-6)


def test_intervals_of_means_need_20_rows_of_both_groups_and_a_group_that_no_factor_tells():
    draw = np.random.default_rng(2)
    codes = np.repeat([0, 1, 2], [60, 19, 20])
    y = draw.exponential(size=99)
    ours = lending.mean_differences(y, codes, 0)
    assert np.isnan(ours.lower[1]) and np.isfinite(ours.value[1])
    assert ours.lower[2] < ours.value[2] < ours.upper[2]
    assert np.isnan(lending.mean_differences(np.ones(99), codes, 0).value[1:]).all()
    codes = np.repeat([0, 1, 2], 33)
    ours = lending.adjusted_mean_differences(y, codes, 0, (codes == 1).astype(float)[:, None])
    assert np.isnan([ours.value[1], ours.lower[1]]).all()
    assert np.isfinite([ours.value[2], ours.lower[2]]).all()


def test_an_interval_of_plain_means_is_nearly_that_of_students_test():
    """Without skewness, of groups of one size and at a difference of 0."""
    codes, y = np.repeat([0, 1], 4000), np.random.default_rng(3).normal(size=8000)
    ours = lending.mean_differences(y, codes, 0)
    student = stats.ttest_ind(y[codes == 1], y[codes == 0]).confidence_interval()
    width = (student.high - student.low) / y.std(ddof=1)
    assert ours.upper[1] - ours.lower[1] == pytest.approx(width, rel=0.02)


def test_odds_of_counts_of_zero_have_intervals():
    for granted, people, value in (
        ((0, 5), (20, 20), 0.0),
        ((5, 0), (20, 20), np.inf),
        ((0, 0), (20, 20), np.nan),
        ((20, 20), (20, 20), np.nan),
        ((0, 5), (0, 20), np.nan),
    ):
        ours = lending.odds_ratios(granted, people)
        assert ours.value == pytest.approx(value, nan_ok=True)
        assert ours.lower == 0 or (value == np.inf and ours.lower > 0)
        assert ours.upper == np.inf or (value == 0 and ours.upper > 0)


def test_odds_turn_round_with_the_groups_and_with_the_outcome():
    one = lending.odds_ratios((12, 30), (40, 50))
    for other in (lending.odds_ratios((30, 12), (50, 40)), lending.odds_ratios((28, 20), (40, 50))):
        np.testing.assert_allclose(1 / np.array(one), np.array(other)[[0, 2, 1]], rtol=1e-9)


def test_the_interval_of_odds_holds_by_enumeration():
    for (n, m), (p, q) in [((5, 50), (0.5, 0.03)), ((20, 20), (0.9, 0.3)), ((50, 5), (0.02, 0.4))]:
        x, y = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
        share = stats.binom.pmf(x, n, p) * stats.binom.pmf(y, m, q)
        ours, truth = lending.odds_ratios((x, y), (n, m)), p * (1 - q) / (q * (1 - p))
        assert share[(ours.lower <= truth) & (truth <= ours.upper)].sum() > 0.93


@pytest.mark.parametrize("function", [lending.mean_differences, lending.adjusted_mean_differences])
def test_a_group_of_few_rows_may_have_the_rare_values_that_others_have(function):
    """Of 30 rows none is 1 in a fifth of samples, of a share of 5 %; the interval knows of them."""
    draw, held = np.random.default_rng(5), 0
    codes, truth = np.repeat([0, 1], [300, 30]), 0.0
    for _ in range(200):
        y = (draw.random(330) < 0.05).astype(float)
        x = [draw.normal(size=(330, 1))] * (function is lending.adjusted_mean_differences)
        ours = function(y, codes, 0, *x)
        held += ours.lower[1] <= truth <= ours.upper[1]
    assert held >= 0.93 * 200
