"""A hypothesis strategy for whole settings of a cloud: valid pools, classes and teams, and what is around them in every form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from valid_settings import valid_settings

from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.platform import Platform

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

LOG_DAYS = [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653]


def some(**fields: SearchStrategy[Any]) -> SearchStrategy[dict[str, Any]]:
    """Any of these fields, or none."""
    return st.fixed_dictionaries({}, optional=fields)


def system_pools(cloud: Cloud) -> SearchStrategy[dict[str, Any]]:
    machines = [each.name for each in machines_of(cloud).values() if each.gpu is None]
    sizes = st.tuples(st.integers(1, 6), st.integers(0, 6))

    def pool(machine: str, size: tuple[int, int]) -> dict[str, Any]:
        return {"machine": machine, "min_nodes": size[0], "max_nodes": size[0] + size[1]}

    return st.builds(pool, st.sampled_from(machines), sizes)


OTHER_WORK = some(max_vcpu=st.integers(0, 10_000), max_memory_gib=st.integers(0, 40_000))
PUBLIC = st.fixed_dictionaries(
    {"access": st.just("public_cidrs"), "cidrs": st.lists(st.sampled_from(["203.0.113.0/24", "198.51.100.7/32"]), min_size=1)}
)


JOB_SETS = st.fixed_dictionaries({"install": st.booleans()}, optional={"replicas": st.integers(1, 3), "memory_mib": st.just(128)})
EKS_STORAGE = some(
    checkpoint_days=st.integers(1, 3650),
    checkpoints=st.sampled_from(["s3", "efs"]),
    datasets=st.sampled_from(["s3", "efs", "lustre"]),
    efs=some(
        infrequent_access_days=st.sampled_from([0, 1, 30, 365]),
        provisioned_mibps=st.sampled_from([1, 64, 3414]),
        deletion_protection=st.booleans(),
    ),
    lustre=st.one_of(
        some(
            capacity_gib=st.sampled_from([1200, 2400, 4800, 24000]),
            throughput_mbps_per_tib=st.sampled_from([125, 250, 500, 1000]),
            deletion_protection=st.booleans(),
        ),
        st.just({"deployment": "SCRATCH_2", "capacity_gib": 7200}),
    ),
)


KUBELETS = some(
    max_pods=st.sampled_from([10, 58, 110, 1000]),
    kube_reserved=st.sampled_from([{"cpu": "200m"}, {"memory": "512Mi", "pid": "1000", "ephemeral-storage": "1Gi"}]),
    system_reserved=st.just({"memory": "256Mi"}),
    eviction_hard=st.sampled_from([{"memory.available": "5%"}, {"nodefs.available": "10%", "imagefs.inodesFree": "5%"}]),
    image_gc_high_threshold_percent=st.integers(81, 100),
    image_gc_low_threshold_percent=st.integers(0, 80),
    cpu_cfs_quota=st.booleans(),
)
SOFT = {"eviction_soft": {"memory.available": "500Mi"}, "eviction_soft_grace_period": {"memory.available": "1m30s"}}
DISKS = some(
    boot_disk_gib=st.integers(50, 2000), boot_disk_iops=st.integers(3000, 16_000), boot_disk_throughput_mib=st.sampled_from([125, 250, 500])
)
OF_AL2023 = st.sampled_from(
    [
        {"user_data": "#!/bin/sh\nmount -a\n"},
        {"user_data": "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {featureGates: {FastImagePull: true}}\n"},
        {"fast_image_pull": True},
        {},
    ]
)
OF_BOTTLEROCKET = st.sampled_from([{"user_data": "[settings]\nmotd = 'ours'\n"}, {}])


@st.composite
def node_settings(draw: DrawFn, ami: str) -> dict[str, Any]:
    """How nodes boot, in what their image's family takes."""
    al2023 = ami.startswith("al2023@")
    kubelet = draw(KUBELETS) | draw(st.sampled_from([{}, SOFT])) | (draw(some(pods_per_core=st.integers(1, 100))) if al2023 else {})
    return {"kubelet": kubelet, **draw(OF_AL2023 if al2023 else OF_BOTTLEROCKET)}


@st.composite
def with_eks_options(draw: DrawFn, pool: dict[str, Any], zones: list[str]) -> dict[str, Any]:
    """A pool with its network cards, its place, its disks, its quiet hours and the owner of its reservation, where it can have them."""
    known = machines_of(Cloud.AWS)
    machines = [known[name] for name in (pool["machine"], *pool.get("alternatives", []))]
    pool = pool | draw(DISKS) | draw(some(quiet_hours=st.just([{"schedule": "0 8 * * mon-fri", "hours": 10}])))
    if len({each.efa_interfaces for each in machines}) == 1 and machines[0].efa_interfaces:
        pool |= draw(some(efa=st.booleans()))
    if pool["capacity_type"] != "reserved" and draw(st.booleans()):
        pool |= {"compact_placement": True, "zones": pool.get("zones", zones)[:1]}
    if "tags" in pool.get("reservation", {}):
        pool |= {"reservation": pool["reservation"] | draw(some(owner=st.just("444455556666")))}
    return pool


