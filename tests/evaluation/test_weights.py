"""Weighted and clustered rows in whole evaluations and in runs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics as sk

import fairbench
from fairbench import Evaluator
from fairbench.core.errors import IncompatibleError
from fairbench.evaluation.table import OUTSIDE_BAND, values_of
from fairbench.experiments import pipeline
from fairbench.experiments.execute import carry_out
from fairbench.metrics.probability import nll_of_sd
from fairbench.metrics.registry import BINARY, metrics_of
from tests.evaluation.labelled import by_place, evaluate
from tests.harness import configuration
from tests.studies import survey

KEYS = ["metric", "statistic", "attribute", "group", "setting"]
FAST = Evaluator(draws=100)
KINDS = ("rate", "difference", "ratio", "widest")
COUNTED = [name for kind in KINDS for name in metrics_of(BINARY, kind)]
LOSSES, FORMS = ("log_loss", "brier_score", "roc_auc"), ("", "_difference", "_gap")
SCORES = [f"{name}{form}" for name in LOSSES for form in FORMS]


def sample(n=240, seed=0):
    draw = np.random.default_rng(seed)
    score = draw.random(n)
    target = (draw.random(n) < score).astype(int)
    groups = {"sex": draw.choice(["f", "m"], n), "race": draw.choice(["a", "b", "c"], n)}
    arrays = {"score": score, "uncertainty": score * (1 - score)}
    return (target, (score > 0.5).astype(int)), {"sensitive_features": groups, **arrays}


def chosen(options, rows):
    """Return options of some rows, which may be repeated."""
    return {
        name: chosen(value, rows) if isinstance(value, dict) else value[rows]
        for name, value in options.items()
    }


def places(table, metrics):
    return values_of(table[table["metric"].isin(metrics)]).set_index(KEYS)


def test_weights_and_clusters_that_say_nothing_change_nothing():
    arrays, options = sample()
    plain = evaluate(*arrays, **options, evaluator=FAST)
    for design in ({"sample_weight": np.full(240, 2.5)}, {"clusters": np.arange(240)}):
        pd.testing.assert_frame_equal(evaluate(*arrays, **options, evaluator=FAST, **design), plain)


def test_whole_weights_give_the_values_of_repeated_rows():
    arrays, options = sample()
    times = np.random.default_rng(1).integers(0, 4, 240)
    weighted = evaluate(*arrays, **options, sample_weight=times)
    rows = np.arange(240).repeat(times)
    other = evaluate(*(array[rows] for array in arrays), **chosen(options, rows))
    one, two = places(weighted, COUNTED), places(other, COUNTED)
    pd.testing.assert_series_equal(one["value"], two["value"][one.index], atol=1e-12)
    width = (one["upper"] - one["lower"]) - (two["upper"] - two["lower"])[one.index]
    assert (width[one["value"].notna() & np.isfinite(width)] > 0).mean() > 0.95
    assert (one["n"] < two["n"][one.index]).mean() > 0.95  # n counts rows, not people


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
def test_points_of_a_diagram_are_those_of_the_rows_in_each_bin(weighted):
    (target, hard), options = sample(1000)
    weight, score = np.random.default_rng(1).lognormal(0, 0.8 * weighted, 1000), options["score"]
    design = {"sample_weight": weight} if weighted else {}
    table = evaluate(target, hard, **options, **design, evaluator=Evaluator(bins=8))
    bins = [(score > i / 8) & (score <= (i + 1) / 8) for i in range(8)]
    for metric, column in (("reliability_base_rate", target), ("reliability_mean_score", score)):
        result = table[table["metric"] == metric].set_index("setting")
        assert list(result.index) == [f"bins=8 bin={i}" for i in range(8)]
        for rows, row in zip(bins, result.itertuples(), strict=True):
            assert row.value == pytest.approx(np.average(column[rows], weights=weight[rows]))
            assert row.lower <= row.value <= row.upper and row.n == rows.sum()


@pytest.mark.parametrize("group", ["", "a", "c"])
def test_scores_and_errors_of_weighted_rows_are_those_of_scikit_learn(group):
    (target, hard), options = sample()
    draw, race = np.random.default_rng(1), options["sensitive_features"]["race"]
    score, weight = options["score"], draw.lognormal(0, 1, 240)
    outcome, sd, design = score + draw.normal(size=240), score + 1, {"sample_weight": weight}
    table = evaluate(target, hard, **options, **design)
    about = {"sensitive_features": {"race": race}, "task": "regression", **design}
    regression = evaluate(outcome, score, sd=sd, **about)
    rows = (race == group) | (group == "")
    y, p, w, t = target[rows], score[rows], weight[rows], outcome[rows]
    of_labels = {
        "log_loss": sk.log_loss(y, p, sample_weight=w),
        "brier_score": sk.brier_score_loss(y, p, sample_weight=w),
        "roc_auc": sk.roc_auc_score(y, p, sample_weight=w),
        "nll": np.average(nll_of_sd(y, hard[rows], options["uncertainty"][rows]), weights=w),
    }
    of_numbers = {
        "mae": sk.mean_absolute_error(t, p, sample_weight=w),
        "rmse": sk.root_mean_squared_error(t, p, sample_weight=w),
        "r2": sk.r2_score(t, p, sample_weight=w),
        "mean_residual": np.average(t - p, weights=w),
        "mean_prediction": np.average(p, weights=w),
        "nll": np.average(-stats.norm.logpdf(t, p, sd[rows]), weights=w),
    }
    for result, expected in ((table, of_labels), (regression, of_numbers)):
        place = result["attribute"].isin(["race", ""]) & (result["group"] == group)
        found = by_place(result[place])
        for metric, value in expected.items():
            row = found[metric, group, ""]
            assert (row.value, row.n) == (pytest.approx(value, rel=1e-10), rows.sum()), metric
            assert np.isnan(row.lower) or row.lower <= value <= row.upper


def test_clusters_leave_every_value_and_widen_intervals_of_rows_that_repeat():
    arrays, options = sample(60)
    clusters = np.arange(60).repeat(4)
    rows, repeated = [array[clusters] for array in arrays], chosen(options, clusters)
    one = evaluate(*rows, **repeated, clusters=clusters)
    two, once = evaluate(*rows, **repeated), evaluate(*arrays, **options)
    scores = [places(table, SCORES)["value"] for table in (one, two)]
    pd.testing.assert_series_equal(*scores, atol=1e-12)
    one, two, once = (places(table, COUNTED) for table in (one, two, once))
    pd.testing.assert_series_equal(one["value"], two["value"], atol=1e-12)
    rates = once[once.index.get_level_values("metric").isin(metrics_of(BINARY, "rate"))].index
    wide, narrow, right = ((t["upper"] - t["lower"])[rates] for t in (one, two, once))
    assert (wide > 1.3 * narrow).mean() > 0.9
    assert (wide > 0.85 * right).all()


def test_of_clustered_rows_a_ratio_and_the_probability_about_it_have_one_status():
    arrays, options = sample()
    clusters = np.arange(240) // 2
    table = evaluate(*arrays, **options, clusters=clusters).query("value.notna()")
    ratios = table[table["metric"].str.endswith("uncertainty_ratio")]
    bands = ratios[ratios["statistic"] == OUTSIDE_BAND].set_index(["metric", "group"])
    values = values_of(ratios).set_index(["metric", "group"]).loc[bands.index]
    assert len(bands)
    assert values["lower"].isna().all()
    assert bands["status"].tolist() == values["status"].tolist()
    assert bands["reason"].tolist() == values["reason"].tolist()
    assert (values["reason"] == "its interval would take clustered rows for independent").any()
    weighted = evaluate(*arrays, **options, sample_weight=clusters + 1)
    spread = weighted[weighted["metric"] == "spread_error"]
    assert spread["value"].isna().all() and set(spread["reason"]) == {"it takes no weights"}


def test_nothing_unweighted_is_passed_off_as_weighted():
    arrays, options = sample()
    weight = np.random.default_rng(2).lognormal(0, 1, 240)
    table, plain = evaluate(*arrays, **options, sample_weight=weight), evaluate(*arrays, **options)
    one, two = (values_of(metrics).set_index(KEYS) for metrics in (table, plain))
    declared = {metric.name for metric in metrics_of(BINARY).values()}
    known = one[one["value"].notna() & one.index.get_level_values("metric").isin(declared)].index
    assert len(known) > 100
    same = known[one["value"][known] == two["value"][known]]
    assert one["value"][same].isin([0.0, 1.0]).all()


@pytest.mark.thorough
def test_a_run_is_weighted_without_fitting_again_and_keeps_homes_together(tmp_path):
    frame, words = survey(tmp_path)

    def asked(weights):
        own = "learner.rounds=2", f"evaluator.weights={weights}"
        return configuration(*words, *own, results=tmp_path / "results")

    rates = {}
    for weights in ("false", "true"):
        end = carry_out(asked(weights))
        run = end.prepared
        assert end.computed == (weights == "false")
        metrics = run.folder.all_metrics().query("metric == 'base_rate' and attribute == ''")
        rates[weights] = metrics["value"].iloc[0]
    (cell,) = run.cells
    test = frame.iloc[cell.fold.test]
    assert not set(test["home"]) & set(frame["home"].iloc[cell.fold.train])
    assert np.isclose(rates["false"], test["paid"].mean())
    assert np.isclose(rates["true"], np.average(test["paid"], weights=test["people"]))
    assert np.allclose(run.folder.people().weight, frame["people"])
    config = configuration("evaluator.weights=true", "dataset.n_samples=200", results=tmp_path)
    with pytest.raises(IncompatibleError, match="has no survey weights: leave it out"):
        pipeline.prepare(config)
    frame.assign(people=frame["people"] ** 2).to_csv(tmp_path / "mine.csv", index=False)
    changed = pipeline.prepare(asked("true"))
    assert changed.fingerprint != run.fingerprint
    assert all(changed.store.has(cell.id) for cell in changed.cells)


def test_a_group_whose_weights_are_all_0_has_no_values_and_says_why(tmp_path):
    rows = 120
    draw = np.random.default_rng(0)
    people = pd.DataFrame({
        "group": np.array(["a", "b", "c"])[np.arange(rows) % 3],
        "label": draw.integers(0, 2, rows), "score": draw.random(rows).round(3),
        "number": draw.normal(size=rows).round(3),
    }).assign(weight=lambda frame: (frame["group"] != "c") * 1.5)  # fmt: skip
    table = fairbench.evaluate(
        people.label, (people.score > 0.5).astype(int), score=people.score,
        sensitive_features=people.group, sample_weight=people.weight,
    )  # fmt: skip
    of_c = table[(table["group"] == "c") & (table["statistic"] == "value")]
    assert len(of_c) > 20 and of_c["value"].isna().all()
    assert (of_c["status"] == "undefined").all() and (of_c["reason"] != "").all()
    for columns in ({"target": "label", "score": "score"},
                    {"target": "number", "prediction": "score"}):  # fmt: skip
        report = fairbench.audit(people, groups="group", weight="weight", **columns)
        values = report.table.query("group == 'c' and statistic == 'value'")["value"]
        assert len(values) and values.isna().all()
        report.save(tmp_path / "page.html")
