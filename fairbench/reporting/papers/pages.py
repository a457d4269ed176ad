"""The pages of the papers, from their contents and records: ``docs/papers.md`` and one a work.

The first answers in brief for every work, and counts its numbers. A work's own page,
``docs/papers/NAME.md``, has a line for every row of its contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isnan
from pathlib import Path

import pandas as pd

from fairbench.core.files import write_text
from fairbench.reporting.papers.contents import CANNOT, VERDICTS
from fairbench.reporting.papers.mapping import (
    AGREES,
    CAUSED,
    IMPOSSIBLE,
    UNEXPLAINED,
    Paper,
    distance,
    papers_in,
    rule_of,
)
from fairbench.reporting.papers.record import OTHER_DATA, RowAnswer, answers, recorded

PAGE = Path("docs", "papers.md")
# Verdict on a printed number -> its heading, and what it means.
_COUNTED = {
    AGREES: ("agree", "Ours, by the text's setting, agrees with the printed number."),
    CAUSED: (
        "under a cause",
        "Ours differs by the text's setting. It agrees when the one setting that the cause names "
        "is changed. Each cause is a run.",
    ),
    IMPOSSIBLE: (
        "cannot be",
        "The printed number contradicts another one of the work, or its own formula. A test shows "
        "it.",
    ),
    UNEXPLAINED: ("unexplained", "Ours differs, and we do not know why."),
}
_NOT_JUDGED = {
    OTHER_DATA: "We ran the table on other people than the paper's, so its numbers may differ.",
    CANNOT: "What it takes was not published, or cannot be computed.",
}


def write_pages(root: Path) -> list[Path]:
    """Write the pages of all papers of a checkout and return their paths."""
    papers = [Paper.read(name, root / "papers") for name in papers_in(root / "papers")]
    texts = pages(papers)
    for path, text in texts.items():
        write_text(root / path, text)
    return list(texts)


def pages(papers: Sequence[Paper]) -> dict[Path, str]:
    """Return path -> text of every page, the one that opens them first."""
    ordered = sorted(papers, key=lambda paper: paper.title.lower())
    every = [(paper, list(answers(paper, recorded(paper)))) for paper in ordered]
    names = [f"papers/{paper.name}" for paper in ordered]
    first = [
        *_HEAD,
        *(_line(_brief(paper)) for paper in ordered if paper.brief),
        "",
        *_COUNTS,
        *(_line(_counts_of_work(paper, rows)) for paper, rows in every),
        "",
        *_WORDS,
        *(f"| {name} | {meaning} |" for name, meaning in _COUNTED.values()),
        "",
        *_ROWS,
        *(f"| *{name}* | {meaning} |" for name, meaning in {**VERDICTS, **_NOT_JUDGED}.items()),
        "",
        *("```{toctree}", ":hidden:", "", *names, "```", ""),
    ]
    own = {_path(paper): "\n".join(_work(paper, rows)) for paper, rows in every}
    return {PAGE: "\n".join(first), **own}


def _path(paper: Paper) -> Path:
    return PAGE.with_suffix("") / f"{paper.name}.md"


_HEAD = """# The five works: what replicates

fairbench implements five works. This page says of each what it claims, whether that replicates, and
how many of its printed numbers agree with ours. Every work has a page of its own, with a line for
each table, figure, definition, algorithm, data set, setting and claim of its text. The thesis has
two pages, one for chapter 2 and one for chapter 3; its chapter 4 is the paper of 2020.

## In brief

| work | what it claims | does it replicate? | read on |
| --- | --- | --- | --- |""".splitlines()

_COUNTS = """## How many numbers agree

| work | printed | compared | agree | under a cause | cannot be | unexplained | of those \
compared | off by | with causes |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |""".replace("\\\n", "").splitlines()

_WORDS = """*Compared* leaves out numbers that nothing of ours answers, such as those of data that
were not released, and tables that we ran on other people's data than the paper's. *Of those
compared* is the share that is unexplained. *Off by* is the mean absolute difference of ours, by the
text's setting, from the printed numbers; *with causes* takes our number under the cause where there
is one. The unit is the printed sd, or, where a paper prints none, the sd of its own numbers of that
table, metric and data set. Both stand here because a wide spread of ours makes every number agree.

