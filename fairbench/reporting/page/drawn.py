"""The figures of the page, drawn anew from metrics and kept inside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairbench.reporting.page.blocks import Block, named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 9  # what the markers of a panel tell apart
_TITLES = {
    "consistency": "How far each individual's uncertainty moves across variants",
    "spread": "Residuals against predicted uncertainty",
    "abstention": "Abstaining on the most uncertain",
    "parity": "Uncertainty-aware parity",
    "tradeoff": "Error against fairness",
}
_COLOURS = 128


@dataclass(frozen=True)
class Drawn:
    """A figure as a PNG in base64, its title, and what of it a reader has to know."""

    title: str
    png: str
    note: str


def drawn_of(block: Block) -> Iterator[Drawn]:
    """Yield the figures of a block that compare uncertainty methods, and its trade-off.

    Compared are the methods without intervention, with one learner; the trade-off has all.
    """
    from fairbench.reporting.across import DRAWN
    from fairbench.reporting.page.tradeoff import MOST as POINTS
    from fairbench.reporting.page.tradeoff import tradeoff

    metrics = _with_labels(block)
    for figure in tradeoff(block, metrics):
        note = (
            "means over repeats; letters: not dominated; the posterior is of one repeat's counts"
            f"; the {POINTS} of least error at most"
        )
        yield Drawn(_TITLES["tradeoff"], encoded(figure), note)
    plain = _plain(block)
    shown = metrics[metrics["run"].isin(plain[:MOST])]
    left = len(plain) - MOST
    note = f"{left} further methods are in the tables alone" if left > 0 else ""
    for name, draw in DRAWN.items():
        if _has(shown, name):
            for part, figure in draw(shown):
                title = ", ".join(filter(None, [_TITLES[name], part.replace("_", " ")]))
                yield Drawn(title, encoded(figure), note)


def encoded(figure: Figure) -> str:
    """Return a figure as a PNG of few colours in base64."""
    from PIL import Image

    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    buffer = io.BytesIO()
    image = Image.fromarray(pixels).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    image.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _with_labels(block: Block) -> pd.DataFrame:
    labels = dict(zip(block.runs, named(list(block.runs.values())), strict=True))
    metrics = block.metrics.assign(
        run=block.metrics["run"].astype(str), dataset=block.dataset
    ).astype(dict.fromkeys(("metric", "attribute", "group"), str))
    return metrics.assign(method=metrics["run"].map(labels))


def _plain(block: Block) -> list[str]:
    """Return the runs without intervention, of the learner of most; one of those named alike."""
    runs = [run for run in block.runs.values() if run.choices["intervention"] == "none"]
    learners = pd.Series([run.choices["learner"] for run in runs], dtype=object)
    most = learners.mode().iloc[0] if len(runs) else ""
    mine = [run for run in runs if run.choices["learner"] == most]
    return list({label: run.id for label, run in zip(named(mine), mine, strict=True)}.values())


def _has(metrics: pd.DataFrame, name: str) -> bool:
    """Say whether there is anything to draw."""
    needed = {
        "consistency": "consistency_sd",
        "spread": "spread_predicted",
        "abstention": "abstention_error_rate",
        "parity": "uncertainty_aware_statistical_parity",
    }[name]
    values = metrics.loc[metrics["metric"] == needed, "value"]
    return bool(values.notna().any())
