"""The contracts that learners, interventions, fitters and methods meet, and cells, one fit each.

What components must do is a class each; :class:`Study` and :class:`Cell` say which fits a run
needs, and under which id each is stored.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError, check_choice, check_minimum, check_types
from fairbench.core.fingerprint import code_digest, describe, versions
from fairbench.core.text import digest
from fairbench.data.dataset import Dataset, Task
from fairbench.data.features import AnyEncoding, Frame
from fairbench.data.splits import Fold
from fairbench.evaluation.uncertainties import REPLICATE

RawOutputs = Mapping[str, NDArray[Any]]

BINARY = frozenset({Task.BINARY})
MULTICLASS = frozenset({Task.MULTICLASS})
REGRESSION = frozenset({Task.REGRESSION})
ANY_TASK = BINARY | MULTICLASS | REGRESSION
ANY_LABEL = frozenset({"binomial", "softmax"})
# What features can be.
COLUMNS, SEQUENCES = frozenset({"columns"}), frozenset({"sequences"})
ANY_FEATURES = COLUMNS | SEQUENCES


@dataclass(frozen=True)
class Capabilities:
    """The abilities of a component, and its needs of the others; the defaults suit a plain one.

    Only :mod:`fairbench.experiments.build` refuses combinations, and it reads nothing else.

    Attributes
    ----------
    tasks : the tasks it works on: `BINARY`, `MULTICLASS`, `REGRESSION`, or a union of them.
    features : the kind of features that a learner or an intervention takes: `COLUMNS`,
        `SEQUENCES`, or `ANY_FEATURES`.
    packages : distributions whose version can change its predictions.
    reads_groups : its predictions depend on the protected groups beyond the features.
    group_at_prediction : the group of a new row must be known to predict it, beside its features.
    requires : modules that must be installed, which not every machine can have.
    losses : the names of the losses that a learner can minimise, or whose estimators an
        intervention can wrap. None is every loss.
    seeded : a learner's fits depend on their seed.
    rows_at_most : the largest data set a learner takes, and the option that raises it.
    gives : what a learner's estimators have that an intervention or a method may need, such as
        ``"a kernel"``.
    needs : the one of `gives` that an intervention or a method needs; empty for none.
    advice : a sentence on what to choose if no learner, as configured, gives that.
    gives_score : an intervention's models give a probability, not labels alone.
    gives_members : an intervention's models pass on the members that the learner's estimator gives.
    groups_at_most : the most groups that an intervention can compare; None for any number.
    reads_score : a method cannot read a binary task's labels without their probability.
    keep_invalid : a method's definition allows impossible values, such as a negative standard
        deviation. They are kept, and metrics over them are undefined; else they are refused.
    """

    tasks: frozenset[Task] = BINARY | REGRESSION
    features: frozenset[str] = COLUMNS
    packages: tuple[str, ...] = ()
    reads_groups: bool = False
    group_at_prediction: bool = False
    requires: tuple[str, ...] = ()
    losses: frozenset[str] | None = frozenset({"binomial", "squared_error"})
    seeded: bool = False
    rows_at_most: tuple[int, str] | None = None
    gives: frozenset[str] = frozenset()
    needs: str = ""
    advice: str = ""
    gives_score: bool = True
    gives_members: bool = False
    groups_at_most: int | None = None
    reads_score: bool = False
    keep_invalid: bool = False


class _Component(Protocol):
    """The base of learners, interventions, fitters and methods."""

    @property
    def capabilities(self) -> Capabilities:
        """Its abilities and needs; a plain component inherits this."""
        return Capabilities()


class Loss(Protocol):
    """A frozen dataclass: a loss of raw scores (n, k), which `gradient` and `curvature` define."""

    @property
    def name(self) -> str:
        """The name that learners list in their `losses`."""

    @property
    def outputs(self) -> int:
        """The number of raw scores of a row, k."""
        return 1

    @property
    def classes(self) -> int:
        """The number of classes of the labels; 0 if they are values."""
        return 0

    @property
    def scale_detached_from_trunk(self) -> bool:
        """Whether a network keeps the second score's gradient out of what the scores share."""
        return False

    @property
    def curvature_has_unit(self) -> bool:
        """Whether `curvature` depends on the unit of the labels."""
        return False

    @property
    def vector_leaves(self) -> bool:
        """Whether its definition includes trees that both scores share."""
        return False

    def initial(
        self, y: NDArray[np.float64], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the constant raw scores to start from, (k,)."""

    def value(self, y: NDArray[np.float64], raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the criterion that judges a fit on unseen rows, (n,); lower is better.

        `gradient` need not be its derivative.
        """

    def gradient(self, y: NDArray[np.float64], raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative with respect to the raw scores, (n, k)."""

    def curvature(self, y: NDArray[np.float64], raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a positive second derivative (or Fisher information), (n, k)."""

    def link(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return predictions, (n, k): probabilities, a mean, or mean and standard deviation."""


class Learner(_Component, Protocol):
    """A frozen dataclass of hyperparameters.

    The estimators of one that `gives` members have ``predict_members(X, members, seed)`` -> the
    (M, n, k) predictions of M networks drawn from the fitted one; of an ensemble, at most all.
    """

    @property
    def encoding(self) -> AnyEncoding:
        """The features it takes."""

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator: ``fit(X, y, sample_weight=None)``, float64 outputs.

        ``predict_proba`` for labels, (n, C) of C classes, those not trained on too; ``predict``
        for regression; where the loss is of values and has two outputs also
        ``predict_distribution``, the (n, 2) means and standard deviations.
        """


def class_probabilities(estimator: Any, X: Frame) -> NDArray[np.float64]:
    """Return the probabilities (n, C) that an estimator gives, be they an array or lists.

    Raises
    ------
    UserError : another shape.
    """
    probabilities = np.asarray(estimator.predict_proba(X), np.float64)
    if probabilities.ndim != 2:
        raise UserError(
            f"predict_proba of {type(estimator).__name__} gives shape {probabilities.shape}: it "
            "must give a row for each row, with a probability of each class"
        )
    return probabilities


class Model(Protocol):
    """A model made of an estimator by an intervention: fitted with groups, read as raw outputs."""

    @property
    def diagnostics(self) -> Mapping[str, float]:
        """Diagnostics of its fit: listed beside the run's metrics, averaged over a cell."""
        return {}

    def fit(
        self,
        X: Frame,
        y: NDArray[np.float64],
        *,
        sensitive_features: pd.Series,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Model:
        """Fit on training rows."""

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return (n,) arrays: ``score``, ``prediction``, or ``mean`` with or without ``sd``.

        The ``score`` is the probability of label 1, or (n, C) those of three or more classes.
        """


class Intervention(_Component, Protocol):
    """A frozen dataclass that changes how an estimator is fitted or read."""

    def wrap(self, estimator: Any, seed: int) -> Model:
        """Return the unfitted model."""


MakeModel = Callable[[int], Model]


@dataclass(frozen=True)
class TrainingSet:
    """Encoded training rows; `X` is one object for every fit, so learners may keep its bins.

    `seeded` says whether fits depend on their seed: where they do not, members that should differ
    by it need bootstraps. `classes` is how many classes there are, 0 where not several.
    """

    X: Frame
    y: NDArray[np.float64]
    sensitive: pd.Series
    task: Task
    seeded: bool = False
    classes: int = 0


@contextmanager
def guarded(components: Iterable[object], *given: Frame | pd.Series) -> Iterator[None]:
    """Keep what components are given from being changed in place: others are given it, too.

    Arrays cannot be written to from now on. Tables are compared with what they were.

    Raises
    ------
    UserError : a table was changed.
    """
    for data in given:
        # A sparse matrix has three arrays, and sequences one of each modality.
        parts = (data, *getattr(data, "parts", ()))
        names = ("data", "indices", "indptr", "frames")
        arrays = [data, *(getattr(part, name, None) for part in parts for name in names)]
        for array in arrays:
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
    tables = [data for data in given if isinstance(data, pd.DataFrame | pd.Series)]
    before = [table.copy(deep=False) for table in tables]
    yield
    if not all(table.equals(was) for table, was in zip(tables, before, strict=True)):
        classes = " or ".join(type(component).__name__ for component in components)
        how = "others are given it, too; change a copy, such as X = X.copy()"
        raise UserError(f"{classes} changes the table that it is given: {how}")


class Fitted(Protocol):
    """Fitted models that turn features into raw outputs."""

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return raw outputs: name -> (n,) or (n, members) arrays, with a last axis of classes."""


class Fitter(_Component, Protocol):
    """A frozen dataclass that fits the models of a cell, and never sees test targets."""

    def loss(self, task: Task, classes: int = 2) -> Loss:
        """Return the loss minimised on this task, of so many classes."""

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit as many models as it takes; `make_model` takes an integer seed."""


class Method(_Component, Protocol):
    """An uncertainty method: a fitter, and a reading of its raw outputs."""

    @property
    def fitter(self) -> Fitter:
        """What its cells compute."""

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Turn raw outputs into prediction columns; pure, and never fits."""


# Cells, one fit each: an id is a hash of everything that the fit's outputs depend on.

_PACKAGES = ("numpy", "pandas", "scikit-learn")


@dataclass(frozen=True)
class Study:
    """Everything that can affect the raw outputs of a run's cells, except the fold.

    `replicate` numbers fits that differ in their draws alone: other bootstraps, the same rows.
    """

    dataset: Dataset
    learner: Learner
    intervention: Intervention
    fitter: Fitter
    seed: int
    protect: tuple[str, ...] = ()
    replicate: int = 0

    @property
    def components(self) -> tuple[Learner, Intervention, Fitter]:
        """What makes its models, and fits them."""
        return self.learner, self.intervention, self.fitter

    @property
    def group_at_prediction(self) -> bool:
        """Whether a new row's group must be known to predict it."""
        return any(part.capabilities.group_at_prediction for part in self.components)

    @property
    def cost_key(self) -> str:
        """A hash that studies share whose cells cost about the same."""
        return digest([self.dataset.digest, *map(describe, self.components)])

    def identity(self) -> dict[str, Any]:
        """Return everything but the rows that determines the raw outputs.

        The data count by their content, not by who loaded them; components by the names of their
        classes and their options; code by what it computes.
        """
        parts = self.components
        loss = self.fitter.loss(self.dataset.task, len(self.dataset.classes))
        modules = [type(part).__module__ for part in (*parts, loss)]
        packages = [name for part in parts for name in part.capabilities.packages]
        reads_groups = any(part.capabilities.reads_groups for part in parts)
        return {
            "data": self.dataset.digest,
            "seed": [self.seed, self.replicate],
            "protect": self.protect if reads_groups else (),
            "components": [describe(part) for part in parts],
            # How a run is evaluated changes no fit.
            "code": code_digest(("fairbench.experiments.compute:compute", *modules)),
            "versions": versions([*_PACKAGES, *packages]),
        }


@dataclass(frozen=True)
class Cell:
    """One fold of a study, and the id its outputs are stored under."""

    study: Study
    fold: Fold
    id: str
    variant: str = ""

    @property
    def repeat_and_fold(self) -> tuple[int, int]:
        """The repeat and the fold."""
        return self.fold.repeat, self.fold.fold


def cells_of(study: Study, folds: Sequence[Fold], variant: str = "") -> list[Cell]:
    """Return the cells of a study; an id is a hash of the study and of the rows themselves."""
    identity = study.identity()
    return [
        Cell(study, fold, digest([identity, fold.repeat, fold.fold, rows_digest(fold)]), variant)
        for fold in folds
    ]


@lru_cache(maxsize=512)
def rows_digest(fold: Fold) -> str:
    """Return a hash of the rows of a fold, part by part."""
    total = hashlib.sha256()
    for rows in (fold.train, fold.validation, fold.test):
        total.update(np.ascontiguousarray(rows, np.int64).data)
        total.update(b"|")
    return total.hexdigest()


# A study that differs from the run's own in one respect: what names it, and what reads its cells.
Variant: TypeAlias = "tuple[str, Study, Method]"


@dataclass(frozen=True)
class Consistency:
    """Which hyperparameter is varied to see whether uncertainties stay the same.

    Attributes
    ----------
    vary : ``learner.max_depth``, or any option of the learner, intervention or method.
    values : its values.
    replicates : further fits of the run's own configuration with other draws (bootstraps, seeds):
        the noise that a variation over `values` has to be compared with.
    fresh_draws : give every value draws of its own (the papers' code does) instead of the same.
    """

    vary: str | None = None
    values: Sequence[Any] = ()
    replicates: int = 0
    fresh_draws: bool = False

    def __post_init__(self) -> None:
        """Refuse half a variation."""
        check_minimum("consistency.replicates", self.replicates, 0)
        if bool(self.vary) != bool(self.values):
            raise UserError(
                "consistency.vary and consistency.values go together, such as "
                "consistency.vary=learner.max_depth consistency.values=[5,6,7,8]"
            )
        if self.vary and len(self.values) < 2:
            raise UserError("consistency.values needs at least two values to compare")
        if len({str(value) for value in self.values}) < len(self.values):
            raise UserError("consistency.values has a value twice")

    def variants(self, study: Study, method: Method) -> Iterator[Variant]:
        """Yield a variant per value, then one per replicate.

        Raises
        ------
        UserError : an option that the component does not have.
        """
        for i, value in enumerate(self.values, start=1):
            label, varied, reading = _vary(study, method, str(self.vary), value)
            yield label, replace(varied, replicate=i if self.fresh_draws else 0), reading
        for i in range(1, self.replicates + 1):
            yield f"{REPLICATE}{i}", replace(study, replicate=i), method


def _variant_label(vary: str, value: Any) -> str:
    """Return the name of the variant with a value of an option such as ``learner.gamma``."""
    return f"{vary.partition('.')[2]}={value}"


def _vary(study: Study, method: Method, vary: str, value: Any) -> Variant:
    """Return the variant with another value of an option, such as ``learner.gamma``."""
    group, _, option = vary.partition(".")
    groups = ("learner", "intervention", "method")
    check_choice("component in consistency.vary", group, groups)
    component: Any = method if group == "method" else getattr(study, group)
    fields = [field.name for field in dataclasses.fields(component)]
    check_choice(f"option of the {group} in consistency.vary", option, fields)
    check_types(group, type(component), {option: value})
    changed = replace(component, **{option: value})
    label = _variant_label(vary, value)
    if group == "method":
        return label, replace(study, fitter=changed.fitter), changed
    return label, replace(study, **{group: changed}), method
