"""Owner labels that work gets from its namespace, so that nobody has to write them on each Job."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi
from pulumi_kubernetes.admissionregistration.v1 import (
    JSONPatchArgs,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    MutatingAdmissionPolicyBindingSpecArgs,
    MutatingAdmissionPolicySpecArgs,
    MutationArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.tenancy.admission_args import OwnerLabelsArgs
from components.tenancy.admission_matching import constraints, team_namespaces

POLICY = "flexspot-owner-labels"
"""The name of the policy and of its binding."""


class OwnerLabels(pulumi.ComponentResource):
    """A MutatingAdmissionPolicy that gives what is made in a team's namespace the labels of the namespace that it does not have itself.

    It needs Kubernetes 1.36. Raises ValueError for no labels, and where it would look at nothing.
    """

    keys: pulumi.Output[list[str]]
    """The labels that are filled in."""

    def __init__(self, name: str, args: OwnerLabelsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for argument, given in {"keys": args["keys"], "matches": args["matches"]}.items():
            if not given:
                raise ValueError(f"OwnerLabels {name}: {argument} is empty; give at least one, or leave the component out")
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
        self.register_outputs({"keys": self.keys})
