"""CPU seconds of the stages of a computation, by wrapping the functions they happen in."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any
from unittest.mock import patch


@contextlib.contextmanager
def stages(functions: Mapping[str, tuple[Any, str]]) -> Iterator[dict[str, float]]:
    """Count the seconds spent in functions, each less what it spends in the others.

    Parameters
    ----------
    functions : stage -> (module or class, name of its function); ``stage#2`` adds to ``stage``.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    inner = [0.0]

    def timed(stage: str, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            started = time.process_time()
            inner.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                spent = time.process_time() - started
                seconds[stage.partition("#")[0]] += spent - inner.pop()
                inner[-1] += spent

        return call

    with contextlib.ExitStack() as stack:
        for stage, (owner, name) in functions.items():
            stack.enter_context(patch.object(owner, name, timed(stage, getattr(owner, name))))
        yield seconds
