"""Two classifiers' gaps compared on the same rows: numbers, conclusions, terminal, page, JSON."""
