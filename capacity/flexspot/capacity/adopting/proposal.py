"""The proposed stack, its guesses and problems, and the ids of resources that the stack can adopt.

The stack file starts with a list of what is not mapped. Above each pool and team it has a line for each guess.

Files for `pulumi import` have the form of pulumi/pulumi, pkg/cmd/pulumi/operations/import.go (importFile, importSpec; read 2026-11-27). An
entry has a type, a name and an id; a component has no id, and has `component: true`. Ids are those of the providers' documentation:

- GKE node pool: PROJECT/LOCATION/CLUSTER/NAME
- GKE cluster: projects/P/locations/L/clusters/N
- EKS cluster: its name
- EKS node group: CLUSTER:NODEGROUP
- object of Kubernetes: NAMESPACE/NAME, or only NAME if it has no namespace
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from flexspot.capacity.adopting.cluster_queues import serves_of
from flexspot.capacity.adopting.found import Found, Guess, Remark, gpus_of, name_of, one_line
from flexspot.capacity.adopting.terraform_eks import image_for
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.catalog.versions import PROPOSED_KUBERNETES
from flexspot.capacity.catalog.workload_classes import shipped_classes
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.pools import GkePool
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.adopting.found import FoundPool, Known
    from flexspot.capacity.values.errors import SettingsProblem


_MOST_POOLS: Final = 500
_LISTED: Final = ("pools", "teams", "cohorts")


@dataclass(frozen=True)
class ImportOptions:
    """The user's options in addition to the source. None: the value is read or guessed."""

    owner: str | None = None
    environment: str | None = None
    account: str | None = None
    region: str | None = None
    cluster: str | None = None


@dataclass(frozen=True)
class Proposal:
    """The settings of the proposed stack, with what is uncertain about them."""

    settings: dict[str, Any]
    guesses: tuple[Guess, ...]
    """Settings that were not in the source."""
    remarks: tuple[Remark, ...]
    """Parts of the source that are not in the settings."""
    warnings: tuple[str, ...]
    """Warnings of the settings' check."""
    addresses: dict[str, str]
    """Address of each pool and team in the source, by its path in the settings."""


def propose(found: Found, options: ImportOptions) -> Proposal:
    """Return a proposal for a working stack.

    Raises ExplainedError if no stack could be made of the findings, or if an option is missing.
    """
    if found.cloud is None:
        raise _usage_error("no cluster of EKS or GKE was found", "name a state with aws_eks_cluster or google_container_cluster in it")
    if not found.pools:
        named = "; ".join(each.addresses[0] for each in found.remarks[:3])
        raise _usage_error(f"no pool of GPU machines was found{f' (seen: {named})' if named else ''}", "a stack has one at least")
    if len(found.pools) > _MOST_POOLS:
        raise _usage_error(f"it has {len(found.pools)} pools of GPU machines, more than a stack supports", "write a state with fewer")
    settings = _stack_settings(found, options)
    pools = [_pool(each, found) for each in found.pools]
    teams = _teams(found, pools)
    settings |= {"pools": pools, "teams": teams} | ({"cohorts": found.cohorts} if found.cohorts else {})
    addresses = {f"pools.{each.name}": each.address for each in found.pools} | {f"teams.{each.name}": each.address for each in found.teams}
    warnings = _checked(settings, found, addresses)
    return Proposal(settings, tuple(found.guesses), tuple(found.remarks), warnings, addresses)


def _stack_settings(found: Found, options: ImportOptions) -> dict[str, Any]:
    read, cloud = dict(found.settings), found.cloud
    tags = {key.lower(): value for key, value in found.tags.items()}
    settings: dict[str, Any] = {"cloud": cloud.value if cloud else ""}
    for key, default in (("environment", "dev"), ("owner", "platform")):
        said = getattr(options, key)
        settings[key] = name_of(tags.get(key) or default) if said is None else said
        if said is None:
            origin = f"the cluster's tag {key}" if tags.get(key) else f"nothing says it; --{key} does"
            found.guess(key, origin)
    if cloud is Platform.LOCAL:
        return settings | {key: value for key, value in read.items() if key in {"cohort", "classes"}}
    account = "project" if cloud is Platform.GKE else "account"
    for key, said in ((account, options.account), ("region", options.region)):
        there = read.pop(key, None)
        value = there if said is None else said
        if value is None:
            option = "--account" if key == account else "--region"
            raise _usage_error(f"what was read does not say the {key}", f"give {option}")
        settings[key] = value
    settings["zones"] = read.pop("zones", None) or _zones(found, settings["region"])
    cluster = dict(read.pop("cluster", {}))
    if options.cluster is not None:
        cluster["existing"] = options.cluster
    if "existing" not in cluster:
        raise _usage_error("what was read does not say the cluster's name", "give --cluster")
    if cloud is Platform.EKS and "version" not in cluster:
        cluster["version"] = PROPOSED_KUBERNETES
        found.guess("cluster.version", "the cluster does not say it")
    if cloud is Platform.EKS and "ami" not in cluster:
        cluster["ami"] = image_for(cluster["version"], found)
    return settings | {"cluster": cluster} | read


