"""A machine with everything that deploying a cloud stack needs, and a cloud to deploy it to, all in one folder of a test.

The engine finds plugins, command lines and credentials as on a user's machine: by PATH, PULUMI_HOME and the environment.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import command_line
import urllib3
import yaml
from checkout_fixtures import CHECKOUT, OwnCheckout
from cloud_folder import HOME_VARIABLE, CloudFolder
from credential_servers import MOTO_ACCOUNT
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config
from plugin_nursery import CLIENT, nursery

from flexspot.infra.deployment.prerequisites import PLUGINS

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Generator

    from flexspot.lab.control_plane import LabControlPlane
    from flexspot.lab.tools.build import Tools

HERE = Path(__file__).resolve().parent
SHIPPED_ACCOUNT = "111122223333"
PROGRAMS = {"gke-gcloud-auth-plugin": "gke_plugin", "aws": "aws"}
SECONDS = 300
"""Time limit of a run. It takes half a minute alone, and several times that next to other tests."""

GKE_KINDS = (CHECKOUT / "tests/components/gke/compute_class_crd.yaml", CHECKOUT / "tests/components/measurement/monitoring_crds.yaml")
"""GKE's own resource definitions, rebuilt from the documentation."""


class CloudWorld:
    """One such machine. `addresses` are those of the servers that check credentials: `google`, `aws`."""

    def __init__(self, folder: Path, tools: Tools, addresses: dict[str, str]) -> None:
        self.folder = folder
        self.cloud = CloudFolder(folder / "cloud")
        self.cloud.configure(account=MOTO_ACCOUNT)
        self.programs, self.home, self.backend = folder / "bin", folder / "pulumi", folder / "backend"
        for each in (self.programs, self.home / "plugins", self.backend):
            each.mkdir(parents=True)
        # Pulumi writes no logs if this is not a folder: see tests/conftest.py.
        (self.home / "logs").touch()
        (self.programs / "pulumi").symlink_to(tools.binary("pulumi"))
        for name, function in PROGRAMS.items():
            _write_program(self.programs / name, f"from credential_programs import {function}; {function}(sys.argv[1:])")
        for name, version in PLUGINS.items():
            plugin = self.home / "plugins" / f"resource-{name}-v{version}" / f"pulumi-resource-{name}"
            plugin.parent.mkdir()
            _write_plugin(plugin, name, version)
        self.checkout = OwnCheckout(folder / "checkout")
        for stack in ("dev-eks", "prod-eks"):
            file = self._stack_file(stack)
            file.write_text(file.read_text(encoding="utf-8").replace(SHIPPED_ACCOUNT, MOTO_ACCOUNT), encoding="utf-8")
        self.environment = self._environment(addresses)

    def serve_clusters_by(self, lab: LabControlPlane, tools: Tools) -> None:
        """Set the control plane behind the clusters of this cloud, and the resource types and charts that bring kinds to it."""
        content = yaml.safe_load(lab.home.kubeconfig.read_text(encoding="utf-8"))
        server = content["clusters"][0]["cluster"]
        certificates = lab.home.certificates
        self.cloud.configure(
            control_plane={
                "host": server["server"].removeprefix("https://"),
                "ca": server["certificate-authority-data"],
                "kubeconfig": str(lab.home.kubeconfig),
                "certificate": str(certificates / "admin.crt"),
                "key": str(certificates / "admin.key"),
            },
            brings={
                "gcp:container/cluster:Cluster": list(map(str, GKE_KINDS)),
                "karpenter-crd": list(map(str, tools.assets("karpenter-aws", "crds"))),
            },
        )
        # A public authority certifies the DNS name of a control plane. Here it is the lab's own.
        self.environment["SSL_CERT_FILE"] = str(certificates / "ca.crt")

    def flexspot(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command line as a user does and return its output. Raises TimeoutError for a run that does not end."""
        # No test kills this run: the state is written once at its end, not after each of some 250 resources.
        saved = {"PULUMI_SKIP_CHECKPOINTS": "true"}
        place = self.checkout.folder
        return command_line.flexspot(
            *arguments, checkout=place, folder=place, environment=self.environment | environment | saved, timeout=SECONDS
        )

    def change(self, stack: str, **changes: Any) -> None:
        """Write other settings into the stack file. Mappings are merged, one level deep."""
        file = self._stack_file(stack)
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        settings = content["config"]["flexspot:platform"]
        for key, value in changes.items():
            settings[key] = {**settings.get(key, {}), **value} if isinstance(value, dict) else value
        file.write_text(yaml.safe_dump(content), encoding="utf-8")

    @contextmanager
    def changed(self, stack: str, **changes: Any) -> Generator[None]:
        """Write other settings into the stack file until the end of the block."""
        file = self._stack_file(stack)
        before = file.read_text(encoding="utf-8")
        self.change(stack, **changes)
        try:
            yield
        finally:
            file.write_text(before, encoding="utf-8")

    def settings(self, stack: str) -> dict[str, Any]:
        """Return the settings of the stack file."""
        return yaml.safe_load(self._stack_file(stack).read_text(encoding="utf-8"))["config"]["flexspot:platform"]

    def state(self, stack: str) -> dict[str, Any]:
        """Return the backend's resources and pending operations of a stack; nothing before the first deployment."""
        file = self.backend / ".pulumi" / "stacks" / "flexspot" / f"{stack}.json"
        if not file.exists():
            return {}
        return json.loads(file.read_text(encoding="utf-8"))["checkpoint"].get("latest") or {}

    def resources(self, stack: str) -> dict[str, dict[str, Any]]:
        """Return the resources in a stack's state by URN, without components and providers."""
        found: list[dict[str, Any]] = self.state(stack).get("resources") or []
        return {each["urn"]: each for each in found if each.get("custom") and not each["type"].startswith("pulumi:")}

    def objects(self) -> set[str]:
        """Return all objects on the control plane, except those that controllers create and delete."""
        return all_objects(Path(self.cloud.settings["control_plane"]["kubeconfig"]))

    def held(self) -> list[str]:
        """Return the cloud's resources that are not being deleted, as `type name`, with duplicates."""
        return sorted(f"{held.token} {held.urn.rpartition('::')[2]}" for held in self.cloud.all() if held.is_there)

    def _stack_file(self, stack: str) -> Path:
        return self.checkout.folder / "stacks" / f"Pulumi.{stack}.yaml"

    def _environment(self, addresses: dict[str, str]) -> dict[str, str]:
        own = {
            HOME_VARIABLE: str(self.cloud.folder),
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "PULUMI_HOME": str(self.home),
            "PULUMI_BACKEND_URL": f"file://{self.backend}",
            "PULUMI_CONFIG_PASSPHRASE": "of the tests",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "HOME": str(self.folder),
            # Tools that are already built are found there; nothing else of the user's home is visible.
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_GCE_CHECK": "true",
        }
        if "google" in addresses:
            own["GOOGLE_APPLICATION_CREDENTIALS"] = str(self.folder / "service-account.json")
            own["CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER"] = f"{addresses['google']}/"
            own["CLOUDSDK_API_ENDPOINT_OVERRIDES_SERVICEUSAGE"] = f"{addresses['google']}/"
        if "aws" in addresses:
            own |= {
                "AWS_ENDPOINT_URL": addresses["aws"],
                "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
                "AWS_SECRET_ACCESS_KEY": "made-up",
            }
        # The user who runs the tests may have credentials.
        foreign = ("AWS_", "GOOGLE_", "CLOUDSDK_", "PULUMI_", "FLEXSPOT_")
        kept = {name: value for name, value in self.checkout.environment.items() if not name.startswith(foreign)}
        return {**kept, **own}


def _write_plugin(file: Path, name: str, version: str) -> None:
    # Load nothing of the interpreter's environment, so that it starts in milliseconds.
    started = shlex.join([sys.executable, "-I", "-S", "-c", CLIENT, nursery(), name, version])
    file.write_text(f"#!/bin/sh\nexec {started}\n", encoding="utf-8")
    file.chmod(0o700)


def _write_program(file: Path, statement: str) -> None:
    """Write an executable that runs a Python statement with this folder's modules. `exec` keeps the engine as its parent."""
    code = f"import sys; sys.path[:0] = [{str(HERE)!r}]; {statement}"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n', encoding="utf-8")
    file.chmod(0o700)


_COMES_AND_GOES = {
    "APIService",
    "ComponentStatus",
    "ControllerRevision",
    "EndpointSlice",
    "Endpoints",
    "Event",
    "Lease",
    "Pod",
    "ReplicaSet",
}
"""Kinds whose objects controllers create and delete at any time."""


def all_objects(kubeconfig: Path) -> set[str]:
    """Return each object as `apiVersion/Kind namespace/name`, in its group's preferred version, without objects that are being deleted."""
    settings: Any = kubernetes_client.Configuration()
    kubernetes_config.load_kube_config(str(kubeconfig), client_configuration=settings)
    found: set[str] = set()
    with urllib3.PoolManager(ca_certs=settings.ssl_ca_cert, cert_file=settings.cert_file, key_file=settings.key_file) as pool:

        def get(path: str) -> Any:
            return json.loads(pool.request("GET", f"{settings.host}{path}").data)

        groups: list[str] = [group["preferredVersion"]["groupVersion"] for group in get("/apis")["groups"]]
        for version in ["v1", *groups]:
            root = "/api/v1" if version == "v1" else f"/apis/{version}"
            for resource in get(root)["resources"]:
                if "/" in resource["name"] or "list" not in resource["verbs"] or resource["kind"] in _COMES_AND_GOES:
                    continue
                for each in get(f"{root}/{resource['name']}")["items"]:
                    found |= _named(f"{version}/{resource['kind']}", each["metadata"])
    return found


def _named(kind: str, metadata: dict[str, Any]) -> set[str]:
    name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    return set() if "deletionTimestamp" in metadata else {f"{kind} {name}"}
