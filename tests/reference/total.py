"""The number of rows with noise that a test hands in, in the place of `mechanisms.base.public_total`."""

import numpy as np

from privmeasure.mechanisms import base
from privmeasure.noise.draws import law_of
from reference.drawn import recorded


def noisy_total(add_noise, total, privacy, budget, law, key):
    """Return what `public_total` does, with the noise of `add_noise` at part 0, level 0, at the scale that it draws."""
    with recorded() as drawn:
        released, rows_are = base.public_total(total, privacy, budget, law, key)
    if rows_are == "public":
        return released, rows_are
    ((place, scale),) = drawn.scales().items()
    assert place == (0, 0)
    return int(add_noise(np.array([total]), 0, law_of(law, scale), key, 0, 1)[0]), "released"
