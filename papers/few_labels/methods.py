"""The people of the study and its methods: errors and coverages over thirds and label orders.

First come the data sets as prepared, the released score files and the label orders, then what each
method says of a difference. The text holds one third of each data set out. Here it is one of
several: a printed number is one third's, and scatters as ours do. What is changed of the text is a
`Setting`; each setting of each data set, attribute and model is a file of the results folder, so
that a study goes on where it was stopped. Begin with `study`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.utils import shuffle

from fairbench.comparison.runs import load_predictions, predictions_frame
from fairbench.components.datasets import adult, bank, compas, german, ricci
from fairbench.components.papers import CONF
from fairbench.components.papers.engine.matching import Effort
from fairbench.components.papers.released_scores import ScoreFile, partly_labelled
from fairbench.core.arrays import Codes, Floats, Rows, integer_seed, rng
from fairbench.core.files import write_text
from fairbench.data.dataset import Dataset
from fairbench.data.download import Archive
from fairbench.data.tables import read_table
from fairbench.inference import few_labels
from fairbench.inference.posterior import central_interval
from fairbench.inference.rates import difference_limits, rate_limits
from fairbench.inference.survey import LabelledRows
from fairbench.metrics.group import difference
from fairbench.metrics.registry import (
    Counts,
    Rate,
    accuracy,
    false_positive_rate,
    true_positive_rate,
)
from fairbench.results.catalogue import Catalogue

# The six data sets as the text prepares them, and its four models of two thirds of their people.
#
# Section 4.6 of the thesis: rows with a missing value are left out, categories are one-hot encoded,
# the sensitive attributes are no features, and a third of the people, drawn at random, is held out.
# The training rows of Adult's archive are all there is of it. Naive Bayes and logistic regression
# fitted to the rows that the released files leave out give the released scores.

# Scikit-learn's defaults otherwise, as the text says.
MODELS: Mapping[str, Callable[[int], ClassifierMixin]] = {
    "mlp": lambda seed: MLPClassifier(hidden_layer_sizes=(10,), random_state=seed),
    "logistic_regression": lambda seed: LogisticRegression(),
    "random_forest": lambda seed: RandomForestClassifier(n_estimators=100, random_state=seed),
    "gaussian_nb": lambda seed: GaussianNB(),
}
RELEASED_AGE = 25  # where the released code cuts Bank's ages; the text's share is that of 40
_TEXT_AGE = 40


@dataclass(frozen=True, eq=False)
class People:
    """A data set as a matrix.

    Attributes
    ----------
    features : (n, D). label : (n,) 0 or 1.
    groups : attribute -> everyone's group, (n,). privileged : attribute -> the reference group.
    """

    features: Floats
    label: Codes
    groups: Mapping[str, NDArray[np.object_]]
    privileged: Mapping[str, str]

    @classmethod
    def of(cls, dataset: Dataset, *, leave_out: tuple[str, ...] = (), flip: bool = False) -> People:
        """Encode a data set without some of its features; `flip` calls label 0 the positive one."""
        label = dataset.target.to_numpy().astype(np.int64)
        groups = {name: dataset.sensitive[name].to_numpy(object) for name in dataset.sensitive}
        features = encoded(pd.DataFrame(dataset.features).drop(columns=list(leave_out)))
        return cls(features, 1 - label if flip else label, groups, dict(dataset.privileged))

    def held_out(self, third: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of two thirds of the people, and those of the rest, at random."""
        order = rng(third, "few_labels", "third").permutation(len(self.label))
        cut = int(len(order) * 2 / 3)
        return order[:cut], order[cut:]


def encoded(features: pd.DataFrame) -> Floats:
    """Return numbers as they are, and a column of 0 and 1 for every category."""
    texts = features.select_dtypes(exclude=["number", "bool"]).columns
    return pd.get_dummies(features, columns=list(texts)).to_numpy(np.float64)


