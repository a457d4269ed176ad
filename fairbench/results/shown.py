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

MOST = 50  # runs in one table
_MOST_LINES = 20  # the same in a terminal
_OF_EVERYONE = ("error_rate", "log_loss", "rmse")
_GAPS = (
    *("equalized_odds", "statistical_parity"),
    *("equal_opportunity_class_mean", "statistical_parity_class_mean"),
)
_IF_THEY_DIFFER = ("learner", "intervention", "seed")
_CHOICES = ("dataset", "learner", "intervention", "method")


def run_html(run: Run) -> str:
    """Return the headline metrics of a run as a table of HTML."""
    import pandas as pd

    headline = _headline(values_of(run.summary()), run.protect)
    rows = [
        {
            "metric": label(row.metric),
            "of": f"{row.attribute}: {row.group}" if row.group else row.attribute,
            "mean": number(row.mean, 4),
            "95 % interval": interval(row.lower, row.upper, 4),
            "rows": count(row.n),
        }
        for row in headline.itertuples()
    ]
    return _html(f"Run {run.id}: {run.name}", pd.DataFrame(rows))


def runs_html(runs: Sequence[Run], place: str) -> str:
    """Return runs as a table of HTML: what they chose, their errors and their largest gaps."""
    return _html(*_titled(runs, place, MOST))


def runs_text(runs: Sequence[Run], place: str) -> str:
    """Return the same as text, of the first few runs."""
    title, table = _titled(runs, place, _MOST_LINES)
    return f"{title}\n{table.to_string(index=False)}" if len(table) else title


def _titled(runs: Sequence[Run], place: str, most: int) -> tuple[str, pd.DataFrame]:
    import pandas as pd

    table = pd.DataFrame([dict(_row(run)) for run in runs[:most]])
    alike = [name for name in _IF_THEY_DIFFER if name in table and table[name].nunique() < 2]
    table = table.drop(columns=alike)
    noun = "run" if len(runs) == 1 else "runs"
    title = f"{len(runs)} finished {noun} in {place}"
    if len(runs) > most:
        title += f", of which the first {most} are shown; select(...) chooses others"
    return title, table.dropna(axis=1, how="all").fillna("") if len(table) else table


def _row(run: Run) -> Iterator[tuple[str, str | int]]:
    """Yield the columns of a run; a metric as its mean with the 95 % interval."""
    yield "run", run.id
    for part in _CHOICES:
        yield part, run.choices[part]
    yield "seed", run.seed
    try:
        summary = values_of(run.summary())
    except UserError:  # whose files are damaged: whoever asks for a figure of it is told
        return
    summary = summary[(summary["variant"] == "") & summary["outcome"].isna()]
    for names, attribute in ((_OF_EVERYONE, ""), (_GAPS, run.protect)):
        for name in names:
            where = (summary["metric"] == name) & (summary["attribute"] == attribute)
            found = summary[where & (summary["group"] == "")].head(1)
            for row in found.itertuples():
                title = f"{label(name)} ({attribute})" if attribute else label(name)
                ends = interval(row.lower, row.upper)
                text = f"{number(row.mean)} ({ends})" if ends else number(row.mean)
                yield title, text.replace(" ", "\u00a0")  # a number and its interval in one line


def _headline(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the most important rows: of everyone, the gaps of `protect`, and its groups."""
    import pandas as pd

    plain = (summary["variant"] == "") & summary["outcome"].isna()
    summary = summary[plain & (summary["binning"] != "mass")]
    everyone, of_metric = summary["attribute"] == "", summary["attribute"] == protect
    whole = summary["group"] == ""
    parts = (("everyone", everyone), ("gaps", of_metric & whole), ("groups", of_metric & ~whole))
    shown = {
        part: [metric.name for metric in declared() if part in metric.shown] for part, _ in parts
    }
    return pd.concat([summary[rows & summary["metric"].isin(shown[part])] for part, rows in parts])


def _html(title: str, table: pd.DataFrame) -> str:
    """Return a table under its title; pandas escapes what stands in it."""
    from fairbench.core.escaping import html

    content = table.to_html(index=False, border=0) if len(table) else ""
    return f"<div><p><strong>{html(title)}</strong></p>{content}</div>"
