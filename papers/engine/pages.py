"""What is printed and written of the papers: ours, theirs, the difference and the verdict.

`print_paper` prints tables, and `_print_contents` every row of a work. `pages` makes
``docs/papers.md``, which answers in brief for every work and counts its numbers, and a page for
each work, ``docs/papers/NAME.md``, with a line for each row of its contents but those
of which the page says no more than that they are implemented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import print_table
from fairbench.components.papers.engine import mapping, matching
from fairbench.core.files import write_text
from fairbench.experiments.configuration import Presets
from fairbench.results.catalogue import Catalogue

_WIDTH = 100
_PRINTED = ("published", "ours", "difference")
_HEADINGS = {
    "dataset": "data set",
    "sensitive_attribute": "groups",
    "n_labelled": "labels",
    "our method": "ours is",
}


def print_paper(paper: mapping.Paper, results: Path, table: str = "") -> None:
    """Print one table, or a summary of all of them, from what is in the results folder.

    Every table is written to ``report/PAPER`` of the results folder besides.

    Parameters
    ----------
    table : its name, ``all`` for all of them one by one, nothing for the summary.
    """
    names = list(paper.tables) if table in ("", "all") else [table]
    tables = list(matching.paper_tables(paper, names, Catalogue(results), Presets(), results))
    console, heading = Console(width=_WIDTH), ("table", "numbers", *mapping.VERDICTS, "")
    summary = []
    for group in tables:
        path = results / "report" / paper.name / f"table{group.table}.csv"
        write_text(path, group.rows.to_csv(index=False))
        numbers = (int(group.rows["reproduces"].sum()), *mapping.counts(group.rows).values())
        summary.append([group.table, *map(str, numbers), group.note])
        if table:
            commands = [matching.command(name) for name in paper.experiments(group.table)]
            if paper.computed(group.table):
                commands.append(f"fairbench paper {paper.name} table={group.table} run=true")
            _print_metrics(paper.name, group, console)
            note = f" ({group.note})" if group.note else ""
            scored = f"table {group.table}: {mapping.scoreboard(group.rows)}{note}"
            console.print(f"{scored}; made by {', '.join(commands)}", style=None)
    if not table:
        print_table(paper.title, heading, summary, _WIDTH)
        print(f"One table: fairbench paper {paper.name} table={names[0]}")


def _print_contents(paper: mapping.Paper, answers: Sequence[matching.RowAnswer]) -> None:
    """Print every row of a paper: its verdict, how many numbers agree, and what was seen."""
    printed = Table(title=paper.title, title_justify="left", box=box.SIMPLE_HEAD)
    printed.add_column("row", overflow="fold", max_width=30)
    printed.add_column("verdict", no_wrap=True)
    printed.add_column("agree", justify="right", no_wrap=True)
    printed.add_column("what was seen", overflow="fold")
    for answer in answers:
        note = answer.note or answer.row.what
        printed.add_row(answer.row.item, answer.verdict, answer.score, note)
    Console(width=_WIDTH).print(printed)


def print_changes(paper: mapping.Paper, changed: pd.DataFrame) -> None:
    """Print the numbers whose verdict is not the recorded one, one per line."""
    for row in changed.to_dict("records"):
        row_name = ", ".join(filter(None, (row[name] for name in (*mapping.KEYS, "metric"))))
        print(
            f"{paper.name}, table {row['table']}, {row_name}: {row['verdict']} "
            f"(recorded: {row['before']}); theirs {row['value']}, ours {row['ours']:.4g}"
        )


def _print_metrics(paper: str, table: matching.PaperTable, console: Console) -> None:
    """Print a table, metric by metric; what all rows share stands in the title."""
    absent = table.rows["verdict"] == mapping.ABSENT
    for metric, rows in table.rows[~absent].groupby("metric", sort=False):
        console.print(_metric_table(rows, f"{paper}, table {table.table}: {metric}"))
    for reason, rows in table.rows[absent].groupby("reason", sort=False):
        numbers = int(rows["reproduces"].sum())
        have = "have" if numbers > 1 else "has"
        console.print(f"{_numbers(numbers)} {have} no answer: {reason}")


def _metric_table(rows: pd.DataFrame, title: str) -> Table:
    """Return the table of one metric: published numbers beside ours."""
    keys = _distinguishing_columns(rows)
    shared = [rows[name].iloc[0] for name in mapping.KEYS if name not in keys]
    title = ", ".join([title, *filter(None, shared)]) + ", mean (sd)"
    if (rows["our method"] != rows["method"]).any():
        keys.append("our method")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    for name in (*keys, *_PRINTED, "verdict"):
        side = "right" if name in (*_PRINTED, "n_labelled") else "left"
        style: dict[str, Any] = {"justify": side, "no_wrap": name in (*_PRINTED, "verdict")}
        table.add_column(_HEADINGS.get(name, name), overflow="fold", **style)
    digits = _decimals(rows)
    for row in rows.sort_values("dataset", kind="stable").to_dict("records"):
        theirs = f"{row['value']} ({row['sd']})" if row["sd"] else row["value"]
        ours = digits(row["ours"])
        if row["repeats"] > 1:
            ours += f" ({digits(row['our sd'])})"
        verdict = row["verdict"] if row["reproduces"] else f"({row['verdict']})"
        front = (str(row[name]) for name in keys)
        table.add_row(*front, theirs, ours, digits(row["difference"]), verdict)
    return table


def _distinguishing_columns(rows: pd.DataFrame) -> list[str]:
    """Return the columns that tell published rows apart, without those that others determine."""
    keys = [name for name in mapping.KEYS if rows[name].nunique() > 1]
    for name in ("sensitive_attribute", "n_labelled", "learner"):
        other_keys = [key for key in keys if key != name]
        if name in keys and other_keys and rows.groupby(other_keys)[name].nunique().max() == 1:
            keys = other_keys
    return keys or ["method"]


def _decimals(rows: pd.DataFrame) -> Callable[[float], str]:
    """Return how numbers of a metric are written: finer where the published ones are small."""
    least = rows["published"].abs().replace(0, np.nan).min()
    decimals = 5 if least < 0.001 else 4 if least < 0.03 else 3

    def written(value: float) -> str:
        return "-" if np.isnan(value) else f"{value:.{decimals if abs(value) < 100 else 1}f}"

    return written


# The pages.

PAGE = Path("docs", "papers.md")
# Verdicts on definitions and data sets, whose reasons the page of deviations has.
_APART = ("differs", "substitute", "loader only", "not comparable")


def pages(papers: Sequence[mapping.Paper]) -> dict[Path, str]:
    """Return path -> text of every page, the one that opens them first."""
    ordered = sorted(papers, key=lambda paper: paper.title.lower())
    every = [
        (paper, list(matching.row_answers(paper, matching.recorded(paper)))) for paper in ordered
    ]
    links = "[every row](papers/{0.name}.md), [findings](../papers/{0.name}/findings.md)"
    template = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    parts = {
        "brief": [
            _line([paper.title, paper.brief["claims"], paper.brief["found"], links.format(paper)])
            for paper in ordered
        ],
        "counts": [_line(_counts_of_work(paper, rows)) for paper, rows in every],
        "names": [f"papers/{paper.name}" for paper in ordered],
    }
    first = template.format(**{name: "\n".join(lines) for name, lines in parts.items()})
    folder = PAGE.with_suffix("")
    own = {
        folder / f"{paper.name}.md": "\n\n".join(_work(paper, rows)) + "\n" for paper, rows in every
    }
    return {PAGE: first, **own}


def _counts_of_work(paper: mapping.Paper, rows: Sequence[matching.RowAnswer]) -> list[str]:
    """Return a work's line of the table of counts."""
    counted = [answer for answer in rows if answer.verdict != matching.OTHER_DATA]
    printed = sum(answer.printed for answer in rows)
    compared = sum(answer.compared for answer in counted)
    link = f"[{paper.name}](papers/{paper.name}.md)"
    counts = [sum(answer.count(verdict) for answer in counted) for verdict in mapping.VERDICTS[:4]]
    share = f"{counts[-1] / compared:.0%}".replace("%", " %")
    numbers = pd.concat([answer.numbers for answer in counted if answer.compared])
    return [link, *map(str, (printed, compared, *counts)), share, *_off(numbers)]


