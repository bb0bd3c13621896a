"""Import of states of EKS and GKE: pools with their facts, guesses, and what is listed as not mapped."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from flexspot.capacity.adopting.found import Found
from flexspot.capacity.adopting.proposal import ImportOptions, Proposal, adoption, propose, stack_text
from flexspot.capacity.adopting.reading import from_state
from flexspot.capacity.adopting.terraform_state import TerraformResource, read_state
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings, read_stack_file
from flexspot.capacity.values.errors import ExplainedError

STATES = Path(__file__).parent / "states"


def resources(name: str) -> list[TerraformResource]:
    return read_state((STATES / name).read_bytes(), name)


def proposed(read: list[TerraformResource], **asked: str) -> tuple[Proposal, Found]:
    found = Found()
    from_state(read, found)
    return propose(found, ImportOptions(**asked)), found


def pools(proposal: Proposal) -> dict[str, dict[str, Any]]:
    return {each["name"]: {key: value for key, value in each.items() if key != "name"} for each in proposal.settings["pools"]}


def remarks_about(proposal: Proposal, address: str) -> list[str]:
    return [each.why for each in proposal.remarks for one in each.addresses if one.startswith(address)]


def changed(read: list[TerraformResource], address: str, **values: Any) -> list[TerraformResource]:
    """Return the state with other values in one resource."""
    [chosen] = [each for each in read if each.address == address]
    chosen.values.fields.update(copy.deepcopy(values))
    return read


P5 = 'module.eks.module.eks_managed_node_group["p5"].aws_eks_node_group.this[0]'
L4 = "module.l4.google_container_node_pool.node_pool[0]"


def test_an_eks_module_becomes_pools_of_its_groups_and_of_its_node_pools() -> None:
    proposal, _ = proposed(resources("eks-module.json"))
    settings = proposal.settings

    assert (settings["cloud"], settings["account"], settings["region"]) == ("eks", "444455556666", "us-west-2")
    assert settings["zones"] == ["us-west-2a", "us-west-2b", "us-west-2c"]
    assert settings["network"]["existing_private_subnets"] == [f"subnet-0{each}a1b2c3d4e5f6071" for each in (1, 2, 3)]
    theirs = {"node_role": "KarpenterNodeRole-ml-prod", "deployment": "kube-system/karpenter"}
    assert settings["cluster"]["existing_karpenter"] == theirs
    assert settings["queueing"] == {"existing_kueue": True}
    found = pools(proposal)
    assert found["p5-block"] == {
        "machine": "p5.48xlarge",
        "capacity_type": "reserved",
        "max_nodes": 2,
        "zones": ["us-west-2a"],
        "reservation": {"kind": "capacity-block", "ids": ["cr-0a1b2c3d4e5f60718"]},
        "boot_disk_gib": 500,
        "efa": True,
        "serves": ["training"],
    }
    t4 = found["t4-spot"]
    assert (t4["machine"], t4["alternatives"], t4["max_nodes"]) == ("g4dn.xlarge", ["g4dn.2xlarge"], 6)
    assert (found["gpu-l4"]["capacity_type"], found["gpu-l4"]["max_gpus"]) == ("spot", 8)
    # It allows a family and names no machine.
    assert "a10g" not in found
    assert any("names no machine" in each.why for each in proposal.remarks)


def test_a_gke_toolkit_becomes_a_pool_of_each_node_pool_with_gpus() -> None:
    proposal, _ = proposed(resources("gke-toolkit.json"))
    found = pools(proposal)

    assert proposal.settings["control_plane"] == {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}
    assert found["h100-res"]["reservation"] == {"name": "h100-block", "project": "acme-shared"}
    assert (found["h100-res"]["min_nodes"], found["h100-res"]["max_nodes"]) == (2, 2)
    assert found["h100-dws"]["capacity_type"] == "queued"
    assert (found["a100-flex"]["capacity_type"], found["a100-flex"]["max_run_hours"]) == ("flex-start", 72)
    # Five in each of two zones.
    assert (found["l4-spot"]["max_nodes"], found["l4-spot"]["zones"]) == (10, ["us-central1-a", "us-central1-b"])


def test_refusals_of_the_settings_check_name_the_source_and_the_setting() -> None:
    proposal, _ = proposed(resources("gke-toolkit.json"))
    [why] = remarks_about(proposal, "module.t4")

    assert "settings check` refuses it: splits GPUs, but the pool's queue admits only whole ones" in why
    assert "not a machine of the catalog" in remarks_about(proposal, "module.odd")[0]


def test_a_zonal_cluster_has_its_zone_and_the_pool_that_is_in_it() -> None:
    proposal, _ = proposed(resources("gke-raw.tfstate"))

    assert proposal.settings["cluster"] == {"existing": "lab", "zone": "europe-west4-b"}
    assert (proposal.settings["region"], proposal.settings["control_plane"]) == ("europe-west4", {"access": "dns_iam"})
    assert set(pools(proposal)) == {"a100", "l4"}


@pytest.mark.parametrize("name", ["eks-module.json", "gke-toolkit.json", "gke-raw.tfstate"])
def test_every_resource_of_a_state_is_used_or_reported(name: str) -> None:
    """Each resource is in a pool, in the settings or among the remarks, by its address."""
    read = [each for each in resources(name) if each.managed]
    proposal, found = proposed(read)
    reported = {address for each in proposal.remarks for address in each.addresses}
    used = {"aws_subnet", "helm_release", "kubectl_manifest", "aws_launch_template"}
    mapped = {each.address for each in found.pools} | set(proposal.addresses.values())
    silent = [each.address for each in read if each.address not in mapped and not any(one.startswith(each.address) for one in reported)]

    assert [each for each in silent if next(one.type for one in read if one.address == each) not in used] == (
        ["module.karpenter.aws_iam_role.node[0]"] if name.startswith("eks") else []
    )


@pytest.mark.parametrize("name", ["eks-module.json", "gke-toolkit.json", "gke-raw.tfstate"])
def test_the_stack_file_holds_the_settings_and_no_secret_of_the_state(name: str, tmp_path: Path) -> None:
    proposal, found = proposed(resources(name))
    text = stack_text(proposal, "a Terraform state")
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(text)

    assert read_stack_file(file) == parse_settings(proposal.settings, "x")
    if not any("refuses" in each.why for each in proposal.remarks):
        assert build_plan(read_stack_file(file)).pools != ()
    output = text + repr(adoption(found, proposal.settings, "p", "x")) + repr(proposal)
    assert "hunter2" in (STATES / name).read_text()
    assert "hunter2" not in output
    assert "aHVudGVyMi" not in output


HOSTILE = (
    "x: {y: 1}\n    cloud: local",
    "\x1b[2J\x1b]0;title\x07",
    "</script><img src=x onerror=alert(1)>",
    "!!python/object/apply:os.system ['id']",
    "&a [*a, *a]",
    "a\u202eb\u2028c",
    "'; DROP TABLE pools; --",
    "${env:HOME} {{ x }} # comment",
    "n" * 5000,
    "\ud800",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_with_markup_never_become_yaml_syntax(name: str, tmp_path: Path) -> None:
    read = changed(resources("gke-toolkit.json"), L4, name=name, node_config=[{"machine_type": "g2-standard-24", "spot": True}])
    read = [TerraformResource(f"x[{name}]", *list(vars(each).values())[1:]) if each.address == L4 else each for each in read]
    read = changed(read, "module.gke_cluster.google_container_cluster.gke_cluster", resource_labels={"owner": name, "environment": name})
    proposal, _ = proposed(read)
    text = stack_text(proposal, name[:50])
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(text, encoding="utf-8")

    assert read_stack_file(file) == parse_settings(proposal.settings, "x")
    # The cluster itself still has a pool named l4-spot.
    others = {"h100-res", "h100-dws", "a100-flex", "l4-spot"}
    assert others < set(pools(proposal))
    assert all(line.isprintable() for line in text.split("\n"))


def test_an_auto_mode_cluster_and_a_reserved_pool_without_reservation_are_named() -> None:
    read = changed(resources("eks-module.json"), "module.eks.aws_eks_cluster.this[0]", compute_config=[{"enabled": True}])
    read = changed(read, P5, launch_template=[], instance_types=["p5.48xlarge"])
    proposal, _ = proposed(read)

    assert any("Auto Mode" in why for why in remarks_about(proposal, "module.eks.aws_eks_cluster.this[0]"))
    assert any("settings check` refuses it" in why for why in remarks_about(proposal, P5))


def test_options_of_the_command_line_override_the_source() -> None:
    proposal, _ = proposed(resources("eks-module.json"), owner="me", environment="test", account="999988887777", cluster="other")

    assert [proposal.settings[each] for each in ("owner", "environment", "account")] == ["me", "test", "999988887777"]
    assert proposal.settings["cluster"]["existing"] == "other"
    assert not {"owner", "environment"} & {each.path for each in proposal.guesses}


@pytest.mark.parametrize(
    "kinds,problem",
    [
        ({"aws_eks_node_group", "kubectl_manifest"}, "no pool of GPU machines"),
        ({"aws_eks_cluster"}, "does not say the account"),
    ],
)
def test_missing_options_are_named(kinds: set[str], problem: str) -> None:
    with pytest.raises(ExplainedError, match=problem):
        proposed([each for each in resources("eks-module.json") if each.type not in kinds])


def test_a_state_of_two_clusters_is_refused() -> None:
    with pytest.raises(ExplainedError, match="has 2 clusters"):
        proposed([*resources("eks-module.json"), *resources("gke-toolkit.json")])


def test_the_import_file_has_the_ids_that_the_providers_document() -> None:
    proposal, found = proposed(resources("gke-toolkit.json"))
    adopted = adoption(found, proposal.settings, "project", "x")
    by_name = {each["logicalName"]: each for each in adopted.cloud["resources"]}

    assert by_name["l4-spot-node-pool"]["id"] == "acme-train/us-central1/a3-ultra/l4-spot"
    assert by_name["l4-spot"] == {
        "type": "flexspot:index:GkeGpuNodePool",
        "name": "GkeGpuNodePool:l4-spot",
        "logicalName": "l4-spot",
        "component": True,
    }
    elsewhere = {each.id for each in adopted.elsewhere}
    assert "projects/acme-train/locations/us-central1/clusters/a3-ultra" in elsewhere
    assert "acme-train/us-central1/a3-ultra/system" in elsewhere
    # A pool with another name in the proposal is not adopted: the next `up` would delete it.
    assert "acme-train/us-central1/a3-ultra/t4_shared" in elsewhere

    proposal, found = proposed(resources("eks-module.json"))
    adopted = adoption(found, proposal.settings, "project", "x")
    assert {each.id for each in adopted.adopted} == {"gpu-l4"}
    assert {"ml-prod", "ml-prod:t4-spot", "ml-prod:system", "default", "a10g"} <= {each.id for each in adopted.elsewhere}
    assert adopted.cluster["nameTable"] == {"cluster": "urn:pulumi:x::project::pulumi:providers:kubernetes::cluster"}
