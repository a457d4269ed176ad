"""The first section of the page: what was run, how the papers compare, how to read the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fairbench.core.formats import number
from fairbench.metrics.registry import label as metric_label
from fairbench.reporting.document.model import (
    Block,
    Code,
    Column,
    Details,
    ExecutiveSummary,
    Inline,
    Items,
    Link,
    Mark,
    Paragraph,
    Section,
    Table,
    TableCell,
)
from fairbench.reporting.page.metric_table import CERTAIN, EQUIVALENT, OPEN, WORSE, RankedRuns
from fairbench.reporting.page.sections import PageBlock, Source, source_details
from fairbench.reporting.papers.mapping import UNANSWERED, VERDICTS
from fairbench.reporting.papers.matching import PaperTable


def overview_section(
    pages: Sequence[PageBlock], papers: Sequence[PaperTable], source: Source
) -> Section:
    """Return the overview of all blocks."""
    blocks: list[Block] = [Section("What was run", [_runs_table(pages)])]
    answered = [table for table in papers if table.runs]
    if answered:
        blocks.append(Section("Compared with the papers", list(_papers(pages, answered, source))))
    blocks.append(Section("How to read the tables", [_how_to_read()], name="reading"))
    return Section("Overview", blocks, name="overview")


def runs_summary(
    pages: Sequence[PageBlock], papers: Sequence[PaperTable], left_out: Sequence[str]
) -> ExecutiveSummary:
    """Return the summary of a page of runs: which is best, how sure that is, what to do next."""
    return ExecutiveSummary(
        list(_result_sentences(pages)),
        list(_basis_sentences(pages, papers)),
        list(_unseen_sentences(pages, left_out)),
        list(_advice_sentences(pages)),
    )


_ERRORS = ("error_rate", "rmse")
_GAPS = (
    "statistical_parity",
    "equalized_odds",
    "uncertainty_aware_statistical_parity",
    "equal_opportunity_class_mean",
)
_MOST_TOLD, _MOST_NAMED = 6, 3


def _result_sentences(pages: Sequence[PageBlock]) -> Iterator[str]:
    """Yield the findings in the first blocks, and how many blocks have more."""
    findings = [(page, sentences) for page in pages if (sentences := list(_winners(page)))]
    for page, sentences in findings[:_MOST_TOLD]:
        yield f"{page.block.title}: {' '.join(sentences)}"
    if len(findings) > _MOST_TOLD:
        yield f"{len(findings) - _MOST_TOLD} more data sets and splits have their own sections."
    if not findings:
        yield "No two runs can be compared: each stands alone."


def _winners(page: PageBlock) -> Iterator[str]:
    """Yield the sentences on the best run by the error, and by the gap between groups."""
    tables = {table.metric: table for table in page.tables if table.is_ranked and not table.setting}
    for names in (_ERRORS, _GAPS):
        name = next((name for name in names if name in tables), "")
        if name and len(tables[name].rows) > 1:
            yield _winner(tables[name])


def _winner(table: RankedRuns) -> str:
    """Return the sentence on the run of the best mean, and on those that may be as good."""
    best = table.rows[0]["label"]
    mean = float(table.rows[0]["mean"])
    metric_text = metric_label(table.metric) + (f" by {table.attribute}" if table.attribute else "")
    rivals = {
        standing: _other_names(table.labels_with_standing(standing), best)
        for standing in (EQUIVALENT, OPEN)
    }
    clauses = [
        f"{_first_names(names)} {'is' if len(names) == 1 else 'are'} {standing_text}"
        for names, standing_text in (
            (rivals[EQUIVALENT], "as good for practical purposes"),
            (rivals[OPEN], "not told apart from it"),
        )
        if names
    ]
    ending = f"; {', and '.join(clauses)}" if clauses else "; every other run is worse"
    return f"{best} has the best mean in {metric_text} ({number(mean)}){ending}."


def _other_names(names: Sequence[str], best: str) -> list[str]:
    """Return the names other than that of the best run."""
    return [name for name in names if name != best]


def _first_names(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    unnamed = len(names) - _MOST_NAMED
    listed = ", ".join(names[:_MOST_NAMED])
    return f"{listed} and {unnamed} more" if unnamed > 0 else listed


def _basis_sentences(pages: Sequence[PageBlock], papers: Sequence[PaperTable]) -> Iterator[str]:
    """Yield the basis of the statements: probabilities, repeats, and the papers' numbers."""
    yield (
        f"A run is called as good, or worse, where that has a probability of at least {CERTAIN} "
        "by the splits that the runs share."
    )
    quick = [page.block.title for page in pages if page.note]
    if quick:
        yield (
            f"Few repeats were made of {_first_names(quick)}: take what is said of "
            f"{'it' if len(quick) == 1 else 'them'} as a hint."
        )
    counts = Counter[str]()
    for table in papers:
        counts.update({name: n for name, n in table.counts.items() if name not in UNANSWERED})
    if counts.total():
        listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        yield f"Beside {counts.total()} numbers of the papers: {listed}."


