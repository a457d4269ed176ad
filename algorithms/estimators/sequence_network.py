"""Transformers of one modality each, joined by attention to one another (Yoon et al. 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from fairbench.data.features import Modality


class Padded(NamedTuple):
    """Rows of one modality, filled up to the longest.

    Attributes
    ----------
    frames : (n, time, channels). there : (n, time) where there is a frame.
    """

    frames: torch.Tensor
    there: torch.Tensor

    @classmethod
    def of(cls, rows: Modality, device: str) -> Padded:
        """Return rows on a device."""
        frames, there = rows.padded()
        return cls(torch.from_numpy(frames).to(device), torch.from_numpy(there).to(device))


class Attention(nn.Module):
    """Frames that ask others, then a layer for each frame; what it finds is added to them."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.asking, self.asked, self.before = (nn.LayerNorm(width) for _ in range(3))
        self.query, self.both = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.layer = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )
        self.drop = nn.Dropout(dropout)

    def forward(
        self, hidden: torch.Tensor, others: torch.Tensor, there: torch.Tensor
    ) -> torch.Tensor:
        """Return the frames (n, t, width), having seen the `others` (n, s, width) that are there.

        Parameters
        ----------
        there : (n, s), false of what only fills up a row, which is not attended to.
        """
        query = self._split(self.query(self.asking(hidden)))
        key, value = self.both(self.asked(others)).chunk(2, dim=-1)
        mask = there[:, None, None, :]
        seen = scaled_dot_product_attention(query, self._split(key), self._split(value), mask)
        hidden = hidden + self.drop(self.out(seen.transpose(1, 2).flatten(2)))
        found: torch.Tensor = hidden + self.drop(self.layer(self.before(hidden)))
        return found

    def _split(self, values: torch.Tensor) -> torch.Tensor:
        """Return (n, t, width) as (n, heads, t, width / heads)."""
        return values.reshape(*values.shape[:2], self.heads, -1).transpose(1, 2)


class SequenceNetwork(nn.Module):
    """An encoder for each modality, attention of each to the others, a mean over frames, scores.

    Parameters
    ----------
    channels : of each modality's frames.
    start : (k,) constant raw scores, to which the last layer adds.
    detached : whether the scores after the first leave all but the last layer untrained.
    """

    def __init__(
        self,
        channels: Sequence[int],
        start: NDArray[np.float64],
        *,
        width: int,
        layers: int,
        heads: int,
        dropout: float,
        detached: bool,
    ) -> None:
        super().__init__()
        self.detached = detached
        self.project = nn.ModuleList(nn.Linear(each, width) for each in channels)
        # Of the first modality, then of the second.
        self.encode = nn.ModuleList(
            Attention(width, heads, dropout) for _ in range(layers * len(channels))
        )
        self.layers = layers
        several = len(channels) > 1
        self.join = nn.ModuleList(Attention(width, heads, dropout) for _ in channels if several)
        self.last = nn.LayerNorm(width * len(channels))
        self.head = nn.Linear(width * len(channels), len(start))
        with torch.no_grad():
            self.head.bias.copy_(torch.from_numpy(start))

    def forward(self, modalities: Sequence[Padded]) -> torch.Tensor:
        """Return the (n, k) raw scores of rows."""
        encoded = []
        for i, (rows, project) in enumerate(zip(modalities, self.project, strict=True)):
            hidden = project(rows.frames)
            hidden = hidden + _positions(hidden)
            for layer in self.encode[i * self.layers : (i + 1) * self.layers]:
                hidden = layer(hidden, hidden, rows.there)
            encoded.append(hidden)
        there = [rows.there for rows in modalities]
        if len(encoded) > 1:
            encoded = [self._joined(i, encoded, there) for i in range(len(encoded))]
        means = [_mean(hidden, own) for hidden, own in zip(encoded, there, strict=True)]
        found = self.last(torch.cat(means, dim=-1))
        scores: torch.Tensor = self.head(found)
        if not self.detached:
            return scores
        return torch.cat([scores[:, :1], self.head(found.detach())[:, 1:]], dim=-1)

    def _joined(
        self, i: int, encoded: Sequence[torch.Tensor], there: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """Return the frames of a modality after they have seen those of all others."""
        others = [j for j in range(len(encoded)) if j != i]
        frames = torch.cat([encoded[j] for j in others], dim=1)
        mask = torch.cat([there[j] for j in others], dim=1)
        seen: torch.Tensor = self.join[i](encoded[i], frames, mask)
        return seen


def _positions(hidden: torch.Tensor) -> torch.Tensor:
    """Return sines and cosines of the frames' places, (time, width) (Vaswani et al. 2017)."""
    time, width = hidden.shape[1:]
    place = torch.arange(time, device=hidden.device)[:, None]
    rate = torch.exp(torch.arange(0, width, 2, device=hidden.device) * (-np.log(1e4) / width))
    angle = place * rate
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=-1)[:, :width]


def _mean(hidden: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """Return the mean (n, width) of the frames that are there."""
    return (hidden * there[..., None]).sum(dim=1) / there.sum(dim=1, keepdim=True)