def _bank(archive: Archive) -> People:
    """Return all clients; "unknown" is a category, and the age is no feature."""
    raw = read_table(archive.read(bank.BANK), bank.BANK.path, separator=";")
    age = raw.pop("age").astype(int)
    label = (raw.pop("y") == "yes").to_numpy(np.int64)
    named = [name for name in raw if pd.to_numeric(raw[name], errors="coerce").isna().any()]
    numeric = [name for name in raw if name not in named]
    groups = {
        name: np.where(age >= cut, "senior", "junior").astype(object)
        for name, cut in (("age", _TEXT_AGE), ("released age", RELEASED_AGE))
    }
    features = encoded(raw.astype(dict.fromkeys(numeric, float)))
    return People(features, label, groups, dict.fromkeys(groups, "senior"))


def _adult(archive: Archive) -> People:
    dataset = adult.load(archive, keep_sensitive=False)
    train = (dataset.partition == "train").to_numpy()  # type: ignore[union-attr]
    whole = People.of(dataset)
    groups = {name: group[train] for name, group in whole.groups.items()}
    return People(whole.features[train], whole.label[train], groups, whole.privileged)


_COMPAS_GROUPS = ("male", "race")
READERS: Mapping[str, Callable[[Archive], People]] = {
    "adult": _adult,
    "bank": _bank,
    # The positive label is good credit.
    "german": lambda archive: People.of(german.load(archive, keep_sensitive=False), flip=True),
    "compas_r": lambda archive: People.of(compas.load(archive), leave_out=_COMPAS_GROUPS),
    "compas_vr": lambda archive: People.of(compas.violent(archive), leave_out=_COMPAS_GROUPS),
    "ricci": lambda archive: People.of(ricci.load(archive, keep_sensitive=False)),
}


@cache
def people(dataset: str) -> People:
    """Return a data set, once read."""
    return READERS[dataset](Archive(download=False))


def scores(dataset: str, third: int, results: Path) -> Mapping[str, Floats]:
    """Return every model's scores of the people of one third, kept in the results folder."""
    path = results / "papers" / "few_labels" / "thirds" / f"{dataset}-{third}.csv"
    if not path.is_file():
        whole = people(dataset)
        train, test = whole.held_out(third)
        seed = integer_seed(rng(third, "few_labels", "model", dataset))
        found = {}
        with warnings.catch_warnings():
            # The defaults stop short of convergence where features are not scaled: the paper's too.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for name, model in MODELS.items():
                fitted = model(seed).fit(whole.features[train], whole.label[train])
                found[name] = fitted.predict_proba(whole.features[test])[:, 1]
        write_text(path, pd.DataFrame(found).to_csv(index=False))
    return {str(name): column.to_numpy() for name, column in pd.read_csv(path).items()}


@cache
def third_of(
    dataset: str, attribute: str, learner: str, third: int, results: Path, *, flip: bool = False
) -> few_labels.PartlyLabelled:
    """Return the people of one third, fully labelled, as a model scores them.

    A score of 1/2 is a positive decision, as the text has it.

    Parameters
    ----------
    flip : scores and decisions are those of the other class, as in German's released files.
    """
    whole, score = people(dataset), scores(dataset, third, results)[learner]
    _, rows = whole.held_out(third)
    score = 1 - score if flip else score
    group, reference = whole.groups[attribute][rows], whole.privileged[attribute]
    decided = score >= 0.5
    return partly_labelled(score, group, whole.label[rows], prediction=decided, reference=reference)


# The pools of the study: released score files, the orders their labels are shown in, the truth.


LEARNERS = ("mlp", "logistic_regression", "random_forest", "gaussian_nb")
ATTRIBUTES = (
    ("adult", "race"),
    ("adult", "sex"),
    ("bank", "age"),
    ("german", "age"),
    ("german", "sex"),
    ("compas_r", "race"),
    ("compas_r", "sex"),
    ("compas_vr", "race"),
    ("compas_vr", "sex"),
    ("ricci", "race"),
)
CONFIGURATIONS = tuple((*pair, learner) for pair in ATTRIBUTES for learner in LEARNERS)
FIGURE_POOLS = (
    ("adult", "sex", "logistic_regression"),
    ("adult", "race", "mlp"),
    ("compas_r", "sex", "mlp"),
    ("german", "sex", "random_forest"),
)
_MOST_LABELS = 1000
# The published preparation writes the scores of Adult's race file over those of its sex file.
_FILES = {("adult", "sex"): "adult_race"}


