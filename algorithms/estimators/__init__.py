"""Models with scikit-learn's interface, written here where a library has none that will do."""
