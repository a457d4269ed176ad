"""Every method's errors and coverages on held-out thirds, and on the released scores.

The text holds one third of each data set out. Here it is one of several: a printed number is one
third's, and scatters as ours do. What is changed of the text is a `Setting`; each setting of each
data set, attribute and model is a file of the results folder, so that a study goes on where it was
stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from fairbench.components.papers.few_labels.methods import (
    APART,
    AROUND_0,
    AS_PUBLISHED,
    FAULTS,
    HIERARCHY,
    MODELS,
    RATES,
    Method,
    calibrated,
    intervals,
)
from fairbench.components.papers.few_labels.people import third_of
from fairbench.components.papers.few_labels.pools import (
    Rows,
    label_orders,
    released,
    true_difference,
)
from fairbench.core.arrays import Floats
from fairbench.core.files import atomic
from fairbench.core.seeds import rng
from fairbench.data.download import Archive
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.reporting.papers.running import Effort

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
            return method == "beta_binomial" or (method in MODELS and turned)
        return True

    def method(self, name: str, scale: float) -> Method:
        """Return a method of the published numbers under this setting."""
        name = AROUND_0 if self.around_0 and name == APART else name
        return Method(name, scale, prior=0.5 if self.code else 1.0)

    def pools(self, key: Key, thirds: int, results: Path) -> list[PartlyLabelled]:
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
RELEASED = Setting("released scores", released=True)
SETTINGS = (
    TEXT,
    Setting("released code", code=True),
    Setting("groups apart around 0", around_0=True),
    Setting("released groups", cut=True),
    RELEASED,
    Setting("released scores and code", released=True, code=True),
)


@cache
def released_pool(key: Key, *, as_released: bool) -> PartlyLabelled:
    """Return a model's released scores; a score of 1/2 is positive, except in the code."""
    table = released(Archive.of(download=False), *key, as_released=as_released)
    if as_released:
        return table
    return replace(table, prediction=(table.score >= 0.5).astype(np.int64))


@dataclass(frozen=True)
class Size:
    """How many thirds are held out, and how many orders of labels each method gets of each.

    Attributes
    ----------
    thirds, wide_thirds : all of them, and the first ones, at which very wide priors are looked at.
    alone, calibration, scaled, wide : orders of labels alone, of calibrations, and of these.
    """

    thirds: int
    wide_thirds: int
    alone: int
    calibration: int
    scaled: int
    wide: int

    @classmethod
    def of(cls, effort: Effort, setting: Setting) -> Size:
        """Return the size of a study; the released scores are of one third."""
        first = cls(2, 2, 2, 2, 2, 2)
        if setting.released:
            return effort.choose(cls(1, 1, 40, 8, 4, 2), cls(1, 1, 5, 2, 2, 2), first)
        whole = cls(4 if setting.cause else 8, 2, 20, 4, 2, 2)
        return effort.choose(whole, cls(2, 1, 3, 2, 1, 1), first)

    def of_method(self, method: Method) -> tuple[int, int]:
        """Return how many thirds and how many label orders a method gets."""
        if method.name in LABELS_ALONE:
            return self.thirds, self.alone
        if method.scale > WIDE:
            return self.wide_thirds, self.wide
        if method.scale != 1:
            return self.thirds, self.scaled
        return self.thirds, self.calibration


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
    size = Size.of(effort, setting)
    tables = setting.pools(key, size.thirds, results)
    rows = [
        {**row, "third": third}
        for third, table in enumerate(tables)
        for row in _of_table(setting, key, table, missing, size, third)
    ]
    new = pd.DataFrame(rows, columns=_ALL)
    frame = pd.concat([kept, new], ignore_index=True) if len(kept) else new
    with atomic(path, lasting=False) as file:
        frame.to_csv(file, index=False)
    return frame


def _of_table(
    setting: Setting,
    key: Key,
    table: PartlyLabelled,
    asked: Sequence[Asked],
    size: Size,
    third: int,
) -> Iterator[dict[str, object]]:
    orders = label_orders(table, max(size.alone, size.calibration))
    for name, scale, labels in dict.fromkeys(a[:3] for a in asked):
        rates = [rate for *_, rate in (a for a in asked if a[:3] == (name, scale, labels))]
        method = setting.method(name, scale)
        thirds, runs = size.of_method(method)
        if third >= thirds:
            continue
        subsets = [order[:labels] for order in orders[:runs]]
        generator = rng(0, "few_labels", *key, str(labels), str(third))
        said = _said(table, subsets, method, rates, generator, code=setting.code)
        for rate, values in zip(rates, said, strict=True):
            measured = measures(values, true_difference(table, RATES[rate]))
            place = dict(zip(_COLUMNS, (name, scale, labels, rate), strict=False))
            yield {**place, **measured}


def _said(
    table: PartlyLabelled,
    subsets: Sequence[Rows],
    method: Method,
    rates: Sequence[str],
    generator: np.random.Generator,
    *,
    code: bool,
) -> Floats:
    """Return estimate and interval of the difference of some rates, (K, R, 3)."""
    of_rates = [RATES[rate] for rate in rates]
    if method.name not in MODELS:
        return intervals(table, subsets, method, of_rates, generator)
    faulty = [code and method.name == HIERARCHY and rate != "accuracy" for rate in rates]
    readings = [AS_PUBLISHED, *([FAULTS] if any(faulty) else [])]
    said = calibrated(table, subsets, method, of_rates, generator, readings)
    chosen = [said[FAULTS if wrong else AS_PUBLISHED][k] for k, wrong in enumerate(faulty)]
    return np.stack(chosen)


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
class Number:
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


def number(rows: pd.DataFrame, *, coverage: bool, runs: int) -> Number:
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
        return Number(np.nan, np.nan, np.nan, np.nan, 0)
    within, noise = variances.mean(), (variances / orders).mean()
    split = max(0.0, values.var(ddof=1) - noise) if len(values) > 1 else 0.0
    theirs = split + within / runs
    ours = (split + noise) / len(values)
    return Number(
        mean=float(values.mean()),
        sd=float(np.sqrt(theirs)),
        error=float(np.sqrt(theirs + ours)),
        standard_error=float(np.sqrt(ours)),
        thirds=len(values),
    )
