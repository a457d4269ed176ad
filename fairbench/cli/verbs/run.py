"""Run one configuration, or with -m a sweep of them: fit, evaluate, store and log."""

from __future__ import annotations

from collections.abc import Sequence

from fairbench.cli.command import components_folder

SECTION = "Run and tune"


def main(words: Sequence[str]) -> int:
    """Run what the words configure; Hydra reads them."""
    from fairbench.cli.run import run

    return run(words, components_folder())
