"""The report of the battery: a table for each family, ours beside what others print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isnan
from pathlib import Path

import numpy as np

from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.simulate import BEFORE, CERTAINTY, LEVEL, OURS, REQUIRED, Cell, Family
from benchmarks.measure import markdown
from fairbench.core.errors import UserError
from fairbench.metrics.registry import label

HEADER = (
    *("intervals", "settings", "failed", "lowest coverage", "mean coverage"),
    *("truth below", "truth above", "printed", "mean width", "width relative to ours"),
)
WORST, ENOUGH = 3, 80  # cells named; printed intervals from which on a cell's coverage is shown
_SHORT = "This is a short run: fewer settings, and a fifth of the replications."


def failures(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells of our own intervals that failed."""
    return [cell for cell in cells if cell.construction == OURS and cell.failed]


def sections(cells: Sequence[Cell], *, short: bool = False) -> dict[str, str]:
    """Return what the page says of each family that was simulated, under its title."""
    known = {family.name: family for family in FAMILIES}
    note = f"\n\n{_SHORT}" * short
    return {
        known[name].title: _section(known[name], list(of_family)) + note
        for name, of_family in groupby(cells, key=lambda cell: cell.family)
    }


def summary(cells: Sequence[Cell]) -> str:
    """Return a section for each family that was simulated."""
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections(cells).items())


def _section(family: Family, cells: Sequence[Cell]) -> str:
    populations = len({cell.population for cell in cells})
    many = "" if family.one_row_each else f" Simulated in {populations} settings."
    lines = [f"{family.sentence}{many}", ""]
    if family.one_row_each:
        return "\n".join([*lines, *_of_metrics(cells)])
    metrics = list(dict.fromkeys(cell.metric for cell in cells))
    for metric in metrics:
        of_metric = [cell for cell in cells if cell.metric == metric]
        if len(metrics) > 1:
            lines += [f"### {metric}", ""]
        lines += [*_table(of_metric), "", *_lowest(of_metric)]
    return "\n".join(lines).rstrip("\n")


def _table(cells: Sequence[Cell]) -> list[str]:
    names = list(dict.fromkeys(cell.construction for cell in cells))
    ours = {cell.population: cell for cell in cells if cell.construction == OURS}
    rows = [
        _row(name, [cell for cell in cells if cell.construction == name], ours) for name in names
    ]
    return [markdown([HEADER, *rows])]


def _of_metrics(cells: Sequence[Cell]) -> list[str]:
    """Return a table with a row for each metric, and the coverage of each construction.

    Where there are several populations, coverage is over all of them, and the lowest of one stands
    beside it.
    """
    names = list(dict.fromkeys(cell.construction for cell in cells))
    several = len({cell.population for cell in cells}) > 1
    columns = [
        f"{name}: {what}"
        for name in names
        for what in ("coverage", *["lowest coverage"] * several, "printed")
    ]
    rows = [["metric", "rows", *columns]]
    for metric in dict.fromkeys(cell.metric for cell in cells):
        mine = [cell for cell in cells if cell.metric == metric]
        of = [[cell for cell in mine if cell.construction == name] for name in names]
        trials = max(sum(cell.trials for cell in each) for each in of)
        texts = [text for each in of for text in _counted(each, several=several)]
        rows.append([metric, str(trials), *texts])
    return [markdown(rows)]


def _counted(cells: Sequence[Cell], *, several: bool) -> Iterator[str]:
    """Yield coverage, with a mark where a cell failed, the lowest, and the share printed."""
    there = [cell for cell in cells if cell.printed]
    if not there:
        yield from ["-"] * (2 + several)
        return
    printed = sum(cell.printed for cell in there)
    missed = sum(cell.below + cell.above for cell in there)
    mark = " (failed)" if any(cell.failed for cell in there) else ""
    yield f"{100 * (1 - missed / printed):.1f} %{mark}"
    if several:
        lowest = min(_of_many(there), key=lambda cell: cell.coverage)
        yield f"{100 * lowest.coverage:.1f} %: {lowest.population}"
    yield f"{100 * printed / sum(cell.trials for cell in cells):.1f} %"


