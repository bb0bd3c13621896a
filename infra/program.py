"""The Pulumi program: from a stack's settings through the plan to resources."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pulumi

from capacity.planning import build_plan
from capacity.settings import Platform
from capacity.stack_file import parse_settings
from infra.local import declare_local

CHECKOUT = Path(__file__).resolve().parents[1]

KUBECONFIG_VARIABLE = "FLEXSPOT_LAB_KUBECONFIG"
"""The lab that a `cloud: local` stack is deployed to, by the path of its kubeconfig. Default: that of the lab called default."""


def main() -> None:
    """Declares the resources of the stack that is being deployed. Raises SettingsError for settings that cannot work."""
    value: Any = pulumi.Config("flexspot").require_object("platform")
    source = f"Pulumi.{pulumi.get_stack()}.yaml"
    settings = parse_settings(value, source)
    if settings.cloud is not Platform.LOCAL:
        raise pulumi.RunError(f"{source}: cloud {settings.cloud} cannot be declared yet; allowed: {Platform.LOCAL}")
    declare_local(build_plan(settings, source), lab_kubeconfig())


def lab_kubeconfig() -> Path:
    """Where the local stack's API server is."""
    return Path(os.environ.get(KUBECONFIG_VARIABLE) or CHECKOUT / ".lab" / "default" / "kubeconfig")
