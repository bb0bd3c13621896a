"""What `up` needs besides the project, in commands: the official pieces, an account, a backend, quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.platform import VOCABULARIES, Platform
from infra.deployment.cloud_run import plugin_command, plugins_of

if TYPE_CHECKING:
    from infra.new_project.answers import Answers

_LOGINS = {Platform.GKE: "gcloud auth application-default login", Platform.EKS: "aws sso login"}


def requirement(answers: Answers, version: str) -> str:
    """What the project requires of Flexspot: this version, for a cloud's stacks with the libraries that ask that cloud."""
    extra = "" if answers.cloud is Platform.LOCAL else f"[prices-{VOCABULARIES[answers.cloud].catalog}]"
    return f"flexspot{extra}=={version}"


def commands(answers: Answers) -> list[str]:
    """What to run before the first `up` of a cloud's stack, one command a line; none for a project of the lab alone."""
    if answers.cloud is Platform.LOCAL:
        return []
    return [*map(plugin_command, plugins_of(answers.cloud)), _LOGINS[answers.cloud], "pulumi login", "flexspot settings needs -s dev"]


def reach(answers: Answers) -> str:
    """From where `up` reaches the clusters that it makes."""
    if answers.cloud is Platform.GKE:
        return "Clusters are reached by their DNS endpoint from anywhere; Google's IAM decides who gets in."
    public = "" if not answers.cidrs else f" Development is reached from {', '.join(answers.cidrs)} as well."
    return f"Clusters are private: `up` needs a runner inside their network (`network.existing_vpc` takes one that you have).{public}"


def deploying(answers: Answers, pulumi: str) -> str:
    """The part of the README about it; empty for a project of the lab alone."""
    listed = "".join(f"    {each}\n" for each in commands(answers))
    if not listed:
        return ""
    return (
        f"## Deploying\n\n`up` needs Pulumi {pulumi} or later with its plugins, credentials, a backend for the state, and quota for GPUs; "
        f"the last command\nlists what to ask the cloud for:\n\n{listed}\nThen:\n\n    flexspot up -s dev\n\n{reach(answers)}\n\n"
    )
