"""Our numbers for Kuzucu et al.'s Tables 1 to 5: from trained networks, and counted in the data.

``python -m papers.uncertainty_fairness.tables`` trains the networks (a quarter of an hour) and
writes ``numbers.csv``, which the comparison reads.

The paper prints single runs: ours are means and sds over runs, 20 populations for SD1-3, splits for
COMPAS, networks of one split for Adult. A ratio over a variance too small to divide by is not
compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.datasets import adult, compas_zafar
from fairbench.components.papers import CONF, PAPERS, run_main
from fairbench.components.papers.uncertainty_fairness.networks import GAINS, TRAININGS
from fairbench.components.papers.uncertainty_fairness.networks import values as networks_of
from fairbench.core.errors import UserError
from fairbench.core.files import atomic
from fairbench.data.download import Archive
from fairbench.reporting.papers.mapping import Paper
from fairbench.reporting.papers.matching import command, finished_runs, runs_needed
from fairbench.reporting.papers.running import Effort
from fairbench.results.runs import Run

PAPER, TABLES = "uncertainty_fairness", ("1", "2", "3", "5")  # of trained networks
SYNTHETIC = ("sd1", "sd2", "sd3")
METRICS = {
    "accuracy": "accuracy",
    "ppv": "positive_predictive_value",
    "npv": "negative_predictive_value",
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "epistemic": "epistemic_uncertainty",
    "aleatoric": "aleatoric_uncertainty",
    "predictive": "predictive_uncertainty",
    "ratio_equalized_odds": "false_positive_rate",  # equation (25) at y = 0
    "ratio_statistical_parity": "selection_rate",
    "ratio_equal_opportunity": "true_positive_rate",
    "ratio_equal_accuracy": "accuracy",
    "ratio_epistemic": "epistemic_uncertainty",
    "ratio_aleatoric": "aleatoric_uncertainty",
    "ratio_predictive": "predictive_uncertainty",
}
# What the text's own formula gives, where the tables print another rate -> why the other is asked.
TEXTS = {
    "ppv": ("true_positive_rate", "TP / (TP + FP)"),
    "ratio_equal_opportunity": ("false_negative_rate", "true positive rates"),
    "ratio_equalized_odds": ("false_positive_rate", "equation (25) at y = 1"),
}
AT_ONE = "true_positive_rate"  # equation (25) at y = 1
GROUPS: dict[str, dict[str, str | tuple[str, ...]]] = {
    "group": {"0": "0", "1": "1"},
    "race": {"black": ("African-American", "Black"), "white": ("Caucasian", "White")},
    "age": {"<25": "under 25", "25-45": "25 to 45", ">45": "over 45"},
    "sex": {"female": "Female", "male": "Male"},
}
PAIRS = {
    "group": "01",
    "race": ("black", "white"),
    "age": ("<25", ">45"),
    "sex": ("female", "male"),
}
VARIANCES = ("epistemic_uncertainty", "aleatoric_uncertainty", "predictive_uncertainty")
NEGLIGIBLE = 2e-6  # the evaluator's: probabilities with a standard deviation of 0.001
RARE = 0.005  # of a rate
BAND = 0.2


def values(experiment: str, results: Path, **chosen: str) -> pd.DataFrame:
    """Return the groups' metrics of every finished run and repeat of an experiment.

    Parameters
    ----------
    chosen : option of the sweep, with ``__`` for its dots -> the value that the runs have of it.
    """
    return _of_groups(finished_runs(f"uncertainty_fairness/{experiment}", CONF, results), chosen)


def needed(experiment: str, results: Path, **chosen: str) -> pd.DataFrame:
    """Return what `values` does, where nothing can be said without any run.

    Raises
    ------
    UserError : there is no such finished run; it says which command makes them.
    """
    name = f"uncertainty_fairness/{experiment}"
    ours = _of_groups(runs_needed(name, CONF, results), chosen)
    if ours.empty:
        wanted = ", ".join(chosen.values())
        raise UserError(
            f"no finished run of {name} in {results} has {wanted}: make them with {command(name)}"
        )
    return ours


def _of_groups(
    runs: Iterable[tuple[dict[str, str], Run, pd.DataFrame]], chosen: Mapping[str, str]
) -> pd.DataFrame:
    """Return the groups' metrics, and a column for each option of a component that is swept."""
    parts, wanted = [], {name.replace("__", "."): value for name, value in chosen.items()}
    for choice, _, metrics in runs:
        if wanted.items() <= choice.items():
            of_groups = metrics["metric"].isin(METRICS.values()) & metrics["group"].ne("")
            options = {name: value for name, value in choice.items() if "." in name}
            run = " ".join(choice.get(name, "0") for name in ("seed", "dataset.seed"))
            dataset = choice["dataset"].removesuffix("_zafar")  # as the paper calls it
            part = metrics[of_groups].assign(dataset=dataset, run=run, **options)
            parts.append(part)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def single_runs(
    ours: pd.DataFrame, dataset: str, attribute: str, metric: str, group: str
) -> pd.Series:
    """Return a metric of a group in every run and repeat."""
    names = np.atleast_1d(GROUPS[attribute][group])
    chosen = ours["group"].isin(names) & ours["dataset"].eq(dataset)
    rows = ours[chosen & ours["attribute"].eq(attribute) & ours["metric"].eq(metric)]
    return rows.set_index(["run", "repeat"])["value"]


