"""The figures of the battery: a CSV row for each population, and the page that sums them up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.measure import ROOT, fill, markdown, read_rows, replaced
from benchmarks.statements.kinds import KINDS, populations
from benchmarks.statements.simulate import Result

PAGE = ROOT / "docs" / "statements.md"
TEXTS = ("kind", "population", "wrong_findings")
KEY = "kind, population"
HEADER = (
    *("kind of audit", "populations", "audits", "wrong pages", "failed", "undecided"),
    *("most often wrong", "where", "differences found", "of large gaps", "by labels alone"),
)


def row_of(result: Result) -> dict[str, Any]:
    """Return what came of a population: counts of pages, and shares of differences in percent."""
    lower, upper = (round(100 * end, 1) for end in result.interval)
    kinds = ", ".join(f"{name}: {count}" for name, count in sorted(result.kinds.items()))
    return {
        "kind": result.kind,
        "population": result.name,
        "audits": result.audits,
        "wrong_pages": result.wrong,
        "lower": lower,
        "upper": upper,
        "wrong_findings": kinds,
        "differences_found": _percent(result.found, result.there),
        "large_gaps": result.gaps,
        "large_gaps_found": _percent(result.gaps_found, result.gaps),
        "by_labels_alone": _percent(result.alone, result.gaps),
    }


def rows_of(results: Sequence[Result]) -> pd.DataFrame:
    """Return a row for each population."""
    return pd.DataFrame(map(row_of, results), columns=list(row_of(Result("", ""))))


def _percent(count: int, of: int) -> float:
    return round(100 * count / of, 1) if of else np.nan


def write(page: Path, results: Sequence[Result]) -> None:
    """Put populations into the CSV file beside a page, and make its tables of all."""
    path = page.with_suffix(".csv")
    there, rows = (
        table.assign(**{KEY: table["kind"] + ", " + table["population"]})
        for table in (read_rows(path, TEXTS), rows_of(results))
    )
    known = sorted(populations(), key=lambda population: KINDS.index(population.kind))
    order = [f"{population.kind}, {population.name}" for population in known]
    every = replaced(there, rows, KEY, order).drop(columns=KEY)
    every.to_csv(path, index=False)
    fill(page, parts(every), words=PAGE)


def parts(rows: pd.DataFrame) -> dict[str, str]:
    """Return what the page has between its words."""
    of_kinds = [
        (str(kind), f"{len(of)}", *_summed(of)) for kind, of in rows.groupby("kind", sort=False)
    ]
    rule = ("---", *["--:"] * 6, "---", *["--:"] * 3)
    every = ("all", f"{len(rows)}", *_summed(rows))
    return {
        "result": "\n".join(_in_short(rows)),
        "kinds": markdown([HEADER, *of_kinds, every], rule),
        "not passed": "\n".join(_not_passed(rows)) or "Every population passed.",
    }


def _results(rows: pd.DataFrame) -> list[Result]:
    columns = (rows[name] for name in ("kind", "population", "audits", "wrong_pages"))
    return [Result(*row) for row in zip(*columns, strict=True)]


def _together(rows: pd.DataFrame) -> tuple[Result, Result, int, int]:
    """Return all audits, the population most often wrong, how many failed and are undecided."""
    results = _results(rows)
    every = Result("all", "", *(sum(getattr(r, name) for r in results) for name in _COUNTS))
    worst = max(results, key=lambda result: result.share)
    return every, worst, sum(r.failed for r in results), sum(r.unsettled for r in results)


_COUNTS = ("audits", "wrong")


def _share(result: Result) -> str:
    lower, upper = (100 * end for end in result.interval)
    return f"{100 * result.share:.1f} % ({lower:.1f}-{upper:.1f} %)"


def _summed(rows: pd.DataFrame) -> Sequence[str]:
    (every, worst, failed, undecided), large = _together(rows), rows[rows["large_gaps"] > 0]
    return (
        f"{every.audits:,}",
        f"{_percent(every.wrong, every.audits)} %",
        f"{failed}",
        f"{undecided}",
        *((_share(worst), worst.name) if worst.wrong else ("0.0 %", "-")),
        _mean(rows["differences_found"]),
        *(_mean(large[name]) for name in ("large_gaps_found", "by_labels_alone")),
    )


def _mean(shares: pd.Series) -> str:
    return f"{shares.mean():.0f} %" if shares.notna().any() else "-"


def _in_short(rows: pd.DataFrame) -> Iterator[str]:
    """Yield the sentences that sum the populations up."""
    every, worst, failed, undecided = _together(rows)
    yield (
        f"{len(rows)} populations, {every.audits:,} audits: {failed} populations failed, "
        f"{undecided} are undecided."
    )
    yield (
        f"{_percent(every.wrong, every.audits)} % of all pages were wrong, and "
        f"{100 * worst.share:.1f} % in the population where this happened most often."
    )
    large = rows[rows["by_labels_alone"] > 0]
    if len(large):
        ours, alone = (
            large["large_gaps"] @ large[name] for name in ("large_gaps_found", "by_labels_alone")
        )
        yield (
            f"Pages find {ours / alone:.2f} times as many of the true large gaps as a test of the "
            "labelled rows alone with the same error rate."
        )


def _not_passed(rows: pd.DataFrame) -> Iterator[str]:
    for result in _results(rows):
        if result.failed or result.unsettled:
            what = "failed" if result.failed else "undecided"
            pages = f"{result.audits:,} pages"
            yield f"- {result.kind}, {result.name}: {what}, {_share(result)} of {pages}"


def promise(page: Path) -> Iterator[Sequence[str]]:
    """Yield the row of all findings in the table of what is promised, if there are figures."""
    rows = read_rows(page.with_suffix(".csv"), TEXTS)
    if len(rows):
        every, worst, failed, _ = _together(rows)
        yield (
            "All findings on the page of an audit together",
            f"{len(rows)} settings, {every.audits:,} pages",
            "95 % of pages have no wrong finding",
            f"{100 - _percent(every.wrong, every.audits):.1f} % of pages; {failed or 'no'} setting"
            f"{'s' * (failed > 1)} failed",
            f"{100 - 100 * worst.share:.1f} %",
            worst.name,
            f"[Statements]({page.name})",
        )
