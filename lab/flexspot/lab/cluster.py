"""A client of a Kubernetes API server (apply, read, wait), and the objects that Kueue and Karpenter need there first.

ProvisioningRequest is among the CRDs, as on GKE: without it an AdmissionCheck for DWS, and every queue that names it, stays inactive.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import urllib3
import yaml
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient

from flexspot.capacity.plan.kueue_configuration import FRAMEWORKS, NAMESPACE
from flexspot.lab.parts import WEBHOOK_SECRET

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from flexspot.lab.parts import LabContext


KubeObject = dict[str, Any]
"""A Kubernetes object as the API server returns it."""

POD = "v1/Pod"

FIELD_MANAGER = "flexspot-lab"

NOT_FOUND = 404
_Seen = TypeVar("_Seen")


class WaitTimeoutError(TimeoutError):
    """A condition did not become true in time. The text names it, and the objects found instead."""


class Cluster:
    """An API server, accessed with a kubeconfig. Kinds are written `apiVersion/Kind`, such as `batch/v1/Job`."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        settings = kubernetes_client.Configuration()
        kubernetes_config.load_kube_config(str(kubeconfig), client_configuration=settings)
        # The environment's proxy must not apply to loopback.
        settings.proxy = None
        # Discovery is cached next to the kubeconfig. The default, one file per address under the temporary folder, would outlive the server
        # and be used for the next one with the same port. The client is not typed and returns JSON: Any, from here on.
        self._client: Any = DynamicClient(kubernetes_client.ApiClient(settings), cache_file=str(kubeconfig.with_name("discovery.json")))

    def apply(self, *objects: KubeObject, dry_run: bool = False) -> list[KubeObject]:
        """Apply objects server-side, in the given order.

        A dry run validates and stores nothing. Raises ApiException with the server's message.
        """
        return [
            self._resource(f"{each['apiVersion']}/{each['kind']}")
            .server_side_apply(
                body=each,
                name=each["metadata"]["name"],
                namespace=each["metadata"].get("namespace"),
                field_manager=FIELD_MANAGER,
                force_conflicts=True,
                **({"dry_run": "All"} if dry_run else {}),
            )
            .to_dict()
            for each in objects
        ]

    def create(self, each: KubeObject) -> KubeObject:
        """Create one object. Needed where the name is generated or an existing object would be a mistake."""
        created: KubeObject = (
            self._resource(f"{each['apiVersion']}/{each['kind']}").create(body=each, namespace=each["metadata"].get("namespace")).to_dict()
        )
        return created

    def get(self, kind: str, name: str, namespace: str | None = None) -> KubeObject | None:
        """Return one object, or None if it does not exist."""
        try:
            found: KubeObject = self._resource(kind).get(name=name, namespace=namespace).to_dict()
        except ApiException as error:
            if status_of(error) == NOT_FOUND:
                return None
            raise
        return found

    def list(self, kind: str, namespace: str | None = None, labels: str = "") -> list[KubeObject]:
        """Return the objects of a kind, in all namespaces unless one is given. `labels` is a selector."""
        found: list[KubeObject] = self._resource(kind).get(namespace=namespace, label_selector=labels).to_dict()["items"]
        return found

    def patch(  # noqa: PLR0913 -- what is changed, and how
        self,
        kind: str,
        name: str,
        change: KubeObject,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Apply a JSON merge patch to one object, or to a `subresource` such as status. A dry run validates and stores nothing."""
        resource = self._resource(kind)
        changed = resource if subresource is None else resource.subresources[subresource]
        how = {"dry_run": "All"} if dry_run else {}
        changed.patch(body=change, name=name, namespace=namespace, content_type="application/merge-patch+json", **how)

    def delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        """Delete one object and its dependents. No error if it does not exist."""
        try:
            self._resource(kind).delete(name=name, namespace=namespace, body={"propagationPolicy": "Background"})
        except ApiException as error:
            if status_of(error) != NOT_FOUND:
                raise

    def evict(self, pod: str, namespace: str) -> None:
        """Request a pod's eviction, as a drain does. Disruption budgets may refuse it (ApiException 429)."""
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        self._resource(POD).eviction.create(body=eviction, name=pod, namespace=namespace)

    def wait_for(  # noqa: PLR0913 -- a wait is described by exactly these
        self,
        kind: str,
        look: Callable[[builtins.list[KubeObject]], _Seen | None],
        what: str,
        *,
        namespace: str | None = None,
        labels: str = "",
        timeout_seconds: float = 90,
    ) -> _Seen:
        """Return the result of `look` for the objects of `kind`, as soon as it is neither None nor False.

        Follows a watch, and lists again whenever the watch or the server breaks off, so it also works across a restart of the server.
        Raises WaitTimeoutError, naming `what` and the objects, after `timeout_seconds`.
        """
        deadline = time.monotonic() + timeout_seconds
        current: dict[str, KubeObject] = {}
        while (left := deadline - time.monotonic()) > 0:
            try:
                resource = self._resource(kind)
                listing = resource.get(namespace=namespace, label_selector=labels).to_dict()
                current = {each["metadata"]["uid"]: each for each in listing["items"]}
                if seen := look(list(current.values())):
                    return seen
                for event in resource.watch(
                    namespace=namespace,
                    label_selector=labels,
                    resource_version=listing["metadata"]["resourceVersion"],
                    timeout=max(1, int(min(left, 30))),
                ):
                    self._follow(current, event)
                    if seen := look(list(current.values())):
                        return seen
                    if time.monotonic() > deadline:
                        break
            except (ApiException, urllib3.exceptions.HTTPError):
                time.sleep(0.2)
        raise WaitTimeoutError(
            f"{what} did not happen within {timeout_seconds:.0f} s; the last state of {kind}:\n{_summary(current.values())}"
        )

    @staticmethod
    def _follow(current: dict[str, KubeObject], event: dict[str, Any]) -> None:
        found: KubeObject = event["raw_object"]
        if event["type"] == "DELETED":
            current.pop(found["metadata"]["uid"], None)
        elif event["type"] in {"ADDED", "MODIFIED"}:
            current[found["metadata"]["uid"]] = found

    def _resource(self, kind: str) -> Any:
        api_version, _, name = kind.rpartition("/")
        return self._client.resources.get(api_version=api_version, kind=name)


def status_of(error: ApiException) -> int:
    """Return the HTTP status of a refusal."""
    return int(error.status or 0)


def condition(each: KubeObject, name: str) -> KubeObject | None:
    """Return the condition `name` of an object's status if that condition is "True", else None."""
    status: KubeObject = each.get("status", {})
    conditions: list[KubeObject] = status.get("conditions") or []
    return next((found for found in conditions if found["type"] == name and found["status"] == "True"), None)


def read_objects(*paths: Path) -> list[KubeObject]:
    """Return the objects of YAML files, in order."""
    return [each for path in paths for each in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) if each]


