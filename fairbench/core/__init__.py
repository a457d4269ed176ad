"""What everything else rests on: errors, checks of values, seeds, fingerprints, the version."""