THEIR_KARPENTER = some(deployment=st.just("karpenter/karpenter"))


IAM = some(path=st.sampled_from(["/", "/platform/", "/a/b/c/"]), permissions_boundary=st.just("arn:aws:iam::aws:policy/PowerUserAccess"))


def of_an_existing_one(cluster: dict[str, Any]) -> dict[str, Any]:
    """Without what is refused of a cluster that is there already; what is warned of stays."""
    return {key: value for key, value in cluster.items() if "existing" not in cluster or key != "deletion_protection"}


SMALL = ["10.0.250.0/28", "10.0.250.16/28"]


@st.composite
def eks_surroundings(draw: DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    region = document["region"]
    zones = sorted({*document["zones"], *draw(st.lists(st.sampled_from([f"{region}{letter}" for letter in "abcdef"]), max_size=6))})
    made = {
        "private_cidrs": [f"10.0.{32 * number}.0/19" for number in range(len(zones))],
        "public_cidrs": [f"10.0.{200 + number}.0/24" for number in range(len(zones))],
        **draw(
            some(
                nat=st.sampled_from(["per-zone", "single"]),
                services_cidr=st.sampled_from(
                    ["172.20.0.0/16", "10.100.0.0/12", "192.168.0.0/24", "172.20.0.0/25", "11.0.0.0/16", "10.100.0.0/16"]
                ),
                pods_per_node=st.integers(4, 250),
                control_plane_cidrs=st.sampled_from([[], [*SMALL], SMALL[:1], ["10.0.199.0/24", "10.0.0.0/27"]]),
                control_plane_zones=st.lists(st.sampled_from([f"{region}{letter}" for letter in "abcdef"]), max_size=3),
                runner_cidrs=st.lists(st.sampled_from(["10.1.0.0/16", "192.168.7.0/24"])),
            )
        ),
    }
    there = {
        "existing_vpc": "vpc-0a1b2c3d4e5f60718",
        "existing_private_subnets": [f"subnet-0a1b2c3d4e5f6071{n}" for n in range(len(zones))],
    }
    cluster = document["cluster"] | draw(
        some(
            name=st.sampled_from(["ml", "a", "Prod_1", "c" * 100]),
            support=st.sampled_from(["standard", "extended"]),
            deletion_protection=st.booleans(),
            system_pool=system_pools(Cloud.AWS),
            other_work=OTHER_WORK,
            admin_roles=st.lists(
                st.sampled_from(["arn:aws:iam::111122223333:role/admins", "arn:aws:iam::444455556666:role/path/ops"]), unique=True
            ),
            log_days=st.sampled_from(LOG_DAYS),
            addons=some(metrics_server=st.booleans()),
            existing=st.just("somebodys"),
            existing_gpu_operator=st.booleans(),
        )
    )
    cluster = of_an_existing_one(cluster)
    if draw(st.booleans()):
        cluster |= {"nodes": draw(node_settings(cluster["ami"]))}
    if "other_work" in cluster:
        cluster |= {"other_work": cluster["other_work"] | draw(DISKS)}
    if "existing" in cluster and draw(st.booleans()):
        cluster |= {"existing_karpenter": {"node_role": "KarpenterNodeRole-somebodys", **draw(THEIR_KARPENTER)}}
    elif draw(st.booleans()):
        cluster |= {"node_repair": draw(st.booleans())}
    balancers = st.fixed_dictionaries({"install": st.booleans()}, optional={"replicas": st.integers(1, 3), "cpu_milli": st.just(10)})
    people = st.lists(st.sampled_from(["nlp", "arn:aws:iam::111122223333:role/people", "arn:aws:iam::444455556666:role/a/b"]))
    projects = st.lists(st.sampled_from(["asr", "tts.v2"]))
    teams = [each | draw(some(submitters=people, viewers=people, projects=projects)) for each in document["teams"]]
    return {
        "zones": zones,
        "teams": teams,
        "account": draw(st.sampled_from(["111122223333", "000000000001"])),
        "network": draw(st.sampled_from([made, made, there])),
        "cluster": cluster,
        "pools": [draw(with_eks_options(each, document["zones"])) for each in document["pools"]],
        "controllers": draw(some(load_balancer_controller=balancers, jobset=JOB_SETS)),
        **draw(some(tags=st.sampled_from([{"CostCenter": "4711"}, {"a b": "", "team/x": "y z"}]), iam=IAM)),
        "storage": draw(EKS_STORAGE),
        **draw(some(control_plane=PUBLIC)),
    }


WINDOWS: SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"start_utc": st.sampled_from(["00:00", "23:59"]), "hours": st.integers(4, 24)}
) | st.fixed_dictionaries(
    {"hours": st.integers(12, 24), "days": st.lists(st.sampled_from(["mon", "wed", "sat", "sun"]), min_size=1, unique=True)}
)
EXCLUSIONS: SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.sampled_from(
        [
            {"name": "release", "starts": "2026-12-20", "ends": "2027-01-04"},
            {"name": "minor", "scope": "no_minor_upgrades", "starts": "2026-12-20", "ends": "2027-03-01"},
            {"name": "nodes", "scope": "no_minor_or_node_upgrades", "starts": "2026-12-20"},
        ]
    ),
    unique_by=lambda each: each["name"],
)


