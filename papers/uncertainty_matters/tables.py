"""Our numbers for Tables 12.1, 2 and 3 of Uncertainty Matters and its section 14.2.1, on German.

The ground truth is as many ten-fold cross-validations of an algorithm as were computed. A posterior
is that of one of them, so each number of ours is a mean (sd) over several. Relative rhos and paired
comparisons come from the finished runs of ``experiment=uncertainty_matters/german_*``.

``python -m papers.uncertainty_matters.tables`` computes Table 12.1 from packed cross-validations
and half-splits instead, and keeps it in table12_1.csv: that is printed where nothing was run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.papers import PAPERS, run_main
from fairbench.components.papers.uncertainty_matters import ground_truth
from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS
from fairbench.components.papers.uncertainty_matters.measured import Measured, measure
from fairbench.components.papers.uncertainty_matters.posteriors import Cloud, events, values
from fairbench.core.files import atomic
from fairbench.reporting.papers.running import Effort

PUBLISHED = PAPERS / "uncertainty_matters" / "published.csv"
REPORT = Path("results") / "report" / "uncertainty_matters"
TRUTH = "ground truth"
AREA, INSIDE = "hdr95_area", "percent_of_cv_results_inside_hdr95"
EVENTS = {
    "p_a_outperforms_b": "A >> B",
    "p_b_outperforms_a": "B >> A",
    "p_equivalent": "A ~ B",
    "p_a_accuracy_b_fairness": "A accuracy, B equal_opportunity_difference",
    "p_b_accuracy_a_fairness": "B accuracy, A equal_opportunity_difference",
}
# Kinds of draws besides the posterior, each a further answer to a published number.
FURTHER = ("predictive", "paired")
EVENT_TABLES = ("2", "3", "14.2.1")
KEPT = PAPERS / "uncertainty_matters" / "table12_1.csv"
CVS = 200  # of every algorithm, as many as there are if more were computed


# Kind of draws -> metric -> its value by each cross-validation.
Kinds = Mapping[str, Mapping[str, list[float]]]


def table_12_1(measured: Measured, published: pd.DataFrame) -> pd.DataFrame:
    """Return area of the 95 % region and percent of the cross-validations inside, row by row."""
    rows = published[published["table"] == "12.1"]
    found: dict[tuple[str, str], Kinds] = {}
    for name, rho in dict.fromkeys(zip(rows["method"], rows["setting"], strict=True)):
        if name in measured.counts:
            found[name, rho] = {
                kind: _areas(
                    measured.cloud(name, rho, predictive=kind == "predictive"),
                    measured.counts[name],
                )
                for kind in ("posterior", "predictive")
            }
    return _table(rows, found, measured)


def _areas(cloud: Cloud | None, counts: NDArray[np.int64]) -> dict[str, list[float]]:
    if cloud is None:
        return {}
    truth = values(counts)
    regions = cloud.regions()
    held = [region.density.holds(truth).mean() for region in regions if region.density]
    return {AREA: [region.size for region in regions], INSIDE: [100 * float(h) for h in held]}


def events_table(measured: Measured, published: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the event probabilities of Table 2 or 3, and of the ground truth, row by row."""
    rows = published[published["table"] == table]
    found: dict[tuple[str, str], Kinds] = {}
    for (method, rho), _ in rows.groupby(["method", "setting"], sort=False):
        names = _names(str(method))
        if not set(names) <= measured.counts.keys():
            continue
        found[str(method), str(rho)] = (
            _truth(measured, names) if rho == TRUTH else _kinds(measured, names, str(rho))
        )
    return _table(rows, found, measured)


def _table(
    rows: pd.DataFrame, found: Mapping[tuple[str, str], Kinds], measured: Measured
) -> pd.DataFrame:
    keyed = [
        (found.get((row["method"], row["setting"]), {}), row) for row in rows.to_dict("records")
    ]
    return pd.DataFrame(
        [_row(row, kinds, measured.cvs(*row["method"].split(" vs "))) for kinds, row in keyed]
    )


def _names(method: str) -> tuple[str, str]:
    first, _, second = method.partition(" vs ")
    return first, second


def _truth(measured: Measured, names: tuple[str, str]) -> dict[str, dict[str, list[float]]]:
    """Return, by event, whether each cross-validation shows it; the mean is the ground truth."""
    first, second = (values(measured.counts[name][: measured.cvs(*names)]) for name in names)
    delta = first - second
    shown = [events(each[None]) for each in delta]
    return {"posterior": {name: [each[event] for each in shown] for name, event in EVENTS.items()}}


