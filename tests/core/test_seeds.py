"""Random generators: stable, keyed by purpose alone, independent of one another."""

import numpy as np

from fairbench.core.arrays import integer_seed, rng


def test_streams_are_the_same_on_every_machine_and_in_every_version():
    for _ in range(2):  # each call starts its stream anew
        drawn = rng(0, "split", "adult", 3).integers(2**32, size=3)
        np.testing.assert_array_equal(drawn, [3251520424, 3090825590, 3646162163])


def test_every_part_of_the_key_matters():
    keys = [
        (0, "fit", "adult", 1, 2),
        (1, "fit", "adult", 1, 2),
        (0, "predict", "adult", 1, 2),
        (0, "fit", "german", 1, 2),
        (0, "fit", "adult", 2, 1),
        (0, "fit", "adult", 12),
        (0, "fit", "adult", "1", 2),
        (0, "fit", "adult", 1),
        (0, "fit", "adult1", 2),
        (0, "fitadult", 1, 2),
    ]
    assert len({rng(*key).integers(2**63) for key in keys}) == len(keys)


def test_integer_seeds_have_31_bits_and_advance_the_generator():
    generator = rng(0, "fit")
    seeds = [integer_seed(generator) for _ in range(1000)]
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    assert len(set(seeds)) == 1000
    assert max(seeds) > 2**30