def run_pools(word: str, group: str | None, results: Path) -> dict[str, few_labels.PartlyLabelled]:
    """Return the first repeat of one of our runs, by one of its sensitive columns."""
    run = load_predictions(Catalogue(results).one(word))
    column = group or run.protect[0]
    frame, reference = predictions_frame(run, 0), run.people.privileged[column]
    said = (frame[name] for name in ("score", column, "target"))
    table = partly_labelled(*said, reference=reference)
    return {f"{run.people.name} {column} {run.name}": table}


def label_orders(table: few_labels.PartlyLabelled, runs: int) -> list[Rows]:
    """Return the order in which each run's labels are shown: a member of every group first.

    As far as any table of the study goes, which is to a thousand labels.
    """
    groups = table.group.tobytes()
    return [_order(groups, run) for run in range(runs)]


@lru_cache(maxsize=4096)
def _order(groups: bytes, run: int) -> Rows:
    group = np.frombuffer(groups, np.int64)
    order = shuffle(np.arange(len(group)), random_state=run)
    first = np.unique(group[order], return_index=True)[1]
    return np.concatenate([order[first], np.delete(order, first)])[:_MOST_LABELS].copy()


def shares(table: few_labels.PartlyLabelled) -> Floats:
    """Return what share of everyone outside the reference group each other group is, (G - 1,)."""
    size = table.sizes().sum(axis=1)[1:]
    return size / size.sum()


def everyone_else(counts: Counts) -> Floats:
    """Return counts with all groups but the reference as one, (..., G, 4) -> (..., 2, 4)."""
    others = counts[..., 1:, :].sum(axis=-2, keepdims=True)
    return np.concatenate([counts[..., :1, :], others], axis=-2).astype(np.float64)


def true_difference(table: few_labels.PartlyLabelled, rate: Rate) -> float:
    """Return the rate of everyone outside the reference group minus the reference's."""
    return float(difference(rate, everyone_else(table.counts()))[0])


# Rates of the labelled rows alone.


def frequentist(counts: Counts, rate: Rate) -> tuple[Floats, Floats]:
    """Return the rate of every group's labelled rows and its standard error, (G,) each.

    The variance is the delta method's for a ratio of multinomial sums, which is p (1 - p) / n for
    a proportion: none at all where all labelled rows agree, so the interval is then too short.

    Parameters
    ----------
    counts : (G, 4) labelled TN, FP, FN, TP.
    """
    value = rate(counts)
    residual = np.array(rate.numerator) - value[:, None] * np.array(rate.denominator)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt((counts * residual**2).sum(axis=-1)) / (counts @ np.array(rate.denominator))
    return value, error


def beta_parameters(counts: Counts, rate: Rate, prior: float = 1.0) -> tuple[Floats, Floats]:
    """Return the parameters of each group's Beta posterior, (..., 4) counts -> two (...).

    Parameters
    ----------
    prior : both parameters of the Beta prior: 1, uniform, is what the paper states; its tables
        agree with 1/2.
    """
    top, bottom = np.array(rate.numerator), np.array(rate.denominator)
    successes = counts @ top
    return prior + successes, prior + counts @ bottom - successes


def beta_binomial(
    counts: Counts,
    rate: Rate,
    generator: np.random.Generator,
    *,
    prior: float = 1.0,
    draws: int = 2048,
) -> Floats:
    """Draw a rate of every group from its Beta posterior, (..., G, 4) -> (T, ..., G)."""
    successes, failures = beta_parameters(counts, rate, prior)
    return generator.beta(successes, failures, size=(draws, *successes.shape))


def expected_l1_error(calibrated: Floats, optimal: Floats) -> float:
    """Return the mean of |f(s) - f*(s)| over the scores of a group.

    It bounds how far the accuracy that f expects of the group lies from its true one; the sum over
    two groups bounds the error of their difference (Ji 2020, Lemmas 4.5.1 and 4.5.2; Ji, Smyth,
    Steyvers 2020, Lemma 2.1).

    Parameters
    ----------
    calibrated : (n,) the posterior mean of the calibrated probability of label 1.
    optimal : (n,) the true probability of label 1 at that score.
    """
    return float(np.abs(np.asarray(calibrated) - np.asarray(optimal)).mean())


