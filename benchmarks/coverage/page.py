"""The page docs/coverage.md: sections of several benchmarks, and tables made of what they say.

A section is kept as it was written until its benchmark is run again. The table that the page opens
with, and the overview, are made of the tables of all sections whenever one of them is written, so
that no number stands on the page in two versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.simulate import CERTAINTY, REQUIRED
from fairbench.core.errors import UserError

Row = Mapping[str, str]
OURS, BEFORE = "ours", "before"
RANKINGS, BESIDE_RANKINGS = "Rankings of methods", "Rankings of methods, by other rules"
STATEMENTS = "statements.md"
_HOW, _OVERVIEW = "How it was measured", "Overview"
_TITLE = "# How often the intervals hold the truth"
_OPENING = """\
This page shows how often intervals and sentences cover the truth, in simulations where the
truth is known. The first table says what is promised and what was kept. It is made from the
tables below, whenever one of them is measured again (`make coverage`, `python -m
benchmarks.rank write=FILE`, `python -m benchmarks.rank_beside write=FILE`)."""
_READING = """\
A cell is one kind of interval in one population. It fails if its coverage is surely under
{required} %. *worst* is the lowest of many figures, so that chance alone puts it below the
others."""
_MEASURED = """\
Seeds are fixed, so everything comes out the same every time, except for the rankings, which
take as many benchmarks as there is time for.

A cell fails if even the upper end of the exact {certainty} % interval of its coverage is under
{required} %.

- *Worst cell*: the lowest coverage of any cell of 80 intervals or more.
- *misses below* (*above*): the share of intervals for which the truth lies below (above).
- *printed*: the share of data sets for which an interval is printed at all. Coverage is that of
  the printed intervals.
- *Width over ours*: the ratio of mean widths, over the cells that both have. It is of interest
  only if nothing failed.
- *before*: the posterior Dir(1, 1, 1, 1) of the papers, with normal intervals of mean losses.
  It was the default, and is now `interval=dirichlet`.

The base rate of a population varies by a tenth of itself between replications, so that no cell
depends on the points where the coverage of discrete counts jumps. Rates at these points have a
table of their own. By enumeration, the interval of a single rate covers at least 92.3 %, with
the minimum where some seven people are expected.

The fewer samples a cell has, the less it can show: with 200 samples, a cell fails if it covers
86 % or less; with 600, 89 %; with 2,000, 91 %. Promises rest on all cells of a table together,
not on any single one."""
HEAD_HEADER = ("what is said", "simulated in", "promised", "kept", "worst", "parts")


@dataclass(frozen=True)
class Promise:
    """A row of the table that the page opens with: intervals that are promised alike.

    Attributes
    ----------
    families : names of the families of intervals that it is about.
    """

    what: str
    families: tuple[str, ...]
    promised: str = "95 % each"


PROMISES = (
    Promise(
        "A rate; a difference, ratio or odds ratio of two groups",
        ("rates", "differences", "ratios", "fixed_rates", "odds_ratios", "pooled"),
    ),
    Promise(
        "The largest gap, the smallest ratio, and equalized odds, of all groups",
        ("gaps", "gaps_with_tiny_groups", "smallest_ratios", "equalized_odds", "small_gaps",
         "best_by_score"),
    ),
    Promise(
        "Losses, AUC, calibration, errors of numbers, standardised means, and their differences",
        ("scores", "areas_of_clusters", "reaching_scores", "regression", "mean_differences"),
    ),
    Promise(
        "Rates and means of weighted rows, households or strata",
        ("weights_and_clusters", "standardised"),
    ),
    Promise(
        "Rates and gaps where few labels, or no groups, are known",
        ("few_labels", "active_labels", "stopped_labels", "along_the_run", "selected", "proxies"),
    ),
    Promise(
        "Gaps and errors over splits: a run's, the fairest of many, two compared",
        ("chosen", "chosen_runs", "runs", "learners", "comparisons"),
    ),
    Promise("Every row of the table of `fairbench.evaluate`", ("evaluate",)),
)  # fmt: skip


def tables_of(text: str) -> list[list[Row]]:
    """Return the tables of a text in Markdown, a mapping of column to cell for each row."""
    result: list[list[Row]] = []
    header: list[str] | None = None
    for line in text.splitlines():
        if not line.startswith("| "):
            header = None
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if header is None:
            header = cells
            result.append([])
        elif not set("".join(cells)) <= set("-: "):
            result[-1].append(dict(zip(header, cells, strict=True)))
    return result


def sections_of(text: str) -> dict[str, str]:
    """Return the sections of the page under their titles, without the tables made of others."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    titles, bodies = parts[1::2], parts[2::2]
    made = (_HOW, _OVERVIEW)
    return {
        title: body.strip("\n")
        for title, body in zip(titles, bodies, strict=True)
        if title not in made
    }


