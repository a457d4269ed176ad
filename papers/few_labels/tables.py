"""Our numbers for the tables of chapter 4 and appendix B; 4.2 and 4.3 are the paper's 2 and 3.

The study `rates` computes those of the tables, `errors` prints errors and coverages, and `claims`
what the tables say of the methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import PAPERS, Look, run_main
from fairbench.components.papers.engine import matching
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Effort, Numbers, recorded
from fairbench.components.papers.few_labels import methods
from fairbench.core.arrays import Floats
from fairbench.core.files import write_text

PUBLISHED = PAPERS / "few_labels" / "published.csv"
OURS = PAPERS / "few_labels" / "ours.csv"
COVERAGE = "coverage"
# By its caption, Table 4.4 averages a thousand label orders; the other tables average a hundred.
RUNS, COVERAGE_RUNS = 100, 1000
ANSWERED = ("4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "B.1", "B.2", "B.3")
# Of these every rate is looked at by every number of labels, which figures and claims show.
_EVERY_RATE = (*methods.LABELS_ALONE, methods.HIERARCHY)


def published() -> pd.DataFrame:
    """Return the published numbers of errors and coverages, as text."""
    rows = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    return rows[rows["table"].isin(ANSWERED)]


def _asked_of(row: dict[str, str]) -> methods.Asked:
    """Return the method, its scale, the number of labels and the rate of a published number."""
    scale = float(row["setting"].removeprefix("alpha=") or 1)  # of the widths of the priors
    return row["method"], scale, int(row["n_labelled"]), methods.rate_name(row["metric"])


def _asked_of_key(rows: pd.DataFrame, setting: methods.Setting) -> list[methods.Asked]:
    """Return all that one data set, attribute and model is asked under a setting."""
    asked = [_asked_of(row) for row in rows.to_dict("records")]
    if setting.cause in ("", "released scores"):
        labels = {labels for _, _, labels, _ in asked}
        asked += [
            (name, 1.0, n, rate) for name in _EVERY_RATE for n in labels for rate in methods.RATES
        ]
    return asked


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield our numbers for published ones: the text's first, then those of every cause.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    every = published() if effort is Effort.WHOLE else rows
    for key, of_key in rows.groupby(methods.CONFIGURATION, sort=False):
        said = every[(every[methods.CONFIGURATION] == list(key)).all(axis=1)]
        whole = dict(zip(of_key.index, map(_asked_of, of_key.to_dict("records")), strict=True))
        for setting in methods.SETTINGS:
            of_row = {p: a for p, a in whole.items() if setting.concerns(key[0], a)}
            if not of_row:
                continue
            asked = _asked_of_key(said, setting) if effort is Effort.WHOLE else of_row.values()
            frame = methods.study(setting, tuple(key), asked, results, effort)
            measured = dict(list(frame.groupby(["method", "scale", "labels", "rate"])))
            for place, asked_for in of_row.items():
                coverage, thirds = of_key["metric"][place].startswith(COVERAGE), measured[asked_for]
                runs = COVERAGE_RUNS if coverage else RUNS
                found = methods.number(thirds, coverage=coverage, runs=runs)
                repeats = int(thirds["orders"].iloc[0]) if setting.released else found.thirds
                of = {"row": place, "label": setting.cause, "cause": setting.cause}
                yield matching.number(found.mean, found.sd, repeats, error=found.error, **of)


def rates(options: Results) -> None:
    """Compute our numbers for Tables 4.2 to 4.7 and B.1 to B.3.

    ``python -m papers.few_labels.tables rates`` computes them (half a CPU hour), goes on where it
    was stopped, and keeps them in ``ours.csv``.
    """
    every = pd.DataFrame(numbers(published(), options.results, Effort.WHOLE))
    frame = every.sort_values("row", kind="stable")
    write_text(OURS, frame.to_csv(index=False, float_format="%.4f"))


METHODS = {
    "frequentist": "labels alone",
    "beta_binomial": "beta-binomial",
    methods.HIERARCHY: "calibration",
}
_COLUMNS = [*methods.CONFIGURATION, "labels", "rate", "method"]


def third_errors(keys: Sequence[methods.Key], results: Path, effort: Effort) -> pd.DataFrame:
    """Return a row per configuration, number of labels, rate and method.

    Returns
    -------
    The columns of the key, then ``error``, the mean absolute error in points, ``standard error``
    of its mean over the thirds, and ``coverage`` of the 95 % intervals.
    """
    said, printed = [], published()
    for key in keys:
        rows = printed[(printed[methods.CONFIGURATION] == list(key)).all(axis=1)]
        if effort is Effort.FIRST:
            rows = rows.drop_duplicates("metric")
        # Very wide priors are of the tables alone, and take long.
        asked = [a for a in _asked_of_key(rows, methods.TEXT) if a[1] == 1]
        frame = methods.study(methods.TEXT, key, asked, results, effort)
        frame = frame[frame["method"].isin(list(METHODS)) & (frame["scale"] == 1)]
        for (method, labels, rate), of_thirds in frame.groupby(["method", "labels", "rate"]):
            found = methods.number(of_thirds, coverage=False, runs=RUNS)
            of_mean = found.mean, found.standard_error, of_thirds["coverage"].mean()
            said.append((*key, labels, rate, METHODS[method], *of_mean))
    measured = ["error", "standard error", "coverage"]
    return pd.DataFrame(said, columns=[*_COLUMNS, *measured])


def side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per configuration, number of labels and rate; errors, then coverages.

    An error that is undefined in every run is missing, and its coverage 0.
    """
    indexed = frame.set_index(_COLUMNS)
    parts = [
        indexed[value].unstack("method", sort=False)[list(METHODS.values())].add_suffix(suffix)
        for value, suffix in (("error", ""), ("coverage", ", coverage"))
    ]
    return pd.concat(parts, axis=1).reset_index()


