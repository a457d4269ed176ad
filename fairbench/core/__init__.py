"""Basic tools: errors, checks of values, seeds, fingerprints, the version."""
