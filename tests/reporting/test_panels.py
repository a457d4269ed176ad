"""What figures show: labelled axes, and points that are the metrics', of one run and of methods.

Every series, label and title is drawn, once for all data sets.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator, evaluate
from fairbench.core.arrays import rng
from fairbench.core.errors import UserError
from fairbench.evaluation.table import MetricTable
from fairbench.evaluation.uncertainties import evaluate_consistency
from fairbench.reporting.charts import Panel, Series, chart, drawn, key_of
from fairbench.reporting.panels import (
    FEWEST,
    OF_A_RUN,
    OF_METHODS,
    OUTCOMES,
    UA_SP,
    _figures,
    figures_of_methods,
    method_styles,
)
from tests.evaluation.labelled import labelled

OPTIONS = {"draws": 100, "bins": 4, "spread_groups": (3, 40), "neighbours": 4}
EVALUATOR = Evaluator(**OPTIONS, abstention_rates=(0.0, 0.5), feature_shift_rates=(0.2, 0.5))
METHODS = ("one_method", "another", "third")


def evaluated(method, repeat, members=True):
    draw, n = np.random.default_rng([len(method), repeat]), 120
    score = draw.random(n)
    parts = {"aleatoric": score / 4, "epistemic": score**2 / 9} if members else {}
    rows = labelled(
        draw.random(n) < score, draw.choice(["a", "b"], n),
        prediction=score > 0.5, score=score, uncertainty=draw.random(n), **parts,
    )  # fmt: skip
    features = pd.DataFrame(draw.normal(size=(n, 12)))
    features = features.rename(columns="a feature with the rather long name {}".format)
    rows = replace(rows, features=features, encoded=draw.random((n, 2)))
    table = EVALUATOR.table(rows, [rng(repeat, "posterior")]).frame()
    spread = MetricTable()
    variants = {f"max_depth={i}": draw.random(50) for i in range(3)}
    if method != "another":
        variants |= {f"replicate={i}": draw.random(50) / 4 for i in (1, 2)}
    evaluate_consistency(spread, variants)
    keys = {"repeat": repeat, "fold": 0, "variant": "", "method": method}
    return pd.concat([table, spread.frame()]).assign(**keys)


@pytest.fixture(scope="module")
def metrics():
    parts = [evaluated(method, repeat) for method in METHODS for repeat in (0, 1)]
    return pd.concat(parts, ignore_index=True).assign(dataset="second")


@pytest.fixture(scope="module")
def of_two(metrics):
    """Return the metrics of two methods on a data set, and of three on another."""
    first = metrics[metrics["method"] != "third"].assign(dataset="first")
    return pd.concat([first, metrics], ignore_index=True)


@pytest.fixture(scope="module")
def own(metrics):
    """Return the metrics of one run."""
    return metrics[metrics["method"] == "third"]


def of_run(metrics, name):
    return list(OF_A_RUN[name][1](metrics, "g"))


def of_methods(metrics, kind):
    return dict(OF_METHODS[kind](metrics, method_styles(METHODS)))


def series(panel, name):
    (result,) = [one for one in panel.series if one.name == name]
    return result


def values(metrics, metric, **where):
    for column, value in {"metric": metric, **where}.items():
        metrics = metrics[metrics[column] == value]
    return metrics


def mean(metrics, metric, **where):
    return values(metrics, metric, **where)["value"].mean()


def test_points_of_a_run_are_the_metrics_and_their_means_over_repeats(own):
    for figure, x, y, bins in (
        ("reliability", "reliability_mean_score", "reliability_base_rate", 4),
        ("spread", "spread_predicted", "spread_empirical", 3),
    ):
        (panel,) = of_run(own, figure)
        sides = [values(own, name, bins=bins) for name in (x, y)]
        points = set(zip(*(rows["value"] for rows in sides), strict=True))
        repeats, means = series(panel, "one repeat"), series(panel, "mean of repeats")
        assert set(zip(repeats.x, repeats.y, strict=True)) == points
        expected = [rows.groupby("bin")["value"].mean().to_numpy() for rows in sides]
        order = np.argsort(expected[0])
        for result, side in zip((means.x, means.y), expected, strict=True):
            np.testing.assert_allclose(result, side[order])


def test_group_rates_are_medians_over_repeats_with_their_intervals(own):
    (panel,) = of_run(own, "group_rates")
    names = ("selection_rate", "true_positive_rate", "false_positive_rate", "error_rate")
    assert panel.names == [name.replace("_", " ") for name in names]
    assert [one.name for one in panel.series] == ["a", "b"]
    for one in panel.series:
        rows = [values(own, name, group=one.name, attribute="g") for name in names]
        np.testing.assert_allclose(one.x, [row["value"].median() for row in rows])
        np.testing.assert_allclose(one.ends, [row[["lower", "upper"]].median() for row in rows])


def test_abstention_curves_of_a_run_are_means_over_repeats(own):
    overall, groups = of_run(own, "abstention")
    for panel, name, metric, group in (
        *((overall, name, name, "") for name in ("error_rate", "equalized_odds")),
        *((groups, group, "rate", group) for group in "ab"),
    ):
        curve = series(panel, name)
        assert list(curve.x) == [0.0, 0.5]
        where = {"metric": f"abstention_{metric}", "group": group}
        of = [values(own, **where, rate=rate)["value"] for rate in curve.x]
        np.testing.assert_allclose(curve.y, [rows.mean() for rows in of])
        np.testing.assert_allclose(curve.band, [rows.std() for rows in of])


def test_the_features_that_move_most_are_drawn_in_order_with_their_sd(own, metrics):
    (panel,) = of_run(own, "feature_shift")
    by_feature = values(own, "feature_shift", rate=0.5).groupby("feature", observed=True)["value"]
    expected = by_feature.mean().sort_values(ascending=False)[:10]
    (dots,) = panel.series
    assert list(panel.names) == list(expected.index)
    np.testing.assert_allclose(dots.x, expected)
    np.testing.assert_allclose(np.ptp(dots.ends, axis=1), 2 * by_feature.std()[expected.index])
    shifts = of_methods(metrics, "abstention")["feature_shift_rate0.5"]
    x = np.stack([series(shifts, method).x for method in METHODS])
    assert x.shape == (3, 10)
    assert (np.diff(x.max(axis=0)) <= 0).all()
    rows = values(metrics, "feature_shift", rate=0.5)
    assert x.max() == pytest.approx(rows.groupby(["method", "feature"])["value"].mean().max())


def test_boxes_of_variants_and_of_draws_alone_are_the_quantiles(metrics, own):
    panel = of_methods(metrics, "consistency")[""]
    assert panel.names == ["one method", "another", "third"]
    crosses = [float(one.x[0]) for one in panel.series if one.shape]
    assert len(crosses) == 5  # three methods, two of which have replicates
    kinds = ("consistency", "noise")
    expected = [mean(metrics, f"{kind}_max_sd", method=name) for kind in kinds for name in METHODS]
    np.testing.assert_allclose(sorted(crosses), sorted(e for e in expected if e == e))
    (one,) = of_run(own, "consistency")
    boxes = [each for each in one.series if each.outline is not None]
    for kind, box in zip(reversed(kinds), boxes, strict=True):
        expected = [mean(own, f"{kind}_sd", quantile=q) for q in (0.5, 0.25, 0.75)]
        np.testing.assert_allclose([*box.x, *box.outline[:2, 0]], expected)


def test_uncertainties_have_a_panel_for_every_part_with_a_point_for_every_group(own):
    panels = of_run(own, "uncertainties")
    parts = [panel.x_label.split()[0] for panel in panels]
    assert parts == ["aleatoric", "epistemic", "predictive"]
    for part, panel in zip(parts, panels, strict=True):
        assert panel.names == ["a", "b"]
        for one, group in zip(panel.series, "ab", strict=True):
            rows = values(own, f"{part}_uncertainty", group=group)
            assert list(one.x) == [rows["value"].median()]
    assert len(of_run(evaluated("third", 0, members=False), "uncertainties")) == 1


def test_individual_fairness_has_a_panel_for_every_measure_and_outcome(own):
    panels = of_run(own, "individual_fairness")
    measures = ["prediction", "aleatoric", "epistemic", "predictive"]
    assert [(panel.y_label, panel.title) for panel in panels] == [
        (measure, words) for measure in measures for words in OUTCOMES.values()
    ]
    curve = series(panels[2 * 4 + list(OUTCOMES).index("FN")], "a")
    where, enough = {"group": "a", "outcome": "FN"}, own[own["n"] >= FEWEST]
    name = "individual_fairness_epistemic"
    np.testing.assert_allclose(curve.y, [mean(enough, name, **where, k=k) for k in (1, 2, 3, 4)])


def test_a_method_looks_alike_in_every_panel_and_like_no_other(metrics):
    looks = {
        (one.name, one.colour, one.shape)
        for kind in ("spread", "abstention")
        for panel in of_methods(metrics[metrics["method"] != "one_method"], kind).values()
        for one in panel.series
        if one.name in METHODS
    }
    looks |= {(m, one["colour"], one["shape"]) for m, one in method_styles(METHODS).items()}
    assert len(looks) == len({look[1:] for look in looks}) == 3


def test_curves_of_groups_are_means_over_repeats(metrics):
    for kind, metric in (("group_errors", "error_rate"), ("group_abstention", "rate")):
        panel = of_methods(metrics, kind)[""]
        dashes = {series(panel, group).dashed: group for group in "ab"}
        assert len(dashes) == 2
        curves = [one for one in panel.series if one.name == "third"]
        assert {dashes[curve.dashed] for curve in curves} == {"a", "b"}
        for curve in curves:
            where = {"method": "third", "group": dashes[curve.dashed]}
            expected = [mean(metrics, f"abstention_{metric}", rate=r, **where) for r in (0.0, 0.5)]
            np.testing.assert_allclose(curve.y, expected)


def test_spreads_are_means_over_repeats_and_many_points_have_no_line(metrics):
    few, many = of_methods(metrics, "spread").values()
    result = series(few, "another")
    where = {"method": "another", "bins": 3}
    for i in range(3):
        x, y = (mean(metrics, f"spread_{s}", **where, bin=i) for s in ("predicted", "empirical"))
        np.testing.assert_allclose([result.x[i], result.y[i]], [x, y])
    assert result.lined
    assert not series(many, "another").lined
    lost = (metrics["metric"] == "abstention_error_rate") & (metrics["rate"] == 0.5)
    undefined = metrics.assign(value=metrics["value"].where(~lost))  # it has no point there
    assert list(series(of_methods(undefined, "abstention")["error_rate"], "third").x) == [0.0]


# Uncertainty-aware parity.


def of_numbers(method, repeat, **uncertainty):
    draw = np.random.default_rng(repeat)
    group, other = draw.choice(["a", "b"], (2, 200))
    predicted = draw.normal(group == "b", 1)
    groups = pd.DataFrame({"group": group, "other": other})
    table = evaluate(
        predicted + draw.normal(0, 0.5, 200), predicted,
        sensitive_features=groups, task="regression", **uncertainty,
    )  # fmt: skip
    return table.assign(repeat=repeat, fold=0, variant="", method=method)


def test_parities_stand_beside_those_of_the_labels_with_coverage_and_score():
    sds = {"plain_model": {}, "calibrated": {"sd": [0.5] * 200}, "vague": {"sd": [50.0] * 200}}
    parts = [of_numbers(name, repeat, **sd) for name, sd in sds.items() for repeat in (0, 1)]
    metrics = pd.concat(parts, ignore_index=True)
    styles = method_styles(sds)
    ((_, panel),) = OF_METHODS["parity"](metrics, styles)
    assert panel.title == "by group"
    shown = {"normals (UA-SP)": UA_SP, "points": "statistical_parity"}
    for name, metric in shown.items():
        expected = [mean(metrics, metric, method=of, attribute="group") for of in sds]
        np.testing.assert_allclose(series(panel, f"predictions as {name}").x, expected)
    labels = mean(metrics, "label_parity", attribute="group")
    np.testing.assert_allclose(series(panel, "labels").x, labels)
    assert panel.names[0] == "-, -: plain model"
    for name, text in list(zip(sds, panel.names, strict=True))[1:]:
        everyone = {"method": name, "attribute": ""}
        coverage = mean(metrics, "coverage", level=0.9, **everyone)
        assert text == f"{coverage:.2f}, {mean(metrics, 'crps', **everyone):.2f}: {name}"
    assert list(OF_METHODS["parity"](metrics[metrics["metric"] != UA_SP], styles)) == []


# Figures of panels.

TITLE = "simulated, xgboost"


@pytest.fixture(scope="module")
def drawings(own):
    return dict(_figures(own, TITLE, "g"))


@pytest.mark.thorough
def test_every_figure_the_metrics_allow_is_drawn_labelled_and_titled(of_two, own, drawings):
    assert list(drawings) == [
        "reliability", "spread", "group_rates", "abstention", "feature_shift", "consistency",
        "uncertainties", "individual_fairness",
    ]  # fmt: skip
    few = of_two[of_two["metric"].isin(["selection_rate", "error_rate"])]
    assert [name for name, _ in _figures(few, TITLE, "g")] == ["group_rates"]
    assert list(_figures(of_two[of_two["metric"] == "nll"], TITLE, "g")) == []
    for name, figure in drawings.items():
        assert figure.count(f">{TITLE}<") == 1, name
        for panel in of_run(own, name):
            assert panel.x_label and (panel.y_label or len(panel.names)), name
            assert panel.x_label[:20].partition("'")[0] in figure, name


@pytest.mark.thorough
def test_every_figure_of_methods_has_a_panel_for_each_data_set(of_two):
    by_kind = [(kind, dict(figures_of_methods(of_two, kind))) for kind in OF_METHODS]
    figures = {f"{kind}:{name}": one for kind, several in by_kind for name, one in several.items()}
    assert list(figures) == [
        "consistency:", "spread:groups3", "spread:groups40", "abstention:error_rate",
        "abstention:statistical_parity", "abstention:equalized_odds",
        "abstention:mean_feature_shift", "abstention:feature_shift_rate0.2",
        "abstention:feature_shift_rate0.5", "group_errors:", "group_abstention:",
    ]  # fmt: skip
    for name, figure in figures.items():
        assert [figure.count(f">{title}<") for title in ("first", "second")] == [1, 1], name
    for name in ("spread:groups3", "abstention:error_rate", "abstention:feature_shift_rate0.5"):
        for method in ("one method", "another", "third"):  # also of a single panel
            assert figures[name].count(f">{method}</text>") == 1


def test_what_a_panel_has_is_drawn(metrics):
    for kind in ("abstention", "spread", "consistency"):
        for panel in of_methods(metrics, kind).values():
            bands = [one for one in panel.series if one.band is not None]
            drawing, *keys = chart([panel], key=key_of([panel]))
            marks = sum(np.isfinite(np.array(one.x)).sum() for one in panel.series if one.marked)
            assert drawing.count("<title>") == marks
            assert drawing.count('opacity=".12"') == len(bands)
            for word in {one.name.replace("_", " ") for one in panel.series}:
                assert word in "".join(keys)


@pytest.mark.thorough
def test_rows_with_names_have_room_and_a_figure_is_as_high_as_its_panels(tmp_path):
    def of(groups):
        x = np.arange(4)
        series = [Series(str(g), x, x + g / groups, "black") for g in range(groups)]
        return Panel(series, "rate", "", names=list("abcd"))

    low, high = of(2), of(60)
    assert low.height < high.height
    assert high.height >= 8 * 240
    figure = drawn([low, high], "both")
    assert int(figure.partition('height="')[2].partition('"')[0]) > high.height + 60 * 12
    for name, start in (("both.png", b"\x89PNG"), ("both.svg", b"<svg")):
        figure.savefig(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(UserError, match="unknown format of a figure 'docx'"):
        figure.savefig(tmp_path / "both.docx")


def test_variants_are_not_drawn(own, drawings):
    varied = own.assign(value=own["value"] / 2, variant="max_depth=5")
    assert dict(_figures(pd.concat([varied, own], ignore_index=True), TITLE, "g")) == drawings
