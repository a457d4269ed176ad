"""How often, on which rows and with which loss a method has a learner fitted."""