def _unseen_sentences(pages: Sequence[PageBlock], left_out: Sequence[str]) -> Iterator[str]:
    """Yield what the page does not show."""
    protected = list(dict.fromkeys(page.block.protect for page in pages))
    yield (
        f"Gaps here are between groups by {_first_names(protected)}; gaps by other attributes are "
        "in the metrics of each run."
    )
    if left_out:
        yield f"{len(set(left_out))} runs or splits could not be compared by their predictions."
    yield "Only the runs that are finished are here; what was not run may be better."


def _advice_sentences(pages: Sequence[PageBlock]) -> Iterator[str]:
    """Yield what to do next."""
    if any(page.note for page in pages):
        yield "Repeat the quick runs with more splits, such as split.repeats=10."
    compared = [page for page in pages if page.compared is not None]
    if compared:
        yield (
            "Before one is chosen, read “Which one is better?” of its data set: it weighs error "
            "and gap together, pair by pair."
        )
    yield "fairbench choose picks a run under a limit on its gap; fairbench audit examines one."


def _runs_table(pages: Sequence[PageBlock]) -> Table:
    """Return the table of what was run, with a row for each block."""
    columns = [Column("data set"), Column("runs", "count"), Column("repeats", "count")]
    columns += [Column(name) for name in ("learners", "interventions", "methods")]
    rows = [
        [
            TableCell(page.block.title, link=f"#{page.block.name}"),
            len(page.block.runs),
            page.block.repeats,
            *(page.options(group) for group in ("learner", "intervention", "method")),
        ]
        for page in pages
    ]
    return Table(columns, rows, sortable=True)


def _papers(
    pages: Sequence[PageBlock], papers: Sequence[PaperTable], source: Source
) -> Iterator[Block]:
    """Yield how many numbers of each paper's table agree, and what answers them."""
    yield Paragraph(
        "A number agrees if the means differ by at most two standard errors and half a printed "
        "digit. Counted is the answer by the setting of the paper's text; others stand in the "
        "sections of the data sets."
    )
    columns = [Column("table"), *(Column(verdict, "count") for verdict in VERDICTS)]
    columns += [Column("runs", "count"), Column("experiments")]
    rows = [
        [
            _paper_cell(table),
            *table.counts.values(),
            len(table.runs),
            (Code(" ".join(table.experiments)),),
        ]
        for table in papers
    ]
    yield Table(columns, rows, sortable=True)
    yield from (_answering_runs(table, pages, source) for table in papers if table.runs)


def _paper_cell(table: PaperTable) -> TableCell:
    """Return the name of a paper's table, with its note."""
    note = (" ", Mark(table.note, "quick")) if table.note else ""
    return TableCell(f"{table.paper} {table.table}", after=note)


def _answering_runs(table: PaperTable, pages: Sequence[PageBlock], source: Source) -> Details:
    """Return links to the runs that answer a paper's table, and the commands for them."""
    names = {run.choices["dataset"] for run in table.runs}
    names_of_blocks = [
        page.block.name for page in pages if page.block.dataset in names and page.answered
    ]
    text: list[Inline] = ["runs on "]
    for name in names_of_blocks:
        text += [Link(name, f"#{name}-beside"), ", "]
    commands = "; ".join(f"fairbench run -m experiment={name}" for name in table.experiments)
    text[-1] = "; "
    text.append(Code(commands))
    return Details(
        f"{table.paper}, table {table.table}",
        [Paragraph(tuple(text), "note"), source_details(source(list(table.runs)))],
        remark=", ".join(f"{count} {verdict}" for verdict, count in table.counts.items()),
        name=f"{table.paper}-{table.table}",
        style="metric",
    )


def _how_to_read() -> Items:
    """Return explanations of the page's numbers."""
    as_good, worse, undecided = (
        Mark(standing, standing.replace(" ", "-")) for standing in (EQUIVALENT, WORSE, OPEN)
    )
    return Items(
        [
            "mean and sd are taken over the repeats. The 95 % interval is for the mean: for how "
            "these fitted models perform on new people, on average. Rows that several repeats test "
            "count once, and folds count as one test set (Bayle et al. 2020). Models fitted to "
            "other training rows may lie outside it. For a gap, the interval is for the gap "
            "between the groups' mean rates, because chance widens the gap of every single "
            "repeat. Bars show the intervals, on one scale for the whole table.",
            "P(best) is the probability that a run's fits are on average the best of the table on "
            "new people; P(near), that they are within the rope (a difference that does not "
            "matter) of the best. Both come from the Bayesian correlated t-test (Benavoli et al. "
            "2017, JMLR 18) for all methods at once: runs are paired by their splits, and the "
            "variance is Nadeau and Bengio's (2003) for splits that share rows.",
            (
                as_good,
                f" where P(near) is at least {CERTAIN}; ",
                worse,
                f" where it is at most {1 - CERTAIN:.2g}; ",
                undecided,
                " where it lies between. Below five repeats little is known of how methods vary "
                "together: take the probabilities as a hint.",
            ),
        ]
    )
