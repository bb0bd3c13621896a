"""JobSet's controller by its chart: several Jobs as one, which Kueue admits as one and which begin anew together."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import Any, NotRequired, TypedDict

import pulumi

from capacity.catalog.versions import Chart, shipped_versions
from capacity.settings.controllers import JobSetSize
from capacity.values.quantities import milli_quantity
from components.helm_release import chart_release
from components.shared_args import checked_options

NAMESPACE = "jobset-system"
CHART = "oci://registry.k8s.io/jobset/charts/jobset"
"""Source: charts/jobset/README.md of sigs.k8s.io/jobset v0.12.0."""

IMAGE = "registry.k8s.io/jobset/jobset"
_CPU_LIMIT = 2000


class JobSetControllerArgs(TypedDict):
    """Arguments of JobSetController; the sizes and their defaults are those of `controllers.jobset` in settings."""

    version: NotRequired[str | None]
    """Version of the chart and image. Default: that of capacity/catalog/versions.yaml."""

    replicas: NotRequired[int]
    """Replicas; one leads, and all answer webhooks. Default: 2, of which one is always kept."""

    cpu_milli: NotRequired[int]
    """CPU request of each replica, in thousandths of a vCPU; the limit is 2 vCPU, or the request if larger. Default: 100."""

    memory_mib: NotRequired[int]
    """Memory request and limit of each replica, in MiB. Default: 256."""

    node_selector: NotRequired[dict[str, str]]
    """Labels of the controllers' nodes. Default: none, any node."""

    tolerations: NotRequired[list[dict[str, str]]]
    """Tolerations for the taints of these nodes. Default: none."""


class JobSetController(pulumi.ComponentResource):
    """JobSet from its released chart, with its CRD: once the CRD exists, Kueue admits JobSets as it admits Jobs.

    A running Kueue looks for the CRD every two minutes (0.19.0); until it finds it, it admits the Jobs of a set individually.

    While no replica answers its webhooks, no JobSet and no pod of one can be created; other pods are not affected. Helm keeps the CRD, and
    the JobSets with it, when the release is deleted. Raises ValueError for sizes out of bounds.
    """

    version: pulumi.Output[str]
    """The version that is installed."""

    def __init__(self, name: str, args: JobSetControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"JobSetController {name}"
        size = checked_options(where, JobSetSize, args)
        version = size.version or shipped_versions().chart(Chart.JOBSET).version
        super().__init__("flexspot:index:JobSetController", name, {**args}, opts)
        release = chart_release(
            f"{name}-release",
            CHART,
            version,
            _values(args, size, version),
            pulumi.ResourceOptions(parent=self),
            namespace=NAMESPACE,
            create_namespace=True,
        )
        self.version = release.version.apply(lambda known: known or version)
        self.register_outputs({"version": self.version})


def _values(args: JobSetControllerArgs, size: JobSetSize, version: str) -> dict[str, Any]:
    """Values of the chart: charts/jobset/values.yaml of JobSet 0.12.0."""
    placement = {"nodeSelector": args.get("node_selector"), "tolerations": args.get("tolerations")}
    return {
        # In the module the chart names a moving image of the staging registry. What runs is written here.
        "image": {"repository": IMAGE, "tag": f"v{version.removeprefix('v')}", "pullPolicy": "IfNotPresent"},
        "controller": {
            "replicas": size.replicas,
            "podDisruptionBudget": {"enabled": size.replicas > 1, "minAvailable": 1},
            "resources": {
                "requests": {"cpu": size.cpu, "memory": size.memory},
                # The chart's own limit of cpu, written down because Helm would keep it under a larger request.
                "limits": {"cpu": milli_quantity(max(_CPU_LIMIT, size.cpu_milli)), "memory": size.memory},
            },
            **{field: value for field, value in placement.items() if value},
        },
    }