def _kinds(
    measured: Measured, names: tuple[str, str], rho: str
) -> dict[str, dict[str, list[float]]]:
    clouds: dict[str, Sequence[Cloud | None]] = {
        kind: [measured.cloud(name, rho, predictive=kind == "predictive") for name in names]
        for kind in ("posterior", "predictive")
    }
    clouds["paired"] = measured.pair(names, rho) or (None, None)
    return {kind: _events(*pair) for kind, pair in clouds.items()}


def _events(first: Cloud | None, second: Cloud | None) -> dict[str, list[float]]:
    if first is None or second is None:
        return {}
    found = first.events(second)
    return {name: [each[event] for each in found] for name, event in EVENTS.items()}


def _row(row: Mapping[str, str], found: Kinds, cvs: int) -> dict[str, Any]:
    """Return a published number with ours: means and sds over cross-validations.

    The paper's number comes from one cross-validation, so that the error of the difference is one
    of our sds over cross-validations. Shares of the `cvs` cross-validations also have the standard
    error of a share.
    """
    metric, published = row["metric"], float(row["value"])
    columns = {name: row[name] for name in ("row", "table", "method", "setting", "metric")}
    measured = {kind: each.get(metric, []) for kind, each in found.items()}
    summary: dict[str, Any] = {**columns, "published": published}
    for kind in ("posterior", *FURTHER):
        each = np.array(measured.get(kind, []))
        summary[kind] = float(each.mean()) if each.size else np.nan
        summary[f"{kind} sd"] = float(each.std(ddof=1)) if each.size > 1 else np.nan
    own = max(len(measured.get("posterior", [])), 1)
    truth = row["setting"] == TRUTH
    if truth:
        summary["posterior sd"] /= np.sqrt(own)
    spread = np.nan_to_num(summary["posterior sd"]) * np.sqrt(1 if truth else 1 + 1 / own)
    noise = _noise(published, 100) if metric == INSIDE else _noise(published, 1) if truth else 0
    error = np.hypot(spread, noise / np.sqrt(max(cvs, 1)))
    return {**summary, "repeats": own, "error": error}


def _noise(share: float, whole: float) -> float:
    return float(np.sqrt(share * (whole - share)))


def read_published() -> pd.DataFrame:
    """Return the published numbers as text, and the place of each."""
    rows = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    return rows.assign(row=rows.index)


def pairs(published: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the pairs of algorithms that Tables 2 and 3 compare."""
    compared = published[published["table"].isin(["2", "3"])]["method"].unique()
    return [_names(method) for method in compared]


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield the posterior's number for every published one, the other kinds of draws after it.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    effort : of less than the whole, one algorithm is cross-validated anew, a batch of times; the
        others' cross-validations are those packed.
    """
    rows = rows.assign(row=rows.index)
    stored = results / ground_truth.STORED
    if effort is Effort.WHOLE:
        for _ in ground_truth.ensure_all(list(ALGORITHMS), CVS, 1, stored):
            pass
        measured = measure(pairs(rows), results)
    else:
        ground_truth.ensure("LR", 0, stored)
        measured = packed_measure()
        fresh = {"LR": ground_truth.load("LR", results=stored)}
        posteriors, draws = effort.choose((20, 10000), (2, 2000), (1, 100))
        counts = {**measured.counts, **fresh}
        measured = replace(measured, counts=counts, posteriors=posteriors, draws=draws)
    yield from answers(measured, rows)


def answers(measured: Measured, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield what the counts that were measured say of published numbers."""
    tables = rows["table"].unique()
    found = [table_12_1(measured, rows)] if "12.1" in tables else []
    found += [events_table(measured, rows, table) for table in EVENT_TABLES if table in tables]
    for row in pd.concat(found).to_dict("records"):
        common = {name: row[name] for name in ("row", "repeats")}
        yield {**common, "mean": row["posterior"], "sd": row["posterior sd"], "error": row["error"]}
        for kind in FURTHER:
            if not np.isnan(row[kind]):
                further = {"mean": row[kind], "sd": row[f"{kind} sd"], "error": row["error"]}
                yield {**common, **further, "label": f"{kind} draws"}


def packed_measure() -> Measured:
    """Return what the packed cross-validations and half-splits say of Table 12.1's algorithms."""
    from fairbench.components.papers.uncertainty_matters import packed

    counts = {name: packed.most_counts(name) for name in ALGORITHMS}
    return Measured(counts, ratios={name: packed.variance_ratio_of(name) for name in ALGORITHMS})


def main() -> None:
    """Compute Table 12.1 from what is packed, and keep it."""
    rows = read_published().query("table == '12.1'")
    found = pd.DataFrame(answers(packed_measure(), rows.assign(row=rows.index)))
    with atomic(KEPT) as file:
        found.to_csv(file, index=False, float_format="%.5g")
    print(f"{len(rows)} numbers of ours are in {KEPT}")


if __name__ == "__main__":
    run_main(main)
