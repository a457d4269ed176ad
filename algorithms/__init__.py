"""What is compared: learners, fairness interventions, and methods with their fitters and losses."""
