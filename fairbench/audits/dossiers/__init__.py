"""Dossiers: what a rule or a format asks to be told of a model, each with its measurement.

`DOSSIERS` makes each of what is asked for, the predictions as strings, and what people say.
"""

from collections.abc import Callable, Mapping

from fairbench.audits.dossiers.cards import ai_act, model_card
from fairbench.audits.dossiers.lending import lending
from fairbench.audits.dossiers.selection import four_fifths, ll144
from fairbench.reporting.document.model import Document

DOSSIERS: Mapping[str, Callable[..., Document]] = {
    "ll144": ll144,
    "four-fifths": four_fifths,
    "lending": lending,
    "model-card": model_card,
    "ai-act": ai_act,
}
