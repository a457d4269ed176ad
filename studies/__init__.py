"""Small computations behind docs/findings.md, each run by ``python -m studies.NAME``."""
