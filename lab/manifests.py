"""The objects that Kueue and Karpenter need on the API server before they start: CRDs, and Kueue's webhooks.

Among the CRDs is ProvisioningRequest, as on GKE: without it an AdmissionCheck for DWS, and every queue that names it, stays inactive.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from capacity.plan.kueue_configuration import FRAMEWORKS, NAMESPACE
from lab.cluster import Cluster, KubeObject, read_objects, wait_until_established
from lab.parts.kueue import WEBHOOK_SECRET

if TYPE_CHECKING:
    from lab.part import LabContext

_CONVERTED = {"clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"}
_WEBHOOKS_OF_KUEUE = {"clusterqueue", "cohort", "resourceflavor", "workload"}
_NEVER_MANAGED = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}]}


def manifests(lab: LabContext) -> list[KubeObject]:
    """Everything, in the order in which it is applied."""
    families = ("karpenter", "kueue", "autoscaler-apis")
    definitions = read_objects(*(file for family in families for file in lab.tools.assets(family, "crds")))
    webhooks = read_objects(*lab.tools.assets("kueue", "webhooks"))
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _webhook_secret(lab),
        *(_with_conversion(lab, definition) for definition in definitions),
        *(_on_loopback(lab, configuration) for configuration in webhooks),
    ]


def digest_of(objects: list[KubeObject]) -> str:
    """Changes when the objects must be applied again."""
    return hashlib.sha256(json.dumps(objects, sort_keys=True).encode()).hexdigest()


def install(cluster: Cluster, objects: list[KubeObject]) -> None:
    """Applies the objects and waits until the API server serves what they define."""
    cluster.apply(*objects)
    wait_until_established(cluster, [each["metadata"]["name"] for each in objects if each["kind"] == "CustomResourceDefinition"])


def _webhook_secret(lab: LabContext) -> KubeObject:
    """What Kueue's certificate rotation finds in order and therefore leaves alone: the lab's authority and server certificate."""
    certificates = lab.certificates
    files = {
        "ca.crt": certificates.certificate("ca"),
        "ca.key": certificates.key("ca"),
        "tls.crt": certificates.certificate("server"),
        "tls.key": certificates.key("server"),
    }
    content = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": WEBHOOK_SECRET, "namespace": NAMESPACE}, "data": content}


def _client_config(lab: LabContext, path: str) -> KubeObject:
    authority = base64.b64encode(lab.certificates.certificate("ca").read_bytes()).decode()
    return {"url": f"https://127.0.0.1:{lab.ports['kueue-webhook']}{path}", "caBundle": authority}


def _with_conversion(lab: LabContext, definition: KubeObject) -> KubeObject:
    """The definition with Kueue's conversion webhook where upstream's kustomization adds one."""
    spec = definition["spec"]
    if spec["group"] == "kueue.x-k8s.io" and spec["names"]["plural"] in _CONVERTED:
        webhook = {"clientConfig": _client_config(lab, "/convert"), "conversionReviewVersions": ["v1"]}
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    # The generated files carry an empty status, which is the server's to write.
    definition.pop("status", None)
    return definition


def _on_loopback(lab: LabContext, configuration: KubeObject) -> KubeObject:
    """The webhook configuration under its released name, reached by URL, without the integrations that are off."""
    configuration["metadata"] = {"name": f"kueue-{configuration['metadata']['name']}"}
    workloads = {framework.rpartition("/")[2] for framework in FRAMEWORKS}
    kept: list[KubeObject] = []
    for webhook in configuration["webhooks"]:
        # Names are m (mutating) or v (validating) and the kind: mclusterqueue.kb.io.
        kind = webhook["name"].partition(".")[0][1:]
        if kind not in workloads | _WEBHOOKS_OF_KUEUE:
            continue
        webhook["clientConfig"] = _client_config(lab, webhook["clientConfig"]["service"]["path"])
        if kind in workloads:
            webhook["namespaceSelector"] = _NEVER_MANAGED
        kept.append(webhook)
    configuration["webhooks"] = kept
    return configuration
