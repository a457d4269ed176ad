"""Finished runs in MLflow, which shows what the files hold: the files stay the truth.

`importer` asks MLflow, logs runs and serves the UI, `database` is MLflow's own on this machine,
`entries` says what is logged and shown and under which names, and `model_evaluator` serves
`mlflow.models.evaluate`. Begin with `importer`.
"""
