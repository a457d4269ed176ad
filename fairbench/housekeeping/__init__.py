"""Looking after a results folder: listing runs, removing what none refers to, verifying cells."""
