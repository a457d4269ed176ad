"""Running a Hydra entry point, with words in place of tracebacks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from fairbench.cli.composing import compose_once
from fairbench.cli.job import USER_ERROR
from fairbench.cli.launching import guard_launchers
from fairbench.cli.mistakes import in_words
from fairbench.cli.say import say_error
from fairbench.core.errors import UserError


def main(entry: Callable[[], None], conf: Path) -> int:
    """Run a Hydra entry point and return the exit status: 0, 1 (failed) or 2 (cannot be done)."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    compose_once()
    guard_launchers(conf)
    try:
        entry()
    except UserError as error:
        say_error(error)
        return USER_ERROR
    except (HydraException, OmegaConfBaseException) as error:
        say_error(in_words(error, conf))
        return USER_ERROR
    except KeyboardInterrupt:
        print("interrupted: finished cells are kept; the same command goes on", file=sys.stderr)
        return 130
    return 0
