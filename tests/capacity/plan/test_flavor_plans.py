"""ResourceFlavors: their labels, what they tolerate, their order and ceilings."""

from __future__ import annotations

from plan_settings import Settings, eks, flavor_of, gke, local, own_class, plan_of, pool, pool_of, queue_of, team

from capacity.plan.model import Amount, Taint

MOVES_ON = own_class("climb", fallback="stock-out", capacity=["reserved", "spot", "on-demand"])
ON_GKE = {"reservation": {"name": "bought"}}
ON_EKS = {"reservation": {"tags": {"purpose": "gpu"}}}


def test_a_quota_pool_is_a_flavor_whose_labels_are_exactly_its_selector() -> None:
    settings = eks(pool("one", "g6.xlarge", "spot", 1, "training"), pool("two", "g6.2xlarge", "spot", 1, "training"))

    plan = plan_of(settings)

    assert [flavor.name for flavor in plan.flavors] == ["one", "two"]
    assert all(flavor.node_labels == pool_of(plan, flavor.name).selector for flavor in plan.flavors)
    assert flavor_of(plan, "one").node_labels != flavor_of(plan, "two").node_labels, "same GPUs, same capacity type, other ceilings"


def test_an_unqueued_pool_is_no_flavor() -> None:
    assert plan_of(local(pool("l4", "g6.xlarge", "on-demand", 1, "inference"))).flavors == ()


def test_a_stock_out_class_has_one_flavor_per_accelerator_on_eks_with_the_gpus_labels_alone() -> None:
    plan = plan_of(
        eks(
            pool("l4-spot", "g6.xlarge", "spot", 2, "climb"),
            pool("l4-on-demand", "g6.xlarge", "on-demand", 1, "climb"),
            pool("a10g", "g5.xlarge", "spot", 3, "climb"),
            classes={"climb": MOVES_ON},
        )
    )

    def gpu(name: str) -> dict[str, str]:
        return {"karpenter.k8s.aws/instance-gpu-memory": "22888", "karpenter.k8s.aws/instance-gpu-name": name}

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
    assert flavor.node_labels == {"cloud.google.com/compute-class": "climb"}, "GKE refuses other selectors beside it"


def test_a_flavor_gives_its_pods_every_toleration_but_that_of_the_class() -> None:
    flavor = flavor_of(plan_of(gke(pool("l4", "g2-standard-8", "spot", 1, "training"))), "l4")

    assert flavor.tolerated == (Taint("cloud.google.com/gke-spot", "true"), Taint("nvidia.com/gpu", "present"))
    assert flavor.node_taints == (Taint("flexspot.dev/class", "training"),), "given with the flavor, it would let every class in"


def test_queues_try_flavors_in_the_order_of_the_classes() -> None:
    kinds = ["spot", "queued", "reserved", "flex-start"]
    pools = [pool(f"{kind}-l4", "g2-standard-8", kind, 1, "training", **(ON_GKE if kind == "reserved" else {})) for kind in kinds]
    settings = gke(*pools, teams=[team("red", shares={f"{kind}-l4": 1 for kind in kinds})])

    plan = plan_of(settings)

    expected = ["reserved-l4", "flex-start-l4", "queued-l4", "spot-l4"]
    assert [flavor.name for flavor in plan.flavors] == expected
    assert [quota.flavor for quota in queue_of(plan, "red").quotas] == expected


def test_another_order_of_a_class_is_another_order_of_flavors() -> None:
    pools = [pool("a-spot", "g6.xlarge", "spot", 1, "training"), pool("b-reserved", "g6.xlarge", "reserved", 1, "training", **ON_EKS)]

    as_shipped = plan_of(eks(*pools))
    turned = plan_of(eks(*pools, classes={"training": {"capacity": ["spot", "reserved"]}}))

    assert [flavor.name for flavor in as_shipped.flavors] == ["b-reserved", "a-spot"]
    assert [flavor.name for flavor in turned.flavors] == ["a-spot", "b-reserved"]


def test_what_unqueued_classes_may_use_of_a_shared_pool_is_not_the_queues_to_give() -> None:
    classes = {"sweep": own_class("sweep", fallback="stock-out", capacity=["on-demand"])}
    shared = pool("l4", "g6.xlarge", "on-demand", 6, "inference", "sweep")
    settings = local(shared, classes=classes, teams=[team("red", unqueued={"l4": 1}), team("blue", unqueued={"l4": 3}, shares={"l4": 2})])

    plan = plan_of(settings)

    assert flavor_of(plan, "any-l4").ceiling == Amount(gpus=2, vcpu=8, memory_mib=32768)
    assert pool_of(plan, "l4").ceiling.gpus == 6


def mixed_class(*shares: tuple[str, int]) -> Settings:
    """A class on machines with four GPUs and with one, which have 12 and 64 vCPU for each."""
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


def test_the_quotas_of_a_class_add_up_to_its_ceiling() -> None:
    settings = eks(
        pool("a-large", "g6.4xlarge", "spot", 1, "climb"),
        pool("b-small", "g6.xlarge", "spot", 1, "climb"),
        classes={"climb": MOVES_ON},
        teams=[team("red", shares={"a-large": 1, "b-small": 1})],
    )
    plan = plan_of(settings)

    [nominal] = [quota.nominal for quota in queue_of(plan, "red").quotas]

    assert nominal == flavor_of(plan, "any-l4").ceiling


def test_flavors_of_gpus_that_share_a_name_are_not_the_same_nodes() -> None:
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


def test_the_nodes_of_a_queued_pool_are_asked_for_and_those_of_no_other() -> None:
    kinds = ["spot", "queued", "reserved", "flex-start"]
    pools = [pool(f"{kind}-l4", "g2-standard-8", kind, 1, "training", **(ON_GKE if kind == "reserved" else {})) for kind in kinds]

    assert {flavor.name: flavor.provisioned for flavor in plan_of(gke(*pools)).flavors} == {
        "reserved-l4": False,
        "flex-start-l4": False,
        "queued-l4": True,
        "spot-l4": False,
    }


def test_a_flavor_of_queued_capacity_gives_its_pods_the_toleration_of_queued_nodes() -> None:
    flavor = flavor_of(plan_of(gke(pool("queued", "g2-standard-8", "queued", 1, "training"))), "queued")

    assert Taint("cloud.google.com/gke-queued", "true") in flavor.tolerated


def test_elsewhere_no_nodes_are_asked_for() -> None:
    plans = [
        plan_of(eks(pool("p", "g6.xlarge", "reserved", 1, "training", **ON_EKS))),
        plan_of(local(pool("p", "g6.xlarge", "spot", 1, "training"))),
    ]

    assert [flavor.provisioned for plan in plans for flavor in plan.flavors] == [False, False]
