"""Types of the fixtures with which tests create components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi

Make = Callable[[], pulumi.ComponentResource]

Register = Callable[[Callable[[], object]], Any]
"""Type of `register`: the resources that a function registers."""

Outputs = Callable[[Make], dict[str, Any]]
"""Type of `outputs`: the known outputs of a component by name."""

Refusal = Callable[[Callable[..., Any], str, Any], str]
"""Type of `refusal`: a component's error for a name and arguments."""
