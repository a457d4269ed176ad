"""Finished runs in MLflow, which shows what the files hold: the files stay the truth.

`importer` logs runs and serves the UI, `entries` says what is logged and under which names,
`database` talks to MLflow in a process of its own, and `model_evaluator` serves
`mlflow.models.evaluate`. Begin with `importer`.
"""
