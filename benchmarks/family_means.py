"""How often intervals of a plain mean over families hold: ours, and the usual bootstraps.

``python -m benchmarks.family_means results/atlas`` draws 20 families from simulated populations,
and from the families of every claim of a pack, as they are and with noise of 0.3 of their spread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402
from scipy import special, stats  # noqa: E402

from benchmarks.measure import show  # noqa: E402
from fairbench.comparison.atlas.approaches import approach_table  # noqa: E402
from fairbench.comparison.atlas.claim_values import ClaimPart  # noqa: E402
from fairbench.comparison.atlas.findings import AtlasFindings  # noqa: E402
from fairbench.comparison.atlas.report import atlas_findings  # noqa: E402
from fairbench.core.arrays import Floats  # noqa: E402
from fairbench.core.seeds import rng  # noqa: E402
from fairbench.inference.comparing.family_means import mean_over_families  # noqa: E402
from fairbench.inference.rates import Limits  # noqa: E402
from fairbench.results.catalogue import Catalogue  # noqa: E402

Ends = tuple[Floats, Floats]
FAMILIES, TRIALS, RESAMPLED = 20, 1000, 1000
OF_A_PACK = 200  # trials of each difference of a pack
_NOISE = 0.3  # of the spread of a pack's families
POPULATIONS: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], Floats], float]] = {
    "normal": (lambda draw, shape: draw.standard_normal(shape), 0.0),
    "Student t of 3 degrees of freedom": (lambda draw, shape: draw.standard_t(3, shape), 0.0),
    "exponential": (lambda draw, shape: draw.standard_exponential(shape), 1.0),
    "gamma of shape 0.5": (lambda draw, shape: draw.standard_gamma(0.5, shape), 0.5),
    "lognormal, sd 1 of the logarithm": (
        lambda draw, shape: np.exp(draw.standard_normal(shape)),
        float(np.exp(0.5)),
    ),
    "a quarter of ten times the spread": (
        lambda draw, shape: (
            np.where(draw.random(shape) < 0.25, 2.0, 0.2) * draw.standard_normal(shape)
        ),
        0.0,
    ),
}


def main(words: list[str]) -> int:
    """Print the coverage of every construction, in simulated populations and in those of a pack."""
    rows = []
    for name, (drawn, mean) in POPULATIONS.items():
        draw = rng(0, "family means", name)
        rows.append((name, *_covered(drawn(draw, (TRIALS, FAMILIES)), mean, draw)))
    heads = ("", *(name for name in constructions(np.ones((1, 3)), rng(0, "heads"))))
    if words:
        claims = [claim.deciding_parts for claim in _findings(Path(words[0])).claims]
        families = list(pack_families(claims))
        for noise in (0.0, _NOISE):
            draw = rng(0, "family means of a pack", str(noise))
            several = [
                _covered(_like(family, noise, draw), family.mean(), draw) for family in families
            ]
            name = f"{len(families)} differences of the pack, noise of {noise:g}"
            rows.append((name, *np.mean(several, axis=0)))
    show(f"{FAMILIES} families: share of 95 % intervals that hold", heads, rows)
    if words:
        at_once = [
            (f"noise of {noise:g}", *held_at_once(claims[0], noise)) for noise in (0.0, _NOISE)
        ]
        show("The first claim's intervals, all at once", ("", "differences", "hold"), at_once)
    return 0


def _like(families: Floats, noise: float, draw: np.random.Generator) -> Floats:
    """Return families drawn from some, with noise, (trials, families)."""
    shape = (OF_A_PACK, len(families))
    return np.asarray(
        draw.choice(families, shape) + noise * families.std() * draw.standard_normal(shape)
    )


def _covered(values: Floats, mean: float, draw: np.random.Generator) -> list[float]:
    result = constructions(values, draw).values()
    return [float(np.mean((lower <= mean) & (mean <= upper))) for lower, upper in result]


def constructions(values: Floats, draw: np.random.Generator) -> dict[str, Ends]:
    """Return the ends of 95 % intervals of means of families (N, F) by each construction."""
    ours: Limits = mean_over_families(values)
    count = values.shape[1]
    mean, error = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(count)
    half = stats.t.ppf(0.975, count - 1) * error
    chosen = draw.integers(0, count, (RESAMPLED, count))
    weight = np.zeros((RESAMPLED, count))
    np.add.at(weight, (np.arange(RESAMPLED)[:, None], chosen), 1 / count)
    means = values @ weight.T
    errors = np.sqrt(np.maximum((values**2) @ weight.T - means**2, 0) / (count - 1))
    away = means - mean[:, None]
    studentised = np.divide(away, errors, out=np.zeros_like(away), where=errors > 0)
    low, high = np.quantile(studentised, [0.025, 0.975], axis=1)
    return {
        "ours": (ours.lower, ours.upper),
        "Student's t": (mean - half, mean + half),
        "percentiles": (np.quantile(means, 0.025, axis=1), np.quantile(means, 0.975, axis=1)),
        "BCa": _bca(values, means),
        "bootstrapped t": (mean - high * error, mean - low * error),
    }


def _bca(values: Floats, means: Floats) -> Ends:
    """Return the ends of Efron's (1987) intervals, corrected for bias and acceleration."""
    off = values - values.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        speed = (off**3).sum(axis=1) / (6 * (off**2).sum(axis=1) ** 1.5)
    share = (means < values.mean(axis=1, keepdims=True)).mean(axis=1)
    bias = special.ndtri(np.clip(share, 1 / RESAMPLED, 1 - 1 / RESAMPLED))
    ordered, ends = np.sort(means, axis=1), []
    for tail in special.ndtri([0.025, 0.975]):
        place = special.ndtr(bias + (bias + tail) / (1 - speed * (bias + tail)))
        index = np.clip(np.nan_to_num(place) * RESAMPLED, 0, RESAMPLED - 1).astype(int)
        ends.append(ordered[np.arange(len(ordered)), index])
    return ends[0], ends[1]


def _findings(folder: Path) -> AtlasFindings:
    return atlas_findings(approach_table(list(Catalogue(folder))), metrics=(), draws=20)


def pack_families(claims: Sequence[Sequence[ClaimPart]]) -> Iterator[Floats]:
    """Yield the means of families of every difference that decides a claim of a pack."""
    for part in dict.fromkeys(part for parts in claims for part in parts):
        families = np.array(part.of_families)
        if families.std() > 0:
            yield families


def held_at_once(parts: Sequence[ClaimPart], noise: float) -> tuple[int, float]:
    """Return of how many differences, measured on all families, the intervals hold at once."""
    most = max(part.families for part in parts)
    values = np.array([part.of_families for part in parts if part.families == most])
    draw = rng(0, "family means at once", str(noise))
    mean, level, held = values.mean(axis=1), 1 - 0.05 / len(values), []
    for _ in range(OF_A_PACK):
        drawn = values[:, draw.integers(0, most, most)]
        drawn = drawn + noise * values.std(axis=1)[:, None] * draw.standard_normal(drawn.shape)
        result = mean_over_families(drawn, level=level)
        held.append(bool(((result.lower <= mean) & (mean <= result.upper)).all()))
    return len(values), float(np.mean(held))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
