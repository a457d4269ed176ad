"""Exact fits of many cross-validations of one data set at once."""
