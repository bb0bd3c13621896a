"""The cluster that recorded calls require: actions by hand between them, and objects whose own calls were omitted.

All changes here use kubectl, as in the recordings, so the field managers are the recorded ones.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

from recorded_calls import CONTROLLERS

from flexspot.lab.providers.api import LabApi, UnservedKindError
from flexspot.lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.lab.cluster import KubeObject

Key = tuple[str, str, str]
"""Kind with its group, namespace and name of an object."""


class RecordedCluster:
    """One cluster. It is changed with kubectl; a permanent connection checks whether objects exist."""

    def __init__(self, kubectl: Path, kubeconfig: Path) -> None:
        self._api = LabApi(kubeconfig, 10)
        self._command = [str(kubectl), "--kubeconfig", str(kubeconfig), "--cache-dir", str(kubeconfig.with_name("kubectl-cache"))]
        self.seen: dict[Key, None] = {}

    def kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._command, *arguments], input=stdin, capture_output=True, text=True, check=False, timeout=120)

    def get(self, kind: str, namespace: str, name: str) -> KubeObject | None:
        """Return an object with its managed fields, or None if it does not exist."""
        within = ["-n", namespace] if namespace else []
        answer = self.kubectl("get", kind, name, *within, "-o", "json", "--show-managed-fields")
        if answer.returncode:
            assert "NotFound" in answer.stderr or "doesn't have a resource type" in answer.stderr, answer.stderr
            return None
        found: KubeObject = json.loads(answer.stdout)
        return found

    def close(self) -> None:
        """Close the connection."""
        self._api.close()

    def exists(self, each: KubeObject) -> bool:
        """Return whether an object exists."""
        try:
            found = self._api.get(each["apiVersion"], each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
        except UnservedKindError:
            return False
        return found is not None

    def wait_until_gone(self, each: KubeObject) -> None:
        """Return when an object that is being deleted is gone, and at once if it is not being deleted. Raises TimeoutError."""
        for _ in range(600):
            if not self.exists(each):
                return
            found = self._api.get(each["apiVersion"], each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
            if found is None or "deletionTimestamp" not in found["metadata"]:
                return
            time.sleep(0.1)
        raise TimeoutError(f"{key_of(each)} is being deleted and does not go")

    def is_new(self, each: KubeObject) -> bool:
        """Return whether no call so far was about the object."""
        return key_of(each) not in self.seen

    def note(self, each: KubeObject) -> None:
        """Remember that a call was about the object."""
        self.seen[key_of(each)] = None

    def forget(self, kind: str, namespace: str, name: str) -> None:
        """Forget an object that was deleted by hand, so that a call missing in the recording may create it again."""
        for key in [key for key in self.seen if (_kind(key).lower(), *key[1:]) == (kind, namespace, name)]:
            del self.seen[key]

    def make_namespace(self, name: str) -> None:
        """Create a namespace, if it is missing, and wait for its default service account."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        if not self.exists(namespace):
            self.kubectl("create", "namespace", name)
            self.note(namespace)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        for _ in range(100):
            if self.exists(account):
                return
            time.sleep(0.1)

    def make(self, each: KubeObject) -> None:
        """Create an object in its former state: each of its managers sets its own part, with its own operation."""
        entries = [entry for entry in each["metadata"].get("managedFields", []) if _is_external(entry)]
        created = False
        for entry in sorted(entries, key=lambda entry: entry["operation"] == "Apply"):
            part = _part(each, entry["fieldsV1"])
            part = {**part, "apiVersion": each["apiVersion"], "kind": each["kind"], "metadata": {**part.get("metadata", {})}}
            part["metadata"] |= {key: each["metadata"][key] for key in ("name", "namespace") if key in each["metadata"]}
            manager = f"--field-manager={entry['manager']}"
            if entry["operation"] == "Apply":
                arguments = ["apply", "--server-side", "--force-conflicts", manager, "-f", "-"]
            elif created:
                arguments = ["patch", manager, "--type=merge", "-p", json.dumps(part), "-f", "-"]
            else:
                arguments = ["create", manager, "-f", "-"]
            answer = self.kubectl(*arguments, stdin=json.dumps(part))
            assert answer.returncode == 0, answer.stderr
            created = True
        self.note(each)

    def clear(self) -> None:
        """Delete every object that a call was about, even with finalizers.

        One call deletes all of a kind in a namespace, because calls are slow.
        """
        order = ["LocalQueue", "ClusterQueue", "Cohort", "ResourceFlavor", "NodePool", "KWOKNodeClass"]
        groups: dict[tuple[str, str], list[str]] = {}
        for kind, namespace, name in sorted(self.seen, key=lambda key: order.index(_kind(key)) if _kind(key) in order else len(order)):
            groups.setdefault((kind, namespace), []).append(name)
        namespaces = {namespace for _, namespace in groups} - {"", "default"} | {*groups.pop(("Namespace", ""), [])}
        for (kind, namespace), names in groups.items():
            within = ["-n", namespace] if namespace else []
            if self.kubectl("delete", kind, *names, *within, "--wait=false", "--ignore-not-found").stdout:
                for held in self.kubectl("get", kind, *names, *within, "-o", "name", "--ignore-not-found").stdout.split():
                    self.kubectl("patch", held, *within, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        if namespaces:
            self.kubectl("delete", "namespace", *sorted(namespaces), "--ignore-not-found", "--timeout=60s")
        self.seen.clear()


def key_of(each: KubeObject) -> Key:
    """Return the key of an object."""
    group = each["apiVersion"].rpartition("/")[0]
    return f"{each['kind']}.{group}".rstrip("."), each["metadata"].get("namespace", ""), each["metadata"].get("name", "")


def _kind(key: Key) -> str:
    return key[0].partition(".")[0]


def _is_external(entry: dict[str, Any]) -> bool:
    return entry["manager"] not in CONTROLLERS and not entry.get("subresource")


def _part(value: Any, fields: dict[str, Any]) -> Any:
    """Return the part of a value that a manager's fields name."""
    names = [name for name in fields if name != "."]
    if not names:
        return value
    if is_object(value):
        return {name[2:]: _part(value[name[2:]], fields[name]) for name in names if name[2:] in value}
    if is_list(value):
        return [each for each in value if any(_is_named(each, name) for name in names)]
    return value


def _is_named(each: Any, name: str) -> bool:
    form, _, rest = name.partition(":")
    wanted = json.loads(rest)
    if form == "k" and is_object(each):
        return all(each.get(key, _DEFAULTS.get(key)) == value for key, value in wanted.items())
    return each == wanted


_DEFAULTS = {"protocol": "TCP"}