# What the published script makes of calibration draws for TPR and FPR, faults included.
#
# It evaluates the calibration map with the intercept in place of the second slope's logarithm, and
# on scores that are not clipped, though they were clipped for fitting. What it calls FPR is 1 -
# TPR; what it calls FNR is the false positive rate, which is read here.

# So few draws are enough for a mean over many runs.
_CODE_DRAWS, _LARGEST_LOG_ODDS, _LOWEST_LOG_ODDS = 64, 15.0, -700.0


def faulty_counts(table: few_labels.PartlyLabelled, rows: Rows, theta: Floats) -> Floats:
    """Return expected counts (64, G, 4) of the pool, from the first of the draws (T, G, 3)."""
    theta = theta[:_CODE_DRAWS]
    counts = np.zeros((len(theta), table.n_groups, 4))
    labelled = np.zeros(len(table.score), dtype=bool)
    labelled[rows] = True
    for group in range(table.n_groups):
        for prediction in (0, 1):
            cell = ~labelled & (table.group == group) & (table.prediction == prediction)
            positives = _faulty(table.score[cell], theta[:, group]).sum(axis=1)
            counts[:, group, 2 + prediction] = positives
            counts[:, group, prediction] = cell.sum() - positives
    return counts + table.counts(rows)


def _faulty(score: Floats, theta: Floats) -> Floats:
    """Return the probabilities (T, n) that the script gives scores (n,)."""
    a, _, c = theta.T[..., None]
    with np.errstate(divide="ignore", over="ignore"):
        odds = c + np.exp(a) * np.log(score) - np.exp(np.minimum(c, 10)) * np.log1p(-score)
    return 1 / (1 + np.exp(-np.clip(odds, _LOWEST_LOG_ODDS, _LARGEST_LOG_ODDS)))


# The methods of the study: the difference between a group and everyone else from few labels.

RATES: dict[str, Rate] = {
    "accuracy": accuracy,
    "tpr": true_positive_rate,
    "fpr": false_positive_rate,
}
HIERARCHY, APART = "beta_calibration", "beta_calibration_nonhierarchical"
# Without the shared means, groups lie around 0 as they lie around these in the hierarchy.
AROUND_0 = "beta_calibration_around_0"
_FAMILIES = {
    HIERARCHY: few_labels.BETA,
    "llo_calibration": few_labels.LLO,
    APART: few_labels.SEPARATE,
    AROUND_0: replace(few_labels.SEPARATE, mean_sd=few_labels.BETA.spread_sd or ()),
}
# What a calibration posterior can be read as: the paper's intervals, those with the scatter of
# unlabelled labels around their calibrated probability, and what the published script makes of it.
AS_PUBLISHED, POOL_NOISE, FAULTS = "as published", "pool noise", "faults"
_NORMAL = 1.96
_DRAWS = 512  # the text has 800: a mean over many runs needs few


@dataclass(frozen=True)
class Method:
    """A method, by its name in the published numbers, and its options.

    Attributes
    ----------
    scale : what the standard deviations of the priors are multiplied by.
    prior : both parameters of the Beta prior of labels alone: 1 in the text.
    reading : `AS_PUBLISHED`, `POOL_NOISE` or `FAULTS`, of a calibration.
    """

    name: str
    scale: float = 1.0
    prior: float = 1.0
    reading: str = AS_PUBLISHED


def rate_name(metric: str) -> str:
    """Return which of `RATES` a metric of the published numbers is about: ``mae_delta_tpr``."""
    return metric.partition("delta_")[2].removesuffix("_percent")


def intervals(
    table: few_labels.PartlyLabelled,
    subsets: Sequence[Rows],
    method: Method,
    rates: Sequence[Rate],
    generator: np.random.Generator,
) -> Floats:
    """Return estimate, lower and upper end of the differences for every label subset, (R, K, 3).

    The groups are modelled one by one; everyone outside the reference group is their mean by
    size, which is how the published numbers come out.
    """
    if method.name in _FAMILIES:
        return _calibrated(table, subsets, method, rates, generator)
    return np.stack([_of_rate(table, subsets, method, rate, generator) for rate in rates])


