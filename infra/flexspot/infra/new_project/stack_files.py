"""The stack files of a new project: development on Spot only, production with a capped on-demand pool, and one for the lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from flexspot.capacity.catalog.node_images import shipped_images
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.catalog.versions import PROPOSED_KUBERNETES
from flexspot.infra.new_project.answers import MACHINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.infra.new_project.answers import Answers

_ALTERNATIVES = {"g6.xlarge": ["g6.2xlarge", "g6.4xlarge"]}
"""Machines with the same GPUs. With more alternatives, Spot runs out of stock less often."""

_LAB_GPUS = 4

# For the empty passphrase: a lab's stack has no secrets.
_SALT = "v1:lazcPgDc2xw=:v1:aJUqMLBDmcGdCrjF:QPdHMgWUJ0pGQxtnw8qT3w43/8AnqA=="


def flow(value: Any) -> str:
    """Return a value as YAML on one line, quoted where necessary so that it cannot become syntax."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).removesuffix("\n").removesuffix("\n...")


def shares(gpus: int, teams: Iterable[str]) -> dict[str, int]:
    """Divide GPUs equally among teams. The first ones get the remainder."""
    names = list(teams)
    whole, over = divmod(gpus, len(names))
    return {name: whole + (number < over) for number, name in enumerate(names)}


def lab_stack(answers: Answers) -> str:
    """Return the stack file for the local control plane: the same teams on four fake GPUs."""
    pool = {"name": "l4-spot", "machine": MACHINES[Platform.LOCAL], "capacity_type": "spot", "max_nodes": _LAB_GPUS}
    owned = shares(_LAB_GPUS, answers.teams)
    return "\n".join(
        [
            "# yaml-language-server: $schema=platform.schema.json",
            "# The platform on this machine's local control plane: fake nodes, real decisions.",
            "config:",
            "  flexspot:platform:",
            "    cloud: local",
            "    environment: local",
            f"    owner: {flow(answers.owner)}",
            "    pools:",
            f"      - {flow(pool | {'serves': ['training', 'interactive', 'best-effort']})}",
            "    teams:",
            *(f"      - {flow({'name': team, 'shares': {'l4-spot': gpus}, 'submitters': [team]})}" for team, gpus in owned.items()),
            "    admission: {rules_file: ../flexspot-lint.yaml}",
            "# For the empty passphrase: there is no secret in this stack. It stands here so that the engine does not write it here.",
            f"encryptionsalt: {_SALT}",
            "",
        ]
    )


