"""Few labels (Ji, Smyth and Steyvers, NeurIPS 2020; Ji's thesis): ours beside theirs."""
