"""Readers of clusters, buckets and access to them, of Pulumi's providers, Config Connector and ACK; and of IAM documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.policies.inventory import cloud_resources as views
from flexspot.policies.inventory.cloud_resources import Holder, IamDocument, IamGrant
from flexspot.policies.values.field import Field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.policies.inventory.reading.source import ObjectSource


_PULUMI: dict[tuple[str, str], type[views.CloudResource]] = {
    ("aws:eks", "Cluster"): views.EksClusterView,
    ("aws:s3", "Bucket"): views.S3BucketView,
    ("aws:s3", "BucketV2"): views.S3BucketView,
    ("aws:s3", "BucketAcl"): views.BucketAccess,
    ("aws:s3", "BucketAclV2"): views.BucketAccess,
    ("aws:s3", "BucketPolicy"): views.BucketAccess,
    ("aws:s3", "BucketPublicAccessBlock"): views.BucketAccess,
    ("gcp:container", "Cluster"): views.GkeClusterView,
    ("gcp:storage", "Bucket"): views.GcsBucketView,
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
    ("container.cnrm.cloud.google.com", "ContainerCluster"): views.GkeClusterView,
    ("eks.services.k8s.aws", "Cluster"): views.EksClusterView,
    ("storage.cnrm.cloud.google.com", "StorageBucket"): views.GcsBucketView,
}
"""Kinds whose `spec` has the fields of the provider's resource, except for a few names of ACK's."""


def read(source: ObjectSource) -> Iterator[views.CloudResource]:
    """Yield the view of such a resource."""
    kind = (source.family, source.kind)
    if kind in _PULUMI:
        yield _PULUMI[kind](source.identity, True, False, "", source.fields)
    elif kind in _KUBERNETES:
        yield _KUBERNETES[kind](source.identity, True, source.fields.partial, "spec.", source.fields.at("spec"))


_NO_HOLDER = Field(None)

# The field of the document, its holder, and the field that names the holder.
_DOCUMENTS: dict[tuple[str, str], tuple[tuple[str, Holder, str], ...]] = {
    ("aws:iam", "Policy"): (("policy", Holder.MANAGED, ""),),
    ("aws:iam", "RolePolicy"): (("policy", Holder.ROLE, "role"),),
    ("aws:iam", "UserPolicy"): (("policy", Holder.USER, "user"),),
    ("aws:iam", "GroupPolicy"): (("policy", Holder.GROUP, "group"),),
    ("aws:iam", "Role"): (("assumeRolePolicy", Holder.TRUST, ""),),
    ("iam.services.k8s.aws", "Policy"): (("spec.policyDocument", Holder.MANAGED, ""),),
    ("iam.services.k8s.aws", "Role"): (("spec.assumeRolePolicyDocument", Holder.TRUST, ""),),
}

_ATTACHMENTS = frozenset({"RolePolicyAttachment", "UserPolicyAttachment", "GroupPolicyAttachment", "PolicyAttachment"})
_GCP = frozenset({"gcp:projects", "gcp:folder", "gcp:organizations"})


def read_iam(source: ObjectSource) -> Iterator[IamDocument | IamGrant]:
    """Yield one view for each document, and one for each predefined role or policy that is granted."""
    yield from _documents(source)
    kind = (source.family, source.kind)
    if source.family in _GCP and source.kind in {"IAMMember", "IAMBinding"}:
        yield _of_google(source, "role", source.fields)
    elif kind == ("iam.cnrm.cloud.google.com", "IAMPolicyMember"):
        yield _of_google(source, "spec.role", source.fields.at("spec"))
    elif source.family == "aws:iam" and source.kind in _ATTACHMENTS:
        yield IamGrant(*source.seen, IamGrant.AWS, "policyArn", source.fields.at("policyArn"), (), True)
    elif kind == ("aws:iam", "Role"):
        for place, arn in source.fields.at("managedPolicyArns").parts().named:
            yield IamGrant(*source.seen, IamGrant.AWS, f"managedPolicyArns[{place}]", arn, (), True)
    elif kind == ("iam.services.k8s.aws", "Role"):
        for place, arn in source.fields.at("spec", "policies").parts().named:
            yield IamGrant(*source.seen, IamGrant.AWS, f"spec.policies[{place}]", arn, (), True)


def _documents(source: ObjectSource) -> Iterator[IamDocument]:
    kind = (source.family, source.kind)
    for path, holder, named in _DOCUMENTS.get(kind, ()):
        document = source.fields.at(*path.split("."))
        if not document.absent:
            yield IamDocument(*source.seen, path, document, holder, source.fields.at(named) if named else _NO_HOLDER)
    if kind == ("aws:iam", "Role"):
        for place, inline in source.fields.at("inlinePolicies").parts().named:
            yield IamDocument(*source.seen, f"inlinePolicies[{place}].policy", inline.at("policy"), Holder.ROLE, _role_name(source, "name"))
    elif kind == ("iam.services.k8s.aws", "Role"):
        for key, inline in source.fields.at("spec", "inlinePolicies").parts().named:
            yield IamDocument(*source.seen, f'spec.inlinePolicies["{key}"]', inline, Holder.ROLE, _role_name(source, "spec", "name"))


def _role_name(source: ObjectSource, *path: str) -> Field:
    """Return the name that the inline documents of one role share, even if the role has no written name."""
    written = source.fields.at(*path)
    return Field(f"{source.identity} as it will be named") if written.absent else written


def _of_google(source: ObjectSource, where: str, fields: Field) -> IamGrant:
    members = fields.at("members").parts()
    one = fields.at("member")
    listed = members.fields if one.absent else (one,)
    return IamGrant(*source.seen, IamGrant.GCP, where, fields.at("role"), listed, members.complete)
