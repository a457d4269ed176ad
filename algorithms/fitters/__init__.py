"""What cells compute: how often, on which rows and with which loss a learner is fitted."""
