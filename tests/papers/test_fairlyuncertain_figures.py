"""FairlyUncertain's figures of single people, and its commands where nothing was run."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wasserstein_distance

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.fairlyuncertain import abstention_choice, figures, rankings
from fairbench.components.papers.fairlyuncertain.figures import (
    PEOPLE,
    RATE,
    draw_distributions,
    draw_ranges,
)
from fairbench.experiments import pipeline
from fairbench.reporting.papers.running import Effort


def measured(experiment, results, words=(), methods=()):
    """Return the metrics of the cells that a figure was drawn of, by method."""
    ((_, runs),) = figures.planned(experiment, results, Effort.FIRST, words, methods)
    return {run.identity.choices["method"]: pipeline.evaluate_run(run)[0] for run in runs}


def only(drawn):
    ((_, figure),) = drawn
    return figure


def panels(figure):
    return {axes.get_title().partition(":")[0].replace(" ", "_"): axes for axes in figure.axes}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("figure", "experiment", "values"),
    [
        (figures.figure_12, "figure2", "[2,3]"),
        (figures.figure_12_regression, "figure10", "[2,3]"),
    ],
)
def test_ranges_are_those_that_the_run_measures(tmp_path, figure, experiment, values):
    drawn = panels(only(figure(tmp_path, Effort.FIRST)))
    metrics = measured(f"fairlyuncertain/{experiment}", tmp_path, [f"consistency.values={values}"])
    assert list(drawn) == list(metrics)
    for method, table in metrics.items():
        (lines,) = drawn[method].collections
        lengths = [end - start for (_, start), (_, end) in lines.get_segments()]
        assert len(lengths) == 24  # the fifth of 120 rows that is tested
        (expected,) = table.loc[table["metric"] == "consistency_mean_range", "value"]
        assert np.mean(lengths) == pytest.approx(expected, rel=1e-6)
        assert expected > 0


def test_ranges_of_weight_decay_are_drawn(tmp_path):
    for axes in only(figures.figure_13(tmp_path, Effort.FIRST)).axes:
        (lines,) = axes.collections
        assert len(lines.get_segments()) == 24


def test_of_many_people_equally_spaced_ranks_are_drawn():
    draw = np.random.default_rng(0)
    values = draw.random((5, 1000))
    values[2, 7] = np.nan
    (axes,) = draw_ranges({"a_method": values}, "title").axes
    (lines,) = axes.collections
    segments = lines.get_segments()
    assert len(segments) == PEOPLE
    others = np.delete(values, 7, axis=1)
    assert axes.get_title() == f"a method: {np.ptp(others, axis=0).mean():.3g}"
    order = np.argsort(others.std(axis=0))
    for segment, person in ((segments[0], order[0]), (segments[-1], order[-1])):
        ends = [others[:, person].min(), others[:, person].max()]
        np.testing.assert_allclose(segment[:, 1], ends)
        np.testing.assert_allclose(segment[:, 0], others[:, person].std())


def test_the_two_densities_are_drawn_with_their_sds(tmp_path):
    axes = only(figures.figure_1(tmp_path, Effort.FIRST)).axes
    sds = [float(each.get_title().rpartition(" ")[2]) for each in axes]
    np.testing.assert_allclose(sds, [1.08, 1.21], atol=0.1)


def test_distances_of_features_are_those_that_the_run_measures(tmp_path):
    drawn = only(figures.figure_17(tmp_path, Effort.FIRST))
    distances = drawn.axes[0]
    names = [label.get_text() for label in distances.get_yticklabels()]
    assert [axes.get_title() for axes in drawn.axes[1:]] == names
    metrics = measured("fairlyuncertain/figure5", tmp_path)
    for line, (method, table) in zip(distances.lines, metrics.items(), strict=True):
        shifts = table[(table["metric"] == "feature_shift") & (table["rate"] == RATE)]
        expected = shifts.set_index("feature")["value"].loc[names]
        np.testing.assert_allclose(line.get_xdata(), expected, err_msg=method)


def test_distributions_are_those_of_the_rows_kept():
    draw = np.random.default_rng(1)
    features = pd.DataFrame(
        {"number": draw.normal(size=60), "kind": pd.Categorical(draw.choice(["x", "y"], 60))}
    )
    kept = {"half": (features["number"] > 0).to_numpy(float)}
    drawn = draw_distributions(features, kept, "title")
    number = drawn.axes[1 + [axes.get_title() for axes in drawn.axes[1:]].index("number")]
    everyone, half = number.lines
    area = np.abs(everyone.get_ydata() - half.get_ydata())[:-1] @ np.diff(everyone.get_xdata())
    values = features["number"].to_numpy()
    assert area == pytest.approx(wasserstein_distance(values, values[values > 0]))
    kind = drawn.axes[1 + [axes.get_title() for axes in drawn.axes[1:]].index("kind")]
    heights = [bar.get_height() for bar in kind.patches]
    most = features["kind"].value_counts(normalize=True)
    np.testing.assert_allclose(heights[:2], most)
    of_half = features["kind"][values > 0].value_counts(normalize=True)[most.index]
    np.testing.assert_allclose(heights[2:], of_half)


def test_distances_of_distributions_are_the_parities(tmp_path):
    drawn = panels(only(figures.figure_6(tmp_path, Effort.FIRST)))
    methods = ("baseline", "normal_nll_reference")
    metrics = measured("fairlyuncertain/table4", tmp_path, methods=methods)
    assert list(drawn) == ["labels", *methods]
    for name, metric, method in (
        ("labels", "label_parity", "baseline"),
        ("baseline", "statistical_parity", "baseline"),
        ("normal_nll_reference", "uncertainty_aware_statistical_parity", "normal_nll_reference"),
    ):
        table = metrics[method]
        chosen = (table["metric"] == metric) & (table["group"] == "")
        expected = table.loc[chosen, "value"].iloc[0]
        (line,) = drawn[name].collections
        ((_, low), (_, high)) = line.get_segments()[0]
        assert high - low == pytest.approx(expected, abs=2e-3), name
        assert drawn[name].get_title().endswith(f": {high - low:.3f}")


@pytest.mark.parametrize(
    ("module", "experiment"),
    [(abstention_choice, "table8_13"), (rankings, "interventions")],
    ids=["abstention_choice", "rankings"],
)
def test_commands_say_in_a_line_which_runs_to_make(
    module, experiment, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("sys.argv", ["module", f"results={tmp_path}"])
    with pytest.raises(SystemExit) as ended:
        run_main(module.main, Results)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"make them with fairbench run -m experiment=fairlyuncertain/{experiment}")
