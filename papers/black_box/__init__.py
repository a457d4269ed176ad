"""CIFAR-100 and SVHN classifiers as black boxes: what Figures 2.2-2.8 of the thesis ask."""
