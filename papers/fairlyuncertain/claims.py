"""What FairlyUncertain's text claims beside its tables: a study of each prints what we find.

Of abstention: `abstention_choice` and `whom`; of the methods: `rankings`, `depths`, `diagrams`; of
the parity of distributions: `parity_smoothing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

import numpy as np
import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import PAPERS, Splits, print_table, run_main
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import command, recorded, runs_needed
from fairbench.components.papers.fairlyuncertain import tables
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.summary import summarise
from fairbench.evaluation.table import values_of
from fairbench.inference.rates import Limits
from fairbench.inference.repeats import REPEATS, mean_limits
from fairbench.inference.repeats import Splits as Shared
from fairbench.metrics import regression
from fairbench.metrics.uncertainty import Spread, feature_shift, keep_weights, spread_diagram
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

EXPERIMENTS = {"test": tables.EXPERIMENT, "validation": tables.VALIDATION}
WHOM_METHODS = ("random", "ensemble", "selective_ensemble", "self_consistency", "binomial_nll")
CHOICE_METRICS = ("error_rate", "statistical_parity", "equalized_odds")


def abstention_choice(options: Results) -> None:
    """Print what is left of abstention's gains when its rate is not chosen on the test rows.

    ``python -m papers.fairlyuncertain.claims abstention_choice`` reads the finished runs of Tables
    8 to 13: the rate chosen on the test rows, as in the paper, and on validation rows. Abstaining
    at random shows what choosing alone does.
    """
    columns = {
        f"{metric.replace('_', ' ')}, chosen on {rows} rows": changes(
            experiment, metric, options.results
        ).reindex(WHOM_METHODS)
        for rows, experiment in EXPERIMENTS.items()
        for metric in CHOICE_METRICS
    }
    cells = (100 * pd.DataFrame(columns)).map(lambda cell: f"{cell:+.0f} %").replace("+nan %", "-")
    title = "change by abstention, mean over data sets"
    print_table(title, ["method", *columns], cells.reset_index().to_numpy())


def changes(experiment: str, metric: str, results: Path) -> pd.Series:
    """Return, by method, the mean over data sets of the metric's relative change.

    Raises
    ------
    UserError : there is no finished run of the experiment.
    """
    found = pd.concat(
        summarise(metrics[metrics["group"] == ""], intervals=False).assign(
            dataset=choice["dataset"], method=choice["method"]
        )
        for choice, _, metrics in runs_needed(experiment, results)
    )
    keys = ["dataset", "method", *(["attribute"] if metric != "error_rate" else [])]
    chosen, plain = (
        found[found["metric"] == name].set_index(keys)["mean"]
        for name in (f"abstained_{metric}", metric)
    )
    return (chosen / plain.loc[chosen.index] - 1).groupby("method").mean()


WHOM_EXPERIMENT = "fairlyuncertain/figure5"
# Data set -> its features that say the sex, race, age group or marital status.
PROTECTED = {
    "acs_employment_fu": ("RAC1P", "SEX", "MAR"),
    "adult": ("male", "race", "marital-status"),
    "bank": ("privileged_age", "marital"),
    "compas": ("male", "race"),
    "german": ("privileged_age",),
}
RATE = 0.25
TABLES = ("3", "8", "9", "10", "11", "12", "13")
FAIRNESS = tuple(name for name in tables.METRICS if name != "error_rate")


def whom(chosen: Splits) -> None:
    """Print three claims about abstention: whose features move, which rows win, who is left out.

    ``python -m papers.fairlyuncertain.claims whom`` abstains on a quarter of the tested people. It
    prints the features that move most, on average over the methods, with the place of the protected
    attribute; how often the best row of a table abstains from nobody, in the paper's numbers and in
    ours; and how far apart the groups' shares left out are. All but the second are means over
    splits.
    """
    features, groups = [], []
    for dataset, protected in PROTECTED.items():
        read = {name: _splits(WHOM_EXPERIMENT, dataset, name, chosen) for name in WHOM_METHODS}
        features.append([dataset, *_features(read, protected)])
        groups.append([dataset, *(f"{np.mean([*map(gap, s)]):.3f}" for s in read.values())])
    record = recorded(Paper.read("fairlyuncertain", PAPERS))
    best = []
    for name in TABLES:
        rows = record[record["table"] == name]
        best.append([name, *(str(without(rows, column)) for column in ("value", "ours"))])
    names = (name.replace("_", " ") for name in WHOM_METHODS)
    for title, headings, cells in (
        (
            "features that move most at a quarter left out",
            ("data set", "most, second, third", "protected, with their places"),
            features,
        ),
        (
            "fairness metrics whose best row abstains from nobody, of six",
            ("table", "the paper's numbers", "ours"),
            best,
        ),
        ("gap of the groups' shares left out", ("data set", *names), groups),
    ):
        print_table(title, headings, cells, width=110)


def _splits(experiment: str, dataset: str, method: str, chosen: Splits) -> list[Labelled]:
    words = [f"dataset={dataset}", f"method={method}"]
    return list(tables.tests(tables.job(experiment, chosen.results, words, chosen.repeats)))


def _kept(test: Labelled) -> Floats:
    return keep_weights(test.column("uncertainty"), RATE)


def gap(test: Labelled) -> float:
    """Return the largest difference of two groups' shares of people left out."""
    (labels,) = test.groups.values()
    left_out = pd.Series(1 - _kept(test)).groupby(labels.to_numpy(), observed=True).mean()
    return float(left_out.max() - left_out.min())