def write_sections(path: Path, written: Mapping[str, str]) -> None:
    """Write sections into the page, which keeps the others that it has.

    Parameters
    ----------
    path : of the page; beside it may be that of statements.
    written : the text under each title.
    """
    there = sections_of(path.read_text(encoding="utf-8")) if path.is_file() else {}
    beside = path.parent / STATEMENTS
    statements = beside.read_text(encoding="utf-8") if beside.is_file() else ""
    path.write_text(page({**there, **written}, statements), encoding="utf-8")


def page(sections: Mapping[str, str], statements: str = "") -> str:
    """Return the page of its sections, with the tables that are made of them.

    Parameters
    ----------
    statements : the page that says how often any sentence is wrong; empty without.

    Raises
    ------
    UserError : a section that no benchmark writes any more.
    """
    order = [family.title for family in FAMILIES] + [RANKINGS, BESIDE_RANKINGS]
    if unknown := set(sections) - set(order):
        raise UserError(f"no benchmark writes the section '{min(unknown)}' of this page: remove it")
    kept = [(title, sections[title]) for title in order if title in sections]
    limits = {"required": round(100 * REQUIRED), "certainty": 100 * CERTAINTY}
    reading, measured = (text.format(**limits) for text in (_READING, _MEASURED))
    parts = [f"{_TITLE}\n\n{_OPENING}\n\n{head(sections, statements)}\n\n{reading}"]
    parts += [f"## {_HOW}\n\n{measured}", f"## {_OVERVIEW}\n\n{overview(sections)}"]
    parts += [f"## {title}\n\n{text}" for title, text in kept]
    return "\n\n".join(parts) + "\n"


def overview(sections: Mapping[str, str]) -> str:
    """Return one table of all families: ours, before, and the best competitor that holds."""
    header = ["what", "cells", "ours: failed", "worst", "mean", "before: failed", "worst", "mean"]
    header.append("others that never failed, with their width over ours")
    rows = [header, ["---", *["--:"] * 7, "---"]]
    for family in FAMILIES:
        if family.title in sections and not family.one_row_each:
            rows += [
                [metric, *_in_overview(tables_of(text)[0])]
                for metric, text in _metrics(family.title, sections[family.title])
            ]
    return _table(rows)


def _in_overview(table: Sequence[Row]) -> list[str]:
    by_name = {row["construction"]: row for row in table}
    columns = ("failed", "worst cell", "mean coverage")
    own, before = by_name.get(OURS, {}), by_name.get(BEFORE, {})
    others = [
        f"{name} ({row['width over ours']})"
        for name, row in by_name.items()
        if name not in (OURS, BEFORE) and row["failed"] == "0"
    ]
    return [
        own.get("cells", "-"),
        *(own.get(name, "-") for name in columns),
        *(before.get(name, "-") for name in columns),
        ", ".join(others) or "none",
    ]


def _metrics(title: str, section: str) -> Iterator[tuple[str, str]]:
    """Yield each metric of a section with its text; the section itself where it has one alone."""
    parts = re.split(r"^### (.+)$", section, flags=re.MULTILINE)
    if len(parts) == 1:
        yield title, section
    for metric, text in zip(parts[1::2], parts[2::2], strict=True):
        yield f"{title}: {metric}", text


def head(sections: Mapping[str, str], statements: str = "") -> str:
    """Return the table that the page opens with, of the sections that are there."""
    rows: list[Sequence[str]] = [HEAD_HEADER, ["---"] * len(HEAD_HEADER)]
    rows += [row for promise in PROMISES if (row := _of_intervals(promise, sections))]
    if statements:
        rows.append(_of_statements(statements))
    if RANKINGS in sections:
        rows += _of_rankings(sections[RANKINGS], beside=BESIDE_RANKINGS in sections)
    return _table(rows)


@dataclass(frozen=True)
class _Kept:
    """What a table says of our intervals: cells, those that failed, coverage, and where least."""

    cells: int
    failed: int
    mean: float
    worst: float
    where: str


