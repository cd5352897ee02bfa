"""Before the noise: what will be measured, what it costs and what is guaranteed."""
