"""A document is what a command reports; it is written for a terminal, a page or a file."""
