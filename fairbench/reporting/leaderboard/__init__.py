"""The leaderboard: one page of what is best across many data sets, and how sure that is."""
