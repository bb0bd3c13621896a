"""Clusters, buckets and what says who may use these: of Pulumi's providers, of Config Connector and of ACK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies import cloud_resources as views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.reading.source import Source

_PULUMI: dict[tuple[str, str], type[views.CloudResource]] = {
    ("aws:eks", "Cluster"): views.EksCluster,
    ("aws:s3", "Bucket"): views.S3Bucket,
    ("aws:s3", "BucketV2"): views.S3Bucket,
    ("aws:s3", "BucketAcl"): views.BucketAccess,
    ("aws:s3", "BucketAclV2"): views.BucketAccess,
    ("aws:s3", "BucketPolicy"): views.BucketAccess,
    ("aws:s3", "BucketPublicAccessBlock"): views.BucketAccess,
    ("gcp:container", "Cluster"): views.GkeCluster,
    ("gcp:storage", "Bucket"): views.GcsBucket,
    ("gcp:storage", "BucketACL"): views.BucketAccess,
    ("gcp:storage", "BucketAccessControl"): views.BucketAccess,
    ("gcp:storage", "BucketIAMBinding"): views.BucketAccess,
    ("gcp:storage", "BucketIAMMember"): views.BucketAccess,
    ("gcp:storage", "DefaultObjectACL"): views.BucketAccess,
    ("gcp:storage", "DefaultObjectAccessControl"): views.BucketAccess,
    ("gcp:storage", "ManagedFolderIamBinding"): views.BucketAccess,
    ("gcp:storage", "ManagedFolderIamMember"): views.BucketAccess,
    ("pulumi:providers", "aws"): views.AwsProvider,
}

_KUBERNETES: dict[tuple[str, str], type[views.CloudResource]] = {
    ("container.cnrm.cloud.google.com", "ContainerCluster"): views.GkeCluster,
    ("eks.services.k8s.aws", "Cluster"): views.EksCluster,
    ("storage.cnrm.cloud.google.com", "StorageBucket"): views.GcsBucket,
}
"""Their `spec` has the fields of the provider's resource, but for a few names of ACK's."""


def read(source: Source) -> Iterator[views.CloudResource]:
    """The one view of such a resource."""
    kind = (source.family, source.kind)
    if kind in _PULUMI:
        yield _PULUMI[kind](source.identity, True, False, "", source.fields)
    elif kind in _KUBERNETES:
        yield _KUBERNETES[kind](source.identity, True, source.fields.partial, "spec.", source.fields.at("spec"))
