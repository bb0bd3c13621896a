"""Stacks beside each other in one Google Cloud project: whose teams are the same to Google Cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.plan.model import PlanWarning
from capacity.settings.platform import GkeSettings
from capacity.settings.stack_file import read_stack_file
from capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def same_teams_elsewhere(path: Path, settings: GkeSettings) -> Iterator[PlanWarning]:
    """A warning for each other stack file of `path`'s folder that has teams of the same names in the same project.

    A project has one pool of workload identities, in which a pod is its namespace and its service account, whatever its cluster: IAM grants
    to `ads/workloads` of one cluster are those of the other's, too, whether by principal:// or by an account that it may act as
    (https://docs.cloud.google.com/kubernetes-engine/docs/concepts/workload-identity, identity sameness; read 2026-11-25).
    A file that cannot be read is passed over: its own check says why.
    """
    own = {team.name for team in settings.teams}
    for beside in sorted(path.parent.glob("Pulumi.*.yaml")):
        if beside == path:
            continue
        try:
            other = read_stack_file(beside)
        except (SettingsError, OSError):
            continue
        if not isinstance(other, GkeSettings) or other.project != settings.project:
            continue
        if both := sorted(own & {team.name for team in other.teams}):
            told = (
                f"{', '.join(both)}: teams of {beside.name} in the same project, where pods of one team name are one identity, "
                "whatever their cluster, and reach each other's checkpoints, datasets and work queue; give one of the stacks a project "
                "of its own"
            )
            yield PlanWarning("teams-in-two-clusters-of-a-project", "project", told)
