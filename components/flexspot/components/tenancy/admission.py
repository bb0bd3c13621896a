"""Admission rules in CEL, which the API server evaluates without a webhook, and owner labels that it adds to work."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from collections.abc import Sequence
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.admissionregistration.v1 import (
    JSONPatchArgs,
    MatchConditionArgs,
    MatchResourcesArgs,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpecArgs,
    MutatingAdmissionPolicySpecArgs,
    MutationArgs,
    NamedRuleWithOperationsArgs,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpecArgs,
    ValidatingAdmissionPolicySpecArgs,
    VariableArgs,
)
from pulumi_kubernetes.admissionregistration.v1 import ValidationArgs as PolicyValidationArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, LabelSelectorRequirementArgs, ObjectMetaArgs

from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.shared_args import publish, refuse


class MatchedResourcesArgs(TypedDict):
    """Objects to which a policy applies, in any version of their API."""

    group: str
    """The API group. Empty for the core group."""

    resources: list[str]
    """Resource names as in API paths, such as jobs."""

    operations: list[str]
    """One or more of CREATE, UPDATE and DELETE."""


class ExpressionArgs(TypedDict):
    """A named CEL expression."""

    name: str
    """The name by which other expressions refer to it."""

    expression: str
    """The CEL expression."""


class ValidationArgs(TypedDict):
    """One rule, in CEL."""

    expression: str
    """Expression that is true for an object that complies with the rule."""

    message: str
    """The message for an object that does not comply, used if `message_expression` fails."""

    message_expression: str
    """The expression that normally builds the message."""


class AdmissionPolicyArgs(TypedDict):
    """Rules of one level, in CEL."""

    name: str
    """The policy's name, unique in the cluster."""

    stops: bool
    """If true, violations are rejected. If not, the sender gets a warning, in every namespace."""

    guards: NotRequired[bool]
    """If true, it only applies in teams' namespaces, and rejects objects on which it fails to evaluate. Default: false."""

    elsewhere: NotRequired[bool]
    """If true, and `guards` too, it applies in all other namespaces instead, except the cluster's own. Default: false."""

    matches: list[MatchedResourcesArgs]
    """The objects that it checks, at least one."""

    conditions: list[ExpressionArgs]
    """Match conditions, each a boolean. All must hold."""

    variables: list[ExpressionArgs]
    """Variables for its other expressions, as `variables.NAME`, in order."""

    validations: list[ValidationArgs]
    """The rules, at least one."""


class AdmissionPoliciesArgs(TypedDict):
    """Arguments of AdmissionPolicies."""

    policies: list[AdmissionPolicyArgs]
    """The policies, at least one."""

    team_label: str
    """The label that marks a team's namespace, with any value."""

    enforce: NotRequired[bool]
    """If true, teams' work that breaks a rule is rejected. With false the sender gets a warning, as everywhere else. Default: true."""

    labels: dict[str, str]
    """Labels of every object."""


class OwnerLabelsArgs(TypedDict):
    """Arguments of OwnerLabels."""

    keys: list[str]
    """The labels, at least one."""

    matches: list[MatchedResourcesArgs]
    """The objects that get the labels."""

    expression: str
    """CEL expression for the list of JSON patches that adds them."""

    team_label: str
    """The label that marks a team's namespace, with any value."""

    labels: dict[str, str]
    """Labels of every object."""


NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label with a namespace's own name, which Kubernetes sets on each."""

SYSTEM = "kube-system"


def constraints(matches: Sequence[MatchedResourcesArgs]) -> MatchResourcesArgs:
    """Match the objects without subresources, so neither a status that a controller writes nor the scale of an autoscaler."""
    return MatchResourcesArgs(
        match_policy="Equivalent",
        resource_rules=[
            NamedRuleWithOperationsArgs(
                api_groups=[each["group"]], api_versions=["*"], resources=each["resources"], operations=each["operations"]
            )
            for each in matches
        ],
    )


def team_namespaces(label: str) -> MatchResourcesArgs:
    """Match the teams' namespaces."""
    return _in_namespaces(LabelSelectorRequirementArgs(key=label, operator="Exists"))


def other_namespaces(label: str) -> MatchResourcesArgs:
    """Match all namespaces except the teams' and the cluster's own."""
    return _in_namespaces(LabelSelectorRequirementArgs(key=label, operator="DoesNotExist"), _not_system())


def all_namespaces() -> MatchResourcesArgs:
    """Match all namespaces except the cluster's own."""
    return _in_namespaces(_not_system())


def _not_system() -> LabelSelectorRequirementArgs:
    return LabelSelectorRequirementArgs(key=NAMESPACE_NAME, operator="NotIn", values=[SYSTEM])


def _in_namespaces(*requirements: LabelSelectorRequirementArgs) -> MatchResourcesArgs:
    return MatchResourcesArgs(namespace_selector=LabelSelectorArgs(match_expressions=list(requirements)))


_REFUSE = ["Deny", "Audit"]
_WARN = ["Warn", "Audit"]


