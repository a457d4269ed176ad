"""The report: one page of everything that a results folder has, and its tables as files."""