def _off(numbers: pd.DataFrame) -> list[str]:
    """Return how far ours are from the printed numbers, by the text's setting and with causes."""
    distances = mapping.distance(numbers), mapping.distance(numbers, under_causes=True)
    return ["-" if isnan(off) else f"{off:.2f}" for off in distances]


def _work(paper: mapping.Paper, rows: Sequence[matching.RowAnswer]) -> Iterator[str]:
    """Yield the paragraphs of a work's page: claims, numbers, figures, then all else."""
    yield f"# {paper.title}"
    yield "[In brief](../papers.md): what it claims, and whether that replicates."
    yield from _claims(paper, [answer for answer in rows if answer.row.is_claim])
    others = [answer for answer in rows if not answer.row.is_claim]
    yield from _tables(paper, [answer for answer in others if answer.row.kind == "table"])
    figures = [answer for answer in others if answer.row.kind == "figure"]
    yield "## Figures"
    words = f"`fairbench paper {paper.name} figure=N run=true`"
    yield f"{words} runs what a figure needs and draws it."
    drawn = dict.fromkeys(f"`{a.row.figure}`" for a in figures if a.verdict == "drawn")
    if drawn:
        compared = "Drawn, with no printed number to compare (`contents.yaml` has what differs)"
        yield f"{compared}:\n{', '.join(drawn)}."
    yield from _rows([answer for answer in figures if answer.verdict != "drawn"])
    others = [answer for answer in others if answer.row.kind not in ("table", "figure")]
    told = [answer for answer in others if answer.verdict not in ("implemented", mapping.CANNOT)]
    yield "## Definitions, algorithms, data sets and the rest"
    where, more = f"`papers/{paper.name}/contents.yaml`", len(others) - len(told)
    named = "code and reason,\nand what differs from the text ([in brief](../deviations.md))"
    yield f"{more} more are implemented or cannot be had; {where} names {named}."
    apart = [f"{_item(answer)}: {answer.verdict}" for answer in told if answer.verdict in _APART]
    if apart:
        yield f"Not as in the text, for reasons that both of these have: {'; '.join(apart)}."
    yield from _rows([answer for answer in told if answer.verdict not in _APART])


