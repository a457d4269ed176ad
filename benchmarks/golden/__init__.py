"""The golden comparison: what the frozen commit answers, and that today's tree answers the same."""
