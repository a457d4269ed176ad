"""Write the leaderboard of the atlas with what becomes of claims of the literature.

``python -m papers.atlas.page`` writes the page like ``fairbench leaderboard`` and, with
docs=docs/atlas.md, the same for the documentation, of the seed that most runs have. It is made of
the table of approaches that lies beside this file; results= names another, or a folder of runs.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec

if find_spec("fairbench_rank") is None:
    sys.exit("error: the atlas needs the extension fairbench-rank: pip install extensions/rank")

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.atlas import thresholds
from fairbench.components.papers.atlas.claims import (
    Claim,
    claims,
    sign_in_words,
    signed_in_words,
    unequal_terms_of_table,
    unequal_terms_remarks,
)
from fairbench.components.papers.atlas.multilevel import explanations
from fairbench.components.papers.atlas.seeds import compared_seeds, lines_of
from fairbench.core.files import write_text
from fairbench.core.options import option
from fairbench.core.text import interval, signed
from fairbench.metrics.registry import label
from fairbench.reporting.charts import COLOURS, Panel, Series, chart
from fairbench.reporting.document import model
from fairbench.reporting.document.forms import finite, to_markdown
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.group_tables import named_table, sentence_of
from fairbench.results.runs import Run
from fairbench_rank.approaches import (
    APPROACHES,
    ERROR,
    THRESHOLDS_NEED,
    read_approaches,
)
from fairbench_rank.leaderboard import (
    comparable_board,
    gap_label,
    page_of,
    span_of,
    tags_of,
    write_leaderboard,
)
from fairbench_rank.rank import declared_table
from fairbench_rank.standings import GAPS, Findings, findings_of, left_out_sentences, pluralise

_PAGE = "fairbench.components.papers.atlas:claims"
_tell = partial(sentence_of, _PAGE)
_ENDS = ("difference", "lower", "upper")
_OWN = Path(__file__).with_name(APPROACHES)
_ROWS_SHOWN = 3  # of a table, in the documentation
_SAID = 3  # of the sentences on a ranking
_ABOUT = """Do claims of the literature on fairness interventions and on uncertainty hold across
data sets? `python -m papers.atlas.page docs=docs/atlas.md` writes this page with the first rows of
its tables, that of ranks by the error rate alone, and all of it as HTML. [Run the
atlas](howto/atlas.md) says how the runs were made, and [how to read
it](howto/atlas.md#how-to-read-the-page)."""


@dataclass(frozen=True, eq=False)
class AtlasFindings(Findings):
    """What the leaderboard shows, and what becomes of the claims.

    Attributes
    ----------
    claims : the claims, each with its verdict.
    margins : a row for each intervention and task, against thresholds for each group.
    verdicts : a row for each task and gap: whether thresholds do no worse than any intervention.
    by_size : the same on small and on large data sets.
    explanations : which facts about data sets explain differences from the reference.
    """

    claims: tuple[Claim, ...] = ()
    margins: Sequence[Mapping[str, Any]] = ()
    verdicts: Sequence[Mapping[str, Any]] = ()
    by_size: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    explanations: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, None for numbers that are unknown."""
        names = ("margins", "verdicts", "by_size", "explanations")
        plain = {name: getattr(self, name) for name in names}
        plain["claims"] = [
            {**vars(claim), "parts": [*map(vars, claim.parts)]} for claim in self.claims
        ]
        return {**super().to_dict(), **finite(plain)}


def with_claims(
    findings: Findings,
    *,
    remarks: Sequence[str] = (),
    draws: int = 300,
) -> AtlasFindings:
    """Return findings with what becomes of the claims.

    Parameters
    ----------
    remarks : ways in which interventions were not configured on equal terms, from
        :func:`fairbench.components.papers.atlas.claims.unequal_terms_remarks`.
    draws : number of draws from the posterior of the effects of facts about data sets.
    """
    series = list(thresholds.margin_series(findings.values))
    margins = list(thresholds.margins_of(findings.values, series))
    told = (explanations(each.ranked, draws=draws) for each in findings.standings)
    return AtlasFindings(
        **{field.name: getattr(findings, field.name) for field in fields(Findings)},
        claims=claims(findings.values, series, remarks),
        margins=margins,
        verdicts=list(thresholds.task_verdicts(margins)),
        by_size=thresholds.margins_by_size(findings.values, series),
        explanations=list(chain.from_iterable(told)),
    )


def add_claims(document: model.Document, findings: AtlasFindings, gap: str) -> model.Document:
    """Return the leaderboard's page with the claims, and with sentences on them in its summary.

    Parameters
    ----------
    gap : the gap that the page opens with.
    """
    assert document.summary is not None
    by_size, verdicts = findings.by_size, [claim.verdict for claim in findings.claims]
    found = [size_sentence(by_size)] if by_size else []
    found += document.summary.found
    if findings.verdicts:
        told = [row["verdict"] for row in findings.verdicts if row["gap_metric"] == gap]
        words = {"holds": thresholds.HOLDS, "fails": thresholds.FAILS, "open": thresholds.OPEN}
        counts = {name: told.count(verdict) for name, verdict in words.items()}
        about = {"gap": gap_label(gap), "thresholds": THRESHOLDS_NEED, "tasks": len(told)}
        found.append(_tell("thresholds", **about, **counts))
    if verdicts:
        in_short = {
            "claims": pluralise(len(verdicts), "claim", "claims"),
            "hold": pluralise(verdicts.count(thresholds.HOLDS), "holds", "hold"),
            "fail": pluralise(verdicts.count(thresholds.FAILS), "fails", "fail"),
            "open": pluralise(verdicts.count(thresholds.OPEN), "is", "are"),
        }
        found.append(_tell("in_short", **in_short))
    uneven = [claim.statement for claim in findings.claims if claim.remarks]
    caveats = [_tell("uneven", statement=statement) for statement in uneven]
    basis, *sure = document.summary.sure
    *unseen, last = document.summary.unseen
    open_claims = [claim.statement for claim in findings.claims if claim.verdict == thresholds.OPEN]
    if open_claims:
        unseen.append(_tell("open_claims", statements="” “".join(open_claims)))
    ranks, cost, tasks = document.sections
    return replace(
        document,
        summary=replace(
            document.summary, found=found, sure=[basis, *caveats, *sure], unseen=[*unseen, last]
        ),
        lead=[*([_size_figure(by_size)] if by_size else []), *document.lead],
        sections=[ranks, claims_section(findings), cost, _explained(findings), tasks],
        data=findings.to_dict(),
    )


def size_sentence(by_size: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return sentences on errors of thresholds and interventions at one gap, by size of data."""
    classes = by_size["classes"]
    means = ", and ".join(
        f"{signed_in_words(row['difference'], row['lower'], row['upper'], ('less', 'more'))} on "
        f"data of {row['label']}"
        for row in classes
    )
    families = " and ".join(str(row["families"]) for row in classes)
    tasks = " and ".join(f"on {row['positive']} of {row['tasks']}" for row in classes)
    told = {"means": means, "families": families, "tasks": tasks}
    return _tell("size", thresholds=THRESHOLDS_NEED, **told)


def evidence_text(claim: Claim) -> str:
    """Return what was measured of a claim, and how many differences do not count."""
    if not claim.evidence:
        return _tell("nothing")
    few = len(claim.parts) - len(claim.deciding_parts)
    if not few:
        return claim.evidence
    differences = pluralise(few, "difference", "differences")
    are = "is" if few == 1 else "are"
    return _tell("few", evidence=claim.evidence, differences=differences, are=are)


def claims_section(findings: AtlasFindings) -> model.Section:
    """Return every claim with its verdict, then each with its parts."""
    rows = [
        {
            "claim": model.TableCell(claim.statement, link=f"#claim-{claim.name}"),
            "shown": _verdict_cell(claim.verdict),
            "measured": evidence_text(claim),
            "source": claim.source,
        }
        for claim in findings.claims
    ]
    overview = named_table(_PAGE, "overview", rows)
    text = model.Paragraph(_tell("section"))
    blocks: list[model.Block] = [text, overview, *map(_details, findings.claims)]
    if findings.by_size is not None:
        blocks.append(_size_details(findings.by_size))
    if findings.verdicts:
        blocks.append(_task_verdicts_details(findings))
    return model.Section("Claims", blocks, name="claims")


def _verdict_cell(verdict: str, text: str = "") -> model.TableCell:
    """Return a verdict as a badge that can be told from others without colour."""
    mark = {thresholds.HOLDS: "agrees", thresholds.FAILS: "differs"}.get(verdict, "not-resolved")
    return model.TableCell(text or verdict, mark=mark)


def _details(claim: Claim) -> model.Details:
    """Return a claim with its rule, its figure, and the table of its parts."""
    rows = [
        {
            **vars(part),
            "metric_label": label(part.metric),
            "shown": "few tasks"
            if part.few_tasks
            else _verdict_cell(part.verdict, sign_in_words(part)),
        }
        for part in claim.parts
    ]
    tags = [{"metric": part.metric} for part in claim.parts]
    table = declared_table(_PAGE, "parts", rows, tags=tags)
    blocks: list[model.Block] = [
        model.Paragraph(f"{claim.criterion} Source: {claim.source}"),
        *([model.Items(claim.remarks)] if claim.remarks else []),
    ]
    name = f"claim-{claim.name}"
    return model.Details(
        claim.statement, [*blocks, table], remark=claim.verdict, name=name, style="metric"
    )


def _size_details(by_size: Mapping[str, Sequence[Mapping[str, Any]]]) -> model.Details:
    """Return errors of thresholds minus those of interventions, by size of data and by task."""
    classes = named_table(_PAGE, "sizes", by_size["classes"])
    rows = [
        {**row, "task": f"{row['dataset']} by {row['protect']}"}
        for row in sorted(by_size["tasks"], key=lambda row: row["rows"])
    ]
    tags = [{"family": row["family"]} for row in by_size["tasks"]]
    tasks = declared_table(_PAGE, "tasks", rows, tags=tags)
    return model.Details(
        "Thresholds of each group against interventions, by the size of the data",
        [model.Paragraph(size_sentence(by_size)), classes, tasks],
        name="unprocessing-by-size", style="metric", is_open=True,
    )  # fmt: skip


def _task_verdicts_details(findings: AtlasFindings) -> model.Details:
    """Return the table of verdicts on thresholds against interventions, a row per task and gap."""
    rows = [
        {
            **row,
            "task": f"{row['dataset']} by {row['protect']}",
            "gap": gap_label(row["gap_metric"]),
            "shown": _verdict_cell(row["verdict"]),
        }
        for row in findings.verdicts
    ]
    tags = [{"family": row["family"], "metric": row["gap_metric"]} for row in rows]
    table = declared_table(_PAGE, "task_verdicts", rows, tags=tags)
    count = sum(row["verdict"] == thresholds.HOLDS for row in rows)
    return model.Details(
        "Thresholds of each group against every intervention, task by task",
        [table],
        remark=f"no worse in {count} of {len(rows)} tasks and gaps",
        name="unprocessing",
        style="metric",
    )


def _size_figure(by_size: Mapping[str, Sequence[Mapping[str, Any]]]) -> model.Figure:
    """Return a chart of errors of thresholds minus those of interventions, by size of data."""
    tasks = [row for row in by_size["tasks"] if row["rows"] > 0]
    points = [
        Series(
            row["family"], [np.log10(row["rows"])], [row["difference"]], "black", lined=False,
            outline=np.array([[np.log10(row["rows"]), row[end]] for end in ("lower", "upper")]),
            hint=f"{row['dataset']} by {row['protect']}, {row['rows']:,.0f} rows: "
            f"{signed(row['difference'])} ({interval(row['lower'], row['upper'])})",
            tags={"family": row["family"]},
        )
        for row in tasks
    ]  # fmt: skip
    means = []
    for index, (row, colour) in enumerate(zip(by_size["classes"], COLOURS, strict=False)):
        value, lower, upper = (row[end] for end in _ENDS)
        span = np.log10([row["least_rows"], row["most_rows"]])
        name, band = f"mean over families, {row['label']}", [[value - lower], [upper - value]]
        means.append(
            Series(name, span, [value] * 2, colour, marked=False, dashed=index, band=np.array(band))
        )
    panel = Panel(
        [*means, *points],
        "rows of the data set: 2 is 100, 3 is 1,000, 4 is 10,000",
        "extra error of thresholds",
        title="thresholds against interventions, same gap",
        from_zero="",
        spans={"y": span_of(np.array([[row[end] for end in _ENDS] for row in tasks]))},
    )
    task_key = Series("a task", [], [], "black", lined=False)
    caption = _tell("by_size", thresholds=THRESHOLDS_NEED)
    title = "Thresholds for each group against interventions, by the size of the data"
    drawings = chart([panel], key=[task_key, *means])
    return model.Figure(title, drawings, caption=caption, name="by-size")


def _explained(findings: AtlasFindings) -> model.Section:
    """Return which facts about a data set tell where an approach does better."""
    unsure = [row for row in findings.explanations if row["verdict"] == thresholds.OPEN]
    sure = [row for row in findings.explanations if row not in unsure]
    told = {"pairs": len(findings.explanations), "resolved": len(sure)}
    own = {row["name"]: row for row in findings.approaches}
    blocks: list[model.Block] = [model.Paragraph(_tell("explained", **told))]
    for title, rows in (("Resolved", sure), ("Not resolved", unsure)):
        if rows:
            shown = [
                {**row, "label": label(row["metric"]), "more": row["fact"].replace("_", " ")}
                for row in rows
            ]
            tags = [{**tags_of(own[row["approach"]]), "metric": row["metric"]} for row in rows]
            table = declared_table(_PAGE, "explained", shown, tags=tags)
            blocks.append(
                model.Details(title, [table], remark=f"{len(rows)}", is_open=rows is sure)
            )
    return model.Section("What explains it", blocks, name="explained")


def docs_page(findings: AtlasFindings, by_seed: Sequence[pd.DataFrame] = ()) -> str:
    """Return the page of the documentation, in Markdown: no figures, and first rows of tables.

    Parameters
    ----------
    findings : of the runs of one seed.
    by_seed : the tables of that seed and of the others.
    """
    runs = sum(table["run"].nunique() for table in by_seed)
    found = replace(findings, notes=tuple(left_out_sentences(findings, runs)))

    def further(document: model.Document, *_: Any) -> model.Document:
        return add_claims(document, found, GAPS[0])

    board = comparable_board(findings.values.table, "the atlas", "")
    document = page_of(board, found, further=further)
    assert document.summary is not None
    summary = [
        model.Section(name, [model.Items(list(told))])
        for name, told in document.summary.named_parts.values()
    ]
    *sections, _, _ = map(_without_parts, document.sections)
    title, _, rest = to_markdown(model.Document("The atlas", [*summary, *sections])).partition(
        "\n\n"
    )
    seeds = [
        f"## Another seed: {seed.second}\n\nIts runs are no part of the answers on this page.\n\n"
        + "\n".join(lines_of(seed))
        for seed in (compared_seeds(by_seed[0], other) for other in by_seed[1:])
    ]
    rest = rest.partition("\n### Not resolved")[0]
    lines = "\n".join([rest, *seeds]).split("\n")
    told = [line for line in lines if not line.startswith("(The figure")]
    text = "\n".join(_first_rows(told)).strip()
    return "\n\n".join([title, _ABOUT, re.sub(r"\n{3,}", "\n\n", text)]) + "\n"


def _without_parts(section: model.Section) -> model.Section:
    """Return a section with the remarks on claims and first sentences on ranks, and of no task."""
    shortened = ("claim-", "ranks-few-tasks", "unprocessing")
    kept: list[model.Block] = []
    for block in section.blocks:
        if isinstance(block, model.Details) and block.name.startswith(shortened):
            of_size = block.name == "unprocessing-by-size"
            remarks = [part for part in block.blocks if isinstance(part, model.Items)]
            block = replace(block, blocks=block.blocks[1:2] if of_size else remarks)
            if not block.blocks:
                continue
        elif isinstance(block, model.Details) and block.name.startswith("ranks-"):
            said, *tables = block.blocks
            assert isinstance(said, model.Items)
            sentences = said.items[:_SAID]
            if block.name != f"ranks-{ERROR}":
                sentences = [str(text).replace(" (the table has all)", "") for text in sentences]
                tables = []
            block = replace(block, blocks=[model.Items(sentences), *tables])
        kept.append(block)
    return replace(section, blocks=kept)


def _first_rows(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a page in Markdown with no more than the first rows of every table.

    The table of claims is whole.
    """
    rows = shown = 0
    for line in [*lines, ""]:
        if line.startswith("|"):
            if not rows:
                shown = len(lines) if line.startswith("| claim |") else _ROWS_SHOWN
            rows += 1
            if rows <= 2 + shown:  # its heading has two lines
                yield line
            continue
        if (left := rows - 2 - shown) > 0:
            yield f"\n({pluralise(left, 'more row', 'more rows')})"
        rows = 0
        yield line


@dataclass(frozen=True)
class Options(Results):
    """Of what the page is made, and where it goes."""

    results: Path = option(
        _OWN, "The table of approaches, or the results folder of the runs.",
        shown="FILE.parquet|FOLDER",
    )  # fmt: skip
    out: Path = option(Path("atlas"), "The folder of the page.", shown="FOLDER")
    docs: str = option("", "A file in which the same is written in Markdown.", shown="FILE.md")
    metric: str = option("", "The gap between groups that the page opens with.")


def main(options: Options) -> None:
    """Write the page."""
    remarks: list[str] = []

    def further(
        document: model.Document, findings: Findings, runs: Sequence[Run]
    ) -> model.Document:
        of_table = unequal_terms_of_table(findings.values.table)
        remarks[:] = unequal_terms_remarks(runs) if runs else of_table
        found = with_claims(findings, remarks=remarks)
        return add_claims(document, found, options.metric or GAPS[0])

    words = "" if options.results == _OWN else f" results={options.results}"
    path, short = write_leaderboard(
        [options.results], options.out, metric=options.metric, further=further,
        command=f"python -m papers.atlas.page{words}",
    )  # fmt: skip
    print_document(short)
    print(path)
    if options.docs:
        table = read_approaches(options.out / APPROACHES)
        # Of each seed, the one of most runs first.
        seeds = table.drop_duplicates("run")["seed"].value_counts(sort=True).index
        by_seed = [table[table["seed"] == seed].reset_index(drop=True) for seed in seeds]
        found = with_claims(findings_of(by_seed[0]), remarks=remarks)
        write_text(Path(options.docs), docs_page(found, by_seed))


if __name__ == "__main__":
    run_main(main)
