"""The experiments of Barrainkua, Gordaliza, Lozano and Quadrianto (AISTATS 2024) on German."""
