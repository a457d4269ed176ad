"""Numbers that papers printed, beside ours: the mapping, the matching, verdicts and tables."""
