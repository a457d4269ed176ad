"""What can be said about an algorithm from counts, scores and labels: posteriors, not points."""