def _features(read: dict[str, list[Labelled]], protected: Sequence[str]) -> Iterator[str]:
    """Yield the features that move most, and the protected ones with their places among all."""
    shifts = []
    for splits in read.values():
        for test in splits:
            assert test.features is not None
            moved = feature_shift(test.features, _kept(test))
            shifts.append(pd.Series(moved, test.features.columns))
    mean = pd.concat(shifts, axis=1).mean(axis=1).sort_values(ascending=False)
    yield ", ".join(f"{name} {value:.2f}" for name, value in mean.head(3).items())
    place = {name: number for number, name in enumerate(mean.index, 1)}
    told = [f"{name} {mean[name]:.2f} ({place[name]})" for name in protected if name in place]
    yield ", ".join(told) + f" of {len(mean)}"


def without(rows: pd.DataFrame, column: str) -> int:
    """Return in how many of six fairness metrics the best row is of a method without abstention."""
    count = 0
    for metric in FAIRNESS:
        of_metric = rows[rows["metric"] == metric]
        values = pd.to_numeric(of_metric[column])
        distance = (values - 1).abs() if metric == "disparate_impact" else values
        count += of_metric.loc[distance.idxmin(), "method"] not in WHOM_METHODS
    return count


RANKED_EXPERIMENT = "fairlyuncertain/interventions"  # which has most of the pairs
SCORES = {
    "nll": ("constant_sd", ("normal_nll", "beta_nll", "faithful_nll", "marginal")),
    "log_loss": ("ensemble", ("binomial_nll",)),
    "truth_rank_correlation": ("deep_ensemble", ("binomial_nll", "self_consistency", "ensemble")),
}


def rankings(options: Results) -> None:
    """Which method is surely better: paired differences over hold-outs, with intervals that hold.

    ``python -m papers.fairlyuncertain.claims rankings`` reads finished runs and prints one score of
    a method less that of another, and how far an intervention moves the gap in selection rates.
    """
    runs = [run for run in Catalogue(options.results) if run.config["split"]["name"] == "holdout"]
    rows = [*scores(runs), *parity(runs)]
    if not rows:
        raise UserError(
            f"there are no two finished runs to compare in {options.results}: make them with "
            f"{command(RANKED_EXPERIMENT)}"
        )
    headings = ("runs", "of", "first", "second", "difference", "95 % interval")
    print_table("paired differences over hold-outs", headings, rows, width=110)


