"""A chart as the platform installs each: pinned, waited for, and taken back whole where it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs, RepositoryOptsArgs

from components.cloud_names import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pulumi

_TIMEOUT_SECONDS = 600


def chart_release(  # noqa: PLR0913 -- each is one of Helm's own options
    name: str,
    chart: str,
    version: str,
    values: Mapping[str, Any],
    opts: pulumi.ResourceOptions,
    *,
    repository: str | None = None,
    namespace: str = NAMESPACE,
    create_namespace: bool | None = None,
    skip_crds: bool | None = None,
) -> Release:
    """A release named after its chart, of which `chart` is the name in `repository` or else the whole address (oci://...).

    A release that fails half-way is taken back, so that the next try begins clean; it fails after ten minutes.
    """
    return Release(
        name,
        ReleaseArgs(
            chart=chart,
            version=version,
            repository_opts=None if repository is None else RepositoryOptsArgs(repo=repository),
            name=chart.rpartition("/")[2],
            namespace=namespace,
            create_namespace=create_namespace,
            atomic=True,
            timeout=_TIMEOUT_SECONDS,
            skip_crds=skip_crds,
            values=values,
        ),
        opts,
    )
