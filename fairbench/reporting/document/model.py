"""The parts of a document, the texts of its values, and the record of how it was made.

A `Document` has a title, a verdict, a summary and sections of sentences, tables and figures. Begin
with it; `value_text` and `cell_text` format what stands in a table, for every form alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from fairbench.core import VERSION
from fairbench.core import text as formats
from fairbench.core.files import file_sha256
from fairbench.core.processes import source_date

# The kind of values in a column, by which every renderer formats them.
Kind: TypeAlias = Literal[
    "text",  # a str
    "number",  # a float, with the column's decimals
    "signed",  # a float with its sign
    "general",  # a float with all of its digits
    "count",  # a whole number
    "probability",  # a share that was simulated: never written as 0 or 1
    "percent",  # the same in percent
    "interval",  # (lower, upper)
    "estimate",  # (value, lower, upper)
    "spread",  # (mean, sd)
    "bar",  # a Bar: drawn on a page, left out elsewhere
]
Align: TypeAlias = Literal["left", "right"]


class Code(str):
    """A piece of text that is typed or printed as it is."""

    __slots__ = ()


@dataclass(frozen=True)
class Link:
    """A piece of text that leads to another place of the page, or to a file beside it."""

    text: str
    target: str
    code: bool = False


@dataclass(frozen=True)
class Mark:
    """A word or two set apart as a badge; `style` names its look."""

    text: str
    style: str = ""


Inline: TypeAlias = str | Link | Mark  # a str may be a Code
Text: TypeAlias = str | tuple[Inline, ...]
Tags: TypeAlias = Mapping[str, str]  # name of a filter -> value of the tagged element


@dataclass(frozen=True)
class Bar:
    """An interval on the scale of its table, in percent of the width.

    `ends` are the lower limit, the value and the upper limit; `band` are the ends of what makes no
    practical difference, around `zero`; `kind` says whether the value is drawn as a ``line`` or as
    a ``dot``.
    """

    ends: tuple[float, float, float]
    band: tuple[float, float] | None = None
    zero: float | None = None
    kind: Literal["line", "dot"] = "line"


@dataclass(frozen=True)
class TableCell:
    """A value of a table, with its style, link and remarks.

    Attributes
    ----------
    before, after : texts directly before and after the value.
    note : a second, small line.
    mark : the style of a badge around the value.
    style : the style of the whole cell.
    shade : how strongly the cell is coloured, 0 to 1.
    link : the address that the value links to.
    name : the anchor by which other places link to the cell.
    hint : the text that the pointer shows.
    """

    value: Any
    before: str = ""
    after: Text = ""
    note: Text = ""
    mark: str = ""
    style: str = ""
    shade: float | None = None
    link: str = ""
    name: str = ""
    hint: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    kind : the kind of its values, such as ``number`` or ``interval``.
    decimals : the number of decimals of numbers, and of the limits of intervals and estimates.
    left_out : if room is scarce, columns with the largest number are left out first; 0 never is.
    narrow : whether a terminal saves the room between it and its neighbours.
    heads : whether its cells are the names of rows.
    right : whether text is aligned to the right, as numbers are.
    """

    title: str
    kind: Kind = "text"
    decimals: int = 3
    left_out: int = 0
    narrow: bool = False
    heads: bool = False
    right: bool = False

    @property
    def align(self) -> Align:
        """Text to the left unless it says otherwise, values to the right."""
        return "left" if self.kind in ("text", "bar") and not self.right else "right"


@dataclass(frozen=True)
class Table:
    """Rows of values under typed columns.

    Attributes
    ----------
    rows : a value, or a `TableCell` with one, for each column; None leaves it empty.
    title : what the table shows.
    caption : what a reader has to know, under the table.
    reading : how to read it, at length.
    rules : positions of rows that a line separates from those above.
    name : the table's anchor on a page.
    most : the most rows that a terminal shows; 0 for all.
    sortable : whether a page can sort it.
    repeated : a terminal that is too narrow continues the table below, and repeats this many first
        columns there; 0 if it leaves out columns instead.
    tags : the tags of each row, by which a page filters; empty if it does not.
    more : positions of rows that a short page leaves out.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    caption: str = ""
    reading: str = ""
    rules: frozenset[int] = frozenset()
    name: str = ""
    most: int = 0
    sortable: bool = False
    repeated: int = 0
    style: str = ""
    tags: Sequence[Tags] = ()
    more: frozenset[int] = frozenset()

    @property
    def explanation(self) -> str:
        """The caption, and how to read the table, as sentences."""
        parts = [text.rstrip(".") for text in (self.caption, self.reading) if text]
        return "".join(f"{part}. " for part in parts).rstrip()

    @property
    def without_bars(self) -> Table:
        """The table without its drawings, for forms that have none."""
        shown = [i for i, column in enumerate(self.columns) if column.kind != "bar"]
        rows = [[row[i] for i in shown] for row in self.rows]
        return replace(self, columns=[self.columns[i] for i in shown], rows=rows)


@dataclass(frozen=True)
class Paragraph:
    """Sentences. `style` is empty, ``note`` if they are less important, or ``warning``."""

    text: Text
    style: str = ""


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: Sequence[Text]


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture as SVG text; its title says what there is to see.

    Attributes
    ----------
    drawings : SVG texts, each usable as a file of its own; shown side by side if there is room.
    name : the name of the file with the drawings, and their anchor on a page.
    """

    title: str
    drawings: Sequence[str] = ()
    caption: Text = ""
    style: str = ""
    name: str = ""


