"""The 13 algorithms of Table 12.1, as choices of this project's learners and interventions."""

from __future__ import annotations

from functools import lru_cache

from hydra import compose, initialize_config_dir

from fairbench.components.papers import CONF
from fairbench.core.errors import unknown_name
from fairbench.experiments.build import components
from fairbench.experiments.configuration import plain
from fairbench.experiments.study import Study

# German credit as the paper has it: 61 one-hot columns, groups age > 25 and age <= 25.
DATA = ("dataset=german", "dataset.columns=all", "dataset.privileged_age='> 25'", "protect=age")

_LR = ("learner=logistic_regression", "learner.C=1.0")
# Labels are the sides of the margin, as in the paper: nothing is calibrated.
_SVM = ("learner=svm", "learner.C=1.0", "learner.folds=0")
_LINEAR_SVM = ("learner=linear_svm", "learner.C=1.0", "learner.folds=0")
# The paper's label is the good loan, label 0 of this data set: its rates are to be equal.
_GOOD = "intervention.label=0"

# Table 12.1's name -> overrides of a run's configuration.
ALGORITHMS: dict[str, tuple[str, ...]] = {
    "LR": (*_LR, "intervention=none"),
    "SVM": (*_SVM, "intervention=none"),
    "Linear SVM": (*_LINEAR_SVM, "intervention=none"),
    "Reweighing + LR": (*_LR, "intervention=reweighing"),
    "Reweighing + SVM": (*_SVM, "intervention=reweighing"),
    "Disparate impact remover + LR": (*_LR, "intervention=disparate_impact_remover"),
    "Disparate impact remover + SVM": (*_SVM, "intervention=disparate_impact_remover"),
    "Zafar": (*_LR, "intervention=disparate_mistreatment"),
    "FERM": (*_SVM, _GOOD, "intervention=ferm"),
    "Linear FERM": (*_LINEAR_SVM, _GOOD, "intervention=linear_ferm"),
    "LR + Hardt": (*_LR, "intervention=hardt"),
    "SVM + Hardt": (*_SVM, "intervention=hardt"),
    "Linear SVM + Hardt": (*_LINEAR_SVM, "intervention=hardt"),
}
_OTHER_C = ", C = "  # behind a name: the learner's own C in place of 1, as in "FERM, C = 0.4"


def overrides(name: str) -> list[str]:
    """Return the overrides of the run of one algorithm, its data set included.

    Raises
    ------
    UserError : an algorithm that Table 12.1 does not have.
    """
    own, _, C = name.partition(_OTHER_C)
    if own not in ALGORITHMS:
        raise unknown_name("algorithm", own, ALGORITHMS)
    words = [word for word in ALGORITHMS[own] if not (C and word.startswith("learner.C="))]
    return [*DATA, *words, *([f"learner.C={C}"] * bool(C)), "method=baseline"]


@lru_cache(maxsize=32)
def study(name: str) -> Study:
    """Return the data and components of one algorithm, as that run would build them."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = plain(compose("config", overrides(name), return_hydra_config=True))
    parts = components(cfg)
    return Study(
        parts.dataset,
        parts.learner,
        parts.intervention,
        parts.method.fitter,
        int(cfg["seed"]),
        parts.protect,
    )
