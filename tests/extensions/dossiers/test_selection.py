"""How many different persons selected turn what a ratio says, and what is under four fifths."""

from fairbench_dossiers.selection import is_under, selections_that_turn


def turned(selected, rows, persons):
    """Return whether a ratio is under four fifths once so many persons are other ones."""
    (first, second), (one, other) = selected, rows
    return 5 * (first + persons) * other < 4 * (second - persons) * one


def test_how_many_persons_turn_a_ratio_is_what_trying_them_all_says():
    """Of every table of up to 12 people each: none fewer does, and one different person each."""
    some = set()
    for one, other in [(1, 1), (3, 12), (7, 5), (12, 12), (12, 3)]:
        for first in range(one + 1):
            for second in range(other + 1):
                selected, rows = (first, second), (one, other)
                under = turned(selected, rows, 0)
                assert is_under(selected, rows) == under
                step = 1 if under else -1
                tried = [
                    k
                    for k in range(1, 13)
                    if 0 <= first + step * k <= one and 0 <= second - step * k <= other
                ]
                turns = [k for k in tried if turned(selected, rows, step * k) != under]
                reverses = [k for k in tried if under and (first + k) * other > (second - k) * one]
                expected = tuple(min(numbers, default=None) for numbers in (turns, reverses))
                assert selections_that_turn(selected, rows) == expected
                some.add(tuple(number is None for number in expected))
    assert len(some) >= 3


def test_exactly_four_fifths_is_not_under():
    assert not is_under((48, 60), (100, 100))
    assert not is_under((4, 5), (10, 10)) and is_under((3, 5), (10, 10))
    assert selections_that_turn((48, 60), (100, 100)) == (1, None)
