"""The battery of statements: how often anything that a page says of people is wrong.

Populations of every kind of audit, of which the truth is known, are audited again and again; each
finding of each audit is judged. ``make statements`` runs all of it and writes docs/statements.md.
"""