def _row(name: str, cells: Sequence[Cell], ours: dict[str, Cell]) -> list[str]:
    there = [cell for cell in cells if cell.printed]
    if not there:
        return [name, str(len(cells)), *["-"] * 6, *["-"] * 2]
    printed = sum(cell.printed for cell in there)
    failed = sum(cell.failed for cell in there)
    shared = [(cell, ours[cell.population]) for cell in there if cell.population in ours]
    shared = [(cell, our) for cell, our in shared if our.printed]
    mean = np.mean([cell.coverage for cell in there])
    relative = np.mean([cell.width for cell, _ in shared]) if shared else float("nan")
    relative /= np.mean([our.width for _, our in shared]) if shared else float("nan")
    return [
        name,
        str(len(cells)),
        f"{100 * failed / len(there):.1f} %" if failed else "0",
        f"{100 * min(cell.coverage for cell in _of_many(there)):.1f} %",
        f"{100 * mean:.1f} %",
        f"{100 * sum(cell.below for cell in there) / printed:.1f} %",
        f"{100 * sum(cell.above for cell in there) / printed:.1f} %",
        f"{100 * printed / sum(cell.trials for cell in cells):.1f} %",
        f"{np.mean([cell.width for cell in there]):.4g}",
        "-" if isnan(relative) else f"{relative:.2f}",
    ]