def _claims(paper: mapping.Paper, claims: Sequence[matching.RowAnswer]) -> Iterator[str]:
    """Yield the claims as a list: what is claimed, the verdict, what we saw, by what."""
    order = [*mapping.ROW_VERDICTS, matching.OTHER_DATA]
    judged = [answer for answer in claims if answer.verdict in order]
    yield "## Claims"
    yield f"`figure=N` stands for `fairbench paper {paper.name} figure=N run=true`, and so on."
    lines = list(map(_claim, sorted(judged, key=lambda answer: order.index(answer.verdict))))
    if more := len(claims) - len(judged):
        where = f"`papers/{paper.name}/contents.yaml`"
        lines.append(f"- {more} more cannot be judged; {where} says why.")
    yield "\n".join(lines)


def _claim(answer: matching.RowAnswer) -> str:
    row = answer.row
    verdict = f"*{answer.verdict[:1].upper()}{answer.verdict[1:]}.*"
    option = row.kind in ("table", "figure")
    code = f"{row.kind}={getattr(row, row.kind)}" if option else row.command or row.code
    place = f"({row.place})" if row.place else ""
    what = _sentence(row.what)
    told = [f"- **{what}**", place, verdict, *_seen(answer), f"`{code}`" if code else ""]
    return " ".join(filter(None, told))


def _seen(answer: matching.RowAnswer) -> list[str]:
    """Return what came out, or else what we run, and where the two differ, as sentences."""
    row = answer.row
    differs = f"*Differs:* {row.differs}" if row.differs else ""
    seen = row.other_data or row.note if row.is_counted else answer.note
    told = "" if row.is_counted or differs else row.ours
    return [_sentence(text) for text in (seen or told, differs) if text]


