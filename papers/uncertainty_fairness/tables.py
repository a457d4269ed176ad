"""Kuzucu et al.'s Tables 1 to 5: the networks behind them, our numbers, and what changes them.

First come the networks: `TEXT` is what section 5.2 says, and each of `CAUSES` changes one thing of
it, or one more than the cause before it. What the text leaves open is the same in all: Adam's rate
is 0.001, as in Kingma and Ba, and the initial standard deviations are softplus of -5 to -4, those
of the public code of Bayes by Backprop whose prior, 0.5, exp(-0) and exp(-6), the text prints.

The study `train` trains the networks and writes ``numbers.csv``, which the comparison reads. The
paper prints single runs: ours are means and sds over runs, 20 populations for SD1-3, splits for
COMPAS, networks of one split for Adult. A ratio over a variance too small to divide by is not
compared. `members`, `capacity` and `directions` ask what decides the ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import beta
from torch.nn.functional import log_softmax, nll_loss

from fairbench.cli.command import Results
from fairbench.components.algorithms.estimators.training import one_thread
from fairbench.components.algorithms.estimators.weight_posterior import (
    ScaleMixture,
    WeightPosterior,
    forward,
)
from fairbench.components.datasets import adult, compas_zafar, kuzucu
from fairbench.components.papers import (
    PAPERS,
    Look,
    as_numbers,
    print_table,
    run_main,
)
from fairbench.components.papers.engine import matching
from fairbench.components.papers.engine.mapping import Paper
from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.files import write_text
from fairbench.data.dataset import Dataset
from fairbench.data.download import Archive
from fairbench.data.features import onehot
from fairbench.metrics.registry import (
    accuracy,
    binary_confusion,
    false_negative_rate,
    false_positive_rate,
    negative_predictive_value,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)
from fairbench.metrics.uncertainty import variance_decomposition

Array = Floats
RATES = (
    *(accuracy, positive_predictive_value, negative_predictive_value, false_positive_rate),
    *(false_negative_rate, true_positive_rate, selection_rate),
)
LAMBDA = 2000.0
DRAWS = 10  # of the weights: in a step of training, and of a row's members
NEAR = 0.2  # the public code's means start within it


@dataclass(frozen=True)
class Setting:
    """How a network is trained.

    Attributes
    ----------
    near_zero : means start uniform within 0.2, not standard normal.
    prior : the text's 0.5, 0 and 6, the last two read as -log of standard deviations.
    twice : the cross-entropy is given probabilities, and takes their softmax again.
    rate : Adam's.
    tested : the share of COMPAS that is tested: half, as Zafar et al. split it.
    hidden : units of a hidden layer where the data set's own text has none.
    unscaled : Adult's columns are as in the file, but for the sampling weight, which is left out.
    """

    near_zero: bool = False
    prior: ScaleMixture = ScaleMixture(share=0.5, narrow=math.exp(-6), wide=math.exp(-0.0))
    twice: bool = False
    rate: float = 0.001
    tested: float = 0.5
    hidden: tuple[int, ...] = ()
    unscaled: bool = False


TEXT = Setting()
_NEAR = replace(TEXT, near_zero=True)
_TWICE = replace(_NEAR, twice=True)
_FASTER = replace(_TWICE, rate=0.005)
CAUSES = {
    "starts near 0": _NEAR,
    "prior of sds": replace(TEXT, prior=ScaleMixture(share=0.5, narrow=0.001, wide=6.0)),
    "softmax twice": _TWICE,
    "softmax twice, faster": _FASTER,
    "softmax twice, faster, a fifth tested": replace(_FASTER, tested=0.2),
    "layer of 25": replace(TEXT, hidden=(25,)),
    "unscaled columns": replace(_TWICE, unscaled=True),
    "unscaled columns, standard normal starts": replace(TEXT, twice=True, unscaled=True),
}
GAINS = "capital gain or loss"  # Adult's: that alone is predicted, and nothing is trained


@dataclass(frozen=True)
class Training:
    """What section 5.2 says of one data set, and how often it is repeated here."""

    hidden: tuple[int, ...]
    epochs: int
    batch: int
    runs: int
    causes: tuple[str, ...]


_LINEAR = Training((), 5, 8, 20, tuple(CAUSES)[:3])
TRAININGS = {
    **dict.fromkeys(("sd1", "sd2", "sd3"), _LINEAR),
    "compas": Training((100,), 10, 256, 10, tuple(CAUSES)[:5]),
    "adult": Training((), 5, 256, 5, (GAINS, *tuple(CAUSES)[5:])),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows, and the rows that are tested with their groups."""

    features: Array
    target: Codes
    tested: Array
    truth: Codes
    people: pd.DataFrame


