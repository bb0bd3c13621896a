"""Rules that the API server itself holds against what is sent to it, in CEL, without a webhook."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi
from pulumi_kubernetes.admissionregistration.v1 import (
    MatchConditionArgs,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpecArgs,
    ValidatingAdmissionPolicySpecArgs,
    ValidationArgs,
    VariableArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.tenancy.admission_args import AdmissionPoliciesArgs, AdmissionPolicyArgs
from components.tenancy.admission_matching import all_namespaces, constraints, other_namespaces, team_namespaces

_REFUSE = ["Deny", "Audit"]
_WARN = ["Warn", "Audit"]


class AdmissionPolicies(pulumi.ComponentResource):
    """ValidatingAdmissionPolicies, which need no webhook and nothing else to run.

    In the namespaces of teams what breaks a rule is refused, elsewhere its sender is warned; both are in the audit log. The cluster's own
    namespace is left alone. A rule that fails on an object by a defect of its own lets it pass: a policy is no reason for an outage.

    Raises ValueError for no policies at all, and for one that looks at nothing or has no rule.
    """

    policies: pulumi.Output[list[str]]
    """Names of the policies."""

    def __init__(self, name: str, args: AdmissionPoliciesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args)
        names = [each["name"] for each in args["policies"]]
        # The CEL is long, and stands in the policies themselves.
        super().__init__("flexspot:index:AdmissionPolicies", name, {**args, "policies": names}, opts)
        for each in args["policies"]:
            self._hold(name, each, args)
        self.policies = pulumi.Output.from_input(names)
        self.register_outputs({"policies": self.policies})

    def _hold(self, name: str, policy: AdmissionPolicyArgs, args: AdmissionPoliciesArgs) -> None:
        made = ValidatingAdmissionPolicy(
            f"{name}-{policy['name']}",
            metadata=ObjectMetaArgs(name=policy["name"], labels=args["labels"]),
            spec=_spec(policy),
            opts=pulumi.ResourceOptions(parent=self),
        )
        team = args["team_label"]
        bindings = {"all": (_WARN, all_namespaces())}
        if policy["stops"] and args.get("enforce", True):
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
    if not args["policies"]:
        raise ValueError(f"AdmissionPolicies {name}: policies is empty; give at least one, or leave the component out")
    for each in args["policies"]:
        if not each["matches"]:
            raise ValueError(f"AdmissionPolicies {name}: policy {each['name']} matches nothing; name the resources that it looks at")
        if not each["validations"]:
            raise ValueError(f"AdmissionPolicies {name}: policy {each['name']} has no validations; give at least one, or leave it out")


def _spec(policy: AdmissionPolicyArgs) -> ValidatingAdmissionPolicySpecArgs:
    return ValidatingAdmissionPolicySpecArgs(
        failure_policy="Ignore",
        match_constraints=constraints(policy["matches"]),
        match_conditions=[MatchConditionArgs(name=each["name"], expression=each["expression"]) for each in policy["conditions"]] or None,
        variables=[VariableArgs(name=each["name"], expression=each["expression"]) for each in policy["variables"]],
        validations=[
            ValidationArgs(expression=each["expression"], message=each["message"], message_expression=each["message_expression"])
            for each in policy["validations"]
        ],
    )
