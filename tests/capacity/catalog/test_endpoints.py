"""Addresses on a node that pods need to reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.catalog import platform as cluster_endpoints
from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.capacity.catalog.platform import Platform, endpoints_of

if TYPE_CHECKING:
    from pathlib import Path

ROW = "{name: dns, cidr: 169.254.20.10/32, protocols: [UDP], ports: [53], source: docs}"
FILE = """
as_of: 2026-11-21
sources:
  docs: {citation: the vendor's documentation, as_of: 2026-11-21, verified: true}
platforms: {local: [], gke: [ROW], eks: []}
"""


def read(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[cluster_endpoints.ClusterEndpoint, ...]:
    file = folder / "endpoints.yaml"
    file.write_text(text)
    monkeypatch.setattr(cluster_endpoints, "_FILE", file)
    return endpoints_of.__wrapped__(Platform.GKE)


@pytest.mark.parametrize("platform,names", [(Platform.GKE, {"metadata-server", "node-local-dns"}), (Platform.EKS, {"pod-identity-agent"})])
def test_each_cloud_has_the_server_that_hands_out_identities(platform: Platform, names: set[str]) -> None:
    assert {each.name for each in endpoints_of(platform)} >= names


@pytest.mark.parametrize(
    "written,instead,problem",
    [
        ("169.254.20.10/32", "10.0.0.0/8", "cidr"),
        ("[53]", "[0]", "ports"),
        ("source: docs", "source: hearsay", "dns: source 'hearsay' is not one of docs"),
        ("eks: []", "azure: []", "platforms"),
        (", eks: []", "", "platforms lacks eks"),
    ],
)
def test_an_endpoint_wider_than_a_sourced_address_of_the_node_is_refused(
    written: str, instead: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataFileError, match=problem):
        read(FILE.replace("ROW", ROW).replace(written, instead), tmp_path, monkeypatch)
