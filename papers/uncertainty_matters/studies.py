"""Studies of cross-validations of German, each printed as a table; none is a table of the paper.

How far they scatter (`spreads`), how far conclusions hang on the partition (`conclusions`), every
two algorithms (`every_pair`), the steps of the public code (`public_code`), and the noise of
variance ratios (`ratio_noise`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd

from fairbench.comparison.runs import Settings
from fairbench.components.papers import CrossValidations, print_table, run_main
from fairbench.components.papers.uncertainty_matters import readings
from fairbench.components.papers.uncertainty_matters.ground_truth import ALGORITHMS, Counts
from fairbench.components.papers.uncertainty_matters.tables import Pair, pairs
from fairbench.core.arrays import Floats, rng
from fairbench.inference.comparing import (
    A_BETTER,
    B_BETTER,
    PRACTICALLY_EQUAL,
    event_names,
    highest_density_region,
)
from fairbench.inference.posterior import posterior_draws, table_draws
from fairbench.inference.survey import variance_ratio
from fairbench.inference.verdicts import ranking


def spreads(options: CrossValidations) -> None:
    """How far cross-validations of German scatter, and how wide the posteriors of one are.

    ``python -m papers.uncertainty_matters.studies spreads [cvs=200]`` prints, by algorithm, the sds
    of accuracy and of the equal opportunity difference over repeated cross-validations (partition
    noise alone), beside those of the posterior and of predictive draws at rho = 1/K.
    """
    title = "sds over cross-validations (partition noise), and of the posterior at rho=1/K"
    kinds = ("mean", "CVs", "post.", "pred.")
    headings = [f"{of}\n{kind}" for of, kind in product(("acc.", "EO"), kinds)]
    measured, rows = readings.measure(cvs=options.cvs), []
    for name, counts in measured.counts.items():
        truth, cells = readings.values(counts), []
        drawn = [measured.cloud(name, "rho=1/K", predictive=kind) for kind in (False, True)]
        for i in (0, 1):
            sds = (draws[..., i].std(axis=1).mean() for draws in drawn)
            cells += [truth[:, i].mean(), truth[:, i].std(ddof=1), *sds]
        r = float(np.mean(measured.ratios[name]))
        rows.append([readings.short(name), *(f"{cell:.4f}" for cell in cells), f"{r:.2f}"])
    print_table(title, ("algorithm", *headings, "r"), rows, collapse_padding=True)


SETTING = readings.Setting("rho_rel_up", level=0.0)
CONCLUSION_DRAWS = 2000
SHOWN = {
    "p_a_outperforms_b": "A >> B",
    "p_b_outperforms_a": "B >> A",
    "p_equivalent": "A ~ B",
    "p_a_accuracy_b_fairness": "A more accurate, B fairer",
    "p_b_accuracy_a_fairness": "B more accurate, A fairer",
}


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


def conclusions_of(pair: Pair, cvs: int, draws: int = CONCLUSION_DRAWS) -> Conclusions:
    """Return the conclusions of a pair's first cross-validations."""
    reading, cvs = pair.reading, min(cvs, len(pair.delta))

    def largest(delta: Floats) -> str:
        events = reading.events(delta, SETTING)
        return SHOWN[max(events, key=lambda name: events[name])]

    posteriors = [largest(pair.drawn_at(place, SETTING, draws)) for place in range(cvs)]
    estimates = [largest(one[None]) for one in pair.delta[:cvs]]
    return Conclusions(estimates, posteriors, largest(pair.delta.mean(axis=0)[None]))


def probabilities(pair: Pair) -> dict[str, dict[str, float]]:
    """Return, by rho and for the ground truth, the probability of each event of `SHOWN`."""
    settings = {rho: readings.Setting(rho, level=0.0) for rho in (readings.TRUTH, *readings.RHOS)}
    return {
        rho: {SHOWN[metric]: share for metric, share in pair.probabilities(setting).items()}
        for rho, setting in settings.items()
    }


def conclusions(options: CrossValidations) -> None:
    """Print how far the conclusion of one cross-validation hangs on the partition.

    ``python -m papers.uncertainty_matters.studies conclusions [cvs=200]`` prints, of each
    comparison on German: how often the point estimates of one cross-validation, and the most
    probable event of its posterior, say something else than most other cross-validations do, and
    what the mean of all says; then all events' probabilities on the partition nearest to the mean,
    under every rho. The last two comparisons are those of section 14.2.
    """
    compared = {
        " against ".join(map(readings.short, pair.names)): pair
        for pair in pairs(readings.ALONE).values()
    }
    rows = []
    for names, pair in compared.items():
        found = conclusions_of(pair, options.cvs)
        turned = (f"{found.turned(each):.1%}" for each in (found.estimates, found.posteriors))
        most = Counter(found.posteriors).most_common(1)[0][0]
        rows.append((names, *turned, most, found.mean))
    headings = ("A against B", "estimates turn", "posteriors turn", "most posteriors", "mean")
    print_table("what one cross-validation concludes", headings, rows, width=120)
    for names, pair in compared.items():
        cells = [
            [rho, *(f"{share:.2f}" for share in shares.values())]
            for rho, shares in probabilities(pair).items()
        ]
        print_table(names, ("", *SHOWN.values()), cells, width=120)