def with_exclusions(window: dict[str, Any], exclusions: list[dict[str, Any]]) -> dict[str, Any]:
    return {**window, "exclusions": exclusions}


UPGRADED = some(
    hold_upgrades=st.booleans(),
    surge=st.sampled_from([{"max_surge": 1, "max_unavailable": 0}, {"max_unavailable": 20}, {"max_surge": 10, "max_unavailable": 10}]),
)


GCP_KEYS = st.sampled_from([f"projects/acme-keys/locations/us-central1/keyRings/ai/cryptoKeys/{name}" for name in ("one", "two")])
SECURED = some(
    secrets_kms_key=GCP_KEYS,
    boot_disk_kms_key=GCP_KEYS,
    posture=st.sampled_from(["disabled", "basic"]),
    vulnerability_scanning=st.sampled_from(["disabled", "enterprise"]),
    binary_authorization=st.sampled_from(["disabled", "project_singleton_policy_enforce"]),
)


@st.composite
def gke_surroundings(draw: DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    cluster = document.get("cluster", {}) | draw(
        some(
            name=st.sampled_from(["ml", "a", "c" * 40]),
            release_channel=st.sampled_from(["rapid", "regular", "stable", "extended"]),
            min_version=st.sampled_from(["1.35", "1.36", "1.36.1-gke.1000000"]),
            gpu_auto_provisioning=st.booleans(),
            former_accelerators=st.lists(st.sampled_from(["nvidia-tesla-p100", "nvidia-tesla-v100", "nvidia-b200"]), unique=True),
            deletion_protection=st.booleans(),
            system_pool=system_pools(Cloud.GCP),
            maintenance=st.builds(with_exclusions, WINDOWS, EXCLUSIONS),
            other_work=OTHER_WORK,
            groups_domain=st.just("example.com"),
            team_identity=st.sampled_from(["service_account", "direct"]),
            security=SECURED,
            existing=st.just("somebodys"),
        )
    )
    cluster = of_an_existing_one(cluster)
    if "existing" in cluster:
        cluster |= draw(some(zone=st.sampled_from([f"{document['region']}-{letter}" for letter in "abc"])))
    there = {"existing_network": "shared", "existing_subnetwork": "nodes", "pods_range": "p", "services_range": "s"}
    made = draw(some(nodes_cidr=st.sampled_from(["10.0.0.0/20", "10.0.0.0/22"]), max_pods_per_node=st.integers(8, 256)))
    access = st.sampled_from([{"access": "private"}, {"access": "dns_iam"}]) | PUBLIC
    pools = [each | (draw(UPGRADED) if each["capacity_type"] not in {"flex-start", "queued"} else {}) for each in document["pools"]]
    pools = [each | draw(some(boot_disk_kms_key=GCP_KEYS)) for each in pools]
    network, control_plane = draw(st.sampled_from([made, made, there])), draw(access)
    if control_plane["access"] != "dns_iam":
        network = network | draw(some(runner_cidrs=st.lists(st.sampled_from(["10.1.0.0/16", "192.168.7.0/24"]))))
    return {"cluster": cluster, "pools": pools, "network": network, "control_plane": control_plane}


@st.composite
def whole_settings(draw: DrawFn, platform: Platform) -> dict[str, Any]:
    """Settings of a cloud with everything around its pools, too; some of them are refused."""
    document = draw(valid_settings([platform]))
    surroundings = eks_surroundings if platform is Platform.EKS else gke_surroundings
    return document | draw(surroundings(document))
