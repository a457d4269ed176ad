"""Shows stored runs in MLflow: the files stay the truth."""