def scores(runs: list[Run]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each score and each two methods of :data:`SCORES` on the same splits."""
    for score, (name, others) in SCORES.items():
        for first, second in _alike(runs, "method"):
            names = (first.choices["method"], second.choices["method"])
            if names[0] != name or first.choices["intervention"] != "none":
                continue
            if names[1] in others:
                a, b = (_values(run, score) for run in (first, second))
                if len(a) == len(b) > 1 and np.isfinite(a - b).all():
                    yield _row(first, f"{score}: {' - '.join(names)}", a, b)


def parity(runs: list[Run]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each intervention: the gap in selection rates of two groups, before, after.

    The gap is that of the mean rates, so that differences keep their sign and noise adds nothing.
    """
    for plain, run in _alike(runs, "intervention"):
        name = run.choices["intervention"]
        if plain.choices["intervention"] == "none" != name:
            a, b = (_differences(each) for each in (run, plain))
            if a.shape == b.shape and len(a) > 1:
                what = f"parity: {name} - none, {run.choices['method']}"
                yield _row(run, what, np.sign(a.mean()) * a, np.sign(b.mean()) * b)


def paired(first: Floats, second: Floats, share: float) -> Limits:
    """Return the mean difference of values in the same hold-outs, with its corrected t interval.

    Parameters
    ----------
    share : the share of the rows trained on or tested that a hold-out tests.
    """
    none = np.full(len(first), np.nan)
    return mean_limits(first - second, none, none, Shared(REPEATS, len(first), share))


def _row(run: Run, what: str, first: Floats, second: Floats) -> tuple[str, ...]:
    split = run.config["split"]
    tested = 1 - split["train"]
    share = tested / (tested + split["train"] * (1 - split["validation"]))
    found = paired(first, second, float(share))
    ends = f"{float(found.lower):+.4f} to {float(found.upper):+.4f}"
    dataset = f"{run.choices['dataset']}, {run.config['learner'].get('rounds', '-')} rounds"
    means = (f"{first.mean():.3f}", f"{second.mean():.3f}")
    return dataset, what, *means, f"{float(found.value):+.4f}", ends


def _alike(runs: list[Run], but: str) -> Iterator[tuple[Run, Run]]:
    """Yield every two runs of the same splits that differ in one group of options alone."""
    names = {"learner", "intervention", "method", "split"} - {but}
    for first, second in product(runs, runs):
        same = all(first.environment[name] == second.environment[name] for name in ("data", "rows"))
        if same and all(first.config[name] == second.config[name] for name in names):
            yield first, second


def _values(run: Run, score: str) -> Floats:
    found = values_of(run.all_metrics()).query(
        f"metric == '{score}' and attribute == '' and variant == ''"
    )
    return found.sort_values("repeat")["value"].to_numpy(float)


def _differences(run: Run) -> Floats:
    """Return the difference of the two groups' selection rates in every hold-out."""
    words = f"metric == 'selection_rate' and attribute == '{run.protect}' and variant == ''"
    rows = values_of(run.all_metrics()).query(words)
    found = rows.pivot(index="repeat", columns="group", values="value")
    rates = found.to_numpy(float)
    return rates[:, 0] - rates[:, 1] if rates.shape[1] == 2 else np.empty(0)


LEVEL = 0.9
# What is read of which method's predictions: all sds times a number, and its name in the paper.
READINGS = (
    ("baseline", 0, "baseline"),
    ("constant_sd", 1, ""),
    ("constant_sd", 5, ""),
    ("constant_sd", 25, ""),
    ("marginal", 1, ""),
    ("normal_nll_reference", 1, "normal_nll"),
    ("normal_nll", 1, ""),
)
NAN_CELL = ("communities", "faithful_nll_reference")


def _by_group(test: pd.DataFrame, column: str) -> list[Floats]:
    return [values.to_numpy() for _, values in test.groupby("group")[column]]


def _parity(test: pd.DataFrame) -> float:
    """Return the UA-SP."""
    return regression.uncertainty_aware_parity(_by_group(test, "mean"), _by_group(test, "sd"))


def predictions(
    dataset: str, method: str, chosen: Splits, *, factor: float = 1
) -> Iterator[pd.DataFrame]:
    """Yield target, mean, sd and group of every split's test rows, sds times `factor`."""
    words = [f"dataset={dataset}", f"method={method}"]
    run = tables.job("fairlyuncertain/table4", chosen.results, words, chosen.repeats)
    target = run.dataset.target.to_numpy(float)
    group = run.dataset.groups(run.protect).cat.codes.to_numpy()
    for rows, raw in tables.raw_tests(run):
        sd = factor * raw["sd"].astype(float) if factor else 0.0
        own = {"target": target[rows], "mean": raw["mean"].astype(float), "group": group[rows]}
        yield pd.DataFrame({**own, "sd": sd})


def measures(test: pd.DataFrame) -> list[float]:
    """Return UA-SP, parity of points, parity of labels, coverage, CRPS; NaN without sds."""
    points, labels = (
        regression.distribution_distances(_by_group(test, name)).max()
        for name in ("mean", "target")
    )
    target, mean, sd = (test[name].to_numpy() for name in ("target", "mean", "sd"))
    covered = np.abs(target - mean) <= regression.normal_quantile(LEVEL) * sd
    coverage = float(covered.mean()) if sd.any() else float("nan")
    crps = float(regression.crps_normal_rows(target, mean, sd).mean())
    return [_parity(test), points, labels, coverage, crps]


def published(dataset: str, method: str) -> str:
    """Return the mean and sd that Table 4 prints."""
    rows = Paper.read("fairlyuncertain", PAPERS).rows
    found = rows[(rows["table"] == "4") & (rows["dataset"] == dataset) & (rows["method"] == method)]
    return " ".join(f"{row.value} ({row.sd})" for row in found.itertuples())


def smoothing(dataset: str, chosen: Splits) -> Iterator[list[str]]:
    """Yield UA-SP and its costs, a row for each reading."""
    for method, factor, name in READINGS:
        every = predictions(dataset, method, chosen, factor=factor)
        each = np.array([measures(test) for test in every])
        (mean, *means), sd = each.mean(axis=0), each[:, 0].std()
        label = f"{method}, sd x {factor}" if factor > 1 else method
        others = ["-" if np.isnan(value) else f"{value:.3f}" for value in means]
        yield [label, published(dataset, name), f"{mean:.3f} ({sd:.3f})", *others]


def invalid(chosen: Splits) -> None:
    """Print the published cell with two zeros in it: Faithful NLL on Communities.

    Rows: its splits without the rows that have no sd; a split with such rows as 0; and two of ten
    splits as 0, which are the published runs.
    """
    every = list(predictions(*NAN_CELL, replace(chosen, repeats=5 * chosen.repeats)))
    left_out = np.array([_parity(test[test["sd"] > 0]) for test in every])
    hit = np.array([(test["sd"] <= 0).any() for test in every])
    typical, as_0 = left_out[~hit], np.where(hit, 0, left_out)
    two_of_ten = np.sqrt(0.8 * typical.var() + 0.8 * 0.2 * typical.mean() ** 2)
    moments = {
        "those rows left out": (left_out.mean(), left_out.std()),
        "those splits read as 0": (as_0.mean(), as_0.std()),
        "two of ten splits read as 0": (0.8 * typical.mean(), two_of_ten),
    }
    rows = [[name, f"{mean:.3f} ({sd:.3f})"] for name, (mean, sd) in moments.items()]
    rows.append(["published", published("communities", "faithful_nll")])
    title = f"{', '.join(NAN_CELL)}: {hit.sum()} of {len(hit)} splits have rows with sd <= 0"
    print_table(title, ("UA-SP", "mean (sd)"), rows, width=110, min_width=76)


def parity_smoothing(chosen: Splits) -> None:
    """Print what a low uncertainty-aware statistical parity (UA-SP) is worth, and a NaN does.

    Each prediction is a normal distribution, so large sds smooth every group's distribution
    function and bring UA-SP near 0 whatever the means are. The first tables set beside it what
    that costs: coverage and the continuous ranked probability score. The last is about sds at
    or below 0: a distribution function of them is NaN, which the published code's largest
    distance reads as 0, as perfect parity. 80/20 splits, 10 rounds, depth 6.
    """
    for dataset in ("communities", "law_school"):
        headings = ("method", "published", "UA-SP", "points", "labels", f"in {LEVEL:.0%}", "CRPS")
        title = f"{dataset}: means (sd) over {chosen.repeats} splits"
        print_table(title, headings, smoothing(dataset, chosen), width=110)
    invalid(chosen)


DEPTHS = tuple(range(5, 16))


def depths(chosen: Splits) -> None:
    """Whether depths from 5 to 15 give models of similar accuracy, as the text says.

    ``python -m papers.fairlyuncertain.claims depths`` prints the error of the plain model at each
    depth, the mean over splits.
    """
    rows = []
    for dataset in PROTECTED:
        words = [f"dataset={dataset}", "method=binomial_nll", f"consistency.values={list(DEPTHS)}"]
        run = tables.job("fairlyuncertain/table1", chosen.results, words, chosen.repeats)
        read = tables.reader(run)
        found: dict[str, list[float]] = {}
        for cell in run.cells:
            if cell.variant:
                test = read(cell, {}).test
                wrong = test.target != test.column("prediction")
                found.setdefault(cell.variant, []).append(float(wrong.mean()))
        rows.append([dataset, *(f"{np.mean(values):.3f}" for values in found.values())])
    title = f"error at each depth, mean over {chosen.repeats} splits"
    print_table(title, ("data set", *map(str, DEPTHS)), rows, width=110)


GROUPS = (5, 10, 15, 20, 25, 30)


def diagram(test: Labelled, groups: int) -> Spread:
    """Return the spread diagram of residuals of hard labels."""
    residual = test.target - test.column("prediction")
    return spread_diagram(residual, test.column("uncertainty"), groups)


def diagrams(chosen: Splits) -> None:
    """Print what Figures 3 and 20 to 25 say of the methods for labels, in numbers.

    ``python -m papers.fairlyuncertain.claims diagrams`` prints, for 5 to 30 groups of people of
    like uncertainty, the rank correlation of their mean uncertainty with the sd of their residuals,
    and for five groups how far the two are apart: means over splits and data sets.
    """
    rows = []
    for method in WHOM_METHODS[1:]:
        of_sets = (_splits(tables.EXPERIMENT, dataset, method, chosen) for dataset in PROTECTED)
        splits = list(chain.from_iterable(of_sets))
        ranks = [
            np.nanmean([diagram(test, groups).rank_correlation() for test in splits])
            for groups in GROUPS
        ]
        off = np.mean([diagram(test, GROUPS[0]).error() for test in splits])
        rows.append([method.replace("_", " "), *(f"{rank:.2f}" for rank in ranks), f"{off:.2f}"])
    title = f"{chosen.repeats} splits of five data sets: rank correlation; distance of five groups"
    print_table(title, ("method", *map(str, GROUPS), "distance"), rows)


if __name__ == "__main__":
    run_main(abstention_choice, whom, rankings, parity_smoothing, depths, diagrams)
