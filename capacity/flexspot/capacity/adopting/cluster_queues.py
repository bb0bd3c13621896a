"""Teams, shares and cohorts from Kueue's objects, and the quotas of namespaces."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.adopting.cluster_pools import name_in
from flexspot.capacity.adopting.found import SERVED, Block, Found, FoundTeam, Known, name_of
from flexspot.capacity.catalog.accelerators import ACCELERATORS
from flexspot.capacity.catalog.node_labels import GKE_POOL_LABEL, KARPENTER_POOL_LABEL, OWN_LABELS
from flexspot.capacity.catalog.workload_classes import shipped_classes
from flexspot.capacity.chargeback.queries import EKS_POOL_LABEL
from flexspot.capacity.settings.teams import TeamSettings
from flexspot.capacity.values.names import NAME
from flexspot.capacity.values.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.adopting.cluster_pools import Objects
    from flexspot.capacity.adopting.found import FoundPool

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
_STOPS: Final = {"Hold": "hold", "HoldAndDrain": "drain"}
_DEVICES: Final = frozenset(kind.resource for kind in ACCELERATORS)
_SYSTEM: Final = re.compile(r"kube-.*|gke-.*|gmp-.*|kueue-system|karpenter|default|gpu-operator|cert-manager|amazon-.*|jobset-system")
_GIB: Final = 1024**3


@dataclass(frozen=True)
class _OwnerQuota:
    """An owner's quota in one pool, in GPUs. None: no limit."""

    pool: str
    nominal: int
    borrowing: int | None
    lending: int | None


@dataclass
class _CohortTree:
    """The cohorts that any object names."""

    parents: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """Parent of each cohort. None for a root."""
    objects: dict[str, Block] = field(default_factory=dict[str, Block])
    """Objects of the cohorts that have one."""

    def roots(self) -> list[str]:
        """Return the names of cohorts without a parent, sorted."""
        return sorted(name for name, parent in self.parents.items() if parent is None)


def read_queues(objects: Objects, found: Found, where: dict[str, str]) -> None:
    """Read teams and cohorts from ClusterQueues, LocalQueues, flavors and Cohorts. `where` maps kind and name to the name in messages."""

    def at(kind: str, name: str) -> str:
        return where.get(f"{kind}/{name}", f"{kind} {name}")

    pools = _pools_of_flavors(objects, found, at)
    tree = _tree(objects)
    roots = tree.roots()
    spaces = _namespaces(objects)
    root = roots[0] if len(roots) == 1 and re.fullmatch(NAME, roots[0]) else "platform"
    if roots:
        found.settings["cohort"] = root
    for name in sorted(tree.parents):
        if name != root:
            found.known.append(Known("kubernetes:kueue.x-k8s.io/v1beta2:Cohort", name, name, at("Cohort", name)))
            _cohort(name, tree, root, pools, found)
        elif any(_quotas(tree.objects.get(name, Block({})), pools)):
            why = "the root has its own quota, which no team owns: a stack's root has none"
            found.leave_out(at("Cohort", name), why, "give it to a cohort below the root, or leave it to be borrowed as what no team owns")
    for each in objects.get("ClusterQueue", []):
        name = name_in(each)
        found.known.append(Known("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", name, name, at("ClusterQueue", name)))
        if not _counts_devices(each):
            # Flexspot's own is derived from other_work.
            if not any(key.startswith(OWN_LABELS) for key in each.words("metadata", "labels")):
                found.leave_out(at("ClusterQueue", name), "has quota of no GPUs", "write it in teams[].cpu_work")
            continue
        submitting = _Submitting(at("ClusterQueue", name), spaces.get(name, []), root)
        _queue(each, submitting, pools, found)
    if len(roots) > 1:
        why = f"{len(roots)} trees of cohorts ({', '.join(roots)}) become one, below {root}: their limits of 0 keep them apart as before"
        found.guess("cohort", why)


def _tree(objects: Objects) -> _CohortTree:
    tree = _CohortTree()
    for each in objects.get("Cohort", []):
        name, parent = name_in(each), each.text("spec", "parentName") or each.text("spec", "parent")
        tree.objects[name], tree.parents[name] = each, parent
        if parent is not None:
            tree.parents.setdefault(parent, None)
    for each in objects.get("ClusterQueue", []):
        if (cohort := each.text("spec", "cohortName") or each.text("spec", "cohort")) and _counts_devices(each):
            tree.parents.setdefault(cohort, None)
    # A cohort only for work without GPUs is derived from other_work.
    for name in [name for name, each in tree.objects.items() if _is_of_cpu_work(name, each, objects, tree)]:
        del tree.objects[name], tree.parents[name]
    return tree