def rows_of(dataset: str, seed: int, setting: Setting) -> Rows:
    """Return one population or split of a data set, as the paper's sections 5.1.1 to 5.1.5 say."""
    archive = Archive()
    if dataset == "adult":
        data = adult.load(archive)
        assert data.partition is not None
        train = data.partition.eq("train").to_numpy()
        columns = as_numbers(data.features)  # the 14 features, categories as their codes
        if setting.unscaled:
            return _split(data, np.asarray(columns, float), train)
        assert data.weight is not None
        features = np.column_stack([columns, data.weight]).astype(float)
        return _split(data, _standard(features, train), train)
    if dataset == "compas":
        data, share = compas_zafar.load(archive), 1 - setting.tested
        features = onehot(data.features).astype(float)
        features[:, -1] = _standard(features[:, -1:])[:, 0]
    else:  # 400 rows, of which 20 % are tested and 320 trained on
        data, share = kuzucu.load(archive, which=dataset, n_samples=400, seed=seed), 0.8
        features = onehot(data.features).astype(float)
    order = np.random.default_rng(seed).permutation(len(features))
    train = np.isin(np.arange(len(order)), order[: round(share * len(order))])
    return _split(data, features, train)


def _standard(columns: Array, rows: Mask | slice = slice(None)) -> Array:
    return (columns - columns[rows].mean(axis=0)) / columns[rows].std(axis=0)


def _split(data: Dataset, features: Array, train: Mask) -> Rows:
    y = data.target.to_numpy(int)
    return Rows(features[train], y[train], features[~train], y[~train], data.sensitive[~train])


def trained(rows: Rows, training: Training, setting: Setting, seed: int) -> WeightPosterior:
    """Return the posterior after the data set's epochs: equation (22) by Adam."""
    hidden = training.hidden or setting.hidden
    start, noise = np.random.default_rng([seed, 1]), torch.Generator().manual_seed(seed)
    sizes = [rows.features.shape[1], *hidden, 2]
    shapes = [(ins + 1, outs) for ins, outs in pairwise(sizes)]
    means = [
        start.uniform(-NEAR, NEAR, shape) if setting.near_zero else start.standard_normal(shape)
        for shape in shapes
    ]
    rhos = [start.uniform(-5, -4, shape) for shape in shapes]
    posterior = WeightPosterior(
        *([_tensor(values).requires_grad_() for values in each] for each in (means, rhos))
    )
    adam = torch.optim.Adam(posterior.parameters, lr=setting.rate, foreach=True)
    features, target = _tensor(rows.features), torch.from_numpy(rows.target)
    for _ in range(training.epochs):
        order = start.permutation(len(target))
        for first in range(0, len(order), training.batch):
            batch = order[first : first + training.batch]
            weights = posterior.draw(DRAWS, noise)
            scores = forward(features[batch], weights)
            likelihood = negative_log_likelihood(scores, target[batch], twice=setting.twice)
            loss = posterior.divergence(weights, setting.prior) / LAMBDA + likelihood
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
    return posterior


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.asarray(values, np.float32))


def negative_log_likelihood(
    scores: torch.Tensor, target: torch.Tensor, *, twice: bool = False
) -> torch.Tensor:
    """Return the mean over draws and rows of -log softmax of `scores` (M, n, 2) at the labels.

    Parameters
    ----------
    twice : the scores are made probabilities first, as where these are given to a cross-entropy.
    """
    logs = log_softmax(scores.softmax(dim=-1) if twice else scores, dim=-1)
    return nll_loss(logs.flatten(0, 1), target.repeat(len(scores)))


def members_of(posterior: WeightPosterior, features: Array, seed: int) -> Array:
    """Return the probabilities (M, n) of label 1 of M networks drawn."""
    with torch.no_grad():
        weights = posterior.draw(DRAWS, torch.Generator().manual_seed(seed))
        probabilities = forward(_tensor(features), weights).softmax(dim=-1)
    return probabilities[..., 1].numpy().astype(float)


