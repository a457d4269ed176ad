"""The colours of every figure."""

# Okabe and Ito's, distinguishable with every common colour blindness.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", GREY, "black")
