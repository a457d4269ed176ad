import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import entr

from fairbench.metrics.group_means import entropy_decomposition, variance_decomposition

SHAPES = st.tuples(st.integers(1, 12), st.integers(0, 6))
PROBABILITIES = arrays(np.float64, SHAPES, elements=st.floats(0, 1))
HARD = arrays(np.float64, SHAPES, elements=st.sampled_from([0.0, 1.0]))
deterministic = settings(derandomize=True, deadline=None)
BOTH = pytest.mark.parametrize("decompose", [variance_decomposition, entropy_decomposition])


@deterministic
@given(PROBABILITIES)
def test_predictive_variance_is_that_of_the_mean_probability(members):
    parts, mean = variance_decomposition(members), members.mean(axis=0)
    np.testing.assert_allclose(parts.predictive, 2 * mean * (1 - mean), atol=1e-12)
    assert (parts.predictive <= 0.5 + 1e-12).all()


@deterministic
@given(PROBABILITIES)
@example(np.array([[0.0], [5e-324]]))
def test_predictive_entropy_is_that_of_the_mean_probability(members):
    parts, mean = entropy_decomposition(members), members.mean(axis=0)
    np.testing.assert_allclose(parts.predictive, entr(mean) + entr(1 - mean), atol=1e-12)


@BOTH
@deterministic
@given(members=PROBABILITIES)
def test_parts_are_never_negative(decompose, members):
    parts = decompose(members)
    assert (parts.aleatoric >= 0).all()
    assert (parts.epistemic >= 0).all()


@BOTH
@deterministic
@given(members=PROBABILITIES, copies=st.integers(1, 12))
def test_identical_members_have_no_epistemic_part(decompose, members, copies):
    assert not decompose(np.repeat(members[:1], copies, axis=0)).epistemic.any()


@BOTH
@deterministic
@given(members=HARD)
def test_hard_members_have_no_aleatoric_part(decompose, members):
    assert not decompose(members).aleatoric.any()


@BOTH
@deterministic
@given(members=PROBABILITIES)
def test_two_classes_given_in_full_are_the_same(decompose, members):
    binary, full = decompose(members), decompose(np.stack([1 - members, members], axis=-1))
    np.testing.assert_allclose(full, binary, atol=1e-12)


@BOTH
def test_parts_of_three_classes_sum_to_those_of_the_mean(decompose):
    members = np.random.default_rng(0).dirichlet([0.5, 1, 2], size=(7, 100))
    mean = members.mean(axis=0)
    of_mean = mean * (1 - mean) if decompose is variance_decomposition else entr(mean)
    np.testing.assert_allclose(decompose(members).predictive, of_mean.sum(axis=-1))


def test_a_hand_computed_case():
    """P = 0.2, 0.6: aleatoric 2 (0.16 + 0.24) / 2, epistemic 2 * 0.2^2."""
    parts = variance_decomposition([[0.2], [0.6]])
    np.testing.assert_allclose([parts.aleatoric[0], parts.epistemic[0]], [0.4, 0.08])
