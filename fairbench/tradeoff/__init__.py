"""The trade-off of error and fairness over all finished runs of a data set."""