def best(frame: pd.DataFrame) -> pd.DataFrame:
    """Return, by rate and number of labels, mean errors and how often calibration errs least.

    Over the configurations where all methods have an estimate.
    """
    wide = side_by_side(frame).dropna()
    names = list(METHODS.values())
    least = wide["calibration"] <= wide[names].min(axis=1)
    groups = wide.assign(configurations=1, **{"calibration errs least": least}).groupby(
        ["rate", "labels"], sort=False
    )
    counted = groups[["configurations", "calibration errs least"]].sum()
    return groups[names].mean().join(counted).sort_index()


def errors(options: Look) -> None:
    """Errors and coverages of accuracy, TPR and FPR differences by number of labels, over thirds.

    ``python -m papers.few_labels.tables errors [quick=true]``: labels alone, the beta-binomial
    model and calibration, for every data set, attribute and model, as the text has them; of what
    ``papers.few_labels.tables`` has computed, or else computed here. A quick look is at one data
    set, attribute and model, of two thirds.
    """
    keys, effort = methods.CONFIGURATIONS, Effort.WHOLE
    if options.quick:
        keys, effort = methods.CONFIGURATIONS[-1:], Effort.FIRST
    frame = third_errors(keys, options.results, effort)
    wide = side_by_side(frame)
    for rate, rows in wide.groupby("rate", sort=False):
        print(f"\nmean absolute error of the difference of {rate}, points; coverage, percent")
        print(rows.drop(columns="rate").round(1).to_string(index=False))
    print(f"\nmean error over the configurations\n{best(frame).round(1).to_string()}")
    covered = frame.pivot_table("coverage", ["method", "labels"], "rate", sort=False)
    print(f"\nmean coverage over the configurations\n{covered.round(0).to_string()}")


SIZE, PRIVILEGED = "test_size", "share_privileged"


def dataset_numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Numbers:
    """Yield test sizes, and shares of the people of random thirds, for rows of Table 4.1."""
    thirds = effort.choose(200, 20, 2)
    for place, row in zip(rows.index, rows.to_dict("records"), strict=True):
        values = described(row["dataset"], row["sensitive_attribute"], row["metric"], thirds)
        yield matching.number(values.mean(), values.std(ddof=1), thirds, row=place)


def described(dataset: str, attribute: str, metric: str, thirds: int) -> Floats:
    """Return a number of Table 4.1 of each of some held-out thirds."""
    whole = methods.people(dataset)
    held_out = [whole.held_out(third)[1] for third in range(thirds)]
    if metric == SIZE:
        return np.array([len(rows) for rows in held_out], dtype=np.float64)
    if metric == PRIVILEGED:
        one = (whole.groups[attribute] == whole.privileged[attribute]).astype(np.float64)
    else:
        one = whole.label.astype(np.float64)
    return np.array([one[rows].mean() for rows in held_out])


_THEIRS, _OURS = "published", "ours"


def means(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return the mean of one table's numbers by method and number of labels, theirs and ours."""
    both = rows.pivot_table([_THEIRS, _OURS], by, "n_labelled", sort=False, dropna=False)
    order = sorted(both.columns, key=lambda column: (column[0] == _OURS, int(column[1])))
    return both[order]


def least(rows: pd.DataFrame, method: str) -> pd.Series:
    """Return in how many configurations a method errs least, of those that all methods have."""
    counts = {}
    for whose in (_THEIRS, _OURS):
        wide = rows.pivot_table(whose, [*methods.CONFIGURATION, "n_labelled"], "method").dropna()
        if method in wide:
            counts[whose] = f"{int((wide[method] <= wide.min(axis=1)).sum())} of {len(wide)}"
    return pd.Series(counts, dtype=object)


def claims() -> None:
    """Print what Tables 4.2 to 4.7 say of the methods: means over configurations, by either.

    ``python -m papers.few_labels.tables claims``: ours are those of the record, ``verdicts.csv``.
    """
    rows = recorded(Paper.read("few_labels", PAPERS)).rename(columns={"value": _THEIRS})
    rows = rows[rows["table"].isin(ANSWERED)].astype({_THEIRS: float})
    for table, of_table in rows.groupby("table"):
        by = "setting" if table == "4.7" else "method"
        print(f"\nTable {table}: {of_table['metric'].iloc[0]}, means over the configurations")
        print(means(of_table, by).round(1).to_string())
        if by == "method" and not of_table["metric"].iloc[0].startswith("coverage"):
            counted = least(of_table, "beta_calibration").to_dict()
            print(", ".join(f"{whose}: least {count}" for whose, count in counted.items()))


if __name__ == "__main__":
    run_main(rates, errors, claims)
