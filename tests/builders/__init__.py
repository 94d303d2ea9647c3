"""Builders of the objects that tests start from: good defaults, one thing changed per test."""
