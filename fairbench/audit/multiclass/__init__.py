"""Predictions of three classes and more, audited: accuracy, calibration and cost by class."""
