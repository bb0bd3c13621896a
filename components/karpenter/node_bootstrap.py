"""How nodes of an EC2NodeClass boot: what is said to their kubelet, and their user data."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import Any, NotRequired, TypedDict

from capacity.settings.eks_nodes import MOST_USER_DATA, Kubelet, user_data_problem
from capacity.values.errors import SettingsProblem
from components.shared_args import checked_options, refuse


class KubeletArgs(TypedDict):
    """Kubelet settings; bounds are those of Kubelet in the settings. A field that is left out keeps the image's value."""

    max_pods: NotRequired[int | None]
    """Maximum pods per node. Default: as many as its network interfaces have addresses for."""

    pods_per_core: NotRequired[int | None]
    """Maximum pods per vCPU, only on AL2023. Default: no limit."""

    kube_reserved: NotRequired[dict[str, str]]
    """Resources reserved for the kubelet and the container runtime, by cpu, memory, ephemeral-storage and pid. Default: what the image
    computes."""

    system_reserved: NotRequired[dict[str, str]]
    """Resources reserved for system processes. Default: none."""

    eviction_hard: NotRequired[dict[str, str]]
    """Hard eviction thresholds by signal, as an amount or a percentage; below one, pods are evicted at once. Default: the image's own."""

    eviction_soft: NotRequired[dict[str, str]]
    """Soft eviction thresholds by signal, as an amount or a percentage; below one, pods are evicted after a grace period. Default: none."""

    eviction_soft_grace_period: NotRequired[dict[str, str]]
    """The grace period of each signal in `eviction_soft`. Default: none."""

    image_gc_high_threshold_percent: NotRequired[int | None]
    """Disk usage in percent at which the kubelet starts to delete unused images. Default: the kubelet's, 85."""

    image_gc_low_threshold_percent: NotRequired[int | None]
    """Disk usage in percent at which it stops deleting them. Default: the kubelet's, 80."""

    cpu_cfs_quota: NotRequired[bool | None]
    """Whether the kubelet enforces containers' CPU limits. Default: it does."""


class NodeBootstrapArgs(TypedDict):
    """How nodes boot."""

    kubelet: NotRequired[KubeletArgs | None]
    """Kubelet settings of the nodes. Default: nothing."""

    user_data: NotRequired[str | None]
    """User data, merged with Karpenter's own: on AL2023 a NodeConfig, a script with #! or a MIME archive; on Bottlerocket TOML. Default:
    none."""


def check_bootstrap(where: str, ami: str, args: NodeBootstrapArgs) -> None:
    """Raises ValueError, beginning with `where`, for what Karpenter, the image or EC2 would refuse."""
    kubelet, user_data = checked_options(f"{where}: kubelet", Kubelet, args.get("kubelet") or {}), args.get("user_data")
    if kubelet.pods_per_core is not None and ami.startswith("bottlerocket@"):
        refuse(
            where, SettingsProblem("kubelet.pods_per_core", str(kubelet.pods_per_core), "Bottlerocket has no such setting", "leave it out")
        )
    if user_data is None:
        return
    if len(user_data) > MOST_USER_DATA:
        refuse(where, SettingsProblem("user_data", f"{len(user_data)} characters", f"at most {MOST_USER_DATA}", "shorten it"))
    if problem := user_data_problem(ami, user_data):
        refuse(where, SettingsProblem("user_data", "", problem, "write it in a form of the image's family"))


_FIELDS = {
    "max_pods": "maxPods",
    "pods_per_core": "podsPerCore",
    "kube_reserved": "kubeReserved",
    "system_reserved": "systemReserved",
    "eviction_hard": "evictionHard",
    "eviction_soft": "evictionSoft",
    "eviction_soft_grace_period": "evictionSoftGracePeriod",
    "image_gc_high_threshold_percent": "imageGCHighThresholdPercent",
    "image_gc_low_threshold_percent": "imageGCLowThresholdPercent",
    "cpu_cfs_quota": "cpuCFSQuota",
}
"""The fields of a kubelet as EC2NodeClass spells them."""


def bootstrap_spec(args: NodeBootstrapArgs) -> dict[str, Any]:
    """The fields of an EC2NodeClass's spec. What is empty is left out."""
    given: dict[str, Any] = {**(args.get("kubelet") or {})}
    kubelet = {_FIELDS[name]: value for name, value in given.items() if value is not None and value != {}}
    user_data = args.get("user_data")
    return {**({"kubelet": kubelet} if kubelet else {}), **({} if user_data is None else {"userData": user_data})}