A_ACCURATE, B_ACCURATE = event_names(readings.OBJECTIVES)[3:]
# Event -> the same with A and B exchanged.
_TURNED = {
    A_BETTER: B_BETTER,
    B_BETTER: A_BETTER,
    PRACTICALLY_EQUAL: PRACTICALLY_EQUAL,
    A_ACCURATE: B_ACCURATE,
    B_ACCURATE: A_ACCURATE,
}
# What a row is to a column; the other two events stand where row and column are exchanged.
_PRINTED = {A_BETTER: "better", A_ACCURATE: "accurate", PRACTICALLY_EQUAL: "equal"}


def pair_rows(measured: readings.Measured) -> pd.DataFrame:
    """Return rho, A, B and the probability of each event, a row an ordered pair.

    Probabilities are means over the cross-validations that give a posterior.
    """
    rows = []
    for rho in readings.RHOS:
        clouds = {name: measured.cloud(name, rho) for name in measured.counts}
        for (first, one), (second, other) in combinations(clouds.items(), 2):
            each = [readings.events(a - b) for a, b in zip(one, other, strict=False)]
            events = {name: float(np.mean([shares[name] for shares in each])) for name in each[0]}
            turned = {_TURNED[event]: share for event, share in events.items()}
            rows.append({"rho": rho, "A": first, "B": second, **events})
            rows.append({"rho": rho, "A": second, "B": first, **turned})
    return pd.DataFrame(rows)


def matrix(rows: pd.DataFrame, names: Sequence[str], event: str) -> Floats:
    """Return the probabilities of one event at one rho, (M, M): A a row, B a column."""
    wide = rows.pivot(index="A", columns="B", values=event)
    return wide.reindex(index=names, columns=names).to_numpy(float)


def print_pairs(rows: pd.DataFrame) -> None:
    """Print three lines an algorithm for each rho, in percent, and its rank."""
    accuracy, opportunity = readings.ROPE
    print(
        f"every two of the algorithms; ropes {accuracy:g} (accuracy) and {opportunity:g} (equal "
        "opportunity difference)\npercent, row against column: better (>>), more accurate but less "
        "fair, practically equal\nrank: 1 + the algorithms that are better with 95 %"
    )
    for rho, mine in rows.groupby("rho", sort=False):
        names, cells = list(dict.fromkeys(mine["A"])), []
        tables = {label: matrix(mine, names, event) for event, label in _PRINTED.items()}
        ranks = ranking(tables[_PRINTED[A_BETTER]])
        for place, (name, rank) in enumerate(zip(names, ranks, strict=True)):
            front = [f"{place + 1} {readings.short(name)}", str(rank)]
            for label, shares in tables.items():
                cells.append([*front, label, *map(_percent, shares[place])])
                front = ["", ""]
        headings = ("", "rank", "row is", *(str(place + 1) for place in range(len(names))))
        print_table(str(rho), headings, cells, padding=0, pad_edge=False)


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{100 * share:.0f}"


def every_pair(options: CrossValidations) -> None:
    """Every two of the algorithms compared: probabilities of all events, and the ranking they give.

    Posteriors are drawn for each algorithm on its own, as for Tables 2 and 3, and the difference in
    equal opportunity is signed as there. No table of the paper has these numbers. ``python -m
    papers.uncertainty_matters.studies every_pair [cvs=200]``
    """
    print_pairs(pair_rows(readings.measure(cvs=options.cvs)))


BANDWIDTH = 0.15
CODE_ALGORITHMS = ("LR", "SVM")
CODE_DRAWS, KERNELS, GRID = 10000, 2000, 120


