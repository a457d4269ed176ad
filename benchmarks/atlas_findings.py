"""What an atlas says, as a page of the docs: ``python -m benchmarks.atlas_findings atlas``."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

from benchmarks.atlas_seeds import SeedComparison, lines_of, seed_comparisons  # noqa: E402
from fairbench.comparison.atlas.approaches import approach_table, read_values  # noqa: E402
from fairbench.comparison.atlas.claim_values import (  # noqa: E402
    Claim,
    ClaimPart,
    MarginsBySize,
)
from fairbench.comparison.atlas.findings import AtlasFindings, MetricStandings  # noqa: E402
from fairbench.comparison.atlas.report import (  # noqa: E402
    atlas_findings,
    claim_sentences,
    few_tasks_sentences,
    left_out_sentences,
    ranks_sentence,
    sentences,
    size_sentence,
)
from fairbench.comparison.atlas.unprocessing import unequal_terms_remarks  # noqa: E402
from fairbench.comparison.atlas.verdicts import FAILS, FEW_TASKS, HOLDS, OPEN  # noqa: E402
from fairbench.metrics.registry import label  # noqa: E402
from fairbench.results.catalogue import Catalogue  # noqa: E402

_MOST = 12  # approaches of a ranking that are shown
_COUNTED = "differences, all at once: hold, fail, open"
_ABOUT = """# The atlas

