"""What Tables 4.2 to 4.7 say of the methods, by theirs and by ours: means over configurations.

``python -m papers.few_labels.claims``: ours are those of the record, ``verdicts.csv``.
"""

from __future__ import annotations

import pandas as pd

from fairbench.components.papers import PAPERS, run_main
from fairbench.components.papers.few_labels.study import CONFIGURATION
from fairbench.components.papers.few_labels.tables import ANSWERED
from fairbench.reporting.papers.mapping import Paper
from fairbench.reporting.papers.record import recorded

_THEIRS, _OURS = "published", "ours"


def numbers() -> pd.DataFrame:
    """Return a row per published number with ours of the record, missing where it has none."""
    paper = Paper.read("few_labels", PAPERS)
    keys = ["table", "metric", "n_labelled", "setting", "method", *CONFIGURATION]
    printed = paper.rows[paper.rows["table"].isin(ANSWERED)]
    rows = printed[keys].assign(published=printed["value"].astype(float))
    return rows.merge(recorded(paper)[[*keys, _OURS]], on=keys, how="left").astype({_OURS: float})


def means(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return the mean of one table's numbers by method and number of labels, theirs and ours."""
    both = rows.pivot_table([_THEIRS, _OURS], by, "n_labelled", sort=False, dropna=False)
    order = sorted(both.columns, key=lambda column: (column[0] == _OURS, int(column[1])))
    return both[order]


def least(rows: pd.DataFrame, method: str) -> pd.Series:
    """Return in how many configurations a method errs least, of those that all methods have."""
    counts = {}
    for whose in (_THEIRS, _OURS):
        wide = rows.pivot_table(whose, [*CONFIGURATION, "n_labelled"], "method").dropna()
        if method in wide:
            counts[whose] = f"{int((wide[method] <= wide.min(axis=1)).sum())} of {len(wide)}"
    return pd.Series(counts, dtype=object)


def main() -> None:
    """Print the means of every table, then how often beta calibration errs least."""
    rows = numbers()
    if rows[_OURS].isna().all():
        print("no record of ours yet: fairbench paper few_labels run=true record=true")
    for table, of_table in rows.groupby("table"):
        by = "setting" if table == "4.7" else "method"
        print(f"\nTable {table}: {of_table['metric'].iloc[0]}, means over the configurations")
        print(means(of_table, by).round(1).to_string())
        if by == "method" and not of_table["metric"].iloc[0].startswith("coverage"):
            counted = least(of_table, "beta_calibration").to_dict()
            print(", ".join(f"{whose}: least {count}" for whose, count in counted.items()))


if __name__ == "__main__":
    run_main(main)