class AdmissionPolicies(pulumi.ComponentResource):
    """ValidatingAdmissionPolicies, which need no webhook and no other component.

    In teams' namespaces violations are rejected. Elsewhere the sender gets a warning. Both appear in the audit log. The cluster's own
    namespace is exempt. If a rule itself fails to evaluate on an object, the object is admitted, because a policy must not cause an outage.
    A rule that protects a guarantee rejects it instead, in teams' namespaces, because admitting it could take resources of another team.

    Raises ValueError for no policies at all, and for one that matches nothing or has no rule.
    """

    policies: pulumi.Output[list[str]]
    """Names of the policies."""

    def __init__(self, name: str, args: AdmissionPoliciesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args)
        names = [each["name"] for each in args["policies"]]
        # The CEL is long, and is in the policies themselves.
        super().__init__("flexspot:index:AdmissionPolicies", name, {**args, "policies": names}, opts)
        for each in args["policies"]:
            self._declare(name, each, args)
        self.policies = pulumi.Output.from_input(names)
        publish(self)

    def _declare(self, name: str, policy: AdmissionPolicyArgs, args: AdmissionPoliciesArgs) -> None:
        made = ValidatingAdmissionPolicy(
            f"{name}-{policy['name']}",
            metadata=ObjectMetaArgs(name=policy["name"], labels=args["labels"]),
            spec=_spec(policy),
            opts=pulumi.ResourceOptions(parent=self),
        )
        team = args["team_label"]
        bindings = {"all": (_WARN, all_namespaces())}
        if policy.get("guards", False):
            where, namespaces = (
                ("elsewhere", other_namespaces(team)) if policy.get("elsewhere", False) else ("teams", team_namespaces(team))
            )
            bindings = {where: (_REFUSE if args.get("enforce", True) else _WARN, namespaces)}
        elif policy["stops"] and args.get("enforce", True):
            bindings = {"teams": (_REFUSE, team_namespaces(team)), "elsewhere": (_WARN, other_namespaces(team))}
        for where, (actions, namespaces) in bindings.items():
            ValidatingAdmissionPolicyBinding(
                f"{name}-{policy['name']}-{where}",
                metadata=ObjectMetaArgs(name=f"{policy['name']}-{where}", labels=args["labels"]),
                spec=ValidatingAdmissionPolicyBindingSpecArgs(
                    policy_name=policy["name"], validation_actions=actions, match_resources=namespaces
                ),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[made]),
            )


def _check(name: str, args: AdmissionPoliciesArgs) -> None:
    where, empty = f"AdmissionPolicies {name}", "is empty"
    if not args["policies"]:
        refuse(where, SettingsProblem("policies", "", empty, "give at least one, or leave the component out"))
    for each in args["policies"]:
        path = f"policies.{each['name']}"
        if not each["matches"]:
            refuse(where, SettingsProblem(f"{path}.matches", "", empty, "name the resources that the policy applies to"))
        if not each["validations"]:
            refuse(where, SettingsProblem(f"{path}.validations", "", empty, "give at least one, or leave the policy out"))


def _spec(policy: AdmissionPolicyArgs) -> ValidatingAdmissionPolicySpecArgs:
    return ValidatingAdmissionPolicySpecArgs(
        failure_policy="Fail" if policy.get("guards", False) else "Ignore",
        match_constraints=constraints(policy["matches"]),
        match_conditions=[MatchConditionArgs(name=each["name"], expression=each["expression"]) for each in policy["conditions"]] or None,
        variables=[VariableArgs(name=each["name"], expression=each["expression"]) for each in policy["variables"]],
        validations=[
            PolicyValidationArgs(expression=each["expression"], message=each["message"], message_expression=each["message_expression"])
            for each in policy["validations"]
        ],
    )


POLICY = "flexspot-owner-labels"
"""The name of the policy and of its binding."""


class OwnerLabels(pulumi.ComponentResource):
    """A MutatingAdmissionPolicy that adds missing owner labels, from the namespace, to objects created in a team's namespace.

    It needs Kubernetes 1.36. Raises ValueError for no labels, and if it would match nothing.
    """

    keys: pulumi.Output[list[str]]
    """The labels that are added."""

    def __init__(self, name: str, args: OwnerLabelsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for argument, given in {"keys": args["keys"], "matches": args["matches"]}.items():
            if not given:
                remedy = "give at least one, or leave the component out"
                refuse(f"OwnerLabels {name}", SettingsProblem(argument, "", "is empty", remedy))
        super().__init__("flexspot:index:OwnerLabels", name, {**args}, opts)
        metadata = ObjectMetaArgs(name=POLICY, labels=args["labels"])
        policy = MutatingAdmissionPolicy(
            f"{name}-policy",
            metadata=metadata,
            spec=MutatingAdmissionPolicySpecArgs(
                failure_policy="Ignore",
                reinvocation_policy="Never",
                match_constraints=constraints(args["matches"]),
                mutations=[MutationArgs(patch_type="JSONPatch", json_patch=JSONPatchArgs(expression=args["expression"]))],
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        MutatingAdmissionPolicyBinding(
            f"{name}-binding",
            metadata=metadata,
            spec=MutatingAdmissionPolicyBindingSpecArgs(policy_name=POLICY, match_resources=team_namespaces(args["team_label"])),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
        )
        self.keys = pulumi.Output.from_input(args["keys"])
        publish(self)