def cloud_stack(answers: Answers, environment: str, budget_usd: int | None) -> str:
    """Return the stack file of an environment, `dev` or `prod`, in the answers' cloud."""
    production = environment == "prod"
    sold_on_demand = answers.described_machine.on_demand
    gpu = answers.described_machine.gpu
    model = "gpu" if gpu is None else gpu.model
    gpus = answers.prod_gpus if production else answers.dev_gpus
    spot, on_demand = f"{model}-spot", f"{model}-on-demand"
    owned, per_node = shares(gpus, answers.teams), answers.gpus_per_node
    teams = [
        {"name": team, "shares": {spot: owned[team]}} | ({"unqueued": {on_demand: per_node}} if production and sold_on_demand else {})
        for team in owned
    ]
    first: dict[str, Any] = {"name": spot, "machine": answers.machine}
    if answers.machine in _ALTERNATIVES:
        first["alternatives"] = _ALTERNATIVES[answers.machine]
    pools = [first | {"capacity_type": "spot", "max_nodes": gpus // per_node, "serves": ["training", "interactive", "best-effort"]}]
    if production and sold_on_demand:
        nodes = len(answers.teams)
        capped = {"capacity_type": "on-demand", "max_nodes": nodes, "serves": ["inference"]}
        pools.append({"name": on_demand, "machine": answers.machine} | capped)
    if not production:
        said = "Development: Spot alone."
    elif sold_on_demand:
        said = "Production: Spot for what can wait, on demand with a ceiling for inference."
    else:
        said = f"Production: Spot alone, since {answers.machine} is not sold on demand. Inference needs a pool of another machine."
    return "\n".join(
        [
            "# yaml-language-server: $schema=platform.schema.json",
            f"# {said} Every pool scales to zero and has a ceiling.",
            "config:",
            *(_gke(answers, environment) if answers.cloud is Platform.GKE else _eks(answers, environment)),
            "    pools:",
            *(f"      - {flow(pool)}" for pool in pools),
            "    # GPUs of a pool that are a team's own. What it leaves unused, the others may borrow, and give back when asked.",
            "    teams:",
            *(f"      - {flow(team)}" for team in teams),
            "    # Further rules of the policies and the API server, in addition to the shipped ones.",
            "    admission: {rules_file: ../flexspot-lint.yaml}",
            *_budget(budget_usd, environment, answers),
            "",
        ]
    )


def _budget(usd: int | None, environment: str, answers: Answers) -> Iterator[str]:
    if usd is None:
        cloud = VOCABULARIES[answers.cloud].catalog
        yield f"    # No budget yet: not every price of {answers.region} is known. `flexspot prices check -s {environment}` lists which,"
        yield f"    # `flexspot prices refresh --cloud {cloud} --file stacks/prices.yaml` asks for them; then:"
        yield "    # prices_file: prices.yaml"
        yield "    # budget: {monthly_usd: 1000}"
        return
    yield "    # What all these ceilings cost at worst: to raise one is to raise this, too (budget-exceeded in flexspot-lint.yaml)."
    yield f"    budget: {{monthly_usd: {usd}}}"


def _common(answers: Answers, environment: str) -> list[str]:
    return [
        "  flexspot:platform:",
        f"    cloud: {answers.cloud.value}",
        f"    environment: {environment}",
        f"    owner: {flow(answers.owner)}",
    ]


def _gke(answers: Answers, environment: str) -> list[str]:
    production = environment == "prod"
    account = answers.prod_account if production else answers.account
    system = {"machine": "e2-standard-4", "min_nodes": 2 if production else 1, "max_nodes": 4 if production else 3}
    return [
        f"  gcp:project: {flow(account)}",
        f"  gcp:region: {flow(answers.region)}",
        *_common(answers, environment),
        f"    project: {flow(account)}",
        f"    region: {flow(answers.region)}",
        f"    zones: {flow(list(answers.zones))}",
        "    # By the DNS endpoint, with Google's IAM in front: `up` works from outside of the network.",
        "    control_plane: {access: dns_iam}",
        "    cluster:",
        f"      release_channel: {'stable' if production else 'regular'}",
        f"      min_version: {flow(PROPOSED_KUBERNETES)}",
        *([] if production else ["      deletion_protection: false"]),
        "      # For a pod that selects no pool GKE would make a node at the on-demand price.",
        "      gpu_auto_provisioning: false",
        f"      system_pool: {flow(system)}",
    ]


def _eks(answers: Answers, environment: str) -> list[str]:
    production = environment == "prod"
    public = bool(answers.cidrs) and not production
    access = {"access": "public_cidrs", "cidrs": list(answers.cidrs)} if public else {"access": "private"}
    book = shipped_images()
    # The newest release with a known version for node groups.
    image = [each for each in book.with_images_for("al2023", PROPOSED_KUBERNETES) if book.eks_release(each, PROPOSED_KUBERNETES)][-1]
    system = {"machine": "m6i.xlarge", "min_nodes": 2, "max_nodes": 4 if production else 3}
    return [
        f"  aws:region: {flow(answers.region)}",
        *_common(answers, environment),
        f"    account: {flow(answers.prod_account if production else answers.account)}",
        f"    region: {flow(answers.region)}",
        f"    zones: {flow(list(answers.zones))}",
        *([] if public else ["    # `up` needs a runner inside the network: the API server has no public address."]),
        f"    control_plane: {flow(access)}",
        "    cluster:",
        f"      version: {flow(PROPOSED_KUBERNETES)}",
        f"      ami: {flow(image)}",
        *([] if production else ["      deletion_protection: false"]),
        f"      system_pool: {flow(system)}",
        *([] if production else ["    network: {nat: single}"]),
    ]
