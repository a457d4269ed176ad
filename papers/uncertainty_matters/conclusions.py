"""How far the conclusion of one cross-validation hangs on the partition, by estimate and posterior.

``python -m papers.uncertainty_matters.conclusions [cvs=200]`` prints, of each comparison on German:
how often the point estimates of one cross-validation, and the most probable event of its posterior,
say something else than most other cross-validations do, and what the mean of all says; then all
events' probabilities on the partition nearest to the mean, under every rho. The last two
comparisons are those of section 14.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.components.papers.options import number_of_cvs
from fairbench.components.papers.uncertainty_matters.one_partition import Pair, pairs
from fairbench.components.papers.uncertainty_matters.posteriors import short
from fairbench.components.papers.uncertainty_matters.readings import ALONE, RHOS, TRUTH, Setting

SETTING = Setting("rho_rel_up", level=0.0)
DRAWS = 2000
SHOWN = {
    "p_a_outperforms_b": "A >> B",
    "p_b_outperforms_a": "B >> A",
    "p_equivalent": "A ~ B",
    "p_a_accuracy_b_fairness": "A more accurate, B fairer",
    "p_b_accuracy_a_fairness": "B more accurate, A fairer",
}


@dataclass(frozen=True)
class Options:
    """How much is looked at."""

    cvs: int = number_of_cvs(200)


@dataclass(frozen=True)
class Conclusions:
    """What each of many cross-validations of a pair concludes, as events of `SHOWN`.

    Attributes
    ----------
    estimates : by its point estimates. posteriors : by its posterior's most probable event.
    mean : by the mean difference of all.
    """

    estimates: Sequence[str]
    posteriors: Sequence[str]
    mean: str

    def turned(self, each: Sequence[str]) -> float:
        """Return the share that concludes something else than most do."""
        return 1 - Counter(each).most_common(1)[0][1] / len(each)


def conclusions(pair: Pair, cvs: int, draws: int = DRAWS) -> Conclusions:
    """Return the conclusions of a pair's first cross-validations."""
    reading, found = pair.reading, []
    for place in range(min(cvs, len(pair.delta))):
        found.append(_largest(reading.events(pair.drawn_at(place, SETTING, draws), SETTING)))
    estimates = [_largest(reading.events(one[None], SETTING)) for one in pair.delta[: len(found)]]
    mean = _largest(reading.events(pair.delta.mean(axis=0)[None], SETTING))
    return Conclusions(estimates, found, mean)


def _largest(events: dict[str, float]) -> str:
    return SHOWN[max(events, key=lambda name: events[name])]


def probabilities(pair: Pair) -> dict[str, dict[str, float]]:
    """Return, by rho and for the ground truth, the probability of each event of `SHOWN`."""
    return {
        rho: {
            SHOWN[metric]: share
            for metric, share in pair.probabilities(Setting(rho, level=0.0), furthest=False).items()
        }
        for rho in (TRUTH, *RHOS)
    }


def main(options: Options) -> None:
    """Print both tables."""
    cvs, console = options.cvs, Console(width=120)
    compared = pairs(ALONE)
    table = Table(title=f"one of {cvs} cross-validations concludes", box=box.SIMPLE_HEAD)
    for heading in ("A against B", "estimates turn", "posteriors turn", "most posteriors", "mean"):
        table.add_column(heading)
    for pair in compared.values():
        found = conclusions(pair, cvs)
        turned = (f"{found.turned(each):.1%}" for each in (found.estimates, found.posteriors))
        most = Counter(found.posteriors).most_common(1)[0][0]
        table.add_row(" against ".join(map(short, pair.names)), *turned, most, found.mean)
    console.print(table)
    for pair in compared.values():
        shown = Table(title=" against ".join(map(short, pair.names)), box=box.SIMPLE_HEAD)
        for i, heading in enumerate(("", *SHOWN.values())):
            shown.add_column(heading, justify="right" if i else "left")
        for rho, shares in probabilities(pair).items():
            shown.add_row(rho, *(f"{share:.2f}" for share in shares.values()))
        console.print(shown)


if __name__ == "__main__":
    run_main(main, Options)
