"""Whether truncating one group's sequences raises its aleatoric and its epistemic uncertainty.

``python -m papers.uncertainty_fairness.sequences`` reads the finished runs of the experiment
``uncertainty_fairness/sequences``: group B's rows are three times as long as A's, and are read
whole or as far as A's are long. Beside each ratio stands that of a reader who knows how labels come
about, and sees the same frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from fairbench.cli.command import Results
from fairbench.components.datasets import simulated_sequences
from fairbench.components.papers import CONF, run_main
from fairbench.components.papers.uncertainty_fairness.epistemic_shrinks import ratio
from fairbench.core.arrays import Floats
from fairbench.data.dataset import Dataset
from fairbench.data.sequences import Modality, Sequences
from fairbench.reporting.papers.matching import runs_needed

EXPERIMENT = "uncertainty_fairness/sequences"
METRICS = ("roc_auc", "truncated_rows", "aleatoric_uncertainty", "epistemic_uncertainty")
NODES = 40  # of the numerical integral over what is not seen


def values(results: Path) -> pd.DataFrame:
    """Return both groups' metrics of every finished run: what is read, population, A and B.

    Raises
    ------
    UserError : there is no finished run; it says which command makes them.
    """
    rows: list[dict[str, Any]] = []
    for _, run, metrics in runs_needed(EXPERIMENT, CONF, results):
        learner, dataset = run.config["learner"], run.config["dataset"]
        mine = metrics[(metrics["attribute"] == "group") & metrics["metric"].isin(METRICS)]
        found = mine.pivot_table(index="metric", columns="group", values="value", observed=True)
        reading = {
            "modalities": " and ".join(learner["modalities"]) or "both",
            "length": learner["length"] or 0,
            "seed": dataset["seed"],
        }
        rows += [{**reading, "metric": name, **found.loc[name]} for name in found.index]
        rows.append({**reading, "metric": "ideal", **ideal(dataset, learner)})
    return pd.DataFrame(rows)


def ideal(options: dict[str, Any], learner: dict[str, Any]) -> dict[str, float]:
    """Return each group's mean 2 p (1 - p), where p is all that the frames read say of a label."""
    chosen = {name: each for name, each in options.items() if name not in ("name", "verified")}
    data = simulated_sequences.load(None, **chosen)  # type: ignore[arg-type]  # it reads no file
    p = known(data, options, learner["modalities"], learner["length"])
    by_group = pd.Series(2 * p * (1 - p)).groupby(data.sensitive["group"], observed=True)
    means: dict[str, float] = by_group.mean().to_dict()
    return means


def known(
    data: Dataset, options: Mapping[str, Any], modalities: Sequence[str], length: int | None
) -> Floats:
    """Return P(y = 1), given the first `length` frames of some modalities (all if none is named).

    What an event's frames that are cut off would have said is normal given those that are left.

    Parameters
    ----------
    options : ``event``, ``noise`` and ``strength`` that the data were drawn with.
    """
    assert isinstance(data.features, Sequences)
    parts = dict(zip(data.features.names, data.features.parts, strict=True))
    event, noise = int(options["event"]), float(options["noise"])
    mean, variance = np.zeros(len(data)), np.zeros(len(data))
    for name, part in parts.items():
        seen = np.zeros(len(data), np.int64), np.zeros(len(data))
        if not modalities or name in modalities:
            seen = _seen(part.cut(length or int(part.lengths.max()), end=True))
        mine, left = _unseen(*seen, event, noise)
        mean, variance = mean + mine, variance + left
    scale = options["strength"] / np.sqrt(len(parts) * (1 + noise**2 / event))
    node, weight = np.polynomial.hermite_e.hermegauss(NODES)
    signal = mean[:, None] + np.sqrt(variance)[:, None] * node
    p: Floats = expit(scale * signal) @ weight / weight.sum()
    return p


def _seen(part: Modality) -> tuple[NDArray[np.int64], Floats]:
    """Return how many of each row's event's frames are left, and the sum of what they say."""
    frames, _ = part.padded()
    marked = frames[..., 0] == 1
    return marked.sum(axis=1), (frames[..., 1] * marked).sum(axis=1, dtype=np.float64)


def _unseen(
    count: NDArray[np.int64], total: Floats, event: int, noise: float
) -> tuple[Floats, Floats]:
    """Return mean and variance of the mean of an event's frames, given the sum of some."""
    left = 1 / (1 + count / noise**2)  # variance of what the event says, which has 1 beforehand
    hidden = event - count
    mean = (total + hidden * left * total / noise**2) / event
    return mean, (hidden**2 * left + hidden * noise**2) / event**2


def table(found: pd.DataFrame) -> Table:
    """Return what each reading makes of the groups: means over populations, and ratios B / A."""
    seeds = found["seed"].nunique()
    title = f"means over {seeds} populations; ratios B over A with 95 % intervals"
    shown = Table(title=title, title_justify="left")
    for name in ("read", "cut: A, B", "AUC: A, B", "aleatoric: A, B", "ratio", "ratio, ideal"):
        shown.add_column(name, no_wrap=True)
    for name in ("epistemic: A, B", "ratio"):
        shown.add_column(name, no_wrap=True)
    for (modalities, length), rows in found.groupby(["modalities", "length"], sort=False):
        of = dict(iter(rows.groupby("metric")))
        shown.add_row(
            f"{modalities}, {f'{length} frames' if length else 'whole'}",
            _pair(of["truncated_rows"]),
            _pair(of["roc_auc"]),
            _pair(of["aleatoric_uncertainty"]),
            _ratio(of["aleatoric_uncertainty"]),
            _ratio(of["ideal"]),
            _pair(of["epistemic_uncertainty"], 4),
            _ratio(of["epistemic_uncertainty"]),
        )
    return shown


def effects(found: pd.DataFrame) -> Table:
    """Return by what truncation multiplies the ratios of the groups, paired by population."""
    compared = ("aleatoric_uncertainty", "ideal", "epistemic_uncertainty")
    shown = Table(title="ratio B / A of truncated over that of whole", title_justify="left")
    for name in ("read", "populations", "aleatoric", "aleatoric, ideal", "epistemic"):
        shown.add_column(name, no_wrap=True)
    for modalities, rows in found.groupby("modalities", sort=False):
        pairs = [_paired(rows[rows["metric"] == name]) for name in compared]
        cells = [ratio(cut["B"] / cut["A"], whole["B"] / whole["A"]) for cut, whole in pairs]
        shown.add_row(str(modalities), str(len(pairs[0][0])), *cells)
    return shown


def _paired(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the groups' values of truncated and of whole sequences of the same populations."""
    whole = rows[rows["length"] == 0].set_index("seed")
    cut = rows[rows["length"] != 0].set_index("seed")
    both = whole.index.intersection(cut.index)
    return cut.loc[both], whole.loc[both]


def _pair(rows: pd.DataFrame, digits: int = 2) -> str:
    return f"{rows['A'].mean():.{digits}f}, {rows['B'].mean():.{digits}f}"


def _ratio(rows: pd.DataFrame) -> str:
    return ratio(rows["B"].to_numpy(), rows["A"].to_numpy())


def main(options: Results) -> None:
    """Print both tables."""
    found = values(options.results)
    console = Console(width=170)
    console.print(table(found))
    console.print(effects(found))


if __name__ == "__main__":
    run_main(main, Results)