def _zones(found: Found, region: str) -> list[str]:
    named = sorted({zone for pool in found.pools for zone in pool.zones})
    if named:
        return named
    found.guess("zones", "no subnet or node names one")
    return [f"{region}{'-' if found.cloud is Platform.GKE else ''}{letter}" for letter in "ab"]


def _pool(pool: FoundPool, found: Found) -> dict[str, Any]:
    cloud = found.cloud
    fields: dict[str, Any] = {"name": pool.name, "machine": pool.machines[0]}
    if len(pool.machines) > 1 and cloud is not Platform.GKE:
        fields["alternatives"] = pool.machines[1:]
    fields["capacity_type"] = pool.capacity_type.value
    options = dict(pool.options)
    if cloud is Platform.GKE and options.get("boot_disk_gib") == GkePool.model_fields["boot_disk_gib"].default:
        options.pop("boot_disk_gib")
    if cloud is Platform.LOCAL:
        options.clear()
    fields |= {name: nodes for name, nodes in pool.limits.items() if nodes and (name != "min_nodes" or cloud is Platform.GKE)}
    zones = found.settings.get("zones") or []
    if pool.zones and cloud is not Platform.LOCAL and set(pool.zones) != set(zones):
        inside = [zone for zone in pool.zones if not zones or zone in zones]
        fields |= {"zones": inside} if inside else {}
    fields |= options
    if sum(pool.name in team.settings.get("shares", {}) for team in found.teams) > 1 and _gpus(pool, found) > 1:
        fields["node_sharing"] = True
        found.guess(f"pools.{pool.name}.node_sharing", "pods may share its nodes now; without it, each pod uses all GPUs of its node")
    fields["serves"] = [each for each in serves_of(pool) if _fits(each, pool)] or list(serves_of(pool))
    if not pool.serves:
        found.guess(f"pools.{pool.name}.serves", f"nothing on it names its work; the usual classes of {pool.capacity_type}")
    found.guesses += [Guess(f"pools.{pool.name}.{key}", why) for key, why in pool.guesses.items()]
    return fields


def _gpus(pool: FoundPool, found: Found) -> int:
    return gpus_of(VOCABULARIES[found.cloud].catalog if found.cloud else Vendor.AWS, pool) or 1


def _fits(name: str, pool: FoundPool) -> bool:
    """Return whether a pool suits a class: shared or divided GPUs are only for classes without a queue."""
    known = shipped_classes().get(name)
    return not ({"gpu_sharing", "mig_partition"} & set(pool.options)) or known is None or not known.queued


