"""The Pulumi program: from a stack's settings through the plan to resources."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pulumi

from capacity.plan.build import build_plan
from capacity.plan.stack_plan import price_book_of
from capacity.settings.platform import EksSettings, GkeSettings
from capacity.settings.stack_file import parse_settings
from infra.checkout import CHECKOUT
from infra.local import declare_local
from infra.monthly_cost import declare_monthly_cost

KUBECONFIG_VARIABLE = "FLEXSPOT_LAB_KUBECONFIG"
"""The lab that a `cloud: local` stack is deployed to, by the path of its kubeconfig. Default: that of the lab called default."""


def main() -> None:
    """Declares the resources of the stack that is being deployed. Raises SettingsError for settings that cannot work."""
    value: Any = pulumi.Config("flexspot").require_object("platform")
    source = f"Pulumi.{pulumi.get_stack()}.yaml"
    settings = parse_settings(value, source)
    prices = price_book_of(settings, CHECKOUT / "stacks", source)
    plan = build_plan(settings, source, prices)
    if isinstance(settings, GkeSettings):
        # A cloud's SDK takes seconds to load: only its own stacks wait for it.
        from infra.gke import declare_gke  # noqa: PLC0415

        declare_gke(plan, settings)
        declare_monthly_cost(plan, prices)
    elif isinstance(settings, EksSettings):
        from infra.eks import declare_eks  # noqa: PLC0415

        declare_eks(plan, settings)
        declare_monthly_cost(plan, prices)
    else:
        # Fake nodes cost nothing.
        declare_local(plan, lab_kubeconfig())


def lab_kubeconfig() -> Path:
    """Where the local stack's API server is."""
    return Path(os.environ.get(KUBECONFIG_VARIABLE) or CHECKOUT / ".lab" / "default" / "kubeconfig")
