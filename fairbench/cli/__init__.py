"""The command line: verbs and their options, runs and sweeps, progress and messages."""
