"""The number of rows with noise that a test hands in, in the place of `mechanisms.base.public_total`."""

import numpy as np

from privmeasure.mechanisms import base
from privmeasure.noise.draws import law_of


def noisy_total(add_noise, total, privacy, budget, law, key):
    """Return what `public_total` does, with the noise of `add_noise` at part 0, level 0."""
    if privacy.rows_are_public:
        return base.public_total(total, privacy, budget, law, key)
    return int(add_noise(np.array([total]), 0, law_of(law, privacy.scale(budget)), key, 0, 1)[0]), "released"
