"""What the function costs: `make bench` prints every number that the design promises, measured in one run."""
