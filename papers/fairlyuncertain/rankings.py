"""Which method is surely better: paired differences over hold-outs, with intervals that hold.

``python -m papers.fairlyuncertain.rankings`` reads finished runs and prints one score of a method
less that of another, and how far an intervention moves the gap in selection rates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.evaluation.columns import values_of
from fairbench.inference.rates import Limits
from fairbench.inference.repeats import REPEATS, Splits, mean_limits
from fairbench.reporting.papers.matching import command
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

EXPERIMENT = "fairlyuncertain/interventions"  # which has most of the pairs
SCORES = {
    "nll": ("constant_sd", ("normal_nll", "beta_nll", "faithful_nll", "marginal")),
    "log_loss": ("ensemble", ("binomial_nll",)),
    "truth_rank_correlation": ("deep_ensemble", ("binomial_nll", "self_consistency", "ensemble")),
}


def main(options: Results) -> None:
    """Print all pairs of finished runs that differ in the method or the intervention alone.

    Raises
    ------
    UserError : there are no such runs.
    """
    runs = [run for run in Catalogue(options.results) if run.config["split"]["name"] == "holdout"]
    table = Table(title="paired differences over hold-outs", title_justify="left")
    for name in ("runs", "of", "first", "second", "difference", "95 % interval"):
        table.add_column(name)
    for row in (*scores(runs), *parity(runs)):
        table.add_row(*row)
    if not table.row_count:
        raise UserError(
            f"there are no two finished runs to compare in {options.results}: make them with "
            f"{command(EXPERIMENT)}"
        )
    Console(width=110).print(table)


def scores(runs: list[Run]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each score and each two methods of :data:`SCORES` on the same splits."""
    for score, (name, others) in SCORES.items():
        for first in runs:
            if first.choices["method"] != name or first.choices["intervention"] != "none":
                continue
            for second in (run for run in runs if run.choices["method"] in others):
                if _alike(first, second, "method"):
                    a, b = (_values(run, score) for run in (first, second))
                    if len(a) == len(b) > 1 and np.isfinite(a - b).all():
                        names = (name, second.choices["method"])
                        yield _row(first, f"{score}: {' - '.join(names)}", a, b)


def parity(runs: list[Run]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each intervention: the gap in selection rates of two groups, before, after.

    The gap is that of the mean rates, so that differences keep their sign and noise adds nothing.
    """
    for plain in (run for run in runs if run.choices["intervention"] == "none"):
        for run in runs:
            name = run.choices["intervention"]
            if name == "none" or not _alike(plain, run, "intervention"):
                continue
            a, b = (_differences(each) for each in (run, plain))
            if a.shape == b.shape and len(a) > 1:
                what = f"parity: {name} - none, {run.choices['method']}"
                yield _row(run, what, np.sign(a.mean()) * a, np.sign(b.mean()) * b)


def paired(first: Floats, second: Floats, share: float) -> Limits:
    """Return the mean difference of values in the same hold-outs, with its corrected t interval.

    Parameters
    ----------
    share : the share of the rows trained on or tested that a hold-out tests.
    """
    none = np.full(len(first), np.nan)
    return mean_limits(first - second, none, none, Splits(REPEATS, len(first), share))


def _row(run: Run, what: str, first: Floats, second: Floats) -> tuple[str, ...]:
    found = paired(first, second, _test_share(run))
    ends = f"{float(found.lower):+.4f} to {float(found.upper):+.4f}"
    dataset = f"{run.choices['dataset']}, {run.config['learner'].get('rounds', '-')} rounds"
    means = (f"{first.mean():.3f}", f"{second.mean():.3f}")
    return dataset, what, *means, f"{float(found.value):+.4f}", ends


def _alike(first: Run, second: Run, but: str) -> bool:
    """Say whether two runs of the same splits differ in one group of options alone."""
    names = {"learner", "intervention", "method", "split"} - {but}
    same = all(first.environment[name] == second.environment[name] for name in ("data", "rows"))
    return same and all(first.config[name] == second.config[name] for name in names)


def _values(run: Run, score: str) -> Floats:
    found = values_of(run.all_metrics()).query(
        f"metric == '{score}' and attribute == '' and variant == ''"
    )
    values: Floats = found.sort_values("repeat")["value"].to_numpy(float)
    return values


def _differences(run: Run) -> Floats:
    """Return the difference of the two groups' selection rates in every hold-out."""
    words = f"metric == 'selection_rate' and attribute == '{run.protect}' and variant == ''"
    rows = values_of(run.all_metrics()).query(words)
    found = rows.pivot(index="repeat", columns="group", values="value")
    rates = found.to_numpy(float)
    return rates[:, 0] - rates[:, 1] if rates.shape[1] == 2 else np.empty(0)


def _test_share(run: Run) -> float:
    split = run.config["split"]
    tested = 1 - split["train"]
    return float(tested / (tested + split["train"] * (1 - split["validation"])))


if __name__ == "__main__":
    run_main(main, Results)
