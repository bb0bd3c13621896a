"""The data source aws_eks_addon_version as the provider answers it, with invented EKS add-on versions."""

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
    """Raised when EKS has no version of an add-on for a Kubernetes version."""


def addon_version(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the default version of an add-on.

    Like the provider's addon_version_data_source.go, choose the version whose compatibility says `defaultVersion`. Raises
    NoAddonVersionError if there is none, or if the most recent version is requested, which the program never does.
    """
    name, kubernetes = args["addonName"], args["kubernetesVersion"]
    version = DEFAULTS.get((name, kubernetes))
    if version is None or args.get("mostRecent"):
        raise NoAddonVersionError(f"reading EKS Add-On version info ({name}, {kubernetes}): couldn't find resource")
    return {**args, "id": name, "version": version, "mostRecent": False}
