"""Uncertainty methods: each says what is fitted, and how predictions are read off it."""
