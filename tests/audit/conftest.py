"""What the tests of audits share."""

import pytest

from fairbench.audit import labels_needed


@pytest.fixture(autouse=True)
def few_worlds(monkeypatch):
    """Simulate further labels 3 times, not 40: what most of an audit's seconds go into."""
    monkeypatch.setattr(labels_needed, "WORLDS", 3)