A number *agrees* if the two means differ by at most two standard errors of that difference and half
a printed digit. The error includes our scatter over repeats, and the paper's where it prints one.
Where the paper divided its data once, ours are repeated over divisions, and the printed number is
judged as one of them.

| a number | |
| --- | --- |""".splitlines()

_ROWS = """Every other verdict is our judgement:

| verdict | what it means |
| --- | --- |""".splitlines()


def _brief(paper: Paper) -> list[str]:
    """Return a work's line of the first table."""
    links = f"[every row](papers/{paper.name}.md), [findings](../papers/{paper.name}/findings.md)"
    return [paper.title, paper.brief["claims"], paper.brief["found"], links]


def _counts_of_work(paper: Paper, rows: Sequence[RowAnswer]) -> list[str]:
    """Return a work's line of the table of counts."""
    counted = [answer for answer in rows if answer.verdict != OTHER_DATA]
    printed = sum(answer.printed for answer in rows)
    compared = sum(answer.compared for answer in counted)
    link = f"[{paper.title}](papers/{paper.name}.md)"
    if not compared:
        return [link, str(printed), *[""] * 8]
    counts = [sum(answer.count(verdict) for answer in counted) for verdict in _COUNTED]
    share = f"{counts[-1] / compared:.0%}".replace("%", " %")
    numbers = pd.concat([answer.numbers for answer in counted if answer.compared])
    return [link, *map(str, (printed, compared, *counts)), share, *_off(numbers)]


def _off(numbers: pd.DataFrame) -> list[str]:
    """Return how far ours are from the printed numbers, by the text's setting and with causes."""
    distances = distance(numbers), distance(numbers, under_causes=True)
    return ["-" if isnan(off) else f"{off:.2f}" for off in distances]


def _work(paper: Paper, rows: Sequence[RowAnswer]) -> Iterator[str]:
    """Yield the lines of a work's page: claims, numbers, figures, then all else."""
    yield from (f"# {paper.title}", "")
    if paper.brief:
        yield from (f"*It claims:* {paper.brief['claims']}", "")
        yield from (f"*Does it replicate?* {paper.brief['found']}", "")
    yield from _claims(paper, [answer for answer in rows if answer.row.is_claim])
    tables = [answer for answer in rows if answer.row.is_counted]
    figures = [answer for answer in rows if answer.row.kind == "figure" and not answer.row.is_claim]
    if tables:
        yield from _tables(paper, tables)
    if figures:
        yield from _rows(
            "Figures",
            f"`fairbench paper {paper.name} figure=N run=true` runs what a figure needs and draws "
            "it.",
            figures,
            lambda answer: f"`{answer.row.figure}`",
            "N",
        )
    shown = {id(answer) for answer in (*tables, *figures)}
    others = [a for a in rows if id(a) not in shown and not a.row.is_claim]
    if others:
        yield from _rows(
            "Definitions, algorithms, data sets and the rest",
            "",
            others,
            _answered_by,
            "command or code",
        )


def _claims(paper: Paper, claims: Sequence[RowAnswer]) -> Iterator[str]:
    """Yield the claims as a list: what is claimed, the verdict, what we saw, by what."""
    order = list(VERDICTS)
    by_verdict = sorted(
        claims, key=lambda a: order.index(a.verdict) if a.verdict in order else len(order)
    )
    if claims:
        yield from ("## Claims", "")
        yield from (_claim(paper, answer) for answer in by_verdict)
        yield ""


def _claim(paper: Paper, answer: RowAnswer) -> str:
    row = answer.row
    verdict = f"*{answer.verdict[:1].upper()}{answer.verdict[1:]}.*"
    code = row.command_of(paper.name) or row.code
    place = f"({row.place})" if row.place else ""
    what = _sentence(row.what)
    told = [f"- **{what}**", place, verdict, *_ours(answer), f"`{code}`" if code else ""]
    return " ".join(filter(None, told))


def _ours(answer: RowAnswer) -> list[str]:
    """Return what we run, where it differs, and what came out, as sentences."""
    row = answer.row
    differs = f"*Differs:* {row.differs}" if row.differs else ""
    return [_sentence(text) for text in (row.ours, differs, answer.note) if text]