@dataclass(frozen=True, eq=False)
class Gallery:
    """Small figures side by side, with what a reader has to know of all of them."""

    figures: Sequence[Figure]
    caption: str = ""


_MOST = 100  # longer folded tables are left out on paper
_LEFT_OUT = "These rows are on the page and in the JSON."


@dataclass(frozen=True, eq=False)
class Details:
    """Blocks that most readers skip: folded on a page, left out on a terminal."""

    summary: Text
    blocks: Sequence[Block]
    remark: str = ""
    name: str = ""
    style: str = ""
    is_open: bool = False
    tags: Tags = field(default_factory=dict)

    @property
    def on_paper(self) -> Section:
        """The blocks under a heading, for forms without folding; too long tables are left out."""
        long = any(isinstance(block, Table) and len(block.rows) > _MOST for block in self.blocks)
        return Section(plain(self.summary), [Paragraph(_LEFT_OUT)] if long else self.blocks)


@dataclass(frozen=True, eq=False)
class Section:
    """Blocks under a heading; a section without a title has no heading.

    `more` says whether a short page leaves it out.
    """

    title: str
    blocks: Sequence[Block]
    name: str = ""
    more: bool = False


Block: TypeAlias = Paragraph | Items | Table | Figure | Gallery | Details | Section


@dataclass(frozen=True)
class Verdict:
    """A warning, if one is due, the basis, and what can and cannot be concluded."""

    can: Sequence[str]
    cannot: Sequence[str]
    basis: Sequence[str] = ()
    warning: str = ""

    @property
    def concludes(self) -> bool:
        """Whether it says more than its warning."""
        return bool(self.can or self.cannot or self.basis)


