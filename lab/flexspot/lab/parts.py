"""The programs of a lab, described before any is started, and kubeconfig files for its API server."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Machine, Vendor, machines_of
from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, EFA_RESOURCE, ZONE_LABEL, karpenter_aws_labels
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.plan.kueue_configuration import NAMESPACE, ONE_BOOT, kueue_configuration
from flexspot.lab.tools.build import family_named

if TYPE_CHECKING:
    from flexspot.lab.certificates import Certificates
    from flexspot.lab.home import LabHome
    from flexspot.lab.tools.build import Tools


@dataclass(frozen=True)
class LabContext:
    """Inputs for the parts of a lab."""

    home: LabHome
    certificates: Certificates
    ports: dict[str, int]
    tools: Tools

    @property
    def api_url(self) -> str:
        """Address of the API server."""
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"


@dataclass(frozen=True)
class Part:
    """One program of the lab."""

    name: str
    version: str
    """Version of the module it was built from."""

    command: list[str]
    ports: tuple[str, ...]
    """Names of LabContext.ports that it listens on. `lab status` shows the first."""

    probe: str
    """URL that answers 200 once the part is ready."""

    environment: dict[str, str] = field(default_factory=dict)
    files: dict[Path, str] = field(default_factory=dict)
    """Contents of files to write before it starts."""

    @property
    def digest(self) -> str:
        """A digest that changes when the program must be restarted to apply its settings."""
        content = [self.version, self.command, self.environment, {str(path): text for path, text in self.files.items()}]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def kubeconfig(lab: LabContext, identity: str) -> str:
    """Return a kubeconfig for one of flexspot.lab.certificates.IDENTITIES. It is self-contained, so that it can be copied elsewhere."""
    context = f"flexspot-{lab.home.name}"
    certificates = lab.certificates

    def inline(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    cluster = {"server": lab.api_url, "certificate-authority-data": inline(certificates.certificate("ca"))}
    user = {
        "client-certificate-data": inline(certificates.certificate(identity)),
        "client-key-data": inline(certificates.key(identity)),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": identity, "user": user}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": identity}}],
        "current-context": context,
    }
    return yaml.safe_dump(content, sort_keys=False)


def acting_as(written: str, namespace: str, account: str) -> str:
    """Return the administrator's kubeconfig `written`, for requests with the rights of a service account alone."""
    content = yaml.safe_load(written)
    content["users"][0]["user"]["as"] = f"system:serviceaccount:{namespace}:{account}"
    return yaml.safe_dump(content, sort_keys=False)


def etcd(lab: LabContext) -> Part:
    """Return a single member with TLS on both ports. Without fsync: a lab's state survives a killed process, not a power cut."""
    certificates = lab.certificates
    client = f"https://127.0.0.1:{lab.ports['etcd']}"
    peer = f"https://127.0.0.1:{lab.ports['etcd-peer']}"
    return Part(
        name="etcd",
        version=family_named("etcd").version,
        ports=("etcd", "etcd-peer"),
        probe=f"{client}/health",
        command=[
            str(lab.tools.binary("etcd")),
            "--name=lab",
            f"--data-dir={lab.home.data('etcd') / 'member'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=lab={peer}",
            f"--cert-file={certificates.certificate('server')}",
            f"--key-file={certificates.key('server')}",
            f"--trusted-ca-file={certificates.certificate('ca')}",
            "--client-cert-auth",
            f"--peer-cert-file={certificates.certificate('server')}",
            f"--peer-key-file={certificates.key('server')}",
            f"--peer-trusted-ca-file={certificates.certificate('ca')}",
            "--peer-client-cert-auth",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
    )


def kube_apiserver(lab: LabContext) -> Part:
    """Return the API server, on loopback only."""
    certificates = lab.certificates
    return Part(
        name="kube-apiserver",
        version=family_named("kubernetes").version,
        ports=("kube-apiserver",),
        probe=f"{lab.api_url}/readyz",
        # A lab's heap is small. With fewer collections the API server needs a sixth less CPU, for some more memory.
        environment={"GOGC": "400"},
        command=[
            str(lab.tools.binary("kube-apiserver")),
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={lab.ports['kube-apiserver']}",
            # Endpoints of the `kubernetes` service may not be on loopback, and nothing in the lab uses them.
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--tls-cert-file={certificates.certificate('server')}",
            f"--tls-private-key-file={certificates.key('server')}",
            f"--client-ca-file={certificates.certificate('ca')}",
            # There is no certificate with this name. Without the setting, the other parts log a warning every minute.
            f"--requestheader-client-ca-file={certificates.certificate('ca')}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--authorization-mode=Node,RBAC",
            f"--etcd-servers=https://127.0.0.1:{lab.ports['etcd']}",
            f"--etcd-cafile={certificates.certificate('ca')}",
            f"--etcd-certfile={certificates.certificate('apiserver-etcd-client')}",
            f"--etcd-keyfile={certificates.key('apiserver-etcd-client')}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certificates.service_account_public_key}",
            f"--service-account-signing-key-file={certificates.key('service-account')}",
            "--v=1",
        ],
    )


def kube_controller_manager(lab: LabContext) -> Part:
    """Return the controller manager."""
    return _alone(
        lab,
        "kube-controller-manager",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={lab.certificates.key('service-account')}",
        f"--root-ca-file={lab.certificates.certificate('ca')}",
        "--kube-api-qps=300",
        "--kube-api-burst=500",
    )


def kube_scheduler(lab: LabContext) -> Part:
    """Return the scheduler."""
    return _alone(lab, "kube-scheduler")


def _alone(lab: LabContext, name: str, *flags: str) -> Part:
    """Return a Kubernetes program that connects to the API server. There is one instance, so no leader election."""
    own_kubeconfig = lab.home.settings(name) / "kubeconfig"
    return Part(
        name=name,
        version=family_named("kubernetes").version,
        ports=(name,),
        probe=f"https://127.0.0.1:{lab.ports[name]}/healthz",
        files={own_kubeconfig: kubeconfig(lab, name)},
        command=[
            str(lab.tools.binary(name)),
            f"--kubeconfig={own_kubeconfig}",
            f"--authentication-kubeconfig={own_kubeconfig}",
            f"--authorization-kubeconfig={own_kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={lab.ports[name]}",
            f"--tls-cert-file={lab.certificates.certificate('server')}",
            f"--tls-private-key-file={lab.certificates.key('server')}",
            "--leader-elect=false",
            *flags,
            "--v=1",
        ],
    )


WEBHOOK_SECRET = "kueue-webhook-server-cert"  # noqa: S105 -- the name of a Secret, not its content


def lab_configuration(lab: LabContext) -> dict[str, Any]:
    """Return the configuration that Kueue has in a cloud, with the lab's addresses and certificates. Its decisions are the same.

    Its internal certificate management stays on, with a Secret that already contains the lab's authority (see flexspot.lab.cluster).
    Without it, Kueue 0.19 needs a metrics certificate under /etc, which would require root.
    """
    released = kueue_configuration(ONE_BOOT)
    return released | {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{lab.ports['kueue-health']}"},
        "metrics": released["metrics"] | {"bindAddress": f"127.0.0.1:{lab.ports['kueue-metrics']}"},
        "webhook": {"host": "127.0.0.1", "port": lab.ports["kueue-webhook"], "certDir": str(_certificates(lab))},
        # There is one process, and it is restarted at once.
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": "kueue-webhook-service",
            "webhookSecretName": WEBHOOK_SECRET,
        },
        # The visibility API is served through a Service, which cannot reach a process on loopback.
        "featureGates": {"VisibilityOnDemand": False},
    }


