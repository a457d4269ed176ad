"""Tables and figures made from metric tables alone."""
