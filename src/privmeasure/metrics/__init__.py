"""How far apart two data sets are. Compares real with synthetic data: the results are confidential."""

from privmeasure.metrics.wasserstein import Distance, sliced_wasserstein, wasserstein
from privmeasure.transport import bounded_lipschitz

__all__ = ["Distance", "bounded_lipschitz", "sliced_wasserstein", "wasserstein"]
