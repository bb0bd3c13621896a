"""The service account that GKE's nodes run as."""

from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import projects, serviceaccount

from components.fitted_name import fitted
from components.gcp_names import ACCOUNT_ID_LENGTH, check_name, check_project

_SHORTEST_ACCOUNT_ID = 6

ROLES = {
    "node": "roles/container.defaultNodeServiceAccount",
    "image-reader": "roles/artifactregistry.reader",
}
"""What nodes need: to write logs and metrics, and to pull images of the project's own registries."""


class GkeNodeIdentityArgs(TypedDict):
    """Arguments of GkeNodeIdentity; all are plain because they shape the account."""

    project: str
    """The id of the project; the roles are of this project."""

    account_id: str
    """The account's id, at least 6 characters. Above 30, which Google Cloud does not take, it is cut, with a hash of the whole."""

    description: NotRequired[str]
    """What the account is for, at most 256 characters. Default: Nodes of GKE."""


class GkeNodeIdentity(pulumi.ComponentResource):
    """A service account of its own for the nodes, with the two roles that nodes need.

    Not the project's default Compute Engine account: unless an organization forbids it that one is an editor of the whole project, all else
    that runs on Compute Engine shares it, and every node would hand it to whoever breaks out of a pod. What pods need beyond this they get
    by Workload Identity, each for itself. Raises ValueError for an id that cannot be made one that Google Cloud takes.
    """

    email: pulumi.Output[str]
    """The account's e-mail address, known once its roles are granted: nodes that start before could not write logs or pull images."""

    def __init__(self, name: str, args: GkeNodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"GkeNodeIdentity {name}:"
        check_project(f"{where} project", args["project"])
        account_id = fitted(args["account_id"], ACCOUNT_ID_LENGTH)
        check_name(f"{where} account_id", account_id, ACCOUNT_ID_LENGTH, _SHORTEST_ACCOUNT_ID)
        description = args.get("description", "Nodes of GKE")
        super().__init__("flexspot:index:GkeNodeIdentity", name, {**args, "description": description}, opts)
        child = pulumi.ResourceOptions(parent=self)
        account = serviceaccount.Account(
            f"{name}-account",
            project=args["project"],
            account_id=account_id,
            display_name=account_id,
            description=description,
            opts=child,
        )
        grants = [
            # A member, not a binding: a binding would take the role away from everybody else.
            projects.IAMMember(f"{name}-{key}", project=args["project"], role=role, member=account.member, opts=child)
            for key, role in ROLES.items()
        ]
        self.email = pulumi.Output.all(account.email, *(grant.id for grant in grants)).apply(lambda known: known[0])
        self.register_outputs({"email": self.email})