@dataclass(frozen=True, eq=False)
class ExecutiveSummary:
    """A summary in plain language, for readers who read nothing else.

    Attributes
    ----------
    found : sentences on what was found, the most important first.
    sure : sentences on how sure that is.
    unseen : sentences on what was not looked at.
    todo : sentences on what to do next.
    titles : the titles of `found`, `sure`, `unseen` and `todo`.
    still_open : sentences on what these rows cannot tell.
    audited : terms with texts on what was looked at and how it was read.
    key_figures : the few figures that matter.
    chart : a picture of the key figures.
    audited_title : the title above `audited`.
    """

    found: Sequence[str]
    sure: Sequence[str] = ()
    unseen: Sequence[str] = ()
    todo: Sequence[str] = ()
    titles: Sequence[str] = (
        "What was found", "How sure this is", "What was not looked at", "What to do next",
    )  # fmt: skip
    still_open: Sequence[str] = ()
    audited: Sequence[tuple[str, Text]] = ()
    key_figures: Table | None = None
    chart: Figure | None = None
    audited_title: str = "What was audited"

    @property
    def named_parts(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Headings and sentences by the names of the parts, in the order of a page.

        Parts without any sentence are left out; but where questions are open, that nothing was
        found is said.
        """
        names = ("found", "still_open", "sure", "unseen", "todo")
        titles = [*self.titles[:1], WHAT_IS_OPEN, *self.titles[1:]]
        said = {name: getattr(self, name) for name in names}
        if self.still_open:
            said["found"] = self.found or [NOTHING_SETTLED]
        parts = zip(names, titles, strict=True)
        return {name: (title, said[name]) for name, title in parts if said[name]}

    def shortened(self, most: int = 3) -> ExecutiveSummary:
        """Return the summary with a limited number of findings and open questions.

        The others are said at length under the conclusions, to which a last sentence leads.
        """
        cut: dict[str, Any] = {
            name: [*sentences[:most], f"More {what} in the full report, under “{where}”."]
            for name, what, where in _ELSEWHERE
            if len(sentences := getattr(self, name)) > most
        }
        return replace(self, **cut)


WHAT_IS_OPEN = "What is open"
_ELSEWHERE = (
    ("found", "findings are", "Can be concluded"),
    ("still_open", "open questions are", "Cannot be concluded"),
)
NOTHING_SETTLED = "Nothing is settled by these rows."


@dataclass(frozen=True)
class _Made:
    """The record of how a document was made, so that it can be made again.

    Attributes
    ----------
    when : date and time, in UTC.
    version : the version of fairbench.
    seed : the seed of all random draws.
    file : the name of the file, the run or the table that was read.
    sha256 : the digest of the file; empty for a run and for a table in memory.
    command : the command line or the call as it was typed; empty if it is unknown.
    """

    when: str
    version: str
    seed: int
    file: str
    sha256: str = ""
    command: str = ""

    @property
    def terms(self) -> list[tuple[str, Text]]:
        """Terms and texts that tell a reader how the document was made."""
        digest = f", sha256 {self.sha256[:_DIGITS]}…" if self.sha256 else ""
        terms: list[tuple[str, Text]] = [
            ("File", f"{self.file}{digest}"),
            ("Made", f"{self.when}, by fairbench {self.version}, seed {self.seed}"),
        ]
        return [*terms, *([(COMMAND, (Code(self.command),))] if self.command else [])]


COMMAND = "Command"  # the term of the line that makes a document again
_DIGITS = 16  # digits shown of a digest


# A filter of a page, which hides elements whose tag of this name has another value than the chosen
# one: the tag's name, in lower-case letters; the filter's label; and the tag's values, each with
# its label.
PageFilter: TypeAlias = tuple[str, str, Sequence[tuple[str, str]]]


@dataclass(frozen=True, eq=False)
class Document:
    """Something to tell, before it is printed or written.

    Attributes
    ----------
    verdict : the conclusion, if anything is concluded.
    notes : sentences that qualify the results.
    lead : blocks before the sections; if there is a summary, the pictures.
    origin : a sentence on what it was made with.
    tabs : whether a page shows one section at a time.
    data : the content of the JSON form; if empty, it is made of the sections.
    files : texts that are written beside the page, by file name.
    summary : the summary that a page opens with.
    filters : the filters of a page with tabs.
    made : how it was made; the summary is then a first page, and all else its appendix.
    in_short : the conclusion as a short page has it.
    """

    title: str
    sections: Sequence[Section]
    verdict: Verdict | None = None
    notes: Sequence[str] = ()
    lead: Sequence[Block] = ()
    origin: str = ""
    tabs: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    summary: ExecutiveSummary | None = None
    filters: Sequence[PageFilter] = ()
    made: _Made | None = None
    in_short: Verdict | None = None

    @property
    def warning(self) -> str:
        """The warning of the verdict, if there is one; else empty."""
        return self.verdict.warning if self.verdict else ""

    @property
    def is_long(self) -> bool:
        """Whether its page is longer than most readers read, and a shorter one leaves more out."""
        parts: list[Table | Section] = [*self.tables, *self.sections]
        has_more = any(part.more for part in parts)
        return has_more and sum(len(table.rows) for table in self.tables) > _LONG

    def shortened(self, whole: str) -> Document:
        """Return the document without what only its whole page has, and a link to that page."""
        link = Link("every combination of groups, every pair, table and picture", whole)
        sections = [_short(section) for section in self.sections if not section.more]
        lead = [block for block in self.lead if not (isinstance(block, Section) and block.more)]
        end = Section("", [Paragraph(("There is a page with ", link, "."))])
        verdict = self.in_short or self.verdict
        return replace(self, lead=lead, verdict=verdict, sections=[*sections, end])

    @property
    def first_page(self) -> Iterator[Block]:
        """The blocks that a reader sees first: a warning, if one is due, and the summary."""
        if self.warning:
            yield Paragraph(self.warning, "warning")
        if self.summary is None:
            return
        summary = self.on_first_page
        beside = [block for block in (summary.key_figures, summary.chart) if block]
        for index, (title, sentences) in enumerate(summary.named_parts.values()):
            yield _listed(title, sentences)
            if index == 0:
                yield from beside
        if self.audited:
            said = [f"{term}: {plain(text)}" for term, text in self.audited]
            yield _listed(summary.audited_title, said)

    @property
    def appendix(self) -> Iterator[Block]:
        """All else."""
        if self.summary is not None:
            yield from self.lead
        if self.verdict is not None and self.verdict.concludes:
            yield from ([Paragraph(" ".join(self.verdict.basis))] if self.verdict.basis else [])
            yield _listed("Can be concluded", self.verdict.can)
            yield _listed("Cannot be concluded", self.verdict.cannot)
        if self.summary is None:
            yield from self.lead
        yield from self.sections
        if self.notes:
            yield _listed("Notes", self.notes)
        if self.origin:
            yield Paragraph(self.origin)

    @property
    def on_first_page(self) -> ExecutiveSummary:
        """As much of the summary as one page holds; everything else is the appendix."""
        summary = self.summary or ExecutiveSummary([])
        return summary.shortened() if self.made else summary

    @property
    def audited(self) -> list[tuple[str, Text]]:
        """Terms and texts: what was looked at, how it was read, and how the document was made."""
        made_terms = self.made.terms if self.made else []
        return [*made_terms[:1], *(self.summary.audited if self.summary else []), *made_terms[1:]]

    @property
    def _blocks(self) -> list[Block]:
        return [block for _, block in _inside([*self.lead, *self.sections], self.title)]

    @property
    def tables(self) -> list[Table]:
        """Every table, in the order of the sections."""
        return [block for block in self._blocks if isinstance(block, Table)]

    @property
    def titled_tables(self) -> dict[str, Table]:
        """The tables of the sections by their titles, or by the titles of their sections."""
        titled: dict[str, Table] = {}
        for of_section, block in _inside(self.sections, self.title):
            if isinstance(block, Table):
                title = formats.one_line(block.title or of_section)
                again = sum(name.partition(" (")[0] == title for name in titled)
                titled[f"{title} ({again + 1})" if again else title] = block
        return titled

    @property
    def figures(self) -> list[Figure]:
        """Every figure, in the order of the sections."""
        return [block for block in self._blocks if isinstance(block, Figure)]


_LONG = 120  # rows of all tables of a page


def _short(block: Block) -> Any:
    """Return a block with the rows of its tables that a short page has; no other row has a tag."""
    if isinstance(block, Table):
        kept = [place for place in range(len(block.rows)) if place not in block.more]
        rules = frozenset(place for place, row in enumerate(kept) if row in block.rules)
        return replace(block, rows=[block.rows[place] for place in kept], rules=rules)
    if isinstance(block, Section | Details):
        return replace(block, blocks=[_short(each) for each in block.blocks])
    return block


def _listed(title: str, sentences: Sequence[str]) -> Section:
    return Section(title, [Items(sentences or ["Nothing."])])


def _inside(blocks: Sequence[Block], title: str) -> Iterator[tuple[str, Block]]:
    """Yield every block, those inside others too, each after the title of what holds it."""
    for block in blocks:
        yield title, block
        match block:
            case Section():
                yield from _inside(block.blocks, block.title or title)
            case Details():
                yield from _inside(block.blocks, plain(block.summary))
            case Gallery():
                yield from _inside(block.figures, title)


def plain(text: Text) -> str:
    """Return a text without its decoration."""
    if isinstance(text, str):
        return text
    return "".join(piece if isinstance(piece, str) else piece.text for piece in text)


def as_cell(value: Any) -> TableCell:
    """Return a value as a cell."""
    return value if isinstance(value, TableCell) else TableCell(value)


# How a value is shown, by the kind of its column, with so many decimals.
FORMATS: Mapping[str, Callable[[Any, int], str]] = {
    "text": lambda value, _: plain(value) if isinstance(value, tuple) else str(value),
    "number": formats.number,
    "signed": formats.signed,
    "general": lambda value, decimals: f"{value:g}",
    "count": lambda value, decimals: formats.count(value),
    "probability": lambda value, decimals: formats.probability(value),
    "percent": lambda value, decimals: formats.percent(value),
    "interval": lambda ends, decimals: formats.interval(ends[0], ends[1], decimals),
    "estimate": lambda of, decimals: formats.with_interval(of[0], of[1], of[2], decimals),
    "spread": lambda parts, decimals: (
        f"{formats.number(parts[0], decimals)} ({formats.number(parts[1], decimals)})"
    ),
}


def value_text(value: Any, column: Column) -> str:
    """Return a value of a column as text; empty for a missing value, and for a bar."""
    if value is None or column.kind == "bar":
        return ""
    return FORMATS[column.kind](value, column.decimals)


def cell_text(value: Any, column: Column) -> str:
    """Return a cell of a table as text, with the texts around its value."""
    cell = as_cell(value)
    return f"{cell.before}{plain(value_text(cell.value, column))}{plain(cell.after)}"


def made_from(path: Path, seed: int) -> _Made:
    """Return how this document is made: from a file, a run or a table in memory.

    ``SOURCE_DATE_EPOCH`` says what time it is, where it is set: the same document is then written
    to the last byte when it is made again.

    Parameters
    ----------
    path : the path of the file. For a run or a table in memory, the last part of the path is its
        name, and there is no digest.
    """
    digest = file_sha256(path) if path.is_file() else ""
    epoch = source_date()
    now = datetime.now(UTC) if epoch is None else datetime.fromtimestamp(epoch, UTC)
    return _Made(now.strftime("%Y-%m-%d %H:%M UTC"), VERSION, seed, path.name, digest)
