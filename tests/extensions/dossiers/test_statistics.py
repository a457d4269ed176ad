"""What lenders are asked for equals what solas-ai says, and closed forms and regressions."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench.inference.gaps import StandardisedRates, ratios_to_group
from fairbench.inference.rates import rate_limits
from fairbench_dossiers import lending

SOLAS = json.loads((Path(__file__).parent / "solas" / "answers.json").read_text())
GROUPS = ("White", "Black", "Asian")


@pytest.fixture(params=SOLAS["tables"], ids=range(len(SOLAS["tables"])))
def case(request):
    frame = pd.DataFrame(request.param["rows"])
    return frame, frame["race"].map(GROUPS.index).to_numpy(), request.param["answers"]


def factors(frame):
    product = pd.get_dummies(frame["product"], drop_first=True, dtype=float)
    return np.column_stack([frame["income"], product])


def by_group(values):
    return pytest.approx(dict(zip(GROUPS[1:], values[1:], strict=True)), rel=1e-6, abs=1e-6)


def counts(codes, chosen):
    return np.bincount(codes, chosen, minlength=3), np.bincount(codes, minlength=3)


def test_ratios_of_rates_and_of_odds_equal_solas(case):
    frame, codes, answers = case
    granted, people = counts(codes, frame["granted"])
    ratios = ratios_to_group(rate_limits(granted, people), 0)[0]
    assert answers["air"] == by_group(ratios.value)
    odds = lending.odds_ratios((granted, granted[0]), (people, people[0]))
    assert answers["odds_ratio"] == by_group(odds.value)


@pytest.mark.parametrize("side", ["high", "low"])
def test_ratios_among_the_best_equal_solas(case, side):
    frame, codes, answers = case
    expected = answers[f"air_of_best_{side}"]
    for share in {float(key.partition("|")[2]) for key in expected}:
        best, _ = lending.among_best(frame["score"].to_numpy(), share, high=side == "high")
        chosen, people = counts(codes, best)
        rates = chosen / people
        of_share = {name: expected[f"{name}|{share}"] for name in GROUPS[1:]}
        assert of_share == by_group(rates / rates[0])


def test_ratios_in_and_over_segments_equal_solas(case):
    frame, codes, answers = case
    segment = pd.Categorical(frame["product"])
    granted, people = (
        np.stack([counts(codes[segment.codes == k], w[segment.codes == k])[i] for k in range(3)], 1)
        for i, w in ((0, frame["granted"].to_numpy()), (1, np.ones(len(frame))))
    )
    for key, value in answers["air_by_segment"].items():
        name, _, part = key.partition("|")
        g = GROUPS.index(name)
        if part == "CMH Test":
            pair = StandardisedRates.of(granted[[g, 0]], people[[g, 0]], mix=people[g])
            ours = pair.ratios().value[0, 1]
        else:
            k = list(segment.categories).index(part)
            ours = granted[g, k] / people[g, k] / (granted[0, k] / people[0, k])
        assert ours == pytest.approx(value, rel=1e-6, abs=1e-6), key


def test_mean_differences_equal_solas(case):
    frame, codes, answers = case
    for name in ("score", "apr"):
        ours = lending.mean_differences(frame[name].to_numpy(), codes, 0)
        assert answers[f"smd_{name}"] == by_group(100 * ours.value)
    left = lending.mean_differences(frame["apr"].to_numpy(), codes, 0, factors(frame))
    assert answers["residual_smd_apr"] == by_group(100 * left.value)


def test_the_answers_of_solas_have_counts_of_zero():
    odds = [value for t in SOLAS["tables"] for value in t["answers"]["odds_ratio"].values()]
    assert 0.0 in odds and SOLAS["version"] == "0.6.0"


def test_adjusted_differences_are_the_coefficients_of_a_regression(case):
    frame, codes, _ = case
    y = frame["apr"].to_numpy()
    design = np.column_stack([codes == 1, codes == 2, np.ones(len(y)), factors(frame)]).astype(
        float
    )
    coefficients = np.linalg.solve(design.T @ design, design.T @ y)
    ours = lending.adjusted_mean_differences(y, codes, 0, factors(frame))
    np.testing.assert_allclose(ours.value[1:], coefficients[:2] / y.std(ddof=1), rtol=1e-8)


def test_a_factor_that_tells_the_group_leaves_nothing_to_compare():
    draw = np.random.default_rng(0)
    codes, y = np.repeat([0, 1, 2], 40), draw.normal(size=120)
    ours = lending.adjusted_mean_differences(y, codes, 0, (codes == 1).astype(float)[:, None])
    assert np.isnan([ours.value[1], ours.lower[1]]).all()
    assert np.isfinite([ours.value[2], ours.lower[2]]).all()


def test_units_of_prices_and_factors_do_not_matter():
    draw = np.random.default_rng(1)
    codes = draw.integers(0, 3, 300)
    x = draw.normal(size=(300, 2))
    y = x @ [1, 2] + 0.3 * codes + draw.normal(size=300)
    for function in (lending.adjusted_mean_differences, lending.mean_differences):
        plain, other = function(y, codes, 0, x), function(1e4 * y - 7, codes, 0, 1e3 * x + 5)
        for one, two in zip(plain, other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-6)


def test_intervals_of_means_need_20_rows_of_both_groups_and_hold_their_values():
    draw = np.random.default_rng(2)
    codes = np.repeat([0, 1, 2], [60, 19, 20])
    y = draw.exponential(size=99)
    ours = lending.mean_differences(y, codes, 0)
    assert np.isnan(ours.lower[1]) and np.isfinite(ours.value[1])
    assert ours.lower[2] < ours.value[2] < ours.upper[2]
    nothing = lending.mean_differences(np.ones(99), codes, 0)
    assert np.isnan(nothing.value[1:]).all()


def test_an_interval_of_plain_means_is_nearly_that_of_students_test():
    """Without skewness, of groups of one size and at a difference of 0."""
    draw = np.random.default_rng(3)
    codes, y = np.repeat([0, 1], 4000), draw.normal(size=8000)
    ours = lending.mean_differences(y, codes, 0)
    student = stats.ttest_ind(y[codes == 1], y[codes == 0]).confidence_interval()
    width = (student.high - student.low) / y.std(ddof=1)
    assert ours.upper[1] - ours.lower[1] == pytest.approx(width, rel=0.02)


@pytest.mark.parametrize(
    ("granted", "people", "value", "lower", "upper"),
    [
        ((0, 5), (20, 20), 0.0, 0.0, None),
        ((5, 0), (20, 20), np.inf, None, np.inf),
        ((0, 0), (20, 20), np.nan, 0.0, np.inf),
        ((20, 20), (20, 20), np.nan, 0.0, np.inf),
        ((0, 5), (0, 20), np.nan, 0.0, np.inf),
    ],
)
def test_odds_of_counts_of_zero_have_intervals(granted, people, value, lower, upper):
    ours = [float(end) for end in lending.odds_ratios(granted, people)]
    assert ours[0] == pytest.approx(value, nan_ok=True)
    assert not np.isnan(ours[1:]).any()
    assert lower is None or ours[1] == lower
    assert upper is None or ours[2] == upper


def test_odds_turn_round_with_the_groups_and_with_the_outcome():
    one = lending.odds_ratios((12, 30), (40, 50))
    for other in (lending.odds_ratios((30, 12), (50, 40)), lending.odds_ratios((28, 20), (40, 50))):
        np.testing.assert_allclose(1 / np.array(one), np.array(other)[[0, 2, 1]], rtol=1e-9)


def test_the_interval_of_odds_holds_by_enumeration():
    for (n, m), (p, q) in [((5, 50), (0.5, 0.03)), ((20, 20), (0.9, 0.3)), ((50, 5), (0.02, 0.4))]:
        x, y = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
        share = np.outer(
            stats.binom.pmf(np.arange(n + 1), n, p), stats.binom.pmf(range(m + 1), m, q)
        )
        ours, truth = lending.odds_ratios((x, y), (n, m)), p * (1 - q) / (q * (1 - p))
        assert share[(ours.lower <= truth) & (truth <= ours.upper)].sum() > 0.93


def test_the_best_have_the_cut_and_ties_are_all_in():
    score = np.array([1.0, 2.0, 2.0, 3.0])
    assert lending.among_best(score, 0.25, high=False)[0].tolist() == [True, False, False, False]
    best, cut = lending.among_best(score, 0.5, high=True)
    assert cut == 2 and best.tolist() == [False, True, True, True]


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
