"""Metrics as pure functions of counts or of arrays; nothing here fits, reads or writes."""