def _of_intervals(promise: Promise, sections: Mapping[str, str]) -> Sequence[str] | None:
    """Return the row of a promise; None where none of its sections is there."""
    by_name = {family.name: family for family in FAMILIES}
    families = [by_name[name] for name in promise.families]
    there = [family for family in families if family.title in sections]
    kept: list[_Kept] = []
    for family in there:
        text = sections[family.title]
        read = _of_rows if family.one_row_each else _of_cells
        kept += read(family.title, text)
    if not kept:
        return None
    cells, failed = sum(cell.cells for cell in kept), sum(cell.failed for cell in kept)
    mean = sum(cell.mean * cell.cells for cell in kept) / cells
    worst = min(kept, key=lambda each: each.worst)
    rows = all(family.one_row_each for family in there)
    unit = "rows" if rows else "cells"
    return (
        promise.what,
        f"{cells:,} {unit}",
        promise.promised,
        f"{mean:.1f} % on average; {failed or 'no'} {unit[:-1] if failed < 2 else unit} failed",
        f"{worst.worst:.1f} %: {worst.where}",
        ", ".join(_link(family.title) for family in there),
    )


def _of_cells(title: str, section: str) -> Iterator[_Kept]:
    """Yield what was kept of each metric of a section."""
    for metric, text in _metrics(title, section):
        own = next(row for row in tables_of(text)[0] if row["construction"] == OURS)
        if own["mean coverage"] == "-":
            continue
        cells = int(own["cells"])
        failed = round(cells * _percent(own["failed"]) / 100)
        least = re.search(r"^Ours hold least often with (.+?) \([\d.]+ %\)", text, re.MULTILINE)
        name = metric.partition(": ")[2]
        where = ", ".join(filter(None, [name or title.lower(), least[1] if least else ""]))
        mean, worst = (_percent(own[name]) for name in ("mean coverage", "worst cell"))
        yield _Kept(cells, failed, mean, worst, where)


def _of_rows(title: str, section: str) -> Iterator[_Kept]:
    """Yield what was kept of each metric of a section that has one table."""
    for row in tables_of(section)[0]:
        text = row["ours: coverage"]
        if text != "-":
            worst, _, population = row.get("ours: worst cell", text).partition(": ")
            where = (
                f"{title.lower()}, {row['metric']}, {population}" if population else row["metric"]
            )
            yield _Kept(1, int("failed" in text), _percent(text), _percent(worst), where)


def _of_statements(text: str) -> Sequence[str]:
    """Return the row of whole pages of sentences, made of the page of statements."""
    rows = [row for table in tables_of(text) for row in table]
    worst = max(rows, key=lambda row: _percent(row["wrong pages"]))
    failed = sum("**failed**" in row["population"] for row in rows)
    audits = sum(int(row["audits"]) for row in rows)
    wrong = sum(int(row["audits"]) * _percent(row["wrong pages"]) for row in rows) / audits
    return (
        "All sentences of an audit's page at once",
        f"{len(rows)} populations, {audits:,} pages",
        "95 % of pages without any that is wrong",
        f"{100 - wrong:.1f} % of all pages; {failed or 'no'} population{'s' * (failed > 1)} failed",
        f"{100 - _percent(worst['wrong pages']):.1f} %: {worst['population']}",
        f"[Statements]({STATEMENTS})",
    )


def _of_rankings(section: str, *, beside: bool) -> Iterator[Sequence[str]]:
    """Yield the rows of rankings: what holds at once, and what is said of new tasks."""
    claims, tenths, plans = tables_of(section)[:3]
    whole = claims[-1]
    parts = _link(RANKINGS) + (f", {_link(BESIDE_RANKINGS)}" if beside else "")
    yield (
        "Ranks, all differences and who may be the best, at once (`fairbench rank`)",
        f"{whole['populations']} populations, {whole['benchmarks']} benchmarks",
        "95 % of tables",
        f"{whole['holds in']} of benchmarks; {whole['populations that failed']} populations failed",
        f"{whole['worst population']}",
        parts,
    )
    off = {row["said"]: abs(float(row["too high by"].split()[0])) for row in tenths}
    near = sum(points <= 3 for points in off.values())
    worst = max(tenths, key=lambda row: off[row["said"]])
    plan = plans[0]
    yield (
        "The probability to be near the best on a new task; how many more tasks would tell",
        f"{whole['benchmarks']} benchmarks; {plan['populations']} populations",
        "what is said comes true to 3 points; plans are right to 20 %",
        f"{near} of {len(tenths)} tenths; plans in {plan['right to 20 %']} of populations",
        f"{worst['too high by']} points too high (standard error {worst['standard error']}) where "
        f"{worst['said']} is said, which is {worst['share of all']} of what is said",
        _link(RANKINGS),
    )


def _percent(text: str) -> float:
    """Return the number before the sign of percent; that of ``0`` too."""
    return float(text.split()[0])


def _link(title: str) -> str:
    slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{slug})"


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
