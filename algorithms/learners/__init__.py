"""Learners: one a file, each a frozen dataclass that makes scikit-learn compatible estimators."""
