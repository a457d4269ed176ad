"""The runs: every learner, intervention and method at least once, over every kind of split."""

from __future__ import annotations

from dataclasses import dataclass

GERMAN = "german/german.data"
GRADES = "law_school/law_school_gpa_reconstructed.csv"
BAR = "law_school/bar_pass_prediction.csv"
SMALL = ("dataset.n_samples=240", "dataset.n_features=4")
NUMBERS = ("dataset=simulated_regression", *SMALL, "split.repeats=2")
# The runs of one trade-off have their split in common; so have those of one comparison.
HOLDOUT = ("split.repeats=2", "split.validation=0.2")
FOLDS = ("split=kfold", "split.n_folds=3", "evaluator.bins=4")
HALVES = (*SMALL, "split=half_splits", "split.repeats=1", "evaluator.bins=4")
BAG = "method.members=3"
QUICK_NETWORK = "learner.epochs=5"


@dataclass(frozen=True)
class RunCase:
    """One run.

    Attributes
    ----------
    name : what the run is called in place of its id, which changes with the code. None is the
        beginning of another, and none has a digit in it.
    words : what it is made of.
    results : the results folder it shares with the runs it is compared with.
    raw : the raw file it needs, if any.
    committed : whether its metrics are kept in the repository: it is quick, and gives ten equal
        digits on every machine.
    """

    name: str
    words: tuple[str, ...]
    results: str = "others"
    raw: str = ""
    committed: bool = False


def _held(name: str, *words: str, committed: bool = False) -> RunCase:
    return RunCase(name, (*SMALL, *HOLDOUT, *words), "holdout", committed=committed)


def _folded(name: str, *words: str, committed: bool = False) -> RunCase:
    return RunCase(name, (*SMALL, *FOLDS, *words), "folds", committed=committed)


def _number(name: str, *words: str, committed: bool = False) -> RunCase:
    return RunCase(name, (*NUMBERS, *words), committed=committed)


TRADED = (
    _held("plain", "learner=gaussian_nb", "method=baseline",
          "evaluator.relaxations=[0,0.1,1]", committed=True),
    _held("reweighed", "learner=gaussian_nb", "intervention=reweighing", "method=ensemble", BAG,
          committed=True),
    _held("thresholds", "learner=gaussian_nb", "intervention=threshold_optimizer",
          "method=baseline", committed=True),
    _held("grid", "learner=logistic_regression", "intervention=grid_search", "method=baseline"),
    _held("gradient", "learner=logistic_regression", "intervention=exponentiated_gradient",
          "intervention.max_iter=5", "method=baseline"),
)  # fmt: skip

COMPARED = (
    _folded("bayes", "learner=gaussian_nb", "intervention=disparate_impact_remover",
            "method=selective_ensemble", BAG, committed=True),
    _folded("bound", "learner=linear_svm", "intervention=linear_ferm", "method=self_consistency",
            BAG),
    _folded("covariance", "learner=logistic_regression", "intervention=disparate_mistreatment",
            "method=baseline"),
    _folded("kernel", "learner=svm", "method=baseline", committed=True),
    _folded("linear", "learner=logistic_regression", "method=baseline", committed=True),
    _folded("mean", "learner=svm", "intervention=ferm", "method=baseline"),
    RunCase("half_kernel", (*HALVES, "learner=svm", "method=baseline"), "folds", committed=True),
    RunCase("half_linear", (*HALVES, "learner=logistic_regression", "method=baseline"),
            "folds", committed=True),
)  # fmt: skip

OTHERS = (
    RunCase("depths", (*SMALL, "split.repeats=1", "dataset.n_groups=3", "evaluator.bins=4",
                       "learner=xgboost", "method=binomial_nll", "consistency=max_depth",
                       "consistency.values=[2,4]", "consistency.replicates=1",
                       "evaluator.neighbours=5", "evaluator.choose_on=test",
                       "evaluator.feature_shift_rates=[0.1]"),
            committed=True),
    RunCase("boosted", (*SMALL, "split.repeats=2", "learner=lightgbm", "intervention=fairgbm",
                        "method=conformal")),
    RunCase("tuned", (*SMALL, "split=predefined", "dataset.shift=1", "learner=xgboost_tuned",
                      "learner.depths=[1,3]", "learner.rounds=6", "method=marginal")),
    RunCase("forest", (*SMALL, *FOLDS, "learner=random_forest", "learner.n_estimators=5",
                       "intervention=hardt", "method=random"), committed=True),
    RunCase("dropped", (*SMALL, "split.repeats=1", "learner=mlp", "learner.dropout=0.1",
                        QUICK_NETWORK, "method=mc_dropout")),
    RunCase("drawn", (*SMALL, "split.repeats=1", "learner=bayesian_nn", QUICK_NETWORK,
                      "method=bayes_by_backprop")),
    RunCase("network", (*SMALL, "split.repeats=1", "learner=sklearn_mlp", "learner.max_iter=400",
                        "learner.learning_rate_init=0.1", "intervention=reweighing",
                        "method=baseline")),
    _number("normal", "method=normal_nll", committed=True),
    _number("slow_normal", "method=normal_nll_reference"),
    # Some of its standard deviations are below zero, so that most metrics are invalid.
    _number("impossible", "learner.learning_rate=1", "method=normal_nll_reference"),
    _number("beta", "method=beta_nll", "method.beta=0.25"),
    _number("slow_beta", "method=beta_nll_reference"),
    _number("faithful", "learner=xgboost_tuned", "learner.depths=[1,3]", "learner.rounds=6",
            "method=faithful_nll"),
    _number("slow_faithful", "method=faithful_nll_reference"),
    _number("constant", "learner=random_forest", "learner.n_estimators=5", "method=constant_sd"),
    _number("several", "learner=mlp", QUICK_NETWORK, "method=deep_ensemble", "method.members=2"),
    _number("covered", "method=conformal", "method.scaled=true", "method.guarantee=group",
            "intervention=disparate_impact_remover"),
)  # fmt: skip

REAL = (
    RunCase("credit", ("dataset=german", *HOLDOUT, "learner=logistic_regression",
                       "method=baseline", "evaluator.relaxations=[0,0.1,1]"), "german", GERMAN),
    RunCase("ensemble", ("dataset=german", *HOLDOUT, "learner=xgboost", "method=ensemble", BAG),
            "german", GERMAN),
    RunCase("sexes", ("dataset=german", "split.repeats=1", "protect=[sex,age]", "evaluator.bins=4",
                      "learner=gaussian_nb", "intervention=reweighing", "method=baseline"),
            "german", GERMAN, committed=True),
    RunCase("grades", ("dataset=law_school", "split.repeats=1", "method=normal_nll"), raw=GRADES,
            committed=True),
    RunCase("bar", ("dataset=law_school_bar", "split=kfold", "split.n_folds=2",
                    "learner=logistic_regression", "method=binomial_nll"), raw=BAR),
)  # fmt: skip

RUNS = (*TRADED, *COMPARED, *OTHERS, *REAL)