def _is_of_cpu_work(name: str, cohort: Block, objects: Objects, tree: _CohortTree) -> bool:
    """Return whether a cohort only has queues without devices, or no queues and no quota of devices."""
    inside = [each for each in objects.get("ClusterQueue", []) if name in {each.text("spec", "cohortName"), each.text("spec", "cohort")}]
    if any(parent == name for parent in tree.parents.values()) or any(_counts_devices(each) for each in inside):
        return False
    return bool(inside) or not _counts_devices(cohort)


def _pools_of_flavors(objects: Objects, found: Found, at: Any) -> dict[str, FoundPool]:
    """Return the pool of each flavor: the one whose nodes the flavor's labels select, else the one with its name."""
    by_name = {each.name: each for each in found.pools}
    pools: dict[str, FoundPool] = {}
    for each in objects.get("ResourceFlavor", []):
        name, labels = name_in(each), each.words("spec", "nodeLabels")
        found.known.append(Known("kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor", name, name, at("ResourceFlavor", name)))
        named = next((labels[key] for key in (KARPENTER_POOL_LABEL, GKE_POOL_LABEL, EKS_POOL_LABEL) if key in labels), name)
        pool = by_name.get(name_of(named)) or by_name.get(name_of(name))
        if pool is None and labels:
            fits = [one for one in found.pools if labels.items() <= one.labels.items()]
            pool = fits[0] if len(fits) == 1 else None
        if pool is not None:
            pools[name] = pool
        elif any(_device_quota(each, name) for kind in ("ClusterQueue", "Cohort") for each in objects.get(kind, [])):
            why = "not exactly one pool that was found has its node labels or its name, so its quota is in no team's shares"
            found.leave_out(at("ResourceFlavor", name), why, "add its pool, then the shares of it")
    return pools


def _device_quota(owner: Block, flavor: str) -> bool:
    return any(
        name == flavor and amount.text("name") in _DEVICES and quantity(str(amount.at("nominalQuota"))) for name, amount in _amounts(owner)
    )


def _amounts(owner: Block) -> Iterator[tuple[str, Block]]:
    """Yield each resource with its flavor, for an owner of quota."""
    for group in owner.blocks("spec", "resourceGroups"):
        for flavor in group.blocks("flavors"):
            for resource in flavor.blocks("resources"):
                yield flavor.text("name") or "", resource


def _counts_devices(owner: Block) -> bool:
    return any(resource.text("name") in _DEVICES for _, resource in _amounts(owner))


def _quotas(owner: Block, pools: dict[str, FoundPool]) -> list[_OwnerQuota]:
    """Return an owner's quotas by pool. A pool's own kind of device takes precedence."""
    found: dict[str, _OwnerQuota] = {}
    for flavor, resource in _amounts(owner):
        pool = pools.get(flavor)
        if pool is None or resource.text("name") not in _DEVICES:
            continue
        nominal = _whole(resource.at("nominalQuota")) or 0
        quota = _OwnerQuota(pool.name, nominal, _whole(resource.at("borrowingLimit")), _whole(resource.at("lendingLimit")))
        before = found.get(pool.name)
        # Devices of a kind that the pool does not have are counted with 0, so that no team gets them.
        if before is None or (before.nominal == 0 and nominal > 0):
            found[pool.name] = quota
    return list(found.values())


def _whole(written: Any) -> int | None:
    amount = quantity(written) if isinstance(written, (str, int)) and not isinstance(written, bool) else None
    return int(amount) if amount is not None else None


def _shares(quotas: list[_OwnerQuota]) -> dict[str, Any]:
    fields: dict[str, Any] = {"shares": {each.pool: each.nominal for each in quotas}}
    if borrowing := {each.pool: each.borrowing for each in quotas if each.borrowing is not None}:
        fields["borrowing_limits"] = borrowing
    if lending := {each.pool: each.lending for each in quotas if each.lending is not None}:
        fields["lending_limits"] = lending
    return fields


def _isolate(fields: dict[str, Any]) -> None:
    """Set limits so that the owner neither lends nor borrows, like a queue without a cohort or a separate tree."""
    none = dict.fromkeys(fields.get("shares", {}), 0)
    fields |= {"borrowing_limits": none, "lending_limits": dict(none)} if none else {}


