"""The comparisons and trade-offs of the runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableCase:
    """A table made of finished runs.

    Attributes
    ----------
    task : ``compare`` or ``tradeoff``.
    results : the folder of the runs.
    runs : those it rests on, by name; the table is committed where they all are.
    raw : the raw file its runs need, if any.
    """

    name: str
    task: str
    words: tuple[str, ...]
    results: str
    runs: tuple[str, ...] = ()
    raw: str = ""


def _compared(
    name: str,
    runs: tuple[str, ...],
    *words: str,
    results: str = "folds",
    besides: tuple[str, ...] = (),
    raw: str = "",
) -> TableCase:
    named = f"compare=[{','.join(runs)}]"
    return TableCase(name, "compare", (named, *words), results, (*runs, *besides), raw)


HELD = ("plain", "reweighed", "thresholds")
TABLES = (
    _compared("pooled folds", ("bayes", "linear")),
    _compared("rho and rope", ("kernel", "linear"), "rho=1/K", "rope=[0.02,0.05]", "level=0.9",
              "objectives=[balanced_accuracy,equalized_odds]", "paired=false"),
    _compared("one objective", ("linear", "kernel"), "rho=0.1", "objectives=[accuracy]",
              "rope=[0.01]", "predictive=true", "seed=1", "draws=2000"),
    _compared("relative rho", ("kernel", "linear"), "rho=relative_up", "rho_per=group",
              besides=("half_kernel", "half_linear")),
    _compared("repeats", ("plain", "reweighed"), "alpha=0.5", results="holdout"),
    _compared("ranked", HELD, "certainty=0.6", results="holdout"),
    _compared("credit", ("credit", "ensemble"), results="german", raw="german/german.data"),
    TableCase("all folds", "compare", ("compare=all",), "folds"),
    TableCase("all held out", "tradeoff", ("dataset=simulated",), "holdout"),
    TableCase("german", "tradeoff", ("dataset=german", "protect=age"), "german",
              raw="german/german.data"),
)  # fmt: skip
# The trade-off of the committed runs alone: other runs of the folder would be in it too.
COMMITTED_TRADEOFF = TableCase("held out", "tradeoff", ("dataset=simulated",), "holdout", HELD)
