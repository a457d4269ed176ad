"""Gates of predictions that somebody brings: what is asked, by options or a policy, and judged.

Conditions and verdicts are those of :mod:`fairbench.evaluation.gate`, which knows counts alone.
Begin with :func:`fairbench.audits.gate.verdict.gate`.
"""
