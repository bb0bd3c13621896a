"""Which rules the API server is to hold, and whether it can fill in labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.plan import AdmissionPlan
from capacity.settings.admission import AdmissionMode
from capacity.settings.platform import EksSettings, GkeSettings

if TYPE_CHECKING:
    from capacity.settings.platform import PlatformSettings

MUTATING_POLICIES_SINCE = (1, 36)
"""The first version of Kubernetes that has MutatingAdmissionPolicy in admissionregistration.k8s.io/v1, and on."""


def admission_plan(settings: PlatformSettings) -> AdmissionPlan:
    """What the settings say, and by default labels where the cluster's version certainly can."""
    wanted = settings.admission
    labels = _can_fill_in(settings) if wanted.default_owner_labels is None else wanted.default_owner_labels
    return AdmissionPlan(wanted.mode, labels and wanted.mode is not AdmissionMode.NONE)


def _can_fill_in(settings: PlatformSettings) -> bool:
    """The version of a cluster that is there already is not known; the local control plane has it."""
    match settings:
        case GkeSettings():
            version = None if settings.cluster.existing else settings.cluster.min_version
        case EksSettings():
            version = None if settings.cluster.existing else settings.cluster.version
        case _:
            return True
    return version is not None and tuple(map(int, version.split(".")[:2])) >= MUTATING_POLICIES_SINCE
