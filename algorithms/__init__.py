"""What is compared: learners, fairness interventions and uncertainty methods."""
