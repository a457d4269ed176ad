"""A metric's table as Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from fairbench.experiments.provenance import Provenance
from fairbench.reporting.page.metric_table import MetricTable
from fairbench.reporting.page.text import interval, latex, markdown, number, probability, words

_CSV = [
    "run", "label", "mean", "sd", "lower", "upper", "n", "repeats", "status", "best", "near",
    "standing",
]  # fmt: skip
_HEADER = ["method", "mean", "sd", "95 % interval", "n"]
_RANKS = ["P(best)", "P(near)", "standing"]


def write_table(table: MetricTable, source: Provenance, folder: Path) -> None:
    """Write ``<metric>.md``, ``.tex`` and ``.csv``, each with what is behind it as a comment."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / table.key
    notes = list(_notes(table, source))
    comment = "".join(f"% {line}\n" for line in notes)
    _write(stem, "md", _markdown(table) + "\n" + "\n\n".join(map(markdown, notes)) + "\n")
    _write(stem, "tex", comment + _latex(table))
    _write(stem, "csv", pd.DataFrame(table.rows, columns=_CSV).to_csv(index=False))


def _write(stem: Path, kind: str, text: str) -> None:
    # Derived files are written again by the same command: no need to outlive a power cut.
    stem.with_name(f"{stem.name}.{kind}").write_text(text, encoding="utf-8")


def _notes(table: MetricTable, source: Provenance) -> Iterator[str]:
    yield f"{words(table.metric)}; {table.direction or 'without a direction'}"
    if table.is_ranked:
        yield f"P(near): within {number(table.rope)} of the best"
    yield f"runs: {', '.join(source.runs)}"
    data = [f"{name} {value}" for name, value in source.data.items()]
    yield f"data, sha256: {'; '.join(data) or 'simulated'}"
    yield f"versions: {', '.join(f'{name} {value}' for name, value in source.versions.items())}"
    yield f"commit: {', '.join(source.commits)}"
    yield from source.commands


def _rows(table: MetricTable, escape: Callable[[str], str]) -> Iterator[list[str]]:
    yield _HEADER + (_RANKS if table.is_ranked else [])
    for row in table.rows.to_dict("records"):
        cells = [number(row["mean"]), number(row["sd"]), interval(row), f"{row['n']:.0f}"]
        if table.is_ranked:
            cells += [probability(row["best"]), probability(row["near"]), row["standing"]]
        yield [escape(row["label"]), *cells]


def _markdown(table: MetricTable) -> str:
    header, *rows = _rows(table, markdown)
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *rows))


def _latex(table: MetricTable) -> str:
    header, *rows = _rows(table, latex)
    lines = [" & ".join(cells) + r" \\" for cells in rows]
    top = " & ".join(map(latex, header)) + r" \\"
    columns = "l" + "r" * (len(header) - 1)
    body = "\n".join([r"\toprule", top, r"\midrule", *lines, r"\bottomrule"])
    return f"\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}\n"