ACCOUNT = "kueue-controller-manager"
"""Kueue's service account in its namespace, as its chart names it."""


def kueue(lab: LabContext) -> Part:
    """Return Kueue, running outside a cluster."""
    settings, certificates = lab.home.settings("kueue"), _certificates(lab)
    own_kubeconfig = settings / "kubeconfig"
    return Part(
        name="kueue",
        version=family_named("kueue").version,
        ports=("kueue-webhook", "kueue-health", "kueue-metrics"),
        probe=f"http://127.0.0.1:{lab.ports['kueue-health']}/readyz",
        environment={"POD_NAMESPACE": NAMESPACE},
        files={
            # As on a cluster, where policies do not judge Kueue's service account.
            own_kubeconfig: acting_as(kubeconfig(lab, "admin"), NAMESPACE, ACCOUNT),
            settings / "configuration.yaml": yaml.safe_dump(lab_configuration(lab), sort_keys=False),
            certificates / "tls.crt": lab.certificates.certificate("server").read_text(),
            certificates / "tls.key": lab.certificates.key("server").read_text(),
            certificates / "ca.crt": lab.certificates.certificate("ca").read_text(),
        },
        command=[
            str(lab.tools.binary("kueue")),
            f"--config={settings / 'configuration.yaml'}",
            f"--kubeconfig={own_kubeconfig}",
            "--zap-log-level=2",
        ],
    )


def _certificates(lab: LabContext) -> Path:
    return lab.home.settings("kueue") / "certificates"


_OWN_STAGES = Path(__file__).parent / "stages"

# Karpenter sets this label on the nodes that it creates for KWOK.
_FAKE_NODES = "kwok.x-k8s.io/node=fake"


def kwok(lab: LabContext) -> Part:
    """Return KWOK, which manages the fake nodes.

    A Job's pod runs for its annotation `pod-complete.stage.kwok.x-k8s.io/delay`, a Go duration, by default 1 to 6 s. The annotation
    `.../jitter-delay` is the upper bound of a random choice; set both to the same value. The end of a deleted pod is configured in
    flexspot/lab/stages.
    """
    settings = lab.home.settings("kwok")
    own_kubeconfig = settings / "kubeconfig"
    stages = [path.read_text(encoding="utf-8") for path in (*lab.tools.assets("kwok", "stages"), *sorted(_OWN_STAGES.iterdir()))]
    return Part(
        name="kwok",
        version=family_named("kwok").version,
        ports=("kwok",),
        probe=f"http://127.0.0.1:{lab.ports['kwok']}/readyz",
        files={own_kubeconfig: kubeconfig(lab, "admin"), settings / "stages.yaml": "\n---\n".join(stages)},
        command=[
            str(lab.tools.binary("kwok")),
            f"--kubeconfig={own_kubeconfig}",
            f"--config={settings / 'stages.yaml'}",
            f"--manage-nodes-with-label-selector={_FAKE_NODES}",
            f"--server-address=127.0.0.1:{lab.ports['kwok']}",
            "--node-ip=127.0.0.1",
            # KWOK takes a new identity at each start, and waits for the leases of its previous one to expire.
            "--node-lease-duration-seconds=15",
        ],
    )