def ratios(ours: pd.DataFrame, dataset: str, attribute: str, metric: str) -> pd.Series:
    """Return G0 / G1 in every run, NaN where the denominator is too small to divide by."""
    top, bottom = (single_runs(ours, dataset, attribute, metric, g) for g in PAIRS[attribute])
    floor = NEGLIGIBLE if metric in VARIANCES else RARE
    return top / bottom.where(bottom > floor)


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our numbers for every printed one: the text's first, then those under each cause.

    Where the text defines a rate that its tables do not print, the text's own is first, and the
    causes' numbers are of the rate that is printed.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    results : has no meaning here: nothing is read.
    """
    for dataset, asked in rows.groupby("dataset", sort=False):
        training = TRAININGS[str(dataset)]
        causes = ("", *training.causes)
        frames = {cause: networks_of(str(dataset), cause, effort) for cause in causes}
        for row in asked.itertuples():
            name, cause = TEXTS.get(str(row.metric), (METRICS[str(row.metric)], ""))
            first = {"row": row.Index, "label": "text", "cause": ""}
            yield first | _number(rows, frames[""], row, name)
            if cause:
                other = AT_ONE if name == METRICS[str(row.metric)] else METRICS[str(row.metric)]
                named = {"label": cause, "cause": cause}
                yield first | named | _number(rows, frames[""], row, other)
            for cause in training.causes:
                if cause == GAINS and METRICS[str(row.metric)] in VARIANCES:
                    continue  # a rule has none
                under = _number(rows, frames[cause], row, METRICS[str(row.metric)])
                yield first | {"label": cause, "cause": cause} | under


def _number(published: pd.DataFrame, ours: pd.DataFrame, row: Any, name: str) -> dict[str, Any]:
    """Return mean and sd over runs of one printed number, or why they cannot be compared."""
    key = (row.dataset, row.sensitive_attribute)
    if not row.metric.startswith("ratio"):
        runs = single_runs(ours, *key, name, row.setting.removeprefix("group="))
    else:
        runs = ratios(ours, *key, name)
        if name in VARIANCES and _denominator(published, *key, name) < NEGLIGIBLE:
            return {"mean": np.nan, "reason": "the printed ratio is over next to nothing"}
    defined = runs.dropna()
    if len(runs) and defined.empty:
        return {"mean": np.nan, "reason": "the reference group's rate is 0 in every run"}
    return {"mean": defined.mean(), "sd": defined.std(ddof=1), "repeats": len(defined)}


def _denominator(published: pd.DataFrame, dataset: str, attribute: str, metric: str) -> float:
    same = published["dataset"].eq(dataset) & published["sensitive_attribute"].eq(attribute)
    group = published["setting"].eq(f"group={PAIRS[attribute][1]}")
    return float(
        published[same & group & published["metric"].map(METRICS).eq(metric)]["value"].iloc[0]
    )


LOADED = {"compas": compas_zafar.load, "adult": adult.load}


def counts(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield how many people of each group, and of each label, the data sets have.

    For Adult, the archive's training file is counted, as the paper's numbers come from it.

    Parameters
    ----------
    rows : published `count`, `percent` of the group, or `sample_size`, with ``group=``, and ``y=``
        if it is about one label.
    effort : has no meaning here: it takes a second.

    Raises
    ------
    DataError : the raw file is not at hand.
    """
    for name, asked in rows.groupby("dataset", sort=False):
        data = LOADED[str(name)](Archive.of())
        rows_of = slice(None) if data.partition is None else data.partition.eq("train")
        people, labels = data.sensitive[rows_of], data.target[rows_of]
        for row in asked.itertuples():
            group, _, label = str(row.setting).removeprefix("group=").partition(", y=")
            names = np.atleast_1d(GROUPS[str(row.sensitive_attribute)][group])
            own = labels[people[row.sensitive_attribute].isin(names)]
            count = len(own) if not label else int((own == int(label)).sum())
            mean = 100 * count / len(own) if row.metric == "percent" else count
            yield {"row": row.Index, "mean": mean, "sd": 0.0, "repeats": 1}


def main() -> None:
    """Write the numbers of the networks behind Tables 1, 2, 3 and 5 into the paper's folder."""
    published = Paper.read(PAPER, PAPERS).rows
    asked = published["table"].isin(TABLES) & published["metric"].isin(METRICS)
    found = pd.DataFrame(numbers(published[asked], Path(), Effort.WHOLE))
    with atomic(PAPERS / PAPER / "numbers.csv") as file:
        found.sort_values("row", kind="stable").to_csv(file, index=False, float_format="%.6g")


if __name__ == "__main__":
    run_main(main)