def _sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends as a sentence does."""
    return text if text.endswith((".", "?", "!", ":", ".)")) else f"{text}."


def _tables(paper: mapping.Paper, tables: Sequence[matching.RowAnswer]) -> Iterator[str]:
    """Yield how many numbers of each table agree, under which causes, and which cannot be."""
    yield "## Tables"
    words = f"`fairbench paper {paper.name} table=N run=true`"
    what = "paper's numbers with ours. [What the counts mean](../papers.md)."
    yield f"{words} runs what a table needs, and prints the\n{what}"
    headings = dict.fromkeys(("table", "what it has, and where ours differs"), "---")
    numbers = ("agree, of those compared", "under a cause", "unexplained", "off by, with causes")
    cells, reasons = [], dict[str, list[str]]()
    for answer in tables:
        caused, unexplained = map(answer.count, (mapping.CAUSED, mapping.UNEXPLAINED))
        agree = f"{answer.count(mapping.AGREES)} of {answer.compared}"
        other = "Ours are of other people." if answer.verdict == matching.OTHER_DATA else ""
        text = " ".join(filter(None, [_sentence(answer.row.what), *_seen(answer), other]))
        off = ", ".join(_off(answer.numbers))
        cells.append([_item(answer), text, agree, str(caused), str(unexplained), off])
        for reason, count in matching.unanswered(answer.numbers).items():
            reasons.setdefault(str(reason), []).append(f"{answer.row.item} ({count})")
    yield _table(headings | dict.fromkeys(numbers, "--:"), cells)
    for reason, left_out in reasons.items():
        yield f"Not compared: {', '.join(left_out)}; {reason}."
    own = [answer.numbers for answer in tables if answer.verdict != matching.OTHER_DATA]
    if len(own) < len(tables):
        yield "What follows leaves out the tables that we ran on other people's data."
    yield from _explained(paper, pd.concat(own))


def _explained(paper: mapping.Paper, record: pd.DataFrame) -> Iterator[str]:
    """Yield the causes with how many numbers each explains, the impossible, the unexplained."""
    counts = record.loc[record["verdict"] == mapping.CAUSED, "cause"].value_counts()
    causes = {name: sentence for name, sentence in paper.causes.items() if name in counts}
    if causes:
        yield "### Causes"
        told = (f"- **{name}** ({_numbers(counts[name])}): {causes[name]}" for name in causes)
        yield "\n".join(told)
    impossible = record[record["verdict"] == mapping.IMPOSSIBLE].to_dict("records")
    if impossible:
        yield "### Numbers that cannot be"
        places = [
            paper.impossible.index(mapping.rule_of(paper.impossible, row)) for row in impossible
        ]
        rules = ((paper.impossible[place], places.count(place)) for place in sorted({*places}))
        told = (f"- {_numbers(n)}: {rule['because']} (`{rule['test']}`)" for rule, n in rules)
        yield "\n".join(told)
    unexplained = record.loc[record["verdict"] == mapping.UNEXPLAINED, "table"].value_counts(
        sort=False
    )
    if len(unexplained):
        yield "### Unexplained"
        counted = ", ".join(f"{count} of table {table}" for table, count in unexplained.items())
        where = f"`papers/{paper.name}/verdicts.csv`"
        known = f"[findings](../../papers/{paper.name}/findings.md)"
        known += " and\n[deviations](../deviations.md) what we know of them."
        yield f"{counted}: {where} has them, with ours; the {known}"


def _numbers(count: int) -> str:
    return f"{count} number{'s' if count > 1 else ''}"


def _rows(rows: Sequence[matching.RowAnswer]) -> Iterator[str]:
    """Yield which rows agree, in a line, and a table of the others: what was seen of each."""
    agree, cells = [], []
    for answer in rows:
        if answer.verdict in ("agrees", "holds") and not answer.row.differs:
            agree.append(_item(answer))
        else:
            seen = " ".join(_seen(answer))
            cells.append([_item(answer), answer.row.what, answer.verdict, seen])
    if agree:
        yield f"As in the text: {'; '.join(agree)}."
    if cells:
        headings = ("row", "what the text has", "verdict", "what we saw")
        yield _table(dict.fromkeys(headings, "---"), cells)


def _item(answer: matching.RowAnswer) -> str:
    """Return the name of a row and its place in the text, each unless the other says it."""
    item, place = answer.row.item, answer.row.place
    if item.lower() in place.lower().replace(", ", "; ").split("; "):
        return place
    return item if place in item else f"{item} ({place})"


def _table(headings: Mapping[str, str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, whose headings have the marks of their columns' sides."""
    return "\n".join(map(_line, [list(headings), list(headings.values()), *rows]))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def compare_with_record(
    papers: Sequence[mapping.Paper], options: mapping.PaperOptions, root: Path
) -> None:
    """Print the verdicts that changed, then every row of the papers; record them if asked to."""
    catalogue, presets, answers = Catalogue(options.results), Presets(), []
    for paper in papers:
        tables = matching.paper_tables(paper, [*paper.tables], catalogue, presets, options.results)
        record, new = matching.recorded(paper), matching.verdicts(list(tables))
        print_changes(paper, matching.changes(new, record))
        record = matching.merge_record(new, record)
        if options.record:
            matching.write_record(paper, record)
        answers.append((paper, list(matching.row_answers(paper, record))))
    for paper, rows in answers:
        _print_contents(paper, rows)
    if options.record:
        folder = root / "papers"
        texts = pages([mapping.Paper.read(name, folder) for name in mapping.papers_in(folder)])
        for path, text in texts.items():
            write_text(root / path, text)
        print(f"written: papers/*/verdicts.csv, {', '.join(map(str, texts))}")
    else:
        print(f"Record these verdicts: fairbench paper {options.name} record=true")