def of_groups(
    members: Array, truth: NDArray[Any], people: pd.DataFrame, **place: object
) -> Iterator[dict[str, object]]:
    """Yield each group's rates and mean uncertainties, equation (7), of every attribute.

    Parameters
    ----------
    place : the data set and the run that they are of.
    """
    place = {"repeat": 0, **place}
    parts = variance_decomposition(members)
    labels = members.mean(axis=0) > 0.5
    for attribute, groups in people.items():
        codes = groups.cat.codes.to_numpy()
        names = groups.cat.categories
        counts = binary_confusion(truth, labels, codes, n_groups=len(names))
        found = {rate.name: rate(counts) for rate in RATES}
        for name in ("epistemic", "aleatoric", "predictive"):
            sums = np.bincount(codes, getattr(parts, name), len(names))
            found[f"{name}_uncertainty"] = sums / np.bincount(codes, minlength=len(names))
        for metric, values in found.items():
            for group, value in zip(names, values, strict=True):
                named = {"attribute": attribute, "metric": metric, "group": group}
                yield {**place, **named, "value": value}


@cache
def trained_values(
    dataset: str, cause: str = "", effort: matching.Effort = matching.Effort.WHOLE, units: int = 0
) -> pd.DataFrame:
    """Return the groups' metrics of every run: a population or a split, each with its network.

    Adult has one split, its own, and its runs differ by their networks.

    Parameters
    ----------
    cause : one of the data set's, or nothing for the text's setting.
    units : of the hidden layer, where it is not the text's.
    """
    if cause == GAINS:
        # One member, sure of label 1 where a tested row has a capital gain or loss.
        data, rows = adult.load(Archive()), rows_of("adult", 0, TEXT)
        assert data.partition is not None and isinstance(data.features, pd.DataFrame)
        tested = data.features[data.partition.ne("train")]
        gains = (tested[["capital-gain", "capital-loss"]].to_numpy(float) > 0).any(axis=1)
        alone = gains.astype(float)[None]
        return pd.DataFrame(of_groups(alone, rows.truth, rows.people, dataset=dataset, run="0"))
    training, setting = TRAININGS[dataset], CAUSES[cause] if cause else TEXT
    training = replace(training, hidden=(units,)) if units else training
    found: list[dict[str, object]] = []
    with one_thread():
        for run in range(effort.choose(training.runs, 2, 1)):
            rows = rows_of(dataset, run, setting)
            posterior = trained(rows, training, setting, run)
            members = members_of(posterior, rows.tested, run)
            found += of_groups(members, rows.truth, rows.people, dataset=dataset, run=str(run))
    return pd.DataFrame(found)


# Our numbers, and what changes the ratios that are printed.

PAPER, TABLES = "uncertainty_fairness", ("1", "2", "3", "5")  # of trained networks
SYNTHETIC = ("sd1", "sd2", "sd3")
METRICS = {
    "accuracy": "accuracy",
    "ppv": "positive_predictive_value",
    "npv": "negative_predictive_value",
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "ratio_equalized_odds": "false_positive_rate",  # equation (25) at y = 0
    "ratio_statistical_parity": "selection_rate",
    "ratio_equal_opportunity": "true_positive_rate",
    "ratio_equal_accuracy": "accuracy",
    **{
        f"{front}{part}": f"{part}_uncertainty"
        for part in ("epistemic", "aleatoric", "predictive")
        for front in ("", "ratio_")
    },
}
# What the text's own formula gives, where the tables print another rate -> why the other is asked.
TEXTS = {
    "ppv": ("true_positive_rate", "TP / (TP + FP)"),
    "ratio_equal_opportunity": ("false_negative_rate", "true positive rates"),
    "ratio_equalized_odds": ("false_positive_rate", "equation (25) at y = 1"),
}
AT_ONE = "true_positive_rate"  # equation (25) at y = 1
GROUPS: dict[str, dict[str, str | tuple[str, ...]]] = {
    "group": {"0": "0", "1": "1"},
    "race": {"black": ("African-American", "Black"), "white": ("Caucasian", "White")},
    "age": {"<25": "under 25", "25-45": "25 to 45", ">45": "over 45"},
    "sex": {"female": "Female", "male": "Male"},
}
PAIRS = {
    "group": "01",
    "race": ("black", "white"),
    "age": ("<25", ">45"),
    "sex": ("female", "male"),
}
VARIANCES = ("epistemic_uncertainty", "aleatoric_uncertainty", "predictive_uncertainty")
NEGLIGIBLE = 2e-6  # the evaluator's: probabilities with a standard deviation of 0.001
RARE = 0.005  # of a rate
BAND = 0.2


