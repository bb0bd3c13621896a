"""Security options of a GKE cluster beyond its defaults: customer-managed keys, monitoring and admission of images.

Nothing is enabled unless requested. Keys and policies must already exist in the project, and `up` would fail without them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.values.names import GCP_KEY

KmsKey = Annotated[str, Field(pattern=GCP_KEY)]


class SecurityPosture(StrEnum):
    """GKE's monitoring of workloads. BASIC reports insecure pod settings and security bulletins.

    The API also has ENTERPRISE, which it calls no longer supported (discovery document of container/v1, revision 20260818).
    """

    DISABLED = "disabled"
    BASIC = "basic"


class VulnerabilityScanning(StrEnum):
    """GKE's vulnerability scans of running images. ENTERPRISE is Advanced Vulnerability Insights.

    The API also has BASIC, which it calls no longer supported (discovery document of container/v1, revision 20260818).
    """

    DISABLED = "disabled"
    ENTERPRISE = "enterprise"


class BinaryAuthorization(StrEnum):
    """Restriction of images. PROJECT_SINGLETON_POLICY_ENFORCE enforces the project's Binary Authorization policy."""

    DISABLED = "disabled"
    PROJECT_SINGLETON_POLICY_ENFORCE = "project_singleton_policy_enforce"


class GkeSecurity(DescribedRecord):
    """Security options of a GKE cluster beyond its defaults."""

    secrets_kms_key: KmsKey | None = None
    """Name of a Cloud KMS key in the region that encrypts Secrets in the cluster's database. GKE's service agent must first be allowed
    to use it. If you remove the setting later, the cluster keeps the key. Default: only Google's own keys."""

    boot_disk_kms_key: KmsKey | None = None
    """Name of a Cloud KMS key in the region that encrypts the boot disks of all nodes: the controllers' nodes, pools that name no other
    key, and nodes that GKE provisions by itself. Compute Engine's service agent must first be allowed to use it. A different key
    replaces the cluster and the pools. Default: Google's own keys."""

    posture: SecurityPosture | None = None
    """Reports of GKE's security posture about insecure pod settings and security bulletins: `disabled` or `basic`. Default: not set; GKE
    decides."""

    vulnerability_scanning: VulnerabilityScanning | None = None
    """Vulnerability scans of running images: `disabled`, or `enterprise`, whose end Google announced for 2026-06-16. Default: not set;
    GKE decides."""

    binary_authorization: BinaryAuthorization | None = None
    """Images that may start. `disabled`: all of them. `project_singleton_policy_enforce`: only those that the project's Binary
    Authorization policy admits, including the images of Kueue and of every team. Default: GKE decides, and admits all of them."""