What many approaches on many data sets say together. `python -m benchmarks.atlas_findings RESULTS`
writes this page; [Run the atlas](howto/atlas.md) says how runs and answers are made.
"""


def main(words: list[str]) -> int:
    """Print the page of a results folder or pack."""
    if len(words) != 1:
        print("error: name one results folder or pack", file=sys.stderr)
        return 2
    runs = list(Catalogue(Path(words[0])))
    values = read_values(runs)
    table = approach_table(runs, values=values)
    answered = {int(seed) for seed in table["seed"].unique()}
    lines = page(
        atlas_findings(table, remarks=unequal_terms_remarks(runs)),
        len(runs),
        seed_comparisons(runs, values=values),
        answered,
    )
    print("\n".join(lines))
    return 0


def page(
    findings: AtlasFindings,
    runs: int = 0,
    seeds: Sequence[SeedComparison] = (),
    answered: Collection[int] = (),
) -> Iterator[str]:
    """Yield the lines of the page.

    Parameters
    ----------
    runs : how many there are, with those that the answers leave out.
    seeds : comparisons of further seeds; `answered` are those that the answers are made of.
    """
    yield _ABOUT
    yield from sentences(findings)[0][1]
    yield from left_out_sentences(findings, runs)
    yield ""
    yield from _claims(findings)
    yield from _by_size(findings.by_size)
    yield from _verdicts(findings)
    if findings.standings:
        yield f"## Ranks\n\n{ranks_sentence(findings)}\n"
    for standings in findings.standings:
        yield from _ranks(standings)
    yield from _few_tasks(findings)
    yield from _seeds(seeds, answered)
    yield from _costs(findings)


_HOW_CLAIMS_ARE_JUDGED = """The verdict of a row is by its simultaneous interval (“all at once”).
A claim about all rows fails if one row fails. It holds if every row holds by its own interval
(“by itself”): this needs no correction for the number of rows (Berger 1982). So a claim can hold
although one of its rows is not resolved. For a claim that some row holds, it is the other way
round."""


def _claims(findings: AtlasFindings) -> Iterator[str]:
    yield "## Claims of the literature\n"
    yield f"{FEW_TASKS}\n"
    yield f"{_HOW_CLAIMS_ARE_JUDGED}\n"
    yield from table(
        ("claim", "source", "verdict", _COUNTED, "few tasks"),
        (
            (
                claim.statement,
                claim.source,
                f"**{claim.verdict}**",
                ", ".join(
                    str(count) for count in _counts(part.verdict for part in claim.deciding_parts)
                ),
                str(len(claim.parts) - len(claim.deciding_parts)),
            )
            for claim in findings.claims
        ),
    )
    shown: dict[tuple[ClaimPart, ...], Claim] = {}
    for claim, sentence in zip(findings.claims, claim_sentences(findings), strict=True):
        yield f"### {claim.statement}\n"
        yield f"{sentence.removeprefix(claim.statement).strip()} {claim.rule}\n"
        same = shown.setdefault(claim.parts, claim)
        if same is claim:
            yield from _parts(claim)
        else:
            yield f"The differences are those of the claim “{same.statement}”\n"


def _parts(claim: Claim) -> Iterator[str]:
    heads = ("of", "metric", "mean over families, 95 % by itself", "95 %, all at once")
    yield from table(
        (*heads, "above 0", "families", "verdict of the row"),
        (
            (
                part.label,
                label(part.metric),
                f"{part.mean:.4f} ({_ends(part.lower, part.upper)})",
                _ends(part.all_lower, part.all_upper),
                f"{part.positive} of {part.tasks}",
                str(part.families),
                "few tasks" if part.few_tasks else part.verdict,
            )
            for part in claim.parts
        ),
    )


def _by_size(found: MarginsBySize | None) -> Iterator[str]:
    """Yield thresholds against interventions by the size of the data, and task by task."""
    if found is None:
        return
    yield "## Thresholds for each group against interventions, by the size of the data\n"
    yield (
        f"{size_sentence(found)} A task's difference is the mean over all interventions, strengths "
        "and both gaps, its interval that for new splits (Nadeau and Bengio 2003); a mean over "
        "families counts them alike.\n"
    )
    yield from table(
        (
            "data",
            "tasks",
            "families",
            "error of thresholds minus that of interventions, 95 %",
            "tasks above 0",
            "comparisons with a mean above 0",
        ),
        (
            (
                family_class.label,
                str(family_class.tasks),
                str(family_class.families),
                f"{family_class.difference:.4f} ({_ends(family_class.lower, family_class.upper)})",
                f"{family_class.positive} of {family_class.tasks}",
                f"{family_class.above} of {family_class.compared}",
            )
            for family_class in found.classes
        ),
    )
    yield from table(
        ("data set", "protected", "family", "rows", "difference, 95 %"),
        (
            (
                task.dataset,
                task.protect,
                task.family,
                f"{task.rows:.0f}",
                f"{task.difference:.4f} ({_ends(task.lower, task.upper)})",
            )
            for task in sorted(found.tasks, key=lambda each: each.rows)
        ),
    )


def _verdicts(findings: AtlasFindings) -> Iterator[str]:
    yield "## Thresholds for each group against interventions, task by task\n"
    yield "\n".join(sentences(findings)[3][1]) + "\n"
    for gap in dict.fromkeys(verdict.gap_metric for verdict in findings.verdicts):
        yield f"At the same {label(gap)}:\n"
        yield from table(
            ("data set", "protected", "compared", "no worse than", "worse than", "verdict"),
            (
                (
                    verdict.dataset,
                    verdict.protect,
                    str(verdict.compared),
                    str(verdict.holds),
                    str(verdict.fails),
                    verdict.verdict,
                )
                for verdict in findings.verdicts
                if verdict.gap_metric == gap
            ),
        )


def _ranks(standings: MetricStandings) -> Iterator[str]:
    yield f"### {standings.label[:1].upper()}{standings.label[1:]}\n"
    yield "\n".join(f"- {sentence}" for sentence in standings.sentences)
    yield f"\nDifferences are from {standings.reference}.\n"
    yield from table(
        (
            "approach",
            "ranks",
            "may be best",
            "mean",
            "minus the reference, simultaneous 95 %",
            f"within {standings.epsilon:g} on a new task",
        ),
        (
            (
                standing.approach,
                f"{standing.first_rank} to {standing.last_rank}",
                "yes" if standing.may_be_best else "",
                f"{standing.mean:.4f}",
                f"{standing.difference:.4f} ({_ends(standing.lower, standing.upper)})",
                standing.near_percent,
            )
            for standing in standings.standings[:_MOST]
        ),
    )
    told = [explanation for explanation in standings.explanations if explanation.verdict != OPEN]
    if told:
        yield "Where approaches do better, of what is resolved, all slopes at once:\n"
        yield from table(
            ("approach", "fact", "slope of one sd", "interval", ""),
            (
                (
                    each.approach,
                    each.fact.replace("_", " "),
                    f"{each.slope:.4f}",
                    _ends(each.lower, each.upper),
                    each.verdict,
                )
                for each in told
            ),
        )


def _few_tasks(findings: AtlasFindings) -> Iterator[str]:
    rows = [
        (
            label(standing.metric),
            few.approach,
            f"{few.difference:.4f}",
            _ends(few.lower, few.upper),
            str(few.tasks),
            str(few.families),
        )
        for standing in findings.standings
        for few in standing.few
    ]
    if not rows:
        return
    yield "## Run on few tasks, and not ranked\n"
    yield from few_tasks_sentences(findings)
    yield (
        f"Differences are from {findings.reference} on these tasks alone, a mean over their "
        "families with the 95 % interval for new splits of them. It says nothing of other data "
        "sets, and two approaches that were run on different tasks cannot be compared by it.\n"
    )
    yield from table(("metric", "approach", "difference", "95 %", "tasks", "families"), rows)


def _seeds(seeds: Sequence[SeedComparison], answered: Collection[int]) -> Iterator[str]:
    for seed in seeds:
        yield f"## Another seed: {seed.second}\n"
        part = "a" if seed.second in answered else "no"
        yield f"Its runs are {part} part of the answers on this page."
        yield from lines_of(seed)


def _costs(findings: AtlasFindings) -> Iterator[str]:
    yield "## What they cost\n"
    yield from table(
        ("approach", "tasks", "fit, CPU s", "times the reference", "group needed to predict"),
        (
            (
                approach.name,
                str(approach.tasks),
                f"{approach.fit_seconds:.2f}",
                f"{approach.relative_cost:.1f}",
                "yes" if approach.group_at_prediction else "no",
            )
            for approach in sorted(findings.approaches, key=lambda each: each.relative_cost)
        ),
    )


def _ends(lower: float, upper: float) -> str:
    return f"{lower:.4f} to {upper:.4f}"


def _counts(verdicts: Iterable[str]) -> list[int]:
    kept = list(verdicts)
    return [kept.count(verdict) for verdict in (HOLDS, FAILS, OPEN)]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty one."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
