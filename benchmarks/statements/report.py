"""The table of the battery of statements, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.statements.simulate import CERTAINTY, HIGHEST, LOOKS, PAGES, Result
from fairbench.audits.findings import ERROR_RATE

HEADER = (
    *("population", "audits", "wrong pages", "interval", "wrong findings"),
    *("differences found", "of large gaps", "by labels alone"),
)
_TITLE = """# How often a page says anything that is wrong

At most {rate:.0f} % of the pages of audits contain a wrong finding. A finding is a conclusion
about the people that the rows are a sample of, such as "the gap is larger than 0.05". All
findings of a page share this error rate. [Audits](audits.md) explains how.

This page tests that claim. `make statements` simulates populations whose truth is known, audits
many samples of each, and counts the pages of which any finding contradicts the truth. Seeds are
fixed, so the page comes out the same every time.

**The result.**
{result}

**When a population fails.** It fails if its share of wrong pages is surely over {rate:.0f} %, and
passes if the share is surely under {highest:.1f} %. "Surely" is judged by the exact {certainty} %
interval of the share, after {looks} audits; the interval is valid at all these looks together. As
long as it is undecided, there are more audits. A population that is still undecided after the
last look is marked (?).

**The populations** are named by their groups. In *2 alike, 60 rows*, two groups do not differ in
truth, so any difference that a page finds is wrong. *At epsilon* means that a gap is exactly as
large as the limit, the hardest case. *Apart* means that groups truly differ.

**The columns.**

- *audits*: how many audits were made of the population.
- *wrong pages*: the share of them with any wrong finding.
- *interval*: the {certainty} % interval of this share.
- *wrong findings*: how many findings were wrong, by kind. *Gap large*: the page says that a gap
  is surely large, and it is not. *Pair large*: it says that one group has a higher rate than
  another, and it has not. *Excess of scores large*: it says that the scores of a group are too
  high or too low, and they are not.
- *differences found*: of the true differences that are large enough, the share that pages find.
  Large enough are gaps of 1.2 times epsilon, impact ratios under 0.75, scores off by 0.02, shares
  of places off by a tenth, groups 0.05 from everyone else, and two classifiers' measures 0.02
  apart.
- *of large gaps*: the same share, for gaps between groups only.
- *by labels alone*: the share of these large gaps that a simultaneous test of the labelled rows
  finds with the same error rate, without the scores of the other rows.

Two more checks are made: on {pages} pages of each population every sentence is compared with its
finding, and on all pages verdicts are compared with intervals.
"""


def written(results: Sequence[Result], *, short: bool = False) -> str:
    """Return the whole page."""
    title = _TITLE.format(
        result="\n".join(_overview(results)),
        rate=100 * ERROR_RATE,
        certainty=100 * CERTAINTY,
        highest=100 * HIGHEST,
        pages=PAGES,
        looks=", ".join(map(str, LOOKS[:-1])) + f" and {LOOKS[-1]}",
    )
    if short:
        title += "\nThis is the short run: fewer populations, and fewer audits of each.\n"
    parts = [title]
    for kind in dict.fromkeys(result.kind for result in results):
        rows = [HEADER, ("---", *["--:"] * 3, "---", *["--:"] * 3)]
        rows += [_row(result) for result in results if result.kind == kind]
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts += [f"\n## {kind.capitalize()}\n", table, ""]
    return "\n".join(parts)


def _overview(results: Sequence[Result]) -> Iterator[str]:
    """Yield the sentences that sum the results up."""
    failed = [result for result in results if result.failed]
    unsettled = [result for result in results if result.unsettled]
    audits = sum(result.audits for result in results)
    wrong = sum(result.share * result.audits for result in results)
    highest = max(result.share for result in results)
    yield (
        f"{len(results)} populations, {audits:,} audits: {len(failed)} populations failed, "
        f"{len(unsettled)} are undecided.\n{100 * wrong / audits:.1f} % of all pages were wrong, "
        f"and {100 * highest:.1f} % in the population where this happened most often."
    )
    gaps = [result for result in results if result.gaps and result.alone]
    if gaps:
        ours, alone = sum(gap.gaps_found for gap in gaps), sum(gap.alone for gap in gaps)
        yield (
            f"Pages find {ours / alone:.2f} times as many of the true large gaps as a test of the "
            "labelled rows alone with the same error rate."
        )


def _row(result: Result) -> tuple[str, ...]:
    lower, upper = result.interval
    mark = " **failed**" if result.failed else " (?)" if result.unsettled else ""
    kinds = ", ".join(f"{name}: {count}" for name, count in sorted(result.kinds.items()))
    return (
        f"{result.name}{mark}",
        f"{result.audits}",
        f"{100 * result.share:.1f} %",
        f"{100 * lower:.1f}-{100 * upper:.1f} %",
        kinds or "-",
        _share(result.found, result.there),
        _share(result.gaps_found, result.gaps),
        _share(result.alone, result.gaps),
    )


def _share(count: int, of: int) -> str:
    return f"{100 * count / of:.0f} %" if of else "-"


def line(result: Result) -> str:
    """Return a result for a terminal, while others are awaited."""
    rate = result.audits / max(result.seconds, 1e-9)
    amiss = f" AMISS {len(result.amiss)}" * bool(result.amiss)
    return f"{result.kind}: {' | '.join(_row(result))} | {rate:.0f}/s{amiss}"
