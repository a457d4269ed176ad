"""Group metrics of a classifier when few of its predictions have a label (Ji et al. 2020)."""