def _of_many(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Return the cells with enough intervals to say how low their coverage is, or all if none."""
    return [cell for cell in cells if cell.printed >= ENOUGH] or cells


def _lowest(cells: Sequence[Cell]) -> list[str]:
    """Return lines on where our own intervals and those of the earlier default cover least."""
    lines = []
    for name in (OURS, BEFORE):
        result = [cell for cell in cells if cell.construction == name and cell.printed]
        lowest = sorted(_of_many(result), key=lambda cell: (cell.coverage, cell.population))[:WORST]
        if line := lowest_line(name, [(100 * cell.coverage, cell.population) for cell in lowest]):
            lines += [line, ""]
    return lines


def lowest_line(construction: str, lowest: Sequence[tuple[float, str]]) -> str:
    """Return a line that names those of some coverages, in percent, that lie under the level.

    Empty where none does. What counts is the figure that is printed.
    """
    percents = [(f"{percent:.1f}", population) for percent, population in lowest]
    under = [(text, name) for text, name in percents if float(text) < 100 * LEVEL]
    named = "; ".join(f"{text} % with {name}" for text, name in under)
    return f"{LOWEST[construction]} {named}." if named else ""


# The page docs/coverage.md: sections of several benchmarks, and tables made of what they say.
#
# A section is kept as it was written until its benchmark is run again. The table that the page
# opens with, and the overview, are made of the tables of all sections whenever one of them is
# written, so that no number stands on the page in two versions.

Row = Mapping[str, str]
# How the line that names the lowest coverages of a construction begins.
LOWEST = {
    OURS: "Lowest coverage of our intervals:",
    BEFORE: "Lowest coverage of the earlier default:",
}
RANKINGS, BESIDE_RANKINGS = "Rankings of methods", "Rankings of methods, by other rules"
STATEMENTS = "statements.md"
_HOW, _OVERVIEW = "How it was measured", "Overview"
_TITLE = "# How often the intervals cover the truth"
_OPENING = """\
The intervals and findings of fairbench were tested in simulations in which the truth is known.
The first table compares what is promised with what was measured. It is computed from the tables
of the sections below.

- A *setting* is one simulated situation, such as two groups of 50 rows with a rate of 0.3 each.
  Where a section is about several intervals, the table counts a setting once for each of them.
- A setting *fails* if its coverage is surely under {required} %. Since coverage is estimated, a
  figure under {required} % does not show this by itself: a setting of 200 samples fails at 86 % or
  less, and one of 2,000 samples at 91 % or less. [Statements]({statements}) and
  [rankings](#rankings-of-methods) have stricter rules, which are stated there.
- *lowest* is the smallest figure of all settings, and *where* is the setting that it was measured
  in. Chance alone puts the smallest of many estimates below the others."""
_MEASURED = """\
`make coverage` repeats the simulations, `python -m benchmarks.rank write=FILE` those of rankings;
what other rules say of the same tables was measured once. Seeds are fixed, so the figures come out
the same every time. Only the rankings vary: they draw as many benchmarks as there is time for.

In the tables, *ours* are the intervals that fairbench prints. *earlier default* is the posterior
Dir(1, 1, 1, 1) of the papers, and a normal interval for mean losses; it is now
`interval=dirichlet`. The columns are:

- *failed*: the share of settings that failed. A setting fails if even the upper end of the exact
  {certainty} % interval of its coverage is under {required} %.
- *lowest coverage*: the lowest of all settings in which 80 intervals or more were printed.
- *truth below* (*above*): the share of intervals for which the truth lies below (above) the
  interval.
- *printed*: the share of cases in which an interval is printed at all. Coverage is that of the
  printed intervals.
- *width relative to ours*: the mean width divided by ours, over the settings that both have. It
  matters only if nothing failed.

Below a table, up to three settings are named in which our intervals, or those of the earlier
default, cover the truth less than 95 % of the time.

In most settings, rates vary by up to a tenth from one replication to the next. Otherwise, figures
would depend on whether a rate happens to lie where the coverage of counts jumps. A [section of
its own](#rates-at-which-coverage-jumps) has such rates. By enumeration, the interval of a single
rate covers at least 92.3 %, and least where about seven people with the outcome are expected.

The fewer samples a setting has, the less it can show: with 200 samples, a setting fails if its
coverage is 86 % or less; with 600, 89 %; with 2,000, 91 %. So judge a table by all of its settings
together, not by a single one."""
HEAD_HEADER = (
    *("intervals or claims", "simulated in", "promised", "measured"),
    *("lowest", "where", "sections"),
)
# What the names of settings say, in words that need no section: patterns and replacements.
_PLAIN = (
    (r"(\d+) of correlation ([\d.]+)", r"\1 candidates whose estimates are correlated by \2"),
    (r"unfair by ([\d.]+) errors", r"true gaps of \1 standard errors each"),
    (r"^(\d+) alike\b", r"\1 groups that do not differ"),
    (r"(\d+) and (\d+) rows", r"groups of \1 and \2 rows"),
    (r"contaminated errors of sd", "errors with outliers, standard deviation"),
    (r"weights vary by", "weights with a coefficient of variation of"),
    (r"scores of beta\(", "scores of the distribution beta("),
)


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
        "A rate; the difference, ratio or odds ratio of two groups",
        ("rates", "differences", "ratios", "fixed_rates", "odds_ratios", "pooled"),
    ),
    Promise(
        "The largest gap, the smallest ratio and equalized odds, over all groups",
        ("gaps", "gaps_with_tiny_groups", "smallest_ratios", "equalized_odds", "small_gaps",
         "best_by_score"),
    ),
    Promise(
        "Losses, AUC, calibration, errors of numbers, standardised means; their differences",
        ("scores", "areas_of_clusters", "reaching_scores", "regression", "mean_differences"),
    ),
    Promise(
        "Rates and means with weights, clusters or strata",
        ("weights_and_clusters", "standardised"),
    ),
    Promise(
        "Rates and gaps where only few labels, or no groups, are known",
        ("few_labels", "active_labels", "stopped_labels", "along_the_run", "selected", "proxies"),
    ),
    Promise(
        "Gaps and errors over splits: of one run, of the fairest of many, of two runs compared",
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
    opening = _OPENING.format(statements=STATEMENTS, **limits)
    measured = _MEASURED.format(**limits)
    parts = [f"{_TITLE}\n\n{opening}\n\n{head(sections, statements)}"]
    parts += [f"## {_HOW}\n\n{measured}", f"## {_OVERVIEW}\n\n{overview(sections)}"]
    parts += [f"## {title}\n\n{text}" for title, text in kept]
    return "\n\n".join(parts) + "\n"


def overview(sections: Mapping[str, str]) -> str:
    """Return a table of all families: ours, the earlier default, and others that hold."""
    header = ["interval of", "settings"]
    header += [
        f"{name}: {what}" for name in (OURS, BEFORE) for what in ("failed", "lowest", "mean")
    ]
    header.append("others that never failed (width relative to ours)")
    rows = [header]
    for family in FAMILIES:
        if family.title in sections and not family.one_row_each:
            rows += [
                [metric, *_in_overview(tables_of(text)[0])]
                for metric, text in _metrics(family.title, sections[family.title])
            ]
    return markdown(rows, ["---", *["--:"] * 7, "---"])


def _in_overview(table: Sequence[Row]) -> list[str]:
    by_name = {row["intervals"]: row for row in table}
    columns = ("failed", "lowest coverage", "mean coverage")
    own, before = by_name.get(OURS, {}), by_name.get(BEFORE, {})
    others = [
        f"{name} ({row['width relative to ours']})"
        for name, row in by_name.items()
        if name not in (OURS, BEFORE) and row["failed"] == "0"
    ]
    return [
        own.get("settings", "-"),
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
    rows: list[Sequence[str]] = [HEAD_HEADER]
    rows += [row for promise in PROMISES if (row := _of_intervals(promise, sections))]
    if statements:
        rows.append(_of_statements(statements))
    if RANKINGS in sections:
        rows += _of_rankings(sections[RANKINGS], beside=BESIDE_RANKINGS in sections)
    return markdown(rows, ["---"] * len(HEAD_HEADER))


@dataclass(frozen=True)
class _Kept:
    """What a table says of our intervals: settings, those that failed, coverage, where least."""

    settings: int
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
    settings, failed = sum(each.settings for each in kept), sum(each.failed for each in kept)
    mean = sum(each.mean * each.settings for each in kept) / settings
    worst = min(kept, key=lambda each: each.worst)
    rows = all(family.one_row_each for family in there)
    unit = "rows" if rows else "settings"
    return (
        promise.what,
        f"{settings:,} {unit}",
        promise.promised,
        f"{mean:.1f} % on average; {failed or 'no'} {unit[:-1] if failed < 2 else unit} failed",
        f"{worst.worst:.1f} %",
        _in_plain_words(worst.where),
        ", ".join(_link(family.title) for family in there),
    )


def _of_cells(title: str, section: str) -> Iterator[_Kept]:
    """Yield what was kept of each metric of a section."""
    for metric, text in _metrics(title, section):
        own = next(row for row in tables_of(text)[0] if row["intervals"] == OURS)
        if own["mean coverage"] == "-":
            continue
        settings = int(own["settings"])
        failed = round(settings * _percent(own["failed"]) / 100)
        least = re.search(
            rf"^{LOWEST[OURS]} [\d.]+ % with (.+?)(?:; [\d.]+ % with |\.$)", text, re.M
        )
        name = metric.partition(": ")[2]
        where = ", ".join(filter(None, [name or title.lower(), least[1] if least else ""]))
        mean, worst = (_percent(own[name]) for name in ("mean coverage", "lowest coverage"))
        yield _Kept(settings, failed, mean, worst, where)


def _of_rows(title: str, section: str) -> Iterator[_Kept]:
    """Yield what was kept of each metric of a section that has one table."""
    for row in tables_of(section)[0]:
        text = row["ours: coverage"]
        if text != "-":
            worst, _, population = row.get("ours: lowest coverage", text).partition(": ")
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
        "All findings on the page of an audit together",
        f"{len(rows)} settings, {audits:,} pages",
        "95 % of pages have no wrong finding",
        f"{100 - wrong:.1f} % of pages; {failed or 'no'} setting{'s' * (failed > 1)} failed",
        f"{100 - _percent(worst['wrong pages']):.1f} %",
        _in_plain_words(worst["population"]),
        f"[Statements]({STATEMENTS})",
    )


def _of_rankings(section: str, *, beside: bool) -> Iterator[Sequence[str]]:
    """Yield the rows of rankings: what holds at once, and what is said of new tasks."""
    claims, tenths, plans = tables_of(section)[:3]
    whole = claims[-1]
    failed = whole["settings that failed"]
    some = f"{failed} setting{'' if failed in ('no', '1') else 's'} failed"
    lowest, _, where = whole["lowest"].partition(": ")
    parts = _link(RANKINGS) + (f", {_link(BESIDE_RANKINGS)}" if beside else "")
    yield (
        "Ranks, all differences and which methods may be the best, together (`fairbench rank`)",
        f"{whole['settings']} settings, {whole['benchmarks']} benchmarks",
        "95 % of benchmarks",
        f"{whole['holds in']} of benchmarks; {some}",
        lowest,
        where,
        parts,
    )
    off = {row["stated"]: abs(float(row["too high by"].split()[0])) for row in tenths}
    near = sum(points <= 3 for points in off.values())
    worst = max(tenths, key=lambda row: off[row["stated"]])
    plan = plans[0]
    yield (
        "The probability of being near the best on a new task; plans of how many tasks are needed",
        f"{whole['benchmarks']} benchmarks; {plan['settings']} settings",
        "probabilities are right within 3 points, plans within 20 %",
        f"{near} of {len(tenths)} ranges of probabilities; plans in {plan['right within 20 %']} of "
        "settings",
        f"{worst['too high by']} points too high (standard error {worst['standard error']})",
        f"stated probabilities of {worst['stated']}, {worst['share of all']} of all",
        _link(RANKINGS),
    )


def _in_plain_words(where: str) -> str:
    """Return the name of a setting in words that need no section, and its metrics by their labels.

    Examples
    --------
    >>> _in_plain_words("positive_predictive_value of every group, 10 alike")
    'precision of every group, 10 alike'
    """
    for pattern, words in _PLAIN:
        where = re.sub(pattern, words, where)
    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", lambda found: label(found[0]), where)


def _percent(text: str) -> float:
    """Return the number before the sign of percent; that of ``0`` too."""
    return float(text.split()[0])


def _link(title: str) -> str:
    slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{slug})"
