"""Elliptical slice sampling of a posterior known in closed form."""

import numpy as np

from fairbench.inference.few_labels.sampler import (
    chain_effective_size,
    elliptical_slice,
)


def test_normal_likelihood_gives_the_conjugate_posterior():
    noise, observed = np.array([0.3, 1.0]), np.array([1.0, -2.0])
    generator = np.random.default_rng(0)

    def log_likelihood(state):
        return -(((state - observed) / noise) ** 2).sum(axis=1) / 2

    start = generator.standard_normal((200, 2))
    draws = elliptical_slice(log_likelihood, start, generator, warmup=50, keep=25, thin=8)
    assert draws.shape == (25, 200, 2)
    size = chain_effective_size(draws)
    assert 1000 < size <= 5000
    variance = 1 / (1 + 1 / noise**2)
    mean = variance * observed / noise**2
    flat = draws.reshape(-1, 2)
    assert (np.abs(flat.mean(axis=0) - mean) < 5 * np.sqrt(variance / size)).all()
    np.testing.assert_allclose(flat.var(axis=0), variance, rtol=0.15)
    assert abs(np.corrcoef(flat, rowvar=False)[0, 1]) < 5 / np.sqrt(size)
