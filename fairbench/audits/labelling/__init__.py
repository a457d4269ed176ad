"""Active labelling: which row to label next, and a file of labels that survives a crash."""
