"""Evidence and intervals that hold always, no matter how often you look."""