def _of_rate(
    table: few_labels.PartlyLabelled,
    subsets: Sequence[Rows],
    method: Method,
    rate: Rate,
    generator: np.random.Generator,
) -> Floats:
    """Return what a method without calibration says of every label subset, (K, 3)."""
    if method.name == "beta_binomial":
        counts = np.array([table.counts(rows) for rows in subsets])
        groups = beta_binomial(counts, rate, generator, prior=method.prior, draws=_DRAWS)
        return _summaries(_by_size(groups, table))
    if method.name == "plug_in":
        drawn = difference(rate, everyone_else(few_labels.plug_in_draws(table, generator)))
        centre = difference(rate, everyone_else(few_labels.plug_in(table)))[0]
        return np.tile([centre, *central_interval(drawn[:, 0])], (len(subsets), 1))
    by_hand = _from_labels if method.name == "frequentist" else _helped_by_scores
    return np.array([by_hand(table, rows, rate) for rows in subsets])


def _from_labels(table: few_labels.PartlyLabelled, rows: Rows, rate: Rate) -> Floats:
    """Return the difference among labelled rows, and the interval of its normal error."""
    (rates, errors), weights = frequentist(table.counts(rows), rate), shares(table)
    value = rates[1:] @ weights - rates[0]
    reach = _NORMAL * np.linalg.norm([errors[0], *(errors[1:] * weights)])
    return np.array([value, value - reach, value + reach])


def _helped_by_scores(table: few_labels.PartlyLabelled, rows: Rows, rate: Rate) -> Floats:
    """Return the difference and the interval that an audit of few labels has."""
    columns = table.score, table.prediction, np.minimum(table.group, 1), 2
    labelled = LabelledRows(*columns, rows, table.label[rows].astype(np.int64))
    counts = labelled.effective_counts([rate])
    limits = rate_limits(*(count[0] for count in counts))
    return np.array(difference_limits(limits.take(1), limits.take(0)))


def _calibrated(
    table: few_labels.PartlyLabelled,
    subsets: Sequence[Rows],
    method: Method,
    rates: Sequence[Rate],
    generator: np.random.Generator,
) -> Floats:
    """Return what a reading of posteriors says of rates, as `intervals`."""
    model, noisy = _FAMILIES[method.name].scaled(method.scale), method.reading == POOL_NOISE
    fixed: dict[str, Any] = {"pool_noise": noisy, "label_nodes": few_labels.NODES}
    family = few_labels.PosteriorFamily.of(table, generator, model=model, draws=_DRAWS, **fixed)
    generator.spawn(1)  # the recorded numbers are drawn without this child of it
    said = []
    for rows in subsets:
        posterior = family.posterior(rows, generator)
        counts = posterior.counts
        if method.reading == FAULTS:
            counts = faulty_counts(table, rows, posterior.theta)
        draws = [
            # With noise a group may have no row of the rate.
            difference(rate, everyone_else(counts))[:, 0]
            if noisy
            else _by_size(rate(counts), table)
            for rate in rates
        ]
        said.append(_summaries(np.stack(draws, axis=1)))
    return np.stack(said, axis=1)


def _by_size(groups: Floats, table: few_labels.PartlyLabelled) -> Floats:
    """Return the difference of everyone else's rate, averaged by size, and the reference's."""
    return groups[..., 1:] @ shares(table) - groups[..., 0]


def _summaries(draws: Floats) -> Floats:
    """Return mean and interval of several quantities' draws (T, R), as (R, 3)."""
    return np.column_stack([draws.mean(axis=0), *central_interval(draws)])


# The study.

Key = tuple[str, str, str]
Asked = tuple[str, float, int, str]  # a method of the published numbers, its scale, labels, rate
CONFIGURATION = ["dataset", "sensitive_attribute", "learner"]
LABELS_ALONE = ("frequentist", "beta_binomial")
GERMAN, BANK = "german", "bank"
WIDE = 3.0  # priors wider than this need chains, which are slow
_COLUMNS = ["method", "scale", "labels", "rate", "third"]
_ALL = [*_COLUMNS, "error", "sd", "defined", "coverage", "orders"]