def needed(experiment: str, results: Path) -> pd.DataFrame:
    """Return the groups' metrics of every finished run and repeat of an experiment.

    There is a column for each option of a component that is swept.

    Raises
    ------
    UserError : there is no finished run; it says which command makes them.
    """
    parts = []
    for choice, _, metrics in matching.runs_needed(f"uncertainty_fairness/{experiment}", results):
        of_groups = metrics["metric"].isin(METRICS.values()) & metrics["group"].ne("")
        options = {name: value for name, value in choice.items() if "." in name}
        run = " ".join(choice.get(name, "0") for name in ("seed", "dataset.seed"))
        dataset = choice["dataset"].removesuffix("_zafar")  # as the paper calls it
        parts.append(metrics[of_groups].assign(dataset=dataset, run=run, **options))
    return pd.concat(parts, ignore_index=True)


def _single_runs(
    ours: pd.DataFrame, dataset: str, attribute: str, metric: str, group: str
) -> pd.Series:
    """Return a metric of a group in every run and repeat."""
    names = np.atleast_1d(GROUPS[attribute][group])
    chosen = ours["group"].isin(names) & ours["dataset"].eq(dataset)
    rows = ours[chosen & ours["attribute"].eq(attribute) & ours["metric"].eq(metric)]
    return rows.set_index(["run", "repeat"])["value"]


def ratios(ours: pd.DataFrame, dataset: str, attribute: str, metric: str) -> pd.Series:
    """Return G0 / G1 in every run, NaN where the denominator is too small to divide by."""
    top, bottom = (_single_runs(ours, dataset, attribute, metric, g) for g in PAIRS[attribute])
    floor = NEGLIGIBLE if metric in VARIANCES else RARE
    return top / bottom.where(bottom > floor)


def numbers(rows: pd.DataFrame, results: Path, effort: matching.Effort) -> matching.Numbers:
    """Yield our numbers for every printed one: the text's first, then those under each cause.

    Where the text defines a rate that its tables do not print, the text's own is first, and the
    causes' numbers are of the rate that is printed.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    results : has no meaning here: nothing is read.
    """
    for dataset, asked in rows.groupby("dataset", sort=False):
        training = TRAININGS[str(dataset)]
        causes = ("", *training.causes)
        frames = {cause: trained_values(str(dataset), cause, effort) for cause in causes}
        for row in asked.itertuples():
            printed = METRICS[str(row.metric)]
            first, why = TEXTS.get(str(row.metric), (printed, ""))
            answers = {"": first, **dict.fromkeys(training.causes, printed)}
            if why:
                answers = {"": first, why: AT_ONE if first == printed else printed, **answers}
            if printed in VARIANCES:  # a rule has none
                answers.pop(GAINS, None)
            for cause, rate in answers.items():
                place = {"row": row.Index, "label": cause or "text", "cause": cause}
                yield place | _number(rows, frames.get(cause, frames[""]), row, rate)


def _number(published: pd.DataFrame, ours: pd.DataFrame, row: Any, name: str) -> dict[str, Any]:
    """Return mean and sd over runs of one printed number, or why they cannot be compared."""
    key = (row.dataset, row.sensitive_attribute)
    if not row.metric.startswith("ratio"):
        runs = _single_runs(ours, *key, name, row.setting.removeprefix("group="))
    else:
        runs = ratios(ours, *key, name)
        same = published["dataset"].eq(row.dataset) & published["metric"].map(METRICS).eq(name)
        same &= published["sensitive_attribute"].eq(row.sensitive_attribute)
        same &= published["setting"].eq(f"group={PAIRS[row.sensitive_attribute][1]}")
        if name in VARIANCES and float(published[same]["value"].iloc[0]) < NEGLIGIBLE:
            return {"mean": np.nan, "reason": "the printed ratio is over next to nothing"}
    defined = runs.dropna()
    if len(runs) and defined.empty:
        return {"mean": np.nan, "reason": "the reference group's rate is 0 in every run"}
    return {"mean": defined.mean(), "sd": defined.std(ddof=1), "repeats": len(defined)}


LOADED = {"compas": compas_zafar.load, "adult": adult.load}


