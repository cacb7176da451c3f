"""Synthetic times with a known truth, for tests of statistics and verdicts."""

import numpy as np

NOISES = ("independent", "autocorrelated", "bimodal")


def noise(kind: str, n: int, rng: np.random.Generator, sd: float = 0.02) -> np.ndarray:
    """Relative noise of median 0 and standard deviation `sd`."""
    normal = rng.standard_normal(n)
    if kind == "independent":
        return sd * normal
    if kind == "autocorrelated":
        # AR(1), from its stationary distribution on.
        level, r, x = rng.standard_normal(), 0.8, []
        for step in (np.sqrt(1 - r * r) * normal).tolist():
            level = r * level + step
            x.append(level)
        return sd * np.array(x)
    # Two levels, each as often as the other: the hardest case for a median, which lies between them.
    assert kind == "bimodal"
    return sd * (0.95 * np.where(rng.random(n) < 0.5, 1, -1) + 0.312 * normal)


def times(kind: str, n: int, rng: np.random.Generator, *, level_ns: float = 1e5, sd: float = 0.02) -> np.ndarray:
    return level_ns * (1 + noise(kind, n, rng, sd))