def _cohort(name: str, tree: _CohortTree, root: str, pools: dict[str, FoundPool], found: Found) -> None:
    each = tree.objects.get(name, Block({}))
    fields: dict[str, Any] = {"name": name_of(name)}
    parent = tree.parents[name]
    if parent is not None and parent != root:
        fields["parent"] = name_of(parent)
    if (weight := _weight(each)) is not None:
        fields["weight"] = weight
    if quotas := _quotas(each, pools):
        fields |= {key: value for key, value in _shares(quotas).items() if value}
    if parent is None:
        fields["shares"] = dict.fromkeys(sorted({pool.name for pool in pools.values()}), 0) | fields.get("shares", {})
        _isolate(fields)
    found.cohorts.append(fields)


def _weight(each: Block) -> int | None:
    weight = _whole(each.at("spec", "fairSharing", "weight"))
    return weight if weight not in {None, 1} else None


def _namespaces(objects: Objects) -> dict[str, list[str]]:
    """Return the namespaces with LocalQueues for each ClusterQueue."""
    found: dict[str, list[str]] = {}
    for each in objects.get("LocalQueue", []):
        if (queue := each.text("spec", "clusterQueue")) and (space := each.text("metadata", "namespace")):
            found.setdefault(queue, []).append(space)
    return {queue: sorted(set(spaces)) for queue, spaces in found.items()}


@dataclass(frozen=True)
class _Submitting:
    """A queue's address, the namespaces that submit to it, and the root of all cohorts."""

    address: str
    spaces: list[str]
    root: str


def _queue(each: Block, queue: _Submitting, pools: dict[str, FoundPool], found: Found) -> None:
    name, address = name_in(each), queue.address
    fields = _shares(_quotas(each, pools))
    cohort = each.text("spec", "cohortName") or each.text("spec", "cohort")
    if cohort is None:
        _isolate(fields)
    elif cohort != queue.root:
        fields["cohort"] = name_of(cohort)
    if (weight := _weight(each)) is not None:
        fields["weight"] = weight
    if stop := _STOPS.get(each.text("spec", "stopPolicy") or ""):
        fields["stop"] = stop
    selected = each.block("spec", "namespaceSelector").words("matchLabels").get(NAMESPACE_LABEL)
    spaces = queue.spaces or ([selected] if selected else [])
    _report_unsupported(each, address, found)
    if not fields["shares"]:
        found.leave_out(address, "has quota of no pool that was found", "add its pools, then a team with shares of them")
        return
    if len(spaces) > 1:
        # Several namespaces share one quota. It becomes the group's, and each of its teams borrows from it.
        group = {"name": name_of(name), **{key: value for key, value in fields.items() if key not in {"stop", "cohort"}}}
        if "cohort" in fields:
            group["parent"] = fields["cohort"]
        found.cohorts.append(group)
        for space in spaces:
            team: dict[str, Any] = {"cohort": group["name"], "shares": dict.fromkeys(fields["shares"], 0)}
            team |= {"stop": fields["stop"]} if "stop" in fields else {}
            why = f"{address} is shared by {len(spaces)} namespaces: its quota is the cohort's, and each borrows from it"
            _add_team(found, space, address, team, {"cohort": why})
        return
    guesses = {} if spaces else {"name": f"no namespace submits to {address} yet: the team has the queue's name"}
    _add_team(found, spaces[0] if spaces else name, address, fields, guesses)


def _add_team(found: Found, name: str, address: str, fields: dict[str, Any], guesses: dict[str, str]) -> None:
    there = next((team for team in found.teams if team.name == name_of(name)), None)
    if there is not None:
        why = f"team {there.name} has the queue of {there.address} already, and a team has one"
        found.leave_out(address, why, "add its shares to the team's, or give the work a namespace of its own")
        return
    if not re.fullmatch(NAME, name):
        guesses = guesses | {"name": f"{name} is longer than a team's name, or has other characters: the namespace is another one"}
    found.teams.append(FoundTeam(name_of(name), address, fields, guesses))


def _report_unsupported(each: Block, address: str, found: Found) -> None:
    spec = each.block("spec")
    if (strategy := spec.text("queueingStrategy")) and strategy != "BestEffortFIFO":
        why = "queues of a stack are BestEffortFIFO: a job that does not fit yet lets smaller ones pass"
        found.leave_out(f"{address} queueingStrategy: {strategy}", why, "there is no setting for it")
    if checks := [name for one in spec.blocks("admissionChecksStrategy", "admissionChecks") if (name := one.text("name"))] or spec.texts(
        "admissionChecks"
    ):
        why = "a stack makes the check of queued capacity itself, and no other"
        if others := sorted(check for check in checks if check != "dws"):
            found.leave_out(f"{address} admissionChecks ({', '.join(others)})", why, "use a pool of capacity_type queued where it is DWS")
    preemption = spec.block("preemption")
    if preemption and (preemption.text("withinClusterQueue"), preemption.text("reclaimWithinCohort")) != ("LowerPriority", "Any"):
        why = "queues of a stack reclaim lent quota from all borrowers, and prefer higher priorities within"
        found.leave_out(
            f"{address} preemption", why, "there is no setting for it; `run_limit_hours` and priorities of classes say who yields"
        )