def counts(rows: pd.DataFrame, results: Path, effort: matching.Effort) -> matching.Numbers:
    """Yield how many people of each group, and of each label, the data sets have.

    For Adult, the archive's training file is counted, as the paper's numbers come from it.

    Parameters
    ----------
    rows : published `count`, `percent` of the group, or `sample_size`, with ``group=``, and ``y=``
        if it is about one label.
    effort : has no meaning here: it takes a second.

    Raises
    ------
    DataError : the raw file is not at hand.
    """
    for name, asked in rows.groupby("dataset", sort=False):
        data = LOADED[str(name)](Archive())
        rows_of = slice(None) if data.partition is None else data.partition.eq("train")
        people, labels = data.sensitive[rows_of], data.target[rows_of]
        for row in asked.itertuples():
            group, _, label = str(row.setting).removeprefix("group=").partition(", y=")
            names = np.atleast_1d(GROUPS[str(row.sensitive_attribute)][group])
            own = labels[people[row.sensitive_attribute].isin(names)]
            count = len(own) if not label else int((own == int(label)).sum())
            mean = 100 * count / len(own) if row.metric == "percent" else count
            yield {"row": row.Index, "mean": mean, "sd": 0.0, "repeats": 1}


def train() -> None:
    """Compute our numbers for Tables 1 to 5: from trained networks, and counted in the data.

    ``python -m papers.uncertainty_fairness.tables train`` trains the networks (a quarter of an
    hour) and writes ``numbers.csv``, which the comparison reads.

    The paper prints single runs: ours are means and sds over runs, 20 populations for SD1-3, splits
    for COMPAS, networks of one split for Adult. A ratio over a variance too small to divide by
    is not compared.
    """
    published = Paper.read(PAPER, PAPERS).rows
    asked = published["table"].isin(TABLES) & published["metric"].isin(METRICS)
    found = pd.DataFrame(numbers(published[asked], Path(), matching.Effort.WHOLE))
    text = found.sort_values("row", kind="stable").to_csv(index=False, float_format="%.6g")
    write_text(PAPERS / PAPER / "numbers.csv", text)


EXPERIMENTS = {
    "compas_trained": "bayes_by_backprop, 100 units",
    "compas_dropout": "mc_dropout, dropout 0.1",
    "compas_deep_ensemble": "deep_ensemble of 5",
    "compas_trees": "ensemble of 10 XGBoosts",
}
PARTS = ("aleatoric", "epistemic")
MEMBER_ATTRIBUTES = ("race", "sex")


def members(options: Results) -> None:
    """Whether what gives the members decides the ratios of the groups' uncertainties on COMPAS.

    ``python -m papers.uncertainty_fairness.tables members`` reads the finished runs of the
    experiments ``uncertainty_fairness/compas_*``.
    """
    heads = [f"{part}, {name}" for part in PARTS for name in ("white", *MEMBER_ATTRIBUTES)]
    rows = []
    for experiment, label in EXPERIMENTS.items():
        ours = needed(experiment, options.results)
        columns = [_single_runs(ours, "compas", "race", "accuracy", "white")]
        for part in PARTS:
            metric = f"{part}_uncertainty"
            columns.append(_single_runs(ours, "compas", "race", metric, "white"))
            columns += [ratios(ours, "compas", name, metric) for name in MEMBER_ATTRIBUTES]
        rows.append([label, *(f"{runs.mean():.3g} ({runs.std():.1g})" for runs in columns)])
    headings = ("members", "accuracy, white", *heads)
    print_table("COMPAS, mean (sd over splits)", headings, rows, width=130)


UNITS = (25, 50, 100, 200, 400)
# What was run -> its experiment, and the initial means where the experiment varies them.
NETWORKS = {
    "standard normal initial means, 10 epochs": ("figure6", "normal"),
    "initial means within 1 / sqrt(fan in), 10 epochs": ("figure6", "uniform"),
    "trained until held-out rows no longer improve": ("figure6_trained", ""),
}
CAPACITY_METRICS = ("accuracy", "aleatoric_uncertainty", "epistemic_uncertainty")
CAPACITY_ATTRIBUTES = ("race", "sex")
BySize = Mapping[int, pd.DataFrame]


def by_size(networks: str, results: Path) -> dict[int, pd.DataFrame]:
    """Return the groups' metrics of every size that was run of one of `NETWORKS`.

    Raises
    ------
    UserError : nothing of its experiment was run; it says which command runs it.
    """
    experiment, means = NETWORKS[networks]
    runs = needed(experiment, results)
    runs = runs[runs["learner.initial_means"] == means] if means else runs
    sizes = {units: runs[runs["learner.hidden"] == f"[{units}]"] for units in UNITS}
    return {units: ours for units, ours in sizes.items() if len(ours)}


