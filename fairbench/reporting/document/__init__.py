"""A document is what a command has to tell; renderers write it for a terminal, a page or a file."""
