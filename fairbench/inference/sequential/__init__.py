"""Evidence and intervals that hold at every look, however often and whenever one looks."""
