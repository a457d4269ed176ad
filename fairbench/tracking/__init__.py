"""MLflow as a view of the stored runs: one importer, the database it writes, the UI."""
