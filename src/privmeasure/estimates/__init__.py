"""One noisy tree becomes masses: best linear estimates, the passes up and down, the closest measure."""
