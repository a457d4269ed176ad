"""A Bayesian neural network: Bayes by Backprop (Blundell et al. 2015), by torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import UserError, check_minimum, check_share, unknown_name
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Learner, Loss

INITIAL_MEANS = ("uniform", "normal")


@dataclass(frozen=True)
class BayesianNN(Learner):
    """Hyperparameters: ReLU layers of `hidden` units whose weights have normal posteriors.

    Minimised is KL(posterior, prior) + `likelihood_weight` x the mean negative log-likelihood of
    a row, over `samples` draws of the weights at a time. The likelihood so counts for
    `likelihood_weight` rows, however many there are: Kuzucu et al. (2024) have 2000. Without one
    (null) it counts for the rows trained on, which is Bayes' rule.

    The prior is a mixture of two normals, `prior_share` of it with standard deviation
    `prior_narrow` and the rest `prior_wide`. Kuzucu et al. print 0.5, 0 and 6: the last two are
    read as -log of standard deviations, 1 and 0.0025, as Blundell et al. choose theirs (-log of
    one in {0, 1, 2}, of the other in {6, 7, 8}). `prior_share=0` is one normal.

    Every posterior starts with standard deviation `initial_sd`, which a short training keeps, and
    with a mean drawn as `initial_means` says: ``uniform`` within 1 / sqrt(fan in), the last biases
    at the labels' base rate; or ``normal``, standard normal all, as Kuzucu et al. draw them.
    `validation` of the training rows say when to stop: `patience` epochs after the best.
    """

    hidden: Sequence[int] = (25,)
    samples: int = 10
    prior_share: float = 0.5
    prior_narrow: float = 0.0025
    prior_wide: float = 1.0
    likelihood_weight: float | None = 2000.0
    initial_means: str = "uniform"
    initial_sd: float = 0.02
    epochs: int = 100
    batch_size: int = 128
    learning_rate: float = 0.003
    validation: float = 0.15
    patience: int = 10

    capabilities = Capabilities(
        tasks=ANY_TASK,
        losses=frozenset({"binomial", "softmax", "squared_error", "normal_nll"}),
        packages=("torch",),
        seeded=True,
        gives=frozenset({"a posterior over weights"}),
    )
    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what could not be trained."""
        for units in self.hidden:
            check_minimum("learner.hidden", units, 1)
        for name in ("samples", "epochs", "batch_size", "patience"):
            check_minimum(f"learner.{name}", getattr(self, name), 1)
        check_minimum("learner.learning_rate", self.learning_rate, 0)
        check_share("learner.prior_share", self.prior_share, zero=True)
        check_share("learner.validation", self.validation)
        if self.initial_means not in INITIAL_MEANS:
            raise unknown_name("learner.initial_means", self.initial_means, INITIAL_MEANS)
        if self.initial_sd <= 0:
            raise UserError(f"learner.initial_sd is {self.initial_sd}; it must be above 0")
        if not 0 < self.prior_narrow <= self.prior_wide:
            raise UserError(
                f"learner.prior_narrow is {self.prior_narrow} and learner.prior_wide "
                f"{self.prior_wide}; they must be above 0, the narrow one not the wider"
            )
        if self.likelihood_weight is not None and self.likelihood_weight <= 0:
            raise UserError(
                f"learner.likelihood_weight is {self.likelihood_weight}; it must be above 0, or "
                "null for the number of training rows"
            )

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.bayesian_nn import BayesianNNEstimator

        return BayesianNNEstimator(loss, self, seed)