@dataclass(frozen=True)
class Setting:
    """What is changed of the text.

    Attributes
    ----------
    cause : its name in ``mapping.yaml``; none is the text's own.
    released : the released scores, in place of models of other thirds.
    code : what the released code does: Beta(1/2, 1/2) for labels alone, German's scores of the
        other class, and its faults in the TPR and the FPR.
    cut : Bank's clients in the released groups, under 25 and over.
    around_0 : groups apart have the hierarchy's spread around 0, without that of its means.
    """

    cause: str = ""
    released: bool = False
    code: bool = False
    cut: bool = False
    around_0: bool = False

    def concerns(self, dataset: str, asked: Asked) -> bool:
        """Return whether a number may differ from the one without the change.

        Chains of very wide priors are drawn for the text's own setting alone: they take long.
        """
        method, scale, _, rate = asked
        if scale > WIDE and self != Setting():
            return False
        if self.cut:
            return dataset == BANK
        if self.around_0:
            return method == APART
        if self.code:
            turned = dataset == GERMAN or rate != "accuracy"
            return method == "beta_binomial" or (method in _FAMILIES and turned)
        return True

    def method(self, name: str, scale: float, rate: str) -> Method:
        """Return a method of the published numbers under this setting, for a rate."""
        faulty = self.code and name == HIERARCHY and rate != "accuracy"
        own_name = AROUND_0 if self.around_0 and name == APART else name
        reading = FAULTS if faulty else AS_PUBLISHED
        return Method(own_name, scale, 0.5 if self.code else 1.0, reading)

    def pools(self, key: Key, thirds: int, results: Path) -> list[few_labels.PartlyLabelled]:
        """Return fully labelled people, one table a third."""
        dataset, attribute, learner = key
        if self.released:
            return [released_pool(key, as_released=self.code)]
        attribute = "released age" if self.cut else attribute
        flip = self.code and dataset == GERMAN
        return [
            third_of(dataset, attribute, learner, third, results, flip=flip)
            for third in range(thirds)
        ]


TEXT = Setting()
SETTINGS = (
    TEXT,
    Setting("released code", code=True),
    Setting("groups apart around 0", around_0=True),
    Setting("released groups", cut=True),
    Setting("released scores", released=True),
    Setting("released scores and code", released=True, code=True),
)


@cache
def released_pool(key: Key, *, as_released: bool) -> few_labels.PartlyLabelled:
    """Return a model's released scores; a score of 1/2 is positive, except in the code."""
    dataset, attribute, learner = key
    name = _FILES.get((dataset, attribute), f"{dataset}_{attribute}")
    config = yaml.safe_load((CONF / "scores" / f"{name}.yaml").read_text())
    config.pop("_target_")
    file = ScoreFile(**config)
    column = next(name for name in file.groups if name.lower() == attribute)
    archive = Archive(download=False)
    table = file.table(archive, learner, column, as_released=as_released)
    if as_released:
        return table
    return replace(table, prediction=(table.score >= 0.5).astype(np.int64))


def size_of(method: Method, setting: Setting, effort: Effort) -> tuple[int, int]:
    """Return how many thirds are held out, and how many label orders a method gets of each.

    The released scores are of one third. Very wide priors are looked at in the first two alone.
    """
    thirds = 1 if setting.released else 4 if setting.cause else 8
    thirds = 2 if method.scale > WIDE else thirds
    orders = 20 if method.name in LABELS_ALONE else 4 if method.scale == 1 else 2
    few = min(thirds, 2), 2
    return effort.choose((thirds, 2 * orders if setting.released else orders), few, few)


