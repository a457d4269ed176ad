"""What an atlas says, as a page of the docs: ``python -m benchmarks.atlas_findings atlas``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    counts_sentence,
    few_tasks_sentences,
    left_out_sentences,
    ranks_sentence,
    sentences,
    size_means,
    size_sentence,
)
from fairbench.comparison.atlas.unprocessing import (  # noqa: E402
    UNPROCESSING,
    fairest_differences,
    unequal_terms_remarks,
)
from fairbench.comparison.atlas.values import NEEDS_GROUP  # noqa: E402
from fairbench.comparison.atlas.verdicts import (  # noqa: E402
    FAILS,
    FEW_TASKS,
    HOLDS,
    OPEN,
    pluralise,
    sign_in_words,
)
from fairbench.metrics.registry import label  # noqa: E402
from fairbench.results.catalogue import Catalogue  # noqa: E402

_MOST = 12  # approaches of a ranking that are shown
_NEEDS_GROUP = f" ({NEEDS_GROUP})"  # after a name; the page shows a dagger in its place
_ABOUT = """# The atlas

Do claims of the literature on fairness interventions and on uncertainty hold across data sets?
This page tests them on many data sets at once. `python -m benchmarks.atlas_findings results/atlas`
prints this page, and [Run the atlas](howto/atlas.md) says how the runs were made.
"""
_HOW_TO_READ_RANKS = f"""Each table has the {_MOST} approaches with the best means: the smallest.

- *Ranks*: the best and the worst rank that the approach may have.
- *May be best*: no other approach is surely better on average.
- *Mean*: over families, adjusted for families on which the approach was not run.
- *Minus the reference*: the mean difference from the reference, with its interval all at once.
- The last column: the estimated chance that, on a new task, no approach is better by more than
  this amount.
"""
_HOW_TO_READ = f"""## How to read this page

