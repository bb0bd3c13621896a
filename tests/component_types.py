"""Types of the fixtures with which tests make components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi

Make = Callable[[], pulumi.ComponentResource]

Register = Callable[[Callable[[], object]], Any]
"""Of `register`: what a function registers that makes components."""

Outputs = Callable[[Make], dict[str, Any]]
"""Of `outputs`: the known outputs of a component by name."""

Refusal = Callable[[Callable[..., Any], str, Any], str]
"""Of `refusal`: what a component says, of a name and arguments, when it refuses them."""
