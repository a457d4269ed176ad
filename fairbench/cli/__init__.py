"""The command line of runs and sweeps: jobs, launchers, progress, summaries, mistaken words."""
