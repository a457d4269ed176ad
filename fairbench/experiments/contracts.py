"""The contracts that learners, interventions, fitters and methods meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.data.dataset import Dataset, Task
from fairbench.data.encoding import Encoding, Frame

RawOutputs = Mapping[str, NDArray[Any]]


class Loss(Protocol):
    """A frozen dataclass: a loss of raw scores (n, k), which `gradient` and `curvature` define."""

    @property
    def name(self) -> str:
        """What learners list in their `losses`."""
        ...

    @property
    def outputs(self) -> int:
        """How many raw scores a row has, k."""
        ...

    @property
    def is_gradient_of_value(self) -> bool:
        """Whether `gradient` is the derivative of `value`; else `value` only judges a fit."""
        ...

    @property
    def scale_detached_from_trunk(self) -> bool:
        """Whether a network keeps the second score's gradient out of what the scores share."""
        ...

    @property
    def curvature_has_unit(self) -> bool:
        """Whether `curvature` depends on the unit of the labels."""
        ...

    @property
    def vector_leaves(self) -> bool:
        """Whether its definition includes trees that both scores share."""
        ...

    def initial(
        self, y: NDArray[np.float64], weight: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the constant raw scores to start from, (k,)."""
        ...

    def value(self, y: NDArray[np.float64], raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what judges a fit on rows it has not seen, (n,): the lower the better."""
        ...

    def gradient(self, y: NDArray[np.float64], raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative with respect to the raw scores, (n, k)."""
        ...

    def curvature(self, y: NDArray[np.float64], raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a positive second derivative (or Fisher information), (n, k)."""
        ...

    def link(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return predictions, (n, k): a probability, a mean, or mean and standard deviation."""
        ...


class Learner(Protocol):
    """A frozen dataclass of hyperparameters.

    One whose estimators draw networks from a fitted one, ``predict_members(X, members, seed)`` ->
    (M, n, k), names what draws them: ``members_by = "weights"``.
    """

    @property
    def losses(self) -> frozenset[str]:
        """Names of the losses it can minimise."""
        ...

    @property
    def encoding(self) -> Encoding:
        """The features it takes."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """Distributions whose version can change its predictions."""
        ...

    @property
    def reads_groups(self) -> bool:
        """Whether its predictions depend on the protected groups beyond the features."""
        ...

    @property
    def seeded(self) -> bool:
        """Whether its fits depend on their seed."""
        ...

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator: ``fit(X, y, sample_weight=None)``, float64 outputs.

        ``predict_proba`` for binary tasks, ``predict`` for regression; where the loss has two
        outputs also ``predict_distribution``, the (n, 2) means and standard deviations.
        """
        ...

    def incompatible(self, dataset: Dataset) -> str | None:
        """Say why it cannot learn this data set, or None."""
        ...


class Model(Protocol):
    """What an intervention makes of an estimator.

    One with something to say of its fit has ``diagnostics``, names to numbers, which are listed
    beside the run's metrics, averaged over a cell's models.
    """

    def fit(
        self,
        X: Frame,
        y: NDArray[np.float64],
        *,
        sensitive_features: pd.Series,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Model:
        """Fit on training rows."""
        ...

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return (n,) arrays: ``score``, ``prediction``, or ``mean`` with or without ``sd``."""
        ...


class Intervention(Protocol):
    """A frozen dataclass that changes how an estimator is fitted or read.

    One whose models predict labels without a probability says ``gives_score = False``, and is not
    composed with methods that read one. One that cannot compare any number of groups says
    ``groups_at_most = 2``, and is refused where more are protected. One whose models pass on the
    members of a learner says ``gives_members = True``.
    """

    @property
    def losses(self) -> frozenset[str] | None:
        """Names of the losses whose estimators it can wrap; None for every loss."""
        ...

    @property
    def packages(self) -> tuple[str, ...]:
        """Distributions whose version can change its predictions."""
        ...

    @property
    def reads_groups(self) -> bool:
        """Whether its predictions depend on the protected groups beyond the features."""
        ...

    def wrap(self, estimator: Any, seed: int) -> Model:
        """Return the unfitted model."""
        ...

    def incompatible(self, dataset: Dataset, learner: Learner) -> str | None:
        """Say why it cannot work here, or None."""
        ...


MakeModel = Callable[[int], Model]


@dataclass(frozen=True)
class TrainingSet:
    """Encoded training rows; `X` is one object for every fit, so learners may keep its bins.

    `seeded` says whether fits depend on their seed: where they do not, members that should differ
    by it need bootstraps.
    """

    X: Frame
    y: NDArray[np.float64]
    sensitive: pd.Series
    task: Task
    seeded: bool = False


class Fitted(Protocol):
    """Fitted models that turn features into raw outputs."""

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return raw outputs: name -> (n,) or (n, members) arrays."""
        ...


class Fitter(Protocol):
    """What a cell computes: a frozen dataclass that fits models, and never sees test targets.

    One whose fits or outputs depend on the protected groups says ``reads_groups = True``.
    """

    def loss(self, task: Task) -> Loss:
        """Return the loss minimised on this task."""
        ...

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit as many models as it takes; `make_model` takes an integer seed."""
        ...


class Method(Protocol):
    """An uncertainty method: a fitter, and a reading of its raw outputs.

    A method whose definition allows impossible values says ``keep_invalid = True``: they are then
    kept, and metrics over them are undefined; from all others they are refused. One that cannot
    read a binary task's labels without probabilities says ``reads_score = True``. One that reads
    networks drawn from a fitted one names what draws them, ``reads_members_by = "weights"``, and
    the ``learners`` that have it.
    """

    @property
    def fitter(self) -> Fitter:
        """What its cells compute."""
        ...

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Turn raw outputs into prediction columns; pure, and never fits."""
        ...

    def incompatible(self, dataset: Dataset) -> str | None:
        """Say why it cannot work on this data set, or None."""
        ...
