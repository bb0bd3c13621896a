"""A training cluster and two machines on Google Cloud, written as is common."""

import pulumi_gcp as gcp

network = gcp.compute.Network("main", auto_create_subnetworks=False)
subnet = gcp.compute.Subnetwork("main", network=network.id, ip_cidr_range="10.0.0.0/20", region="us-central1")
router = gcp.compute.Router("main", network=network.id, region="us-central1")
gcp.compute.RouterNat(
    "main",
    router=router.name,
    region="us-central1",
    nat_ip_allocate_option="AUTO_ONLY",
    source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
)
cluster = gcp.container.Cluster(
    "training",
    location="us-central1",
    network=network.id,
    subnetwork=subnet.id,
    initial_node_count=1,
    remove_default_node_pool=True,
)
gcp.container.NodePool(
    "system",
    cluster=cluster.id,
    location="us-central1",
    autoscaling={"min_node_count": 1, "max_node_count": 3},
    node_config={"machine_type": "e2-standard-4", "disk_size_gb": 50},
)
gcp.container.NodePool(
    "l4-spot",
    cluster=cluster.id,
    location="us-central1",
    node_locations=["us-central1-a", "us-central1-b"],
    initial_node_count=0,
    autoscaling={"total_min_node_count": 0, "total_max_node_count": 5, "location_policy": "ANY"},
    node_config={"machine_type": "g2-standard-8", "spot": True, "disk_type": "pd-ssd", "disk_size_gb": 200},
)
gcp.container.NodePool(
    "a100",
    cluster=cluster.id,
    location="us-central1",
    node_locations=["us-central1-a"],
    node_count=2,
    node_config={"machine_type": "a2-highgpu-1g", "guest_accelerators": [{"type": "nvidia-tesla-a100", "count": 1}]},
)
gcp.compute.Instance(
    "bastion",
    zone="us-central1-a",
    machine_type="e2-medium",
    boot_disk={"initialize_params": {"image": "debian-cloud/debian-12", "size": 20, "type": "pd-standard"}},
    network_interfaces=[{"subnetwork": subnet.id, "access_configs": [{}]}],
)
gcp.compute.Disk("data", zone="us-central1-a", type="pd-balanced", size=1000)
address = gcp.compute.Address("web", region="us-central1")
gcp.compute.ForwardingRule("web", region="us-central1", ip_address=address.address, port_range="443", target="projects/p/targetPools/t")
gcp.storage.Bucket("checkpoints", location="US-CENTRAL1")
gcp.sql.DatabaseInstance("accounts", database_version="POSTGRES_16", region="us-central1", settings={"tier": "db-f1-micro"})
