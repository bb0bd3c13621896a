"""The fields that Kubernetes objects may have, as data: fields.json, which `python -m policies.field_schemas.collect` writes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "fields.json"

KINDS, TYPES = "kinds", "types"
"""The two parts of the file: the type of each `apiVersion/kind`, and the fields of each type.

A type is a name of TYPES, an object of fields with their types, or null for what may hold anything. A list is as its elements are.
"""


@cache
def fields() -> dict[str, Any]:
    """The file, read when the first object needs it."""
    return json.loads(FILE.read_text(encoding="utf-8"))
