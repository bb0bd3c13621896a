"""The data source aws_eks_addon_version as the provider answers it, over what a made-up EKS has of add-ons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDON_TOKEN = "aws:eks/getAddonVersion:getAddonVersion"  # noqa: S105 -- a function's

DEFAULTS: dict[tuple[str, str], str] = {
    ("aws-ebs-csi-driver", "1.34"): "v1.60.1-eksbuild.1",
    ("aws-ebs-csi-driver", "1.35"): "v1.66.0-eksbuild.1",
    ("coredns", "1.35"): "v1.14.3-eksbuild.3",
}
"""The default version of an add-on for a version of Kubernetes."""


class NoAddonVersionError(ValueError):
    """EKS has no version of an add-on for a version of Kubernetes."""


def addon_version(args: Mapping[str, Any]) -> dict[str, Any]:
    """The answer. As in the provider's addon_version_data_source.go it is the version whose compatibility says `defaultVersion`, and the
    run ends where there is none. Raises NoAddonVersionError then, and for the most recent one, which the program does not ask for."""
    name, kubernetes = args["addonName"], args["kubernetesVersion"]
    version = DEFAULTS.get((name, kubernetes))
    if version is None or args.get("mostRecent"):
        raise NoAddonVersionError(f"reading EKS Add-On version info ({name}, {kubernetes}): couldn't find resource")
    return {**args, "id": name, "version": version, "mostRecent": False}
