"""Our numbers for Tables 4.2 to 4.7 and B.1 to B.3 (4.2 and 4.3 are Tables 2 and 3 of the paper).

``python -m papers.few_labels.tables`` computes them (half a CPU hour), goes on where it was
stopped, and keeps them in ``ours.csv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import PAPERS, run_main
from fairbench.components.papers.few_labels.methods import HIERARCHY, RATES, rate_name
from fairbench.components.papers.few_labels.study import (
    CONFIGURATION,
    LABELS_ALONE,
    RELEASED,
    SETTINGS,
    TEXT,
    WIDE,
    Asked,
    Key,
    Setting,
    number,
    study,
)
from fairbench.core.files import atomic
from fairbench.reporting.papers.running import Effort

PUBLISHED = PAPERS / "few_labels" / "published.csv"
OURS = PAPERS / "few_labels" / "ours.csv"
COVERAGE = "coverage"
# By its caption, Table 4.4 averages a thousand label orders; the other tables average a hundred.
RUNS, COVERAGE_RUNS = 100, 1000
ANSWERED = ("4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "B.1", "B.2", "B.3")
# Of these every rate is looked at by every number of labels, which figures and claims show.
_EVERY_RATE = (*LABELS_ALONE, HIERARCHY)


def published() -> pd.DataFrame:
    """Return the published numbers of errors and coverages, as text."""
    rows = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    return rows[rows["table"].isin(ANSWERED)]


def scale_of(row: dict[str, str]) -> float:
    """Return what a published number's setting multiplies the widths of the priors by."""
    return float(row["setting"].removeprefix("alpha=") or 1)


def asked_of(row: dict[str, str]) -> Asked:
    """Return the method, its scale, the number of labels and the rate of a published number."""
    return row["method"], scale_of(row), int(row["n_labelled"]), rate_name(row["metric"])


def asked_of_key(rows: pd.DataFrame, setting: Setting) -> list[Asked]:
    """Return all that one data set, attribute and model is asked under a setting."""
    asked = [asked_of(row) for row in rows.to_dict("records")]
    if setting in (TEXT, RELEASED):
        labels = {labels for _, _, labels, _ in asked}
        asked += [(name, 1.0, n, rate) for name in _EVERY_RATE for n in labels for rate in RATES]
    return asked


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our numbers for published ones: the text's first, then those of every cause.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    every = published() if effort is Effort.WHOLE else rows
    for key, of_key in rows.groupby(CONFIGURATION, sort=False):
        asked = every[(every[CONFIGURATION] == list(key)).all(axis=1)]
        for setting in SETTINGS:
            yield from _of_key((key[0], key[1], key[2]), of_key, asked, setting, results, effort)


def _of_key(
    key: Key,
    rows: pd.DataFrame,
    every: pd.DataFrame,
    setting: Setting,
    results: Path,
    effort: Effort,
) -> Iterator[dict[str, Any]]:
    of_row = {place: asked_of(row) for place, row in zip(rows.index, _records(rows), strict=True)}
    of_row = {p: a for p, a in of_row.items() if setting.concerns(key[0], a)}
    if not of_row:
        return
    asked = asked_of_key(every, setting) if effort is Effort.WHOLE else list(of_row.values())
    frame = study(setting, key, asked, results, effort)
    measured = dict(list(frame.groupby(["method", "scale", "labels", "rate"])))
    for place, asked_for in of_row.items():
        coverage = rows["metric"][place].startswith(COVERAGE)
        runs = COVERAGE_RUNS if coverage else RUNS
        of_asked = measured[asked_for]
        found = number(of_asked, coverage=coverage, runs=runs)
        repeats = int(of_asked["orders"].iloc[0]) if setting.released else found.thirds
        yield {
            "row": place,
            "mean": found.mean,
            "sd": found.sd,
            "repeats": repeats,
            "label": setting.cause,
            "cause": setting.cause,
            "error": found.error,
        }


def _records(rows: pd.DataFrame) -> list[dict[str, str]]:
    return [{str(k): v for k, v in row.items()} for row in rows.to_dict("records")]


def main(options: Results) -> None:
    """Compute all that is not there yet, setting by setting, and keep the numbers."""
    rows = published()
    keys = list(rows.groupby(CONFIGURATION, sort=False))
    # Priors so wide that they need chains come last: they take as long as all others.
    for wide, setting in product((False, True), SETTINGS):
        for place, (key, of_key) in enumerate(keys, 1):
            asked = [a for a in asked_of_key(of_key, setting) if (a[1] > WIDE) == wide]
            if any(setting.concerns(key[0], a) for a in asked):
                frame = study(setting, tuple(key), asked, options.results, Effort.WHOLE)
                name = f"{setting.cause or 'text'}{', wide priors' if wide else ''}"
                print(f"{name}, {place} of {len(keys)}: {' '.join(key)}, {len(frame)}", flush=True)
    frame = pd.DataFrame(numbers(rows, options.results, Effort.WHOLE)).sort_values(
        "row", kind="stable"
    )
    with atomic(OURS) as file:
        frame.to_csv(file, index=False, float_format="%.4f")


if __name__ == "__main__":
    run_main(main, Results)
