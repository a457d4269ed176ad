"""The coverage battery: how often each printed interval holds the truth, where the truth is known.

``make coverage`` runs all of it and writes docs/coverage.md.
"""
