"""Labels where they help most: which row to label next, and a state file that loses none."""
