"""Gp3StorageClass: the class of claims that name none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexspot.components.storage.gp3_storage_class import Gp3StorageClass

if TYPE_CHECKING:
    from component_types import Register

CLASS = "kubernetes:storage.k8s.io/v1:StorageClass"
LABELS = {"flexspot.dev/owner": "ann"}


def test_a_claim_without_a_class_gets_an_encrypted_volume_in_the_zone_of_its_first_pod(register: Register) -> None:
    [made] = register(lambda: Gp3StorageClass("gp3", {"labels": LABELS})).of(CLASS)

    assert made["metadata"] == {
        "name": "gp3",
        "labels": LABELS,
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    }
    assert made["provisioner"] == "ebs.csi.aws.com"
    assert made["parameters"] == {"type": "gp3", "encrypted": "true"}
    assert (made["volumeBindingMode"], made["reclaimPolicy"], made["allowVolumeExpansion"]) == ("WaitForFirstConsumer", "Delete", True)


def test_with_another_default_class_it_has_a_different_name_and_is_requested(register: Register) -> None:
    [made] = register(lambda: Gp3StorageClass("gp3", {"name": "fast", "default": False, "labels": LABELS})).of(CLASS)

    assert made["metadata"] == {"name": "fast", "labels": LABELS}


def test_a_class_has_a_name(register: Register) -> None:
    with pytest.raises(ValueError, match=r"Gp3StorageClass gp3: name \(is ''\)"):
        register(lambda: Gp3StorageClass("gp3", {"name": "", "labels": LABELS}))
