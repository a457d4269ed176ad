"""Any classifier or regressor of scikit-learn, by the name of its class."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import Any

from fairbench.core.errors import UserError, check_choice
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import (
    ANY_LABEL,
    BINARY,
    MULTICLASS,
    REGRESSION,
    Capabilities,
    Learner,
    Loss,
)

# No other package is imported because a configuration names it, which may be a stranger's.
_PACKAGE = "sklearn"
_SET = {"random_state": "seed=", "n_jobs": "n_jobs="}  # options of a run that say it
_WRITE = "write one such as learner.estimator=sklearn.ensemble.ExtraTreesClassifier"


def learner_of(estimator: str = "", options: Mapping[str, Any] = MappingProxyType({})) -> Sklearn:
    """Return the learner of a class, such as ``sklearn.ensemble.ExtraTreesClassifier``.

    Raises
    ------
    UserError : options without names.
    """
    if not isinstance(options, Mapping):
        raise UserError(f"learner.options is {options!r}: write {{NAME: VALUE}}")
    return Sklearn(estimator, dict(options))


@dataclass(frozen=True)
class Sklearn(Learner):
    """A class of scikit-learn by its name, and its options; the others are as they are there."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse a class or options that there are not, or that predict no probability."""
        from sklearn.base import is_classifier, is_regressor

        made = self._made()
        if not is_classifier(made) and not is_regressor(made):
            raise UserError(f"learner.estimator is {self.name}, which predicts nothing: {_WRITE}")
        if is_classifier(made) and not hasattr(made, "predict_proba"):
            raise UserError(
                f"learner.estimator is {self.name}, which gives no probability as it is "
                "configured: choose a class, or options, with which it has predict_proba"
            )

    @cached_property
    def capabilities(self) -> Capabilities:
        """Labels of a classifier, and values of a regressor."""
        from sklearn.base import is_classifier

        labels = is_classifier(self._made())
        return Capabilities(
            tasks=BINARY | MULTICLASS if labels else REGRESSION,
            losses=ANY_LABEL if labels else frozenset({"squared_error"}),
            packages=("scikit-learn", "scipy"),
            seeded="random_state" in self._named_options,
        )

    @cached_property
    def _class(self) -> Any:
        """The class that is named.

        Raises
        ------
        UserError : there is none of this name in scikit-learn.
        """
        from sklearn.base import BaseEstimator

        module, _, name = self.name.rpartition(".")
        if module.partition(".")[0] != _PACKAGE:
            raise UserError(
                f"learner.estimator is '{self.name}', which is no class of scikit-learn: {_WRITE}, "
                "or add a learner of your own (docs/howto/extend.md)"
            )
        try:
            defined = vars(import_module(module))
        except ImportError as error:
            raise UserError(f"learner.estimator is {self.name}: {error}; {_WRITE}") from error
        classes = {
            key
            for key, value in defined.items()
            if isinstance(value, type) and issubclass(value, BaseEstimator)
        }
        check_choice(f"class of {module}", name, classes)
        return defined[name]

    @property
    def _named_options(self) -> Collection[str]:
        return signature(self._class).parameters

    def _made(self, **further: Any) -> Any:
        """Return an unfitted estimator.

        Raises
        ------
        UserError : an option that it does not have, or a value that cannot be.
        """
        names = self._named_options
        for option in self.options:
            check_choice(f"option of {self.name} in learner.options", option, names)
            if option in _SET:
                raise UserError(f"learner.options.{option}: leave it out; {_SET[option]} sets it")
        further |= {"n_jobs": 1}
        try:
            return self._class(
                **self.options, **{name: further[name] for name in further if name in names}
            )
        except TypeError as error:
            raise UserError(f"learner.options of {self.name}: {error}") from error

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        from fairbench.components.algorithms.estimators.counted import Counted

        return Counted(self._made(random_state=seed), loss.classes)
