"""How AWS writes the ids of zones, which are the same zone in every account; its names are not."""

from __future__ import annotations

import re

_ZONE_ID = re.compile(r"[a-z]{3,5}\d+-az\d+")


def is_zone_id(zone: str) -> bool:
    """Whether a zone of AWS is written as its id, such as use1-az1."""
    return _ZONE_ID.fullmatch(zone) is not None
