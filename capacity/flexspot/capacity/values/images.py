"""Which images of containers become others tomorrow. Apart from `names`: the linter asks it, and loads no models of settings."""

from __future__ import annotations

MOVING_TAGS = ("latest", "main", "master", "nightly", "dev", "edge", "stable")
"""Tags of images that somebody moves: the pod that replaces an interrupted one might run another program."""


def how_it_moves(image: str) -> str:
    """What makes an image another one tomorrow; empty for one of a release or a digest."""
    if "@" in image:
        return ""
    # A colon before the last slash is that of a registry's port.
    _, colon, tag = image.rpartition("/")[2].partition(":")
    if colon and tag not in MOVING_TAGS:
        return ""
    return f"has the tag {tag}, which moves" if colon else "has neither tag nor digest, which means latest"
