"""Where the project's files are, whatever folder a command is called from."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
"""The checkout, to which stack files, labs and links to tools belong."""