REGION = "us-east-1"
"""The region of the lab's zones and prices."""

_HYPERVISOR = "karpenter.k8s.aws/instance-hypervisor"

# Size of the root volume in the shipped EKS node classes. The lab has no disks.
_EPHEMERAL_STORAGE = "100Gi"


def instance_types_json() -> str:
    """Return the content of INSTANCE_TYPES_FILE_PATH: every machine of the catalog that has a price in the lab's region."""
    types = [_instance_type(machine) for machine in machines_of(Vendor.AWS).values()]
    return json.dumps([each for each in types if each["offerings"]], indent=2)


def _instance_type(machine: Machine) -> dict[str, Any]:
    resources = {"cpu": str(machine.vcpu), "memory": f"{machine.memory_mib}Mi", "ephemeral-storage": _EPHEMERAL_STORAGE}
    if machine.gpu is not None:
        resources[machine.gpu.accelerator.resource] = str(machine.gpu.count)
    if machine.efa_interfaces:
        # Counted like Karpenter's own provider, from the node class's interfaces: pkg/providers/instancetype/types.go of v1.14.1, efas.
        resources[EFA_RESOURCE] = str(machine.efa_interfaces)
    return {
        "name": machine.name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources,
        "offerings": _offerings(machine),
    }


def _hypervisor(machine: str) -> str:
    """Return EC2's hypervisor, as Karpenter's own provider reports it: empty for bare metal.

    The catalog has no family from before Nitro.
    """
    return "" if machine.partition(".")[2].startswith("metal") else "nitro"


def _offerings(machine: Machine) -> list[dict[str, Any]]:
    # Each offering has the labels, because the KWOK provider reads custom labels only from there.
    labels = karpenter_aws_labels(machine) | {_HYPERVISOR: _hypervisor(machine.name)}
    prices = prices_of(Vendor.AWS)
    return [
        {
            "Price": float(price.usd_per_hour),
            "Available": True,
            "Requirements": [
                {"key": key, "operator": "In", "values": [value]}
                for key, value in {CAPACITY_TYPE_LABEL: capacity_type, ZONE_LABEL: zone, **labels}.items()
            ],
        }
        for capacity_type in CapacityType
        for zone in machine.zones.get(REGION, [])
        if (price := prices.find(machine.name, REGION, capacity_type))
    ]


def karpenter(lab: LabContext) -> Part:
    """Return Karpenter, whose nodes are fake but whose decisions are not."""
    settings = lab.home.settings("karpenter")
    return Part(
        name="karpenter",
        version=family_named("karpenter").version,
        ports=("karpenter-health", "karpenter-metrics"),
        probe=f"http://127.0.0.1:{lab.ports['karpenter-health']}/readyz",
        environment={
            "KUBECONFIG": str(settings / "kubeconfig"),
            "DISABLE_LEADER_ELECTION": "true",
            "SYSTEM_NAMESPACE": "kube-system",
            "METRICS_PORT": str(lab.ports["karpenter-metrics"]),
            "HEALTH_PROBE_PORT": str(lab.ports["karpenter-health"]),
            "INSTANCE_TYPES_FILE_PATH": str(settings / "instance-types.json"),
        },
        files={settings / "kubeconfig": kubeconfig(lab, "admin"), settings / "instance-types.json": instance_types_json()},
        command=[str(lab.tools.binary("karpenter"))],
    )


PORTS = {
    "etcd": "etcd",
    "etcd-peer": "etcd",
    "kube-apiserver": "kube-apiserver",
    "kube-controller-manager": "kube-controller-manager",
    "kube-scheduler": "kube-scheduler",
    "kwok": "kwok",
    "kueue-health": "kueue",
    "kueue-webhook": "kueue",
    "kueue-metrics": "kueue",
    "karpenter-health": "karpenter",
    "karpenter-metrics": "karpenter",
}
"""Every port name of a lab, with the part that listens on it."""


def store_and_server(lab: LabContext) -> list[Part]:
    """Return the parts that must be ready, in this order, before anything else can start."""
    return [etcd(lab), kube_apiserver(lab)]


def controllers(lab: LabContext) -> list[Part]:
    """Return the parts that use the API server. They start concurrently."""
    return [kube_controller_manager(lab), kube_scheduler(lab), kwok(lab), kueue(lab), karpenter(lab)]


def all_parts(lab: LabContext) -> list[Part]:
    """Return every part, in the order of starting."""
    return [*store_and_server(lab), *controllers(lab)]
