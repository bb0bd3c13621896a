"""Client of the lab's API server for the stand-in Kubernetes provider.

Plain REST instead of the Python client's dynamic one. A refusal is needed completely (reason and causes). A kind from a new
CustomResourceDefinition must be found without a stale discovery file. A wait must end when it is cancelled.
"""

from __future__ import annotations

import json
import threading
import time
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import urllib3
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

from flexspot.lab.providers.values import is_object

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.providers.objects import Schemas

_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_NOT_FOUND = 404
_BUSY = (429, 503)
_REQUEST_SECONDS = 60


class ApiRefusal(Exception):  # noqa: N818 -- not always an error: a 404 is an answer
    """The API server refused a request. `status` and `reason` are its own, such as 409 and Conflict."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.after_lost_answer = False
        """True if the same request was sent before and the connection broke before the answer came, so that it may have been executed."""

    @property
    def is_missing(self) -> bool:
        """True if something does not exist: the object, or its namespace."""
        return self.status == _NOT_FOUND

    @property
    def is_missing_namespace(self) -> bool:
        """True if the namespace is missing, and not the object."""
        return self.is_missing and self.message.startswith("namespaces ")


class UnservedKindError(Exception):
    """The API server does not serve this apiVersion and kind, at least not yet."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')


class UnreachableError(Exception):
    """The API server did not answer within the provider's time limit."""


class CancelledError(Exception):
    """The user pressed Ctrl-C."""


