"""Which row to label next: Beta posteriors of groups, rewards of a label, and strategies."""
