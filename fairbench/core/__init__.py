"""Basic tools: errors, checks of values, seeds, fingerprints, the version."""

VERSION = "0.1.0"
