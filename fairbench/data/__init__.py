"""Data sets: what a loader returns, how raw files are found and read, how rows are split."""
