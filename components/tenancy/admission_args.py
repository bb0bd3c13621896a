"""The arguments of AdmissionPolicies and of OwnerLabels."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired, TypedDict


class MatchedResourcesArgs(TypedDict):
    """Objects that a policy is asked about, of whatever version of their API."""

    group: str
    """The API group; empty for the core one."""

    resources: list[str]
    """Kinds as the API server's paths call them, such as jobs."""

    operations: list[str]
    """CREATE, UPDATE or both."""


class ExpressionArgs(TypedDict):
    """CEL with a name."""

    name: str
    """What others call it by."""

    expression: str
    """The CEL."""


class ValidationArgs(TypedDict):
    """One rule, in CEL."""

    expression: str
    """Whether an object keeps the rule."""

    message: str
    """What is told of one that does not, where `message_expression` fails."""

    message_expression: str
    """The text that is told otherwise."""


class AdmissionPolicyArgs(TypedDict):
    """Rules of one level, in CEL."""

    name: str
    """The policy's name, unique in the cluster."""

    stops: bool
    """Whether what breaks a rule is refused. If not, its sender is warned, in every namespace."""

    matches: list[MatchedResourcesArgs]
    """What it is asked about; at least one."""

    conditions: list[ExpressionArgs]
    """Whether it is asked at all, each a truth value; all must hold."""

    variables: list[ExpressionArgs]
    """What its other CEL may use as `variables.NAME`, in order."""

    validations: list[ValidationArgs]
    """The rules; at least one."""


class AdmissionPoliciesArgs(TypedDict):
    """Arguments of AdmissionPolicies."""

    policies: list[AdmissionPolicyArgs]
    """The policies; at least one."""

    team_label: str
    """The label by which a team's namespace is known, whatever its value."""

    enforce: NotRequired[bool]
    """Whether teams' work that breaks a rule is refused. Default: true; with false its sender is warned, as everywhere else."""

    labels: dict[str, str]
    """Labels of every object."""


class OwnerLabelsArgs(TypedDict):
    """Arguments of OwnerLabels."""

    keys: list[str]
    """The labels; at least one."""

    matches: list[MatchedResourcesArgs]
    """The objects that get them."""

    expression: str
    """CEL for the list of JSON patches that adds them."""

    team_label: str
    """The label by which a team's namespace is known, whatever its value."""

    labels: dict[str, str]
    """Labels of every object."""
