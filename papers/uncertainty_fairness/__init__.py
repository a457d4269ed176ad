"""Uncertainty as a Fairness Measure (Kuzucu, Cheong, Gunes and Kalkan, JAIR 2024)."""