def study(
    setting: Setting, key: Key, asked: Iterable[Asked], results: Path, effort: Effort
) -> pd.DataFrame:
    """Return errors and coverages of one data set, attribute and model, third by third.

    Returns
    -------
    Columns ``method``, ``scale``, ``labels``, ``rate`` and ``third``; ``error``, the mean absolute
    error in points over the label orders that have an estimate, ``defined``, how many these are,
    ``sd`` of one order's error, and ``coverage`` of 95 % intervals in percent of all ``orders``.
    """
    asked = sorted({a for a in asked if setting.concerns(key[0], a)})
    folder = "-".join(filter(None, ["study", effort.value]))
    name = "-".join([setting.cause or "text", *key]).replace(" ", "_")
    path = results / "papers" / "few_labels" / folder / f"{name}.csv"
    kept = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=_ALL)
    have = set(kept[_COLUMNS[:4]].itertuples(index=False, name=None))
    missing = [a for a in asked if a not in have]
    if not missing:
        return kept
    batches: dict[tuple[Method, str, int], list[str]] = {}
    for name, scale, labels, rate in missing:
        batches.setdefault((setting.method(name, scale, rate), name, labels), []).append(rate)
    most, new = max(size_of(method, setting, effort)[0] for method, *_ in batches), []
    for third, table in enumerate(setting.pools(key, most, results)):
        for (method, name, labels), rates in batches.items():
            thirds, runs = size_of(method, setting, effort)
            if third >= thirds:
                continue
            subsets = [order[:labels] for order in label_orders(table, runs)]
            generator = rng(0, "few_labels", *key, str(labels), str(third))
            of = [RATES[rate] for rate in rates]
            said = intervals(table, subsets, method, of, generator)
            for rate, values in zip(rates, said, strict=True):
                row = (name, method.scale, labels, rate, third)
                place = dict(zip(_COLUMNS, row, strict=True))
                new.append({**place, **measures(values, true_difference(table, RATES[rate]))})
    found = pd.DataFrame(new, columns=_ALL)
    frame = pd.concat([kept, found], ignore_index=True) if len(kept) else found
    write_text(path, frame.to_csv(index=False), lasting=False)
    return frame


def measures(values: Floats, truth: float) -> dict[str, float]:
    """Return what label orders (R, 3) say of a difference whose true value is known."""
    errors = 100 * np.abs(values[:, 0] - truth)
    defined = errors[~np.isnan(errors)]
    covered = (values[:, 1] <= truth) & (truth <= values[:, 2])
    return {
        "error": defined.mean() if len(defined) else np.nan,
        "sd": defined.std() if len(defined) else np.nan,
        "defined": len(defined),
        "coverage": 100 * covered.mean(),
        "orders": len(values),
    }


@dataclass(frozen=True)
class _Number:
    """A number of ours, as a printed one of one third may scatter around it.

    Attributes
    ----------
    mean : over the thirds. sd : of one third, with as many label orders as the printed number has.
    error : the standard error of the difference between the printed number and the mean.
    standard_error : that of the mean alone. thirds : how many there are.
    """

    mean: float
    sd: float
    error: float
    standard_error: float
    thirds: int


def number(rows: pd.DataFrame, *, coverage: bool, runs: int) -> _Number:
    """Return the mean over thirds of one method's errors or coverages, and its errors.

    A third's number varies from third to third, and by its label orders, of which ours are fewer.

    Parameters
    ----------
    rows : of `study`, a row a third. runs : the label orders behind the printed number.
    """
    if coverage:
        values, orders = rows["coverage"].to_numpy(), rows["orders"].to_numpy(float)
        # A run and a half more of either kind, so that 100 % has an error too.
        share = (values / 100 * orders + 1.5) / (orders + 3)
        variances = 1e4 * share * (1 - share)
    else:
        rows = rows[rows["defined"] > 0]
        values, orders = rows["error"].to_numpy(), rows["defined"].to_numpy(float)
        # Of an order's scatter, from few of them.
        variances = rows["sd"].to_numpy() ** 2 * orders / np.maximum(orders - 1, 1)
    if not len(values):
        return _Number(np.nan, np.nan, np.nan, np.nan, 0)
    within, noise = variances.mean(), (variances / orders).mean()
    split = max(0.0, values.var(ddof=1) - noise) if len(values) > 1 else 0.0
    theirs, ours = split + within / runs, (split + noise) / len(values)
    sd, error, standard_error = map(float, np.sqrt([theirs, theirs + ours, ours]))
    return _Number(float(values.mean()), sd, error, standard_error, len(values))
