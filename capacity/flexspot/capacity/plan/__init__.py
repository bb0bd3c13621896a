"""Builds a plan from settings, or reports every problem of the settings."""
