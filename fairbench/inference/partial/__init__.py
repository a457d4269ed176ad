"""What cannot be known: bounds that no number of rows makes narrower."""
