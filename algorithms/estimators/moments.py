"""fairlearn's constraints (it calls them moments), with their slow steps written on arrays."""

from __future__ import annotations

import fairlearn.reductions
import numpy as np
import pandas as pd


class _Projection:
    """The projection of the multipliers of differences, the same numbers for a tenth of the time.

    Within an event, the groups' multipliers may be shifted by any multiple of the groups' shares;
    the weighted median makes them smallest.
    """

    def project_lambda(self, lambda_vec: pd.Series) -> pd.Series:
        """Return the multipliers of least sum that give the same Lagrangian or a higher one."""
        of_groups = self.prob_group_event  # type: ignore[attr-defined]
        event = of_groups.index.codes[0]
        events = self.prob_event.loc[of_groups.index.levels[0]]  # type: ignore[attr-defined]
        share = of_groups.to_numpy() / events.to_numpy()[event]
        plus, minus = lambda_vec.to_numpy(np.float64).reshape(2, -1)
        signed = plus - minus
        for each in np.unique(event):
            groups = event == each
            ratio, weight = signed[groups] / share[groups], share[groups]
            order = np.argsort(ratio, kind="stable")
            median = np.searchsorted(weight[order].cumsum(), weight.sum() / 2)
            signed[groups] -= weight * ratio[order[median]]
        return pd.Series(np.concatenate([signed, -signed]).clip(min=0), lambda_vec.index)


class _Weights:
    """The weights of the rows, looked up group by group."""

    def signed_weights(self, lambda_vec: pd.Series | None = None) -> pd.Series:
        """Return each row's weight: its group's multiplier over the group's share."""
        shares = self.prob_attr  # type: ignore[attr-defined]
        adjust = shares * 0 + 1.0 if lambda_vec is None else lambda_vec / shares
        groups = self.tags["group_id"]  # type: ignore[attr-defined]
        return groups.map(adjust).astype(np.float64)


class DemographicParity(_Projection, fairlearn.reductions.DemographicParity):
    """Equal rates of positive predictions."""


class EqualizedOdds(_Projection, fairlearn.reductions.EqualizedOdds):
    """Equal rates of positive predictions among the rows of each label."""


class EqualOpportunity(_Projection, fairlearn.reductions.TruePositiveRateParity):
    """Equal rates of positive predictions among the positives."""


class MeanLoss(_Weights, fairlearn.reductions.MeanLoss):
    """The mean loss of everyone."""


class BoundedGroupLoss(_Weights, fairlearn.reductions.BoundedGroupLoss):
    """A bound on each group's mean loss."""

    def default_objective(self) -> MeanLoss:
        """Return what is minimised under the bound."""
        return MeanLoss(self.reduction_loss)