def _sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends as a sentence does."""
    return text if text.endswith((".", "?", "!", ":", ".)")) else f"{text}."


def _tables(paper: Paper, tables: Sequence[RowAnswer]) -> Iterator[str]:
    """Yield how many numbers of each table agree, under which causes, and which cannot be."""
    yield from ("## Tables", "")
    yield f"`fairbench paper {paper.name} table=N run=true` runs what a table needs, and prints the"
    yield "paper's numbers with ours. [What the counts mean](../papers.md)."
    yield ""
    counted = [heading for heading, _ in _COUNTED.values()]
    headings = ["table", "what it has, and what we run", "printed", "compared", *counted]
    headings += ["off by", "with causes"]
    yield from (_line(headings), _line(["---", "---", *["--:"] * (len(headings) - 2)]))
    for answer in tables:
        counts = [answer.printed, answer.compared, *(answer.count(name) for name in _COUNTED)]
        other = "Ours are of other people." if answer.verdict == OTHER_DATA else ""
        text = " ".join(filter(None, [_sentence(answer.row.what), *_ours(answer), other]))
        yield _line([_item(answer), text, *map(str, counts), *_off(answer.numbers)])
    yield ""
    record = pd.concat([a.numbers for a in tables if a.verdict != OTHER_DATA] or [pd.DataFrame()])
    if any(answer.verdict == OTHER_DATA for answer in tables):
        yield "What follows leaves out the tables that we ran on other people's data."
        yield ""
    if len(record):
        yield from _explained(paper, record)


def _explained(paper: Paper, record: pd.DataFrame) -> Iterator[str]:
    """Yield the causes with how many numbers each explains, the impossible, the unexplained."""
    counts = record.loc[record["verdict"] == CAUSED, "cause"].value_counts()
    if len(counts):
        yield from ("### Causes", "")
        for name, sentence in paper.causes.items():
            if name in counts:
                yield f"- **{name}** ({_numbers(counts[name])}): {sentence}"
        yield ""
    impossible = record[record["verdict"] == IMPOSSIBLE].to_dict("records")
    if impossible:
        yield from ("### Numbers that cannot be", "")
        for rule in paper.impossible:
            number = sum(rule_of(paper.impossible, row) is rule for row in impossible)
            if number:
                yield f"- {_numbers(number)}: {rule['because']} (`{rule['test']}`)"
        yield ""
    unexplained = record[record["verdict"] == UNEXPLAINED]
    if len(unexplained):
        yield from ("### Unexplained", "")
        headings = ["table", "data set", "metric", "numbers"]
        yield from (_line(headings), _line(["---", "---", "---", "--:"]))
        places = unexplained.groupby(["table", "dataset", "metric"], sort=False).size()
        yield from (_line([*map(str, place), str(size)]) for place, size in places.items())
        yield ""


def _numbers(count: int) -> str:
    return f"{count} number{'s' if count > 1 else ''}"


def _rows(
    title: str,
    explanation: str,
    rows: Sequence[RowAnswer],
    by_what: Callable[[RowAnswer], str],
    heading: str,
) -> Iterator[str]:
    """Yield a table of rows: what the text has, the verdict, by what, what we run and saw."""
    yield from (f"## {title}", "")
    if explanation:
        yield from (explanation, "")
    headings = ["row", "what the text has", "verdict", heading, "ours, and what we saw"]
    yield from (_line(headings), _line(["---"] * len(headings)))
    for answer in rows:
        text = " ".join(filter(None, _ours(answer)))
        yield _line([_item(answer), answer.row.what, answer.verdict, by_what(answer), text])
    yield ""


def _item(answer: RowAnswer) -> str:
    """Return the name of a row and its place in the text, unless the name says it."""
    row = answer.row
    return row.item if row.place in row.item else f"{row.item} ({row.place})"


def _answered_by(answer: RowAnswer) -> str:
    row = answer.row
    option = row.kind in ("table", "figure", "dataset")
    text = f"{row.kind}={getattr(row, row.kind)}" if option else row.command or row.code
    return f"`{text}`" if text else "-"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