def wait_until_established(cluster: Cluster, names: Iterable[str], timeout_seconds: float = 30) -> None:
    """Return once the API server serves the named CustomResourceDefinitions."""
    wanted = set(names)

    def all_established(definitions: list[KubeObject]) -> bool:
        return wanted <= {each["metadata"]["name"] for each in definitions if condition(each, "Established")}

    cluster.wait_for(
        "apiextensions.k8s.io/v1/CustomResourceDefinition",
        all_established,
        f"serving {', '.join(sorted(wanted))}",
        timeout_seconds=timeout_seconds,
    )


def _summary(objects: Iterable[KubeObject]) -> str:
    lines: list[str] = []
    for each in objects:
        status: KubeObject = each.get("status", {})
        found: list[KubeObject] = status.get("conditions") or []
        conditions = [f"{c['type']}={c['status']}({c.get('reason', '')})" for c in found]
        with suppress(KeyError):
            where = each["metadata"].get("namespace", "")
            said = f"{each.get('reason', '')}: {each['message']}" if "message" in each else ""
            lines.append(f"  {where}/{each['metadata']['name']} {status.get('phase', '')} {' '.join(conditions)}{said}".rstrip())
    return "\n".join(lines) or "  (none)"


_CONVERTED = {"clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads"}
_WEBHOOKS_OF_KUEUE = {"clusterqueue", "cohort", "resourceflavor", "workload"}
_NEVER_MANAGED = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}]}


def manifests(lab: LabContext) -> list[KubeObject]:
    """Return all objects that a lab starts with, in the order in which they are applied."""
    families = ("karpenter", "kueue", "autoscaler-apis")
    definitions = read_objects(*(file for family in families for file in lab.tools.assets(family, "crds")))
    webhooks = read_objects(*lab.tools.assets("kueue", "webhooks"))
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _webhook_secret(lab),
        *released_roles(lab.tools.assets("kueue", "roles"), NAMESPACE, "kueue-"),
        *(_with_conversion(lab, definition) for definition in definitions),
        *(_on_loopback(lab, configuration) for configuration in webhooks),
    ]


def released_roles(files: list[Path], namespace: str, prefix: str) -> list[KubeObject]:
    """Return a controller's roles and bindings as its own kustomization completes them: names with `prefix`, in `namespace`."""
    objects = read_objects(*files)
    for each in objects:
        within = {} if each["kind"].startswith("Cluster") else {"namespace": namespace}
        each["metadata"] = {"name": prefix + each["metadata"]["name"], **within}
        for rule in each.get("rules", ()):
            if any(name.endswith("webhook-configuration") for name in rule.get("resourceNames", ())):
                rule["resourceNames"] = [prefix + name for name in rule["resourceNames"]]
        if "roleRef" in each:
            each["roleRef"]["name"] = prefix + each["roleRef"]["name"]
            each["subjects"] = [subject | {"name": prefix + subject["name"], "namespace": namespace} for subject in each["subjects"]]
    return objects


def digest_of(objects: list[KubeObject]) -> str:
    """Return a digest that changes when the objects must be applied again."""
    return hashlib.sha256(json.dumps(objects, sort_keys=True).encode()).hexdigest()


def install(cluster: Cluster, objects: list[KubeObject]) -> None:
    """Apply the objects and wait until the API server serves the kinds that they define."""
    cluster.apply(*objects)
    wait_until_established(cluster, [each["metadata"]["name"] for each in objects if each["kind"] == "CustomResourceDefinition"])


def _webhook_secret(lab: LabContext) -> KubeObject:
    """Return the Secret with the lab's authority and server certificate.

    Kueue's certificate rotation accepts it and leaves it unchanged.
    """
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
    """Return the definition with Kueue's conversion webhook where upstream's kustomization adds one."""
    spec = definition["spec"]
    if spec["group"] == "kueue.x-k8s.io" and spec["names"]["plural"] in _CONVERTED:
        webhook = {"clientConfig": _client_config(lab, "/convert"), "conversionReviewVersions": ["v1"]}
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    # The generated files contain an empty status, which only the server may write.
    definition.pop("status", None)
    return definition


def _on_loopback(lab: LabContext, configuration: KubeObject) -> KubeObject:
    """Return the webhook configuration under its released name, reached by URL, without the integrations that are off."""
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
