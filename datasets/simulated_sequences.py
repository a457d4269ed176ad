"""Simulated recordings with known truth: a short event in each determines the label."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from fairbench.core.arrays import rng
from fairbench.core.errors import UserError, check_minimum, check_share
from fairbench.data.dataset import Dataset, Datasheet, Task
from fairbench.data.download import Archive
from fairbench.data.features import Sequences

DATASHEET = Datasheet(
    title="Simulated sequences with known truth",
    source="Generated here",
    licence="Generated, so none is needed",
    paper_differences="A stand-in for D-Vlog, the third data set of Kuzucu et al. (2024). Every "
    "row has an acoustic and a visual sequence, each with one event of a few frames anywhere in "
    "it. The first channel marks the event, during which the second carries what the label depends "
    "on. `longer=3` makes the rows of group B three times as long. A model that reads only as many "
    "frames as group A has then misses many of group B's events, which is what the paper says of "
    "women's videos.",
    criticism="What is found holds for this population only. The groups differ only in how long "
    "they are recorded. `truth` is that of the whole sequences.",
    family="simulated",
)
CHANNELS = {"acoustic": 4, "visual": 6}
NAMES = ("A", "B")


def load(
    archive: Archive,
    *,
    n_samples: int = 1000,
    length: int = 24,
    longer: float = 1.0,
    share_b: float = 0.5,
    event: int = 4,
    strength: float = 4.0,
    noise: float = 0.5,
    test_share: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Draw a population.

    P(y = 1) = expit(`strength` (a + v) / sqrt(2)), where a and v are the means, in standard
    deviations, of the second channel during the acoustic and during the visual event.

    Parameters
    ----------
    archive : unused; nothing is read.
    n_samples : how many rows.
    length : mean number of frames of group A's rows; the numbers are uniform between half and one
        and a half times this mean.
    longer : how many times as long group B's rows are.
    share_b : expected share of group B.
    event : number of frames of an event.
    strength : how strongly the label depends on the events. With 4, even the truth reaches an area
        under the ROC curve of only 0.95; with 0, labels are random.
    test_share : the share of the rows, the last ones, that are the ``test`` part of `partition`;
        with 0 there is no partition.
    noise : standard deviation of a frame of an event around the event's own value, whose standard
        deviation is 1.
    """
    check_minimum("dataset.n_samples", n_samples, 20)
    check_minimum("dataset.event", event, 1)
    check_share("dataset.share_b", share_b)
    if length < 2 * event:
        raise UserError(
            f"dataset.length is {length}; it must be at least twice dataset.event, {event}"
        )
    check_minimum("dataset.longer", longer, 1)
    check_share("dataset.test_share", test_share, zero=True)
    generator = rng(seed, "simulated sequences", n_samples, length, event)
    in_b = generator.random(n_samples) < share_b
    frames = length * np.where(in_b, longer, 1.0) * generator.uniform(0.5, 1.5, n_samples)
    lengths = np.maximum(np.rint(frames).astype(np.int64), event)
    recorded = [
        _recording(lengths, channels, event, noise, generator) for channels in CHANNELS.values()
    ]
    modalities = dict(zip(CHANNELS, [rows for rows, _ in recorded], strict=True))
    unit = np.sqrt(1 + noise**2 / event)
    signal = np.sum([signal for _, signal in recorded], axis=0) / unit
    p = expit(strength * signal / np.sqrt(len(CHANNELS)))
    tested = np.arange(n_samples) >= (1 - test_share) * n_samples
    return Dataset(
        name="simulated_sequences",
        task=Task.BINARY,
        features=Sequences.of("simulated_sequences", modalities),
        target=pd.Series((generator.random(n_samples) < p).astype(np.int64), name="y"),
        sensitive=pd.DataFrame({"group": pd.Categorical.from_codes(in_b.astype(int), NAMES)}),
        privileged={"group": NAMES[0]},
        target_name="y",
        positive_label="y = 1",
        favourable=1,
        partition=pd.Series(np.where(tested, "test", "train")) if test_share else None,
        truth=pd.DataFrame({"probability": p}),
        redistributable=True,
    )


def _recording(
    lengths: NDArray[np.int64],
    channels: int,
    event: int,
    noise: float,
    generator: np.random.Generator,
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Draw noise of every channel, and then an event of each row.

    Returns
    -------
    The frames of every row, and the mean of the second channel during each row's event.
    """
    n = len(lengths)
    first = np.floor(generator.random(n) * (lengths - event + 1)).astype(np.int64)
    said = generator.standard_normal((n, 1)) + noise * generator.standard_normal((n, event))
    drawn = generator.standard_normal((int(lengths.sum()), channels))
    drawn[:, 0] = 0.0
    place = (np.cumsum(lengths) - lengths + first)[:, None] + np.arange(event)
    drawn[place, 0], drawn[place, 1] = 1.0, said
    return np.split(drawn, np.cumsum(lengths)[:-1]), said.mean(axis=1)