def _teams(found: Found, pools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if found.teams:
        for each in found.teams:
            found.guesses += [Guess(f"teams.{each.name}.{key}", why) for key, why in each.guesses.items()]
        return [{"name": each.name, **{key: value for key, value in each.settings.items() if value != {}}} for each in found.teams]
    shares: dict[str, int] = {}
    unqueued: dict[str, int] = {}
    queued = {name for name, each in shipped_classes().items() if each.queued}
    for pool, of in zip(found.pools, pools, strict=True):
        gpus = pool.limits.get("max_gpus") or pool.limits.get("max_nodes", 0) * _gpus(pool, found)
        (shares if queued & set(of["serves"]) else unqueued)[pool.name] = gpus
    found.guess("teams", "no queue and no namespace with a quota of GPUs was found: one team that owns everything, to be divided")
    return [{"name": "team"} | ({"shares": shares} if shares else {}) | ({"unqueued": unqueued} if unqueued else {})]


def _checked(settings: dict[str, Any], found: Found, addresses: dict[str, str]) -> tuple[str, ...]:
    """Check the settings like `settings check`, record its errors as remarks, and return its warnings.

    Raises ExplainedError if the check rejects an option of the user or the cluster's location.
    """
    try:
        plan = build_plan(parse_settings(settings, "the proposal"), "the proposal")
    except SettingsError as error:
        if any(problem.path in _ASKED for problem in error.problems):
            raise _impossible_stack(error.problems) from error
        for problem in error.problems:
            why = f"`flexspot settings check` refuses it: {problem.problem}; {problem.allowed}".strip("; ")
            found.leave_out(_place(problem, settings, addresses), why, "change it in the stack file")
        return ()
    return tuple(f"{each.rule}: {each.path}: {each.text}" for each in plan.warnings)


_ASKED: Final = frozenset({"owner", "environment", "account", "project", "region", "cluster.existing"})


def _place(problem: SettingsProblem, settings: dict[str, Any], addresses: dict[str, str]) -> str:
    """Return the setting of a problem. A pool or team has its name in place of its index, and the address where it was found."""
    kind, _, rest = problem.path.partition(".")
    member, _, option = rest.partition(".")
    if kind in _LISTED and member.isdigit() and int(member) < len(settings.get(kind, ())):
        member = settings[kind][int(member)]["name"]
    name = f"{kind}.{member}" if member else kind
    path = f"{name}.{option}" if option else name
    return f"{addresses[name]}: {path}" if name in addresses else path


def _usage_error(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(one_line(f"{problem}."), f"{remedy}.", exit_code=ExitCode.BAD_USAGE)


def _impossible_stack(problems: Any) -> ExplainedError:
    first = re.sub(r"\s+", " ", str(next(iter(problems))))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return _usage_error(f"what was read gives no stack that works: {first}{more}", "fix it in the source, or give the option that says it")


_SHOWN: Final = 3
# For the empty passphrase: a lab's stack contains no secret.
_SALT: Final = "v1:lazcPgDc2xw=:v1:aJUqMLBDmcGdCrjF:QPdHMgWUJ0pGQxtnw8qT3w43/8AnqA=="


def remark_line(remark: Remark) -> str:
    """Return a remark on one line: the first addresses, the reason, and the remedy."""
    shown = ", ".join(remark.addresses[:_SHOWN])
    more = f" and {len(remark.addresses) - _SHOWN} more" if len(remark.addresses) > _SHOWN else ""
    return one_line(f"{shown}{more}: {remark.why}; {remark.remedy}.")


def flow(value: Any) -> str:
    """Return a value as YAML on one line, quoted where necessary so that no value becomes syntax."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=100_000).removesuffix("\n").removesuffix("\n...")


def stack_text(proposal: Proposal, source: str) -> str:
    """Return the stack file. `source` describes its source in a few words."""
    return "\n".join([*_lines(proposal, one_line(source)), ""])


def _lines(proposal: Proposal, source: str) -> Iterator[str]:
    settings = proposal.settings
    yield "# yaml-language-server: $schema=platform.schema.json"
    yield f"# Proposed by flexspot import from {source}. `guess` marks what nothing said: read these lines first."
    if proposal.remarks:
        yield "# Not mapped, or refused by `flexspot settings check`:"
    for each in proposal.remarks:
        yield f"# - {remark_line(each)}"
    yield "config:"
    if settings["cloud"] == Platform.GKE:
        yield f"  gcp:project: {flow(settings['project'])}"
        yield f"  gcp:region: {flow(settings['region'])}"
    elif settings["cloud"] == Platform.EKS:
        yield f"  aws:region: {flow(settings['region'])}"
    yield "  flexspot:platform:"
    guesses: dict[str, list[str]] = {}
    for guess in proposal.guesses:
        first, _, rest = guess.path.partition(".")
        key = f"{first}.{rest.partition('.')[0]}" if first in _LISTED and rest else first
        inside = guess.path.removeprefix(key).lstrip(".")
        guesses.setdefault(key, []).append(one_line(f"guess{f', {inside}' if inside else ''}: {guess.why}"))
    for key, value in settings.items():
        yield from (f"    # {guess}" for guess in guesses.get(key, []))
        if key in _LISTED:
            yield f"    {key}:"
            for each in value:
                yield from _member(key, each, guesses, proposal.addresses)
        else:
            yield f"    {key}: {flow(value)}"
    if settings["cloud"] == Platform.LOCAL:
        yield "# For the empty passphrase: there is no secret in this stack. It stands here so that the engine does not write it here."
        yield f"encryptionsalt: {_SALT}"


def _member(key: str, each: Mapping[str, Any], guesses: Mapping[str, list[str]], addresses: Mapping[str, str]) -> Iterator[str]:
    path = f"{key}.{each['name']}"
    if path in addresses:
        yield f"      # {one_line(addresses[path])}"
    yield from (f"      # {guess}" for guess in guesses.get(path, []))
    yield f"      - {flow(dict(each))}"


_KUBERNETES: Final = "kubernetes:"


def provider_name(cloud: str) -> str:
    """Return the name of the cluster's provider in a stack's program."""
    return "lab" if cloud == Platform.LOCAL else "cluster"


_COMPONENTS: Final = {
    "gcp:container/nodePool:NodePool": ("flexspot:index:GkeGpuNodePool", "{}", "{}-node-pool"),
    "kubernetes:karpenter.sh/v1:NodePool": ("flexspot:index:GpuNodePool", "{}", "{}-node-pool"),
    "kubernetes:core/v1:Namespace": ("flexspot:index:Team", "{}", "{}-namespace"),
    "kubernetes:scheduling.k8s.io/v1:PriorityClass": ("flexspot:index:Priorities", "priorities", "priorities-{}"),
    "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor": ("flexspot:index:Queues", "queues", "queues-{}"),
    "kubernetes:kueue.x-k8s.io/v1beta2:Cohort": ("flexspot:index:Queues", "queues", "queues-{}-cohort"),
    "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue": ("flexspot:index:Queues", "queues", "queues-{}"),
}
"""For each type of resource: its component in the program, the component's name, and the resource's name. {} is the name in the cluster."""


@dataclass(frozen=True)
class Adoption:
    """The resources that the stack's program can adopt."""

    cloud: dict[str, Any]
    """File for `pulumi import --file`. Empty if there is nothing to import."""
    cluster: dict[str, Any]
    """The same for objects of the cluster. The program's own provider of the cluster reads them, and must be in the state before."""
    adopted: tuple[Known, ...]
    elsewhere: tuple[Known, ...]
    """Resources that no stack's program declares.

    They are in no file: the next `up` would delete them, because they would be in the state only.
    """


def adoption(found: Found, settings: Mapping[str, Any], project: str, stack: str) -> Adoption:
    """Return the known resources that the proposed stack declares, and those that it does not."""
    wanted = _declared(found, settings)
    adopted = [each for each in _once(found.known) if (each.type, each.name) in wanted]
    elsewhere = [each for each in _once(found.known) if (each.type, each.name) not in wanted]
    in_cloud, in_cluster = ([each for each in adopted if each.type.startswith(_KUBERNETES) is wanted] for wanted in (False, True))
    provider = provider_name(settings["cloud"])
    urn = f"urn:pulumi:{stack}::{project}::pulumi:providers:kubernetes::{provider}"
    cluster = _file(in_cluster, provider)
    return Adoption(_file(in_cloud), {"nameTable": {provider: urn}, **cluster} if cluster else {}, tuple(adopted), tuple(elsewhere))


def _file(adopted: list[Known], provider: str | None = None) -> dict[str, Any]:
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for each in adopted:
        component, holder, name = _COMPONENTS[each.type]
        entries.setdefault((component, holder.format(each.name)), _component(component, holder.format(each.name)))
        entry = {"type": each.type, "name": f"{name.format(each.name)}", "id": each.id, "parent": _entry_name(component, holder, each.name)}
        if provider is not None:
            entry["provider"] = provider
        # Names in the file must be unique; the program's own name is `logicalName`.
        logical = entry["name"]
        entry |= {"name": f"{each.type.rpartition(':')[2]}:{logical}", "logicalName": logical}
        entries[each.type, each.name] = entry
    return {"resources": list(entries.values())} if entries else {}


def _component(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "name": f"{kind.rpartition(':')[2]}:{name}", "logicalName": name, "component": True}


def _entry_name(component: str, holder: str, name: str) -> str:
    return f"{component.rpartition(':')[2]}:{holder.format(name)}"


def _declared(found: Found, settings: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return types and names of what the program will declare under the same name, for the types that can be adopted."""
    pools = {each["name"] for each in settings.get("pools", [])}
    known = {each.name: each.known for each in found.pools if each.known is not None and each.name in pools}
    teams = {each["name"] for each in settings.get("teams", [])}
    queued = {pool for each in [*settings.get("teams", []), *settings.get("cohorts", [])] for pool in each.get("shares", {})}
    named = {(each.type, each.name) for each in known.values()}
    named |= {("kubernetes:core/v1:Namespace", name) for name in teams}
    named |= {("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", each["name"]) for each in settings.get("teams", []) if each.get("shares")}
    named |= {("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor", name) for name in queued}
    cohorts = {each["name"] for each in settings.get("cohorts", [])} | {settings.get("cohort", "")}
    named |= {("kubernetes:kueue.x-k8s.io/v1beta2:Cohort", name) for name in cohorts}
    served = {name for each in settings.get("pools", []) for name in each.get("serves", ())}
    shipped = shipped_classes()
    return named | {("kubernetes:scheduling.k8s.io/v1:PriorityClass", shipped[name].priority_class) for name in served if name in shipped}


def _once(known: Iterable[Known]) -> list[Known]:
    return list({(each.type, each.id): each for each in known}.values())
