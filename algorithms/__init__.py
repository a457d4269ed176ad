"""What is compared: learners, interventions, and methods made of fitters and readings."""
