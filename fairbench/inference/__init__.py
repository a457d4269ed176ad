"""Statistical inference: posteriors and intervals from counts, scores and labels."""
