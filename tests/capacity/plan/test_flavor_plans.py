"""ResourceFlavors: labels, tolerations, order and ceilings."""

from __future__ import annotations

from plan_settings import Settings, eks, flavor_of, gke, local, own_class, plan_of, pool, pool_of, queue_of, team

from flexspot.capacity.plan.model import Amount

MOVES_ON = own_class("climb", fallback="stock-out", capacity=["reserved", "spot", "on-demand"])
ON_GKE = {"reservation": {"name": "bought"}}
ON_EKS = {"reservation": {"tags": {"purpose": "gpu"}}}


def test_a_stock_out_class_has_one_flavor_per_accelerator_on_eks_whose_label_only_its_nodes_have() -> None:
    """With labels of the GPU alone, its pods could select another pool with this GPU, and Kueue would not count them there."""
    plan = plan_of(
        eks(
            pool("l4-spot", "g6.xlarge", "spot", 2, "climb"),
            pool("l4-on-demand", "g6.xlarge", "on-demand", 1, "climb"),
            pool("a10g", "g5.xlarge", "spot", 3, "climb"),
            classes={"climb": MOVES_ON},
        )
    )

    def gpu(name: str) -> dict[str, str]:
        labels = {"karpenter.k8s.aws/instance-gpu-memory": "22888", "karpenter.k8s.aws/instance-gpu-name": name}
        return labels | {"flexspot.dev/flavor": f"any-{name}"}

    assert {flavor.name: (flavor.pools, flavor.node_labels, flavor.ceiling.gpus) for flavor in plan.flavors} == {
        "any-a10g": (("a10g",), gpu("a10g"), 3),
        "any-l4": (("l4-on-demand", "l4-spot"), gpu("l4"), 3),
    }


def test_a_stock_out_class_has_one_flavor_on_gke_whose_only_label_is_the_compute_class() -> None:
    plan = plan_of(
        gke(
            pool("l4-reserved", "g2-standard-8", "reserved", 1, "climb", **ON_GKE),
            pool("l4-spot", "g2-standard-8", "spot", 2, "climb"),
            classes={"climb": MOVES_ON},
        )
    )

    [flavor] = plan.flavors
    assert (flavor.name, flavor.pools) == ("any-climb", ("l4-reserved", "l4-spot"))
    assert flavor.node_labels == {"cloud.google.com/compute-class": "climb"}, "GKE refuses other selectors in addition"


def test_the_order_of_a_class_determines_the_order_of_flavors() -> None:
    pools = [pool("a-spot", "g6.xlarge", "spot", 1, "training"), pool("b-reserved", "g6.xlarge", "reserved", 1, "training", **ON_EKS)]

    as_shipped = plan_of(eks(*pools))
    turned = plan_of(eks(*pools, classes={"training": {"capacity": ["spot", "reserved"]}}))

    assert [flavor.name for flavor in as_shipped.flavors] == ["b-reserved", "a-spot"]
    assert [flavor.name for flavor in turned.flavors] == ["a-spot", "b-reserved"]


def test_gpus_of_unqueued_classes_are_not_part_of_the_flavor() -> None:
    classes = {"sweep": own_class("sweep", fallback="stock-out", capacity=["on-demand"])}
    shared = pool("l4", "g6.xlarge", "on-demand", 6, "inference", "sweep")
    settings = local(shared, classes=classes, teams=[team("red", unqueued={"l4": 1}), team("blue", unqueued={"l4": 3}, shares={"l4": 2})])

    plan = plan_of(settings)

    assert flavor_of(plan, "any-l4").ceiling == Amount(gpus=2, vcpu=8, memory_mib=32768)
    assert pool_of(plan, "l4").ceiling.gpus == 6


def mixed_class(*shares: tuple[str, int]) -> Settings:
    """Return settings with a class on machines with four GPUs and with one, which have 12 and 64 vCPU for each."""
    return eks(
        pool("a-four", "g6.12xlarge", "spot", 1, "climb"),
        pool("b-one", "g6.16xlarge", "spot", 4, "climb"),
        classes={"climb": MOVES_ON},
        teams=[team("red", shares=dict(shares))],
    )


def test_the_quota_of_a_class_covers_a_node_of_each_of_its_pools() -> None:
    [nominal] = [quota.nominal for quota in queue_of(plan_of(mixed_class(("b-one", 1))), "red").quotas]

    assert nominal.gpus == 1
    assert nominal.vcpu >= 64, "a job that fills a g6.16xlarge would never be admitted"


def test_flavors_of_gpus_with_the_same_name_have_different_labels() -> None:
    # facts/apis.md G5: p4d has A100s of 40 GB, p4de of 80.
    plan = plan_of(
        eks(
            pool("small", "p4d.24xlarge", "spot", 1, "climb"),
            pool("large", "p4de.24xlarge", "spot", 1, "climb"),
            zones=["us-east-1b", "us-east-1c"],
            classes={"climb": MOVES_ON},
        )
    )

    labels = [tuple(flavor.node_labels.items()) for flavor in plan.flavors]
    assert len(labels) == len(set(labels))
