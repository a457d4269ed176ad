"""Compare today's tree with the frozen commit, to twelve digits: ``make golden``.

``python -m benchmarks.golden`` asks both trees the same and compares their answers;
``python -m benchmarks.golden write`` writes the frozen tree's answers to the cases that the tests
ask again, at ten digits.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.golden import compare, frozen
from benchmarks.golden.cases import ALL, COMMITTED, Selection
from benchmarks.golden.collect import Answers, collect, failures
from benchmarks.golden.frozen import COMMIT, ROOT, GoldenError

SHOWN = 20


def main(words: Sequence[str]) -> int:
    """Do what the words ask for; return 1 where the trees differ, 2 where none can be asked."""
    try:
        if list(words) == ["write"]:
            return _write()
        if words:
            raise GoldenError(f"unknown word '{words[0]}': valid: write, or none")
        return _compare()
    except GoldenError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _compare() -> int:
    selection = ALL.at_hand(frozen.raw_data(), _say)
    with frozen.frozen_tree() as tree, ThreadPoolExecutor(2) as both:
        asked = [
            both.submit(_answers, tree, selection, _say),
            both.submit(_answers, ROOT, selection, lambda done: None),
        ]
        was, today = (each.result() for each in asked)
    result = [f"today's tree: {failure}" for failure in failures(today)]
    result += compare.differences(
        compare.comparable(was), compare.comparable(today), compare.same_but_for_sums
    )
    for sentence in result[:SHOWN]:
        print(sentence)
    if result:
        print(f"{len(result)} differences to {COMMIT[:12]}, {min(SHOWN, len(result))} shown")
        return 1
    cases = ", ".join(f"{len(of_kind)} {kind}" for kind, of_kind in today.items())
    print(f"the same as {COMMIT[:12]}, to twelve digits: {cases}")
    return 0


def _write() -> int:
    with frozen.frozen_tree() as tree:
        selection = COMMITTED.at_hand(frozen.raw_data(), _say)
        if selection != COMMITTED:
            raise GoldenError("golden files are written where all raw files are")
        compare.write_committed(compare.comparable(_answers(tree, selection, _say)))
    print(f"written: {compare.FOLDER}")
    return 0


def _answers(tree: Path, selection: Selection, say: Callable[[str], None]) -> Answers:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="fairbench-golden-") as folder:
        ask, evaluate = frozen.commands_of(tree), frozen.evaluate_in_process(tree)
        answers = collect(ask, evaluate, Path(folder), selection, say)
    say(f"asked in {time.perf_counter() - started:.0f} s")
    if tree != ROOT and (failed := failures(answers)):
        raise GoldenError(f"the frozen tree cannot be asked: {'; '.join(failed)}")
    return answers


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
