"""Bits that flip and ends that are cut off, in every kind of file: found, and made again."""

from benchmarks.faults import flips


def test_no_damage_is_believed_and_what_can_be_is_made_again():
    rows = flips.flips(60)
    assert sum(row[1] for row in rows) == 60
    assert all(row[1] for row in rows)
    assert flips.whole(rows), rows
