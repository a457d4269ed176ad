"""Finished runs in MLflow, which shows what the files hold: the files stay the truth.

`importer` logs runs, `metrics` names what is logged, `database` talks to MLflow in a process of its
own, and `model_evaluator` serves `mlflow.models.evaluate`. Begin with `importer`.
"""
