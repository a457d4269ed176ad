"""Finished runs as small tables, which a notebook shows in place of an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairbench.core.errors import UserError
from fairbench.core.formats import count, interval, number
from fairbench.evaluation.columns import values_of
from fairbench.metrics.registry import declared, label

if TYPE_CHECKING:
    import pandas as pd

    from fairbench.results.runs import Run

MOST = 50  # runs in one table of a notebook
_MOST_LINES = 20  # runs in one table of a terminal
_OF_EVERYONE = ("error_rate", "log_loss", "rmse")
_GAPS = (
    *("equalized_odds", "statistical_parity"),
    *("equal_opportunity_class_mean", "statistical_parity_class_mean"),
)
_IF_THEY_DIFFER = ("learner", "intervention", "seed")
_CHOICES = ("dataset", "learner", "intervention", "method")


def run_html(run: Run) -> str:
    """Return the headline metrics of a run as a table of HTML."""
    import numpy as np
    import pandas as pd

    from fairbench.evaluation.columns import DEBIASED
    from fairbench.evaluation.headlines import debiased_gaps

    summary = run.summary()
    headline = _headline(values_of(summary), run.protect)
    debiased = debiased_gaps(headline, summary)
    rows = [
        {
            "metric": label(row.metric),
            "of": f"{row.attribute}: {row.group}" if row.group else row.attribute,
            "mean": number(row.mean, 4),
            **({DEBIASED: number(gap, 4)} if np.isfinite(debiased).any() else {}),
            "95 % interval": interval(row.lower, row.upper, 4),
            "rows": count(row.n),
        }
        for row, gap in zip(headline.itertuples(), debiased, strict=True)
    ]
    return _html(f"Run {run.id}: {run.name}", pd.DataFrame(rows))


def runs_html(runs: Sequence[Run], folder: str) -> str:
    """Return runs as a table of HTML: what they chose, their errors and their largest gaps."""
    return _html(*_title_and_table(runs, folder, MOST))


def runs_text(runs: Sequence[Run], folder: str) -> str:
    """Return the first few runs as a table of text, with the columns of :func:`runs_html`."""
    title, table = _title_and_table(runs, folder, _MOST_LINES)
    return f"{title}\n{table.to_string(index=False)}" if len(table) else title


def _title_and_table(runs: Sequence[Run], folder: str, most: int) -> tuple[str, pd.DataFrame]:
    """Return a table of the first `most` runs, and a title that says how many there are in all."""
    import pandas as pd

    table = pd.DataFrame([dict(_row(run)) for run in runs[:most]])
    constant_columns = [
        name for name in _IF_THEY_DIFFER if name in table and table[name].nunique() < 2
    ]
    table = table.drop(columns=constant_columns)
    noun = "run" if len(runs) == 1 else "runs"
    title = f"{len(runs)} finished {noun} in {folder}"
    if len(runs) > most:
        title += f", of which the first {most} are shown; select(...) chooses others"
    return title, table.dropna(axis=1, how="all").fillna("") if len(table) else table


def _row(run: Run) -> Iterator[tuple[str, str | int]]:
    """Yield the columns of a run; a metric as its mean with the 95 % interval."""
    yield "run", run.id
    for choice in _CHOICES:
        yield choice, run.choices[choice]
    yield "seed", run.seed
    try:
        summary = values_of(run.summary())
    except UserError:  # damaged files are reported when a number of the run is read
        return
    summary = summary[(summary["variant"] == "") & summary["outcome"].isna()]
    for names, attribute in ((_OF_EVERYONE, ""), (_GAPS, run.protect)):
        for name in names:
            is_metric = (summary["metric"] == name) & (summary["attribute"] == attribute)
            of_all_groups = summary[is_metric & (summary["group"] == "")]
            for row in of_all_groups.head(1).itertuples():
                title = f"{label(name)} ({attribute})" if attribute else label(name)
                limits = interval(row.lower, row.upper)
                text = f"{number(row.mean)} ({limits})" if limits else number(row.mean)
                yield title, text.replace(" ", "\u00a0")  # a number and its interval in one line


def _headline(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the most important rows: of everyone, the gaps of `protect`, and its groups."""
    import pandas as pd

    is_plain = (summary["variant"] == "") & summary["outcome"].isna()
    summary = summary[is_plain & (summary["binning"] != "mass")]
    is_of_everyone = summary["attribute"] == ""
    is_of_protect = summary["attribute"] == protect
    is_of_all_groups = summary["group"] == ""
    sections = {
        "everyone": is_of_everyone,
        "gaps": is_of_protect & is_of_all_groups,
        "groups": is_of_protect & ~is_of_all_groups,
    }
    tables = []
    for section, is_in_section in sections.items():
        metrics = [metric.name for metric in declared() if section in metric.shown]
        tables.append(summary[is_in_section & summary["metric"].isin(metrics)])
    return pd.concat(tables)


def _html(title: str, table: pd.DataFrame) -> str:
    """Return a table under its title; pandas escapes what stands in it."""
    from fairbench.core.escaping import html

    content = table.to_html(index=False, border=0) if len(table) else ""
    return f"<div><p><strong>{html(title)}</strong></p>{content}</div>"
