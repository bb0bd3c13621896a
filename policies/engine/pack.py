"""The policy pack as Pulumi's engine runs it."""

from __future__ import annotations

from pulumi_policy import EnforcementLevel, PolicyPack

from policies.engine.gate import Gate
from policies.engine.parent import end_with_parent

NAME = "flexspot"


def serve() -> None:
    """Serves the pack to the engine that started this process, until either is ended. The first line on stdout is the port."""
    end_with_parent()
    PolicyPack(
        name=NAME,
        policies=Gate().policies(),
        enforcement_level=EnforcementLevel.ADVISORY,
        description="Rules that keep GPU capacity on GKE and EKS finite, reserved for GPU work, and accounted for.",
        display_name="Flexspot",
    )
