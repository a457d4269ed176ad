"""FairlyUncertain (Rosenblatt and Witter): what its tables rest on, beside their numbers."""
