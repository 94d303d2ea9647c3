"""Offline rendering: the real function over files, one call or a whole simulated control plane."""
