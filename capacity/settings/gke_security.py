"""How a cluster of GKE is secured beyond what every cluster here has: keys of one's own, and what GKE watches and lets in.

Nothing of it is on unless it is asked for: keys and policies are somebody's in the project already, and an `up` would fail without them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import DescribedRecord
from capacity.values.names import GCP_KEY

KmsKey = Annotated[str, Field(pattern=GCP_KEY)]


class SecurityPosture(StrEnum):
    """What GKE looks at in the cluster's workloads. BASIC tells of weak settings of pods and of security bulletins.

    The API has ENTERPRISE too, which it calls no longer supported (discovery document of container/v1, revision 20260818).
    """

    DISABLED = "disabled"
    BASIC = "basic"


class VulnerabilityScanning(StrEnum):
    """Whether GKE looks for vulnerabilities in the images that run. ENTERPRISE is Advanced Vulnerability Insights.

    The API has BASIC too, which it calls no longer supported (discovery document of container/v1, revision 20260818).
    """

    DISABLED = "disabled"
    ENTERPRISE = "enterprise"


class BinaryAuthorization(StrEnum):
    """Which images the cluster starts. PROJECT_SINGLETON_POLICY_ENFORCE asks the project's policy of Binary Authorization."""

    DISABLED = "disabled"
    PROJECT_SINGLETON_POLICY_ENFORCE = "project_singleton_policy_enforce"


class GkeSecurity(DescribedRecord):
    """What secures a cluster of GKE beyond its defaults."""

    secrets_kms_key: KmsKey | None = None
    """The name of a Cloud KMS key of the region that encrypts Secrets in the cluster's database, which GKE's service agent must be allowed
    to use before. Taken out later, the cluster keeps it. Default: Google's own keys alone."""

    boot_disk_kms_key: KmsKey | None = None
    """The name of a Cloud KMS key of the region that encrypts the boot disks of all nodes: of the controllers, of pools that name no other,
    and of those that GKE makes by itself. Compute Engine's service agent must be allowed to use it before. Another one makes cluster and
    pools anew. Default: Google's own keys."""

    posture: SecurityPosture | None = None
    """Whether GKE's security posture tells of weak settings of pods and of security bulletins: `disabled` or `basic`. Default: what GKE
    chooses, nothing is said."""

    vulnerability_scanning: VulnerabilityScanning | None = None
    """Whether GKE looks for vulnerabilities in images that run: `disabled` or `enterprise`, which Google meant to shut down on
    2026-06-16. Default: what GKE chooses, nothing is said."""

    binary_authorization: BinaryAuthorization | None = None
    """Which images start: `disabled`, all of them; `project_singleton_policy_enforce`, those that the project's policy of Binary
    Authorization lets in, Kueue's and every team's included. Default: what GKE chooses, all of them."""
