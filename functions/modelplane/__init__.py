"""Modelplane: a fleet control plane for AI inference, as a Crossplane composition function."""

__version__ = "0.1.0"