def truncated_draws(counts: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Draw tables as the public code does: multinomial, of group sizes without their fractions."""
    shares = posterior_draws(counts, draws, generator, alpha=1.0)
    sizes = counts.sum(axis=-1).astype(np.int64)
    return generator.multinomial(np.broadcast_to(sizes, shares.shape[:-1]), shares).astype(float)


def fixed_bandwidth_region(draws: Floats, points: Floats) -> tuple[float, float]:
    """Return area of the public code's region of (T, 2) draws, and the share of `points` inside."""
    kernels = draws[:KERNELS]
    threshold = np.quantile(_density(kernels, kernels), 1 - readings.LEVEL)
    low, high = kernels.min(axis=0) - BANDWIDTH, kernels.max(axis=0) + BANDWIDTH
    axes = [np.linspace(low[i], high[i], GRID) for i in range(2)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = np.prod((high - low) / (GRID - 1))
    area = float((_density(grid, kernels) >= threshold).sum() * cell)
    return area, float((_density(points, kernels) >= threshold).mean())


def _density(points: Floats, kernels: Floats) -> Floats:
    squared = ((points[:, None] - kernels[None]) ** 2).sum(axis=-1)
    return np.exp(-squared / (2 * BANDWIDTH**2)).mean(axis=1)


def fitted_region(draws: Floats, points: Floats) -> tuple[float, float]:
    """Return area, and the share of `points` inside, of the region with a fitted bandwidth."""
    region = highest_density_region(draws, readings.LEVEL)
    assert region.density is not None
    return region.size, float(region.density.holds(points).mean())


def steps(counts: Counts, rho: str) -> Iterator[tuple[str, float, float, Floats]]:
    """Yield each step's name, area, share of the cross-validations inside, and sds of the draws."""
    effective = counts[0] * float(Settings(rho=rho).shrinkage(readings.FOLDS))
    points = readings.values(counts)

    def draw(step: str) -> Floats:
        generator = rng(0, "public code", step)
        if step == "truncated":
            tables = truncated_draws(effective, CODE_DRAWS, generator)
        else:
            tables = table_draws(effective, CODE_DRAWS, generator, predictive=step == "predictive")
        found = readings.values(tables)
        return found[~np.isnan(found).any(axis=1)]

    regions: dict[str, Callable[[Floats, Floats], tuple[float, float]]] = {
        "fitted bandwidth": fitted_region,
        f"bandwidth {BANDWIDTH}": fixed_bandwidth_region,
    }
    for step in ("posterior", "predictive", "truncated"):
        draws = draw(step)
        for name, region in regions.items():
            yield f"{step}, {name}", *region(draws, points), draws.std(axis=0)


def public_code(options: CrossValidations) -> None:
    """Print what each step of the public code does to the 95 % region of an algorithm.

    ``python -m papers.uncertainty_matters.studies public_code [cvs=200]``: the code draws
    multinomial counts after the Dirichlet, cuts effective group sizes down to whole numbers, and
    finds its region by a kernel density of bandwidth 0.15, whatever the spread of the draws.
    """
    for name in CODE_ALGORITHMS:
        counts = readings.packed_counts(name)[: options.cvs]
        for rho in ("1/K", "average"):
            rows = [
                (step, *(f"{sd:.4f}" for sd in sds), f"{area:.4f}", f"{100 * inside:.1f}")
                for step, area, inside, sds in steps(counts, rho)
            ]
            headings = ("step", "sd accuracy", "sd EO", "area", "% of CVs inside")
            print_table(f"{name}, rho {rho}", headings, rows)


NOISE_HALVINGS, CORRELATIONS, SAMPLES = (1, 5, 50), (0.0, 0.5, 0.8), 4000
_SHAPE = (2, 2)  # rates and groups


def equal_ratios(halvings: int, correlation: float, generator: np.random.Generator) -> Floats:
    """Return mean ratios of a learner and a reference whose estimates vary equally, (SAMPLES,)."""
    size = (2, SAMPLES, halvings, 2, *_SHAPE)
    reference, fresh = generator.normal(size=size)
    own = correlation * reference + np.sqrt(1 - correlation**2) * fresh
    pairs = zip(own, reference, strict=True)
    return np.array([float(variance_ratio(one, other, pooled=True)) for one, other in pairs])


def ratio_noise() -> None:
    """How much of a variance ratio from half-splits is noise of a few halvings.

    ``python -m papers.uncertainty_matters.studies ratio_noise`` prints what the mean ratio is where
    learner and reference vary equally (normal estimates, correlated as those of two learners on the
    same halves may be), and the ratios of the 13 algorithms on German.
    """
    rows = []
    for halvings, correlation in product(NOISE_HALVINGS, CORRELATIONS):
        ratios = equal_ratios(halvings, correlation, rng(0, "ratio noise", halvings))
        ends = np.quantile(ratios, (0.025, 0.5, 0.975))
        cells = (f"{value:.2f}" for value in (ratios.mean(), *ends))
        rows.append([str(halvings), f"{correlation}", *cells])
    headings = ("halvings", "correlation", "mean", "2.5 %", "median", "97.5 %")
    print_table("mean ratio of equal variances", headings, rows)
    reference, rows = readings.half_split_estimates(readings.REFERENCE)[: readings.AT_A_TIME], []
    for name in ALGORITHMS:
        own = readings.half_split_estimates(name)[: readings.AT_A_TIME]
        ratios = variance_ratio(own, reference)
        rows.append([name, *(f"{r:.2f}" for r in ratios.ravel()), f"{np.nanmean(ratios):.2f}"])
    rates = [f"{rate}, {group}" for rate in ("accuracy", "TPR") for group in ("> 25", "<= 25")]
    print_table("German, five halvings", ("algorithm", *rates, "mean"), rows)


if __name__ == "__main__":
    run_main(spreads, conclusions, every_pair, public_code, ratio_noise)
