"""The three synthetic sets of Kuzucu et al. (2024): unequal noise, data scarcity, unequal error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import multivariate_normal

from fairbench.core.arrays import rng
from fairbench.core.errors import UserError
from fairbench.data.columns import one_of
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive

DATASHEET = Datasheet(
    title="SD1, SD2 and SD3 (Kuzucu, Cheong, Gunes, Kalkan 2024)",
    source="'Uncertainty as a Fairness Measure', JAIR 81; generated here from its parameters",
    licence="Generated, so none is needed",
    paper_differences="Each set has two features and four equally large cells, one for each group "
    "and label. In SD1, group 0 comes from a Beta (1/2, 1/2) square on either side of the origin; "
    "group 1 is normal, with means -7 and 7 and covariance [15, 10; 10, 15]. In SD2, group 0 has "
    "means -10 and 10 and covariance [100, 30; 30, 100]; group 1 has means -7 and 7. Its "
    "covariance, printed as [5, 1; 5, 1], which is none, is [5, 1; 1, 5] here. In SD3, group 0 has "
    "means -2 and 2 and covariance [7, 3; 3, 7]; group 1 has means -3 and 3 and covariance [5, 3; "
    "3, 5]. The text says 320 samples, probably the training part: four cells of 100 make 400, the "
    "default of `n_samples`. In SD1, the label of group 0 rises with the features, like that of "
    "group 1: if it falls, as in print (`sd1_group0=falling`), no linear model reaches the printed "
    "accuracy of 0.95 in both groups. The parameters are those of a published replication. `truth` "
    "holds P(y = 1 | x, group).",
    criticism="A line separates the points, so differences in uncertainty are differences in "
    "scale. Group 0 of SD1 lies within one unit of the boundary and is separable: its aleatoric "
    "uncertainty comes from the linear model.",
    family="simulated",
)
TITLES = {
    "sd1": "SD1, synthetic: groups with unequal noise (Kuzucu et al. 2024)",
    "sd2": "SD2, synthetic: groups with unequal data scarcity (Kuzucu et al. 2024)",
    "sd3": "SD3, synthetic: groups with unequal error (Kuzucu et al. 2024)",
}
N_CELLS = 4


@dataclass(frozen=True)
class Normal:
    """Label 0 around ``-mean``, label 1 around ``mean``, equal in both features."""

    mean: float
    variance: float
    covariance: float

    def draw(self, n: int, label: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return (n, 2) points of a label."""
        return generator.multivariate_normal(self._centre(label), self._matrix(), size=n)

    def probability(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(y = 1 | x), both labels being equally frequent."""
        zero, one = (
            multivariate_normal(self._centre(label), self._matrix()).logpdf(x) for label in (0, 1)
        )
        odds: NDArray[np.float64] = expit(one - zero)
        return odds

    def _centre(self, label: int) -> list[float]:
        return [self.mean if label else -self.mean] * 2

    def _matrix(self) -> list[list[float]]:
        return [[self.variance, self.covariance], [self.covariance, self.variance]]


@dataclass(frozen=True)
class BetaSquare:
    """Beta(1/2, 1/2) in each feature for one label, its mirror image for the other."""

    rising: bool

    def draw(self, n: int, label: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return (n, 2) points of a label."""
        return (1 if bool(label) == self.rising else -1) * generator.beta(0.5, 0.5, (n, 2))

    def probability(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(y = 1 | x), which is 0 or 1."""
        positive: NDArray[np.bool_] = x.sum(axis=1) > 0
        return (positive if self.rising else ~positive).astype(np.float64)


GROUPS: Mapping[str, tuple[Normal | None, Normal]] = {
    "sd1": (None, Normal(7, 15, 10)),
    "sd2": (Normal(10, 100, 30), Normal(7, 5, 1)),
    "sd3": (Normal(2, 7, 3), Normal(3, 5, 3)),
}


def load(
    archive: Archive,
    *,
    which: str,
    n_samples: int = 400,
    sd1_group0: str = "rising",
    seed: int = 0,
    keep_sensitive: bool = False,
) -> Dataset:
    """Draw one of the three sets.

    Parameters
    ----------
    archive : unused; nothing is read.
    which : ``sd1`` (noise), ``sd2`` (scarcity) or ``sd3`` (error).
    n_samples : a multiple of four; each pair of a group and a label has a quarter.
    sd1_group0 : whether the label of SD1's group 0 is ``rising`` or ``falling`` with the features.
    seed : each seed draws another population of the same kind.
    keep_sensitive : add the group to the two features; the paper does not say whether it does.
    """
    one_of("which", which, tuple(GROUPS))
    one_of("sd1_group0", sd1_group0, ("rising", "falling"))
    if n_samples < N_CELLS or n_samples % N_CELLS:
        raise UserError(f"dataset.n_samples is {n_samples}: it must be a multiple of {N_CELLS}")
    normal0, normal1 = GROUPS[which]
    kinds = (normal0 or BetaSquare(sd1_group0 == "rising"), normal1)
    generator, n = rng(seed, "kuzucu", which, n_samples), n_samples // N_CELLS
    cells = [(group, label) for group in (0, 1) for label in (0, 1)]
    points = [kinds[group].draw(n, label, generator) for group, label in cells]
    truth = np.concatenate(
        [kinds[group].probability(x) for (group, _), x in zip(cells, points, strict=True)]
    )
    groups, targets = np.repeat(cells, n, axis=0).T
    features = pd.DataFrame(np.concatenate(points), columns=["x0", "x1"])
    if keep_sensitive:
        features["group_1"] = groups == 1
    return Dataset(
        name=which,
        task=Task.BINARY,
        features=features,
        target=pd.Series(targets, name="y"),
        sensitive=pd.DataFrame({"group": pd.Categorical.from_codes(groups, ["0", "1"])}),
        privileged={"group": "1"},
        target_name="y",
        positive_label="y = 1",
        favourable=1,
        truth=pd.DataFrame({"probability": truth}),
    )
