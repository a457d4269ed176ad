"""The results folder: cells, runs and data, and the only code that knows where they lie."""
