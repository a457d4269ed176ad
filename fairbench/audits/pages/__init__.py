"""Audits as documents: of one classifier, of two, of several classes, and while labelling."""