- **What you may rely on.** Treat this page as exploratory. All intervals aim at 95 %. In
  simulations of the atlas's own differences, the interval of a single difference is right in 94 to
  95 % of samples on average, but in only 67 to 80 % for the worst difference. The 38 intervals that
  were widened to be right all at once are so in 76 to 84 %
  ([how that was tested](howto/atlas.md#how-often-the-intervals-cover-the-truth)).
- **Approach.** A learner, an intervention with its strength, and an uncertainty method, such as
  `logistic_regression, reweighing 0.5, baseline`. The method `baseline` adds nothing to the model.
  A name without an intervention has none.
- **†.** The approach must know a person's group to predict.
- **Task.** A data set with the attribute whose groups are compared. A **family** is the data sets
  that share people or a source.
- **By itself, all at once.** An interval *by itself* is for one difference alone. The intervals
  *all at once* are those of a whole table. They are wider, so that with a chance of 95 % all of
  them should be right.
- **What is said of a difference.** It is *above 0* if its interval is above 0 and reaches 0.01 or
  more. It is *under 0.01* if its whole interval is under 0.01: so small a difference does not
  matter. In all other cases it is *open*. Tables of claims use the intervals all at once.
  {FEW_TASKS}
- **What is said of a claim.** It *holds*, *fails* or is *not resolved*. Each claim below states its
  own rule, and there are two kinds:
  - A claim about *every* difference fails if one difference contradicts it, judged all at once. It
    holds if each difference agrees with it, judged by its own interval; this needs no correction
    for the number of differences (Berger 1982). So such a claim can hold although the table calls a
    difference open.
  - A claim that *some* intervention does something holds if one intervention does, judged all at
    once. It fails if each surely does not, judged by its own intervals.
"""


def main(words: list[str]) -> int:
    """Print the page of a results folder or pack."""
    if len(words) != 1:
        print("error: name one results folder or pack", file=sys.stderr)
        return 2
    runs = list(Catalogue(Path(words[0])))
    values = read_values(runs)
    seed, _ = Counter(run.seed for run in runs).most_common(1)[0]
    table = approach_table([run for run in runs if run.seed == seed], among=runs, values=values)
    lines = page(
        atlas_findings(table, remarks=unequal_terms_remarks(runs)),
        len(runs),
        seed_comparisons(runs, values=values),
    )
    print("\n".join(lines))
    return 0


def page(
    findings: AtlasFindings,
    runs: int = 0,
    seeds: Sequence[SeedComparison] = (),
) -> Iterator[str]:
    """Yield the lines of the page.

    Parameters
    ----------
    findings : of the runs of one seed.
    runs : how many there are, with those that the answers leave out.
    seeds : comparisons of further seeds, of which no answer is made.
    """
    for line in _parts_of_page(findings, runs, seeds):
        yield line.replace(_NEEDS_GROUP, " †")


def _parts_of_page(
    findings: AtlasFindings, runs: int, seeds: Sequence[SeedComparison]
) -> Iterator[str]:
    yield _ABOUT
    yield from _in_brief(findings)
    yield "## What was run\n"
    for sentence in (*sentences(findings)[0][1], *left_out_sentences(findings, runs)):
        yield f"- {sentence}"
    yield f"\n{_HOW_TO_READ}"
    yield from _claims(findings)
    yield from _by_size(findings.by_size)
    yield from _verdicts(findings)
    if findings.standings:
        yield f"## Ranks\n\n{ranks_sentence(findings)}\n\n{_HOW_TO_READ_RANKS}"
    for standings in findings.standings:
        yield from _ranks(standings)
    yield from _few_tasks(findings)
    yield from _seeds(seeds)
    yield from _costs(findings)


def _in_brief(findings: AtlasFindings) -> Iterator[str]:
    """Yield which claims hold, in one table."""
    verdicts = [claim.verdict for claim in findings.claims]
    yield "## In brief\n"
    yield (
        f"Of {pluralise(len(verdicts), 'claim', 'claims')}, "
        f"{pluralise(verdicts.count(HOLDS), 'holds', 'hold')} in these data, "
        f"{pluralise(verdicts.count(FAILS), 'fails', 'fail')}, and "
        f"{pluralise(verdicts.count(OPEN), 'is', 'are')} not resolved, because these families of "
        "data are too few, or too different, to tell. A difference under 0.01 counts as no "
        "difference. Means are over families of data sets. The interval in brackets after a "
        "difference is for that difference alone.\n"
    )
    yield from table(
        ("claim", "made by", "in these data", "what we measured"),
        (
            (
                claim.statement,
                claim.source,
                f"**{claim.verdict}**",
                measured,
            )
            for claim, measured in zip(findings.claims, _measured(findings), strict=True)
        ),
    )


def _measured(findings: AtlasFindings) -> Iterator[str]:
    """Yield what was measured of each claim, in few words."""
    for claim in findings.claims:
        if claim.name == UNPROCESSING and findings.by_size is not None:
            yield size_means(findings.by_size)
        else:
            yield claim.evidence or counts_sentence(claim)


def _claims(findings: AtlasFindings) -> Iterator[str]:
    yield "## The claims one by one\n"
    shown: dict[tuple[ClaimPart, ...], Claim] = {}
    for claim in findings.claims:
        yield f"### {claim.statement}\n"
        yield f"**{claim.verdict.capitalize()}.** Source: {claim.source}\n"
        yield " ".join(filter(None, [claim.evidence, counts_sentence(claim)])) + "\n"
        yield from _remarks(claim, findings.by_size)
        yield from _fairest(claim)
        yield f"**How it was decided.** {claim.criterion}\n"
        same = shown.setdefault(claim.parts, claim)
        if same is claim:
            yield from _parts(claim)
        else:
            yield f"The differences are those of the claim “{same.statement}”\n"


def _remarks(claim: Claim, by_size: MarginsBySize | None) -> Iterator[str]:
    """Yield what to know before relying on a claim's verdict, as a list."""
    remarks = list(claim.remarks)
    if claim.name == UNPROCESSING and by_size is not None:
        remarks.insert(0, size_sentence(by_size))
    if remarks:
        yield "What to know before relying on this:\n"
        yield "\n".join(f"- {remark}" for remark in remarks) + "\n"


def _fairest(claim: Claim) -> Iterator[str]:
    """Yield the comparisons on the most equal terms, if there are any."""
    if claim.fairest:
        yield (
            "The fairest comparison: the error of thresholds that are chosen on validation rows, "
            "minus that of thresholds that are chosen on training rows. Each interval is by "
            "itself.\n"
        )
        yield from table(*fairest_differences(claim))


def _parts(claim: Claim) -> Iterator[str]:
    heads = ("difference", "metric", "mean (by itself)", "all at once", "tasks above 0", "families")
    yield from table(
        (*heads, "the difference is"),
        (
            (
                part.label,
                label(part.metric),
                f"{part.mean:.4f} ({_ends(part.lower, part.upper)})",
                _ends(part.all_lower, part.all_upper),
                f"{part.positive} of {part.tasks}",
                str(part.families),
                "few tasks" if part.few_tasks else sign_in_words(part),
            )
            for part in claim.parts
        ),
    )


def _by_size(found: MarginsBySize | None) -> Iterator[str]:
    """Yield thresholds against interventions by the size of the data, and task by task."""
    if found is None:
        return
    yield "## Thresholds for each group against interventions, by the size of the data\n"
    yield f"{size_sentence(found)}\n"
    yield (
        "The first table has the means. A comparison sets thresholds against one intervention at "
        "one strength, at the same value of one of two gaps. The second table has a row for each "
        "task, from the smallest data set to the largest. There a difference is the mean over all "
        "comparisons, and its interval is for new splits of the same data (Nadeau and Bengio "
        "2003).\n"
    )
    yield from table(
        (
            "data",
            "tasks",
            "families",
            "error of thresholds minus that of interventions (by itself)",
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
        ("data set", "groups by", "family", "rows", "difference (by itself)"),
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
    yield "\n".join(f"- {sentence}" for sentence in sentences(findings)[3][1]) + "\n"
    yield (
        "*Compared* counts the approaches with an intervention that thresholds were compared with "
        "on the task. *No worse* counts those against which thresholds reach as small a gap and "
        "surely err by less than 0.01 more. *Worse* counts those against which they surely err "
        "more, by at least 0.01 on average, or surely cannot reach as small a gap. Both counts are "
        "all at once. The last column is about all of them together, by the rule for claims about "
        "all differences.\n"
    )
    for gap in dict.fromkeys(verdict.gap_metric for verdict in findings.verdicts):
        yield f"At the same {label(gap)}:\n"
        yield from table(
            ("data set", "groups by", "compared", "no worse", "worse", "thresholds are"),
            (
                (
                    verdict.dataset,
                    verdict.protect,
                    str(verdict.compared),
                    str(verdict.holds),
                    str(verdict.fails),
                    _OF_A_TASK[verdict.verdict],
                )
                for verdict in findings.verdicts
                if verdict.gap_metric == gap
            ),
        )


_OF_A_TASK = {HOLDS: "no worse", FAILS: "worse", OPEN: "open"}


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
            "minus the reference (all at once)",
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
        yield (
            "Which facts about a data set tell where an approach does better? The table has the "
            "slopes that are resolved, all at once. A slope is the change of the difference from "
            "the reference where the fact is larger by one standard deviation.\n"
        )
        yield from table(
            ("approach", "fact", "slope", "all at once", "the approach is"),
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
        f"\nA difference is from {findings.reference} on these tasks alone: a mean over their "
        "families, with the interval for new splits of the same data. It says nothing about other "
        "data sets, and cannot be used to compare two approaches that were run on different "
        "tasks.\n"
    )
    yield from table(("metric", "approach", "difference", "by itself", "tasks", "families"), rows)


def _seeds(seeds: Sequence[SeedComparison]) -> Iterator[str]:
    for seed in seeds:
        yield f"## Another seed: {seed.second}\n"
        yield "Its runs are not part of the answers on this page."
        yield from lines_of(seed)


def _costs(findings: AtlasFindings) -> Iterator[str]:
    yield "## What they cost\n"
    yield (
        "*CPU seconds of a fit* is the median over all splits of all tasks. *Times the reference* "
        f"is the cost divided by that of {findings.reference}, as a geometric mean over tasks.\n"
    )
    yield from table(
        ("approach", "tasks", "CPU seconds of a fit", "times the reference", "needs the group"),
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


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty one."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{' --- |' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