def series_of(sizes: BySize, attribute: str, metric: str, group: str = "") -> pd.DataFrame:
    """Return mean and sd over splits of a group's metric, or of G0 / G1, a row for each size."""
    every = {
        units: _single_runs(ours, "compas", attribute, metric, group)
        if group
        else ratios(ours, "compas", attribute, metric)
        for units, ours in sizes.items()
    }
    return pd.DataFrame(every).agg(["mean", "std"]).T


def capacity(options: Results) -> None:
    """Print Figure 6 on COMPAS: the groups' uncertainties against the hidden layer's size.

    ``python -m papers.uncertainty_fairness.tables capacity`` prints accuracies, uncertainties and
    ratios of the finished runs of the experiments ``uncertainty_fairness/figure6`` and
    ``figure6_trained``; brackets are one sd over splits, which overlap. ``fairbench paper
    uncertainty_fairness figure=6`` draws them.
    """
    for networks in NETWORKS:
        sizes, columns = by_size(networks, options.results), {}
        for metric in CAPACITY_METRICS:
            short = metric.removesuffix("_uncertainty")
            columns[f"{short}, black"] = series_of(sizes, "race", metric, "black")
            for name in CAPACITY_ATTRIBUTES if metric != "accuracy" else ():
                columns[f"{short}, ratio by {name}"] = series_of(sizes, name, metric)
        rows = [
            [str(u), *(f"{s['mean'][u]:.3g} ({s['std'][u]:.1g})" for s in columns.values())]
            for u in sizes
        ]
        title = f"COMPAS, {networks}: mean (sd over splits)"
        print_table(title, ("units", *columns), rows, width=150)


TRAINED = "sd1_3_trained"
POINT = ("selection_rate", "true_positive_rate", "accuracy")


# What each of the synthetic sets is made to show: ratios that are fair, and some that are not.
DIRECTIONS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "sd1": ("labels fair, aleatoric uncertainty not", POINT, ("aleatoric_uncertainty",)),
    "sd2": ("labels fair, epistemic uncertainty not", POINT, ("epistemic_uncertainty",)),
    "sd3": ("uncertainties fair, labels not", VARIANCES, POINT),
}


def print_directions(ours: pd.DataFrame, title: str) -> None:
    """Print how often single runs show each direction of Proposition 4.1."""
    frame = directions_seen(ours)
    print_table(f"Proposition 4.1: {title}", frame.columns, frame.to_numpy(), width=130)


def directions_seen(ours: pd.DataFrame) -> pd.DataFrame:
    """Return how often single runs show each direction, in words."""
    rows = []
    for dataset, (text, fair, unfair) in DIRECTIONS.items():
        inside = {
            name: (ratios(ours, dataset, "group", name) - 1).abs() <= BAND
            for name in (*POINT, *VARIANCES)
        }
        is_fair = np.all([inside[name] for name in fair], axis=0)
        is_unfair = ~np.all([inside[name] for name in unfair], axis=0)
        both, n = int((is_fair & is_unfair).sum()), len(is_fair)
        lower, upper = beta(both + 1, n - both + 1).ppf([0.025, 0.975])
        counts = (f"{int(part.sum())} of {n}" for part in (is_fair, is_unfair))
        interval = f"{lower:.2f} to {upper:.2f}"
        rows.append((dataset, text, *counts, f"{both} of {n}", interval))
    names = ("data set", "direction", "fair part", "unfair part", "both", "P(both)")
    return pd.DataFrame(rows, columns=names)


def directions(options: Look) -> None:
    """Proposition 4.1 of Kuzucu et al. as probabilities: how often single runs show what it says.

    ``python -m papers.uncertainty_fairness.tables directions [quick=true]`` trains networks as the
    text says and with starts near 0, as Table 1 has them (two minutes), and reads the finished runs
    of ``experiment=uncertainty_fairness/sd1_3_trained``; a quick look trains two networks of each
    set in place of twenty.
    """
    ours = needed(TRAINED, options.results)  # first, as it may be missing
    effort = matching.Effort.QUICK if options.quick else matching.Effort.WHOLE
    for cause in ("", "starts near 0"):
        runs = pd.concat(trained_values(dataset, cause, effort) for dataset in DIRECTIONS)
        print_directions(runs, f"five epochs, {cause or 'as in the text'}")
    print_directions(ours, "until held-out rows no longer improve")


if __name__ == "__main__":
    run_main(train, members, capacity, directions)
