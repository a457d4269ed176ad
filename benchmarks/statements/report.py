"""The table of the battery of statements, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.statements.simulate import CERTAINTY, HIGHEST, LOOKS, PAGES, Result
from fairbench.audits.findings import ERROR_RATE

HEADER = (
    *("population", "audits", "wrong pages", "interval", "wrong findings"),
    *("differences found", "of large gaps", "by labels alone"),
)
_TITLE = """# How often a page says anything that is wrong

At most {rate:.0f} % of pages contain a wrong finding. A finding is a conclusion of an audit
about people, and all findings of a page share this error rate. `make statements` tests it and
writes this page: it audits simulated populations whose truth is known. Seeds are fixed, so the
page comes out the same every time.

**When a population fails.** A page counts as wrong if any of its findings contradicts the
truth. After {looks} audits of a population, the exact {certainty} % interval of the share of
wrong pages is computed; it is valid at all these looks together. If the share is surely under
{highest:.1f} %, the population passes. If it is surely over {rate:.0f} %, the population fails.
Otherwise there are more audits. A population that is still undecided after the last look is
marked (?).

**The columns.**

- *interval*: the {certainty} % interval of the share of wrong pages.
- *wrong findings*: their number, by kind.
- *differences found*: of the true differences that are large enough, the share that pages find.
  Large enough are gaps of 1.2 times epsilon, impact ratios under 0.75, scores off by 0.02,
  shares of places off by a tenth, groups 0.05 from everyone else, and two classifiers' measures
  0.02 apart.
- *of large gaps*: the same share, for gaps between groups only.
- *by labels alone*: what a simultaneous test of the labelled rows alone finds with the same
  error rate.

On {pages} pages of each population every sentence is compared with its finding; on all pages,
verdicts are compared with intervals.
"""


def written(results: Sequence[Result], *, short: bool = False) -> str:
    """Return the whole page."""
    title = _TITLE.format(
        rate=100 * ERROR_RATE,
        certainty=100 * CERTAINTY,
        highest=100 * HIGHEST,
        pages=PAGES,
        looks=", ".join(map(str, LOOKS[:-1])) + f" and {LOOKS[-1]}",
    )
    if short:
        title += "\nThis is the short run: fewer populations, and fewer audits of each.\n"
    parts = [title, *_overview(results)]
    for kind in dict.fromkeys(result.kind for result in results):
        rows = [HEADER, ("---", *["--:"] * 3, "---", *["--:"] * 3)]
        rows += [_row(result) for result in results if result.kind == kind]
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts += [f"\n## {kind.capitalize()}\n", table, ""]
    return "\n".join(parts)


def _overview(results: Sequence[Result]) -> list[str]:
    failed = [result for result in results if result.failed]
    unsettled = [result for result in results if result.unsettled]
    lines = [
        f"{len(results)} populations, {sum(result.audits for result in results):,} audits: "
        f"{len(failed)} populations failed, {len(unsettled)} are undecided."
    ]
    gaps = [result for result in results if result.gaps and result.alone]
    if gaps:
        ours, alone = sum(gap.gaps_found for gap in gaps), sum(gap.alone for gap in gaps)
        lines += [
            f"Of large gaps, pages find {100 * ours / alone:.0f} % of what labels alone find at "
            "the same budget."
        ]
    return ["\n".join(lines)]


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
