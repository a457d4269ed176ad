"""The two cost matrices of CIFAR-100 (thesis 3.6.2, Figure 3.5): some mistakes are dearer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SUPERCLASSES = """
beaver dolphin otter seal whale
aquarium_fish flatfish ray shark trout
orchid poppy rose sunflower tulip
bottle bowl can cup plate
apple mushroom orange pear sweet_pepper
clock keyboard lamp telephone television
bed chair couch table wardrobe
bee beetle butterfly caterpillar cockroach
bear leopard lion tiger wolf
bridge castle house road skyscraper
cloud forest mountain plain sea
camel cattle chimpanzee elephant kangaroo
fox porcupine possum raccoon skunk
crab lobster snail spider worm
baby boy girl man woman
crocodile dinosaur lizard snake turtle
hamster mouse rabbit shrew squirrel
maple_tree oak_tree palm_tree pine_tree willow_tree
bicycle bus motorcycle pickup_truck train
lawn_mower rocket streetcar tank tractor
"""
_PEOPLE = ("baby", "boy", "girl", "man", "woman")
DEAR = 10.0  # what an expensive mistake costs, where another costs 1


def superclasses(classes: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the code of each class's superclass, 0 to 19, (C,)."""
    lines = SUPERCLASSES.strip().splitlines()
    place = {name: i for i, line in enumerate(lines) for name in line.split()}
    return np.array([place[name] for name in classes])


def superclass_costs(classes: tuple[str, ...], dear: float = DEAR) -> NDArray[np.float64]:
    """Return (C, C) costs: 1 for a mistake within a superclass, `dear` for one across."""
    code = superclasses(classes)
    costs = np.where(code[:, None] == code, 1.0, dear)
    np.fill_diagonal(costs, 0)
    return costs


def human_costs(classes: tuple[str, ...], dear: float = DEAR) -> NDArray[np.float64]:
    """Return (C, C) costs: `dear` where a person is taken for what is none, 1 for the rest."""
    person = np.isin(classes, _PEOPLE)
    costs = np.where(person[:, None] & ~person, dear, 1.0)
    np.fill_diagonal(costs, 0)
    return costs


def person_costs(classes: tuple[str, ...], dear: float = DEAR) -> NDArray[np.float64]:
    """Return (C, C) costs: `dear` for every mistake about a person, other persons included."""
    person = np.isin(classes, _PEOPLE)
    costs = np.where(person[:, None], dear, np.ones((len(classes), len(classes))))
    np.fill_diagonal(costs, 0)
    return costs