@dataclass(frozen=True)
class Resource:
    """Location of a kind's objects in the API server."""

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of one object, or of all in the namespace. Namespaced objects without a namespace are in `default`."""
        within = f"/namespaces/{quote(namespace or 'default')}" if self.namespaced else ""
        return f"{self.root}{within}/{self.plural}" + (f"/{quote(name)}" if name else "")


class LabApi:
    """One API server. Waits for a restart of it up to `patience_seconds`, by repeating requests that are safe to repeat."""

    def __init__(self, kubeconfig: Path, patience_seconds: float) -> None:
        settings: Any = kubernetes_client.Configuration()
        kubernetes_config.load_kube_config(str(kubeconfig), client_configuration=settings)
        self._server: str = settings.host
        self._patience_seconds = patience_seconds
        self._resources: dict[tuple[str, str], Resource] = {}
        self._schemas: dict[str, Schemas] = {}
        self._describing = threading.Lock()
        self.cancelled = threading.Event()
        # Its own pool, without the environment's proxy, which must not apply to loopback.
        self._pool = urllib3.PoolManager(
            maxsize=32,
            block=False,
            retries=False,
            timeout=_REQUEST_SECONDS,
            ca_certs=settings.ssl_ca_cert,
            cert_file=settings.cert_file,
            key_file=settings.key_file,
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def for_caller(self) -> LabApi:
        """Return a client with the same server, kinds and connections, which is cancelled separately."""
        own = copy(self)
        own.cancelled = threading.Event()
        return own

    def resource(self, api_version: str, kind: str) -> Resource:
        """Return the location of the kind's objects. Raises UnservedKindError. Unknown kinds are looked up again each time."""
        found = self._resources.get((api_version, kind)) or self._discovered(api_version).get((api_version, kind))
        if found is None:
            raise UnservedKindError(api_version, kind)
        return found

    def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether objects of a kind are in namespaces.

        True for kinds that are not served (yet), as the official provider assumes.
        """
        try:
            return self.resource(api_version, kind).namespaced
        except UnservedKindError:
            return True

    def schemas(self, api_version: str) -> Schemas:
        """Return the schemas of an API group's version from the server's OpenAPI document, none for groups of custom resources."""
        group = api_version.rpartition("/")[0]
        if "." in group and not group.endswith(".k8s.io"):
            return {}
        # One thread at a time requests a document: that of the core group is large, and a preview starts with many requests.
        with self._describing:
            if api_version not in self._schemas:
                answer = self._find(f"/openapi/v3/{'apis' if group else 'api'}/{api_version}")
                if answer is None:
                    return {}
                self._schemas[api_version] = answer["components"]["schemas"]
            return self._schemas[api_version]

    def forget_kinds(self) -> None:
        """Forget all kinds. Call this when a CustomResourceDefinition was changed or deleted."""
        self._resources.clear()

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> KubeObject | None:
        """Return one object, or None if it does not exist."""
        return self._find(self.resource(api_version, kind).path(namespace, name))

    def read(self, api_version: str, kind: str, namespace: str, name: str) -> KubeObject:
        """Return one object. Raises ApiRefusal, with the server's message, if it does not exist."""
        return self._send("GET", self.resource(api_version, kind).path(namespace, name))

    def find(self, api_version: str, kind: str, namespace: str, labels: str) -> list[KubeObject]:
        """Return the objects of a kind in a namespace that a label selector matches."""
        listing = self._send("GET", self.resource(api_version, kind).path(namespace), {"labelSelector": labels})
        found: list[KubeObject] = listing["items"]
        return found

    def apply(self, each: KubeObject, namespace: str, manager: str, *, force: bool, dry_run: bool) -> KubeObject:
        """Apply an object that has a name, server-side."""
        query = {"fieldManager": manager, "force": json.dumps(force), "fieldValidation": "Warn"}
        path = self.resource(each["apiVersion"], each["kind"]).path(namespace, each["metadata"]["name"])
        return self._send("PATCH", path, _with_dry_run(query, dry_run=dry_run), each, _APPLY)

    def create(self, each: KubeObject, namespace: str, manager: str, *, dry_run: bool) -> KubeObject:
        """Create an object. Raises ApiRefusal with the reason AlreadyExists if it exists."""
        path = self.resource(each["apiVersion"], each["kind"]).path(namespace)
        try:
            return self._send("POST", path, _with_dry_run({"fieldManager": manager}, dry_run=dry_run), each)
        except ApiRefusal as refusal:
            name = each["metadata"].get("name")
            if not (refusal.after_lost_answer and refusal.reason == "AlreadyExists" and name):
                raise
            # Requested again after a restart of the server: the object exists if only the first answer was lost, or if it existed before.
            live = self.get(each["apiVersion"], each["kind"], namespace, name)
            managers = {entry["manager"] for entry in (live or {}).get("metadata", {}).get("managedFields", [])}
            if live is None or manager not in managers:
                raise
            return live

    def set_managed_fields(self, each: KubeObject, entries: list[dict[str, Any]]) -> KubeObject:
        """Set the managers of an object's fields, and nothing else."""
        path = self.resource(each["apiVersion"], each["kind"]).path(each["metadata"].get("namespace", ""), each["metadata"]["name"])
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
        return self._send("PATCH", path, body=patch, content=_JSON_PATCH)

    def replace(self, each: KubeObject, namespace: str, manager: str, *, dry_run: bool) -> KubeObject:
        """Replace the whole object."""
        path = self.resource(each["apiVersion"], each["kind"]).path(namespace, each["metadata"]["name"])
        return self._send("PUT", path, _with_dry_run({"fieldManager": manager}, dry_run=dry_run), each)

    def delete(self, api_version: str, kind: str, namespace: str, name: str, propagation: str) -> None:
        """Request a deletion. Does nothing if the object does not exist."""
        try:
            path = self.resource(api_version, kind).path(namespace, name)
            self._send("DELETE", path, body={"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation})
        except ApiRefusal as refusal:
            if not refusal.is_missing:
                raise

    def pause(self, seconds: float) -> None:
        """Wait. Raises CancelledError as soon as the provider is cancelled."""
        if self.cancelled.wait(seconds):
            raise CancelledError("cancelled")

    def _discovered(self, api_version: str) -> dict[tuple[str, str], Resource]:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        answer = self._find(root)
        if answer is None:
            return {}
        found = {
            (api_version, each["kind"]): Resource(root, each["name"], each["namespaced"])
            for each in answer["resources"]
            if "/" not in each["name"]
        }
        self._resources.update(found)
        return found

    def _find(self, path: str) -> KubeObject | None:
        try:
            return self._send("GET", path)
        except ApiRefusal as refusal:
            if refusal.is_missing:
                return None
            raise

    def _send(
        self, method: str, path: str, query: dict[str, str] | None = None, body: Any = None, content: str = "application/json"
    ) -> KubeObject:
        url = f"{self._server}{path}" + (f"?{'&'.join(f'{key}={quote(value)}' for key, value in query.items())}" if query else "")
        deadline = time.monotonic() + self._patience_seconds
        lost = False
        # A second POST without a name would create a second object, with another generated name.
        once = method == "POST" and not (is_object(body) and body.get("metadata", {}).get("name"))
        while True:
            try:
                response = self._pool.request(
                    method, url, body=json.dumps(body) if body else None, headers={"Content-Type": content, "Accept": "application/json"}
                )
            except urllib3.exceptions.HTTPError as error:
                refusal = UnreachableError(f"{self._server} does not answer: {error}")
                if not isinstance(error, urllib3.exceptions.NewConnectionError):
                    lost = True
                    if once:
                        raise refusal from error
            else:
                answer: Any = _json(response.data)
                refusal = _refusal(response.status, answer)
                if refusal is None:
                    return answer
            if isinstance(refusal, ApiRefusal):
                refusal.after_lost_answer = lost
            if (isinstance(refusal, ApiRefusal) and refusal.status not in _BUSY) or time.monotonic() > deadline:
                raise refusal
            self.pause(0.2)


def _with_dry_run(query: dict[str, str], *, dry_run: bool) -> dict[str, str]:
    return {**query, "dryRun": "All"} if dry_run else query


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return {"message": content.decode(errors="replace")}


def _refusal(status: int, answer: Any) -> ApiRefusal | UnreachableError | None:
    if status < 400:  # noqa: PLR2004 -- HTTP's own border
        return None
    return ApiRefusal(status, str(answer.get("reason", status)), str(answer.get("message", answer)))