def read_namespaces(objects: Objects, found: Found, where: dict[str, str]) -> None:
    """Read ResourceQuotas: they add settings to teams, and add a team for each other namespace with GPUs."""
    quotas: dict[str, list[Block]] = {}
    for each in objects.get("ResourceQuota", []):
        if space := each.text("metadata", "namespace"):
            quotas.setdefault(space, []).append(each)
    for space, listed in sorted(quotas.items()):
        if _SYSTEM.fullmatch(space):
            continue
        address = where.get(f"ResourceQuota/{space}", f"ResourceQuota of namespace {space}")
        team = next((team for team in found.teams if team.name == name_of(space)), None)
        of_all, scoped = _hard(listed, scoped=False), _hard(listed, scoped=True)
        gpus = max((_whole(of_all.get(kind.quota_key)) or 0 for kind in ACCELERATORS), default=0)
        served = max((_whole(scoped.get(kind.quota_key)) or 0 for kind in ACCELERATORS), default=0)
        if team is None:
            if not gpus:
                continue
            team = FoundTeam(space, address, {"shares": {}}, {})
            found.teams.append(team)
            team.guesses["unqueued"] = f"{address}: no queue, so the {gpus} GPUs of its quota are for work that waits in none"
            served = served or gpus
        _read_limits(of_all, team)
        _read_unqueued(team, address, served or (0 if team.settings.get("shares") else gpus), found)


def _read_unqueued(team: FoundTeam, address: str, gpus: int, found: Found) -> None:
    """Set the GPUs for work that waits in no queue, on a pool that serves such work."""
    open_to = [pool.name for pool in found.pools if "inference" in serves_of(pool)]
    if gpus and open_to:
        team.settings["unqueued"] = {open_to[0]: gpus}
        if len(open_to) > 1:
            team.guesses["unqueued"] = f"{address}: {gpus} GPUs of services, on whichever of {', '.join(open_to)}"
    elif gpus:
        why = "no pool serves a class without queue, and it holds GPUs outside of queues"
        found.leave_out(address, why, "let a pool serve `inference`, then write teams[].unqueued; or give the team shares")
        team.guesses.pop("unqueued", None)


def serves_of(pool: FoundPool) -> list[str]:
    """Return the classes that the proposal lets a pool serve."""
    return pool.serves or list(SERVED[pool.capacity_type])


def _hard(listed: list[Block], *, scoped: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in listed:
        if bool(each.at("spec", "scopeSelector") or each.at("spec", "scopes")) is scoped:
            found |= each.block("spec", "hard").fields
    return found


def _read_limits(hard: dict[str, Any], team: FoundTeam) -> None:
    for key, setting in (("count/jobs.batch", "max_jobs"), ("persistentvolumeclaims", "max_volumes")):
        if (most := _whole(hard.get(key))) is not None and most >= 1 and most != TeamSettings.default(setting):
            team.settings[setting] = min(most, 100_000)
    storage = _whole(hard.get("requests.storage"))
    if storage is not None and storage >= _GIB and storage // _GIB != TeamSettings.default("max_storage_gib"):
        team.settings["max_storage_gib"] = min(storage // _GIB, 10_000_000)


def read_priorities(objects: Objects, found: Found, where: dict[str, str]) -> None:
    """Read PriorityClasses. The value of one that a shipped class uses is a setting. Users must assign the others to a class."""
    shipped = {each.priority_class: (name, each) for name, each in shipped_classes().items()}
    classes: dict[str, Any] = {}
    for each in objects.get("PriorityClass", []):
        name, value = name_in(each), each.number("value")
        if name.startswith("system-"):
            continue
        address = where.get(f"PriorityClass/{name}", f"PriorityClass {name}")
        found.known.append(Known("kubernetes:scheduling.k8s.io/v1:PriorityClass", name, name, address))
        if name in shipped:
            of_class, known = shipped[name]
            if value is not None and value != known.priority:
                classes[of_class] = {"priority": value}
        else:
            why = f"no shipped class has it (value {value})"
            found.leave_out(address, why, "name it in classes.CLASS.priority_class with its value, for the class whose work has it")
    if classes:
        found.settings["classes"] = classes
