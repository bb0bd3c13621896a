"""One scenario of the recordings, played against the stand-in on a control plane: the calls, and the differences of the answers."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grpc
from pulumi.runtime.proto import provider_pb2, status_pb2
from recorded_calls import Line, differences, expected, message_of, without_arbitrary_values, written

from flexspot.lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from recorded_cluster import RecordedCluster

    from flexspot.lab.cluster import KubeObject

_WAITED_MILLISECONDS = 60_000
"""A call that took longer than this was interrupted by an action by hand. There is one."""


_CREATE_CONFIG_MAP = "create configmap rec-cm -n rec-a --from-literal=a=hand"

BY_HAND: dict[tuple[str, str], tuple[str, ...]] = {
    ("06-interrupted", "upsert-killed-up"): ("delete nodepool rec-pool",),
    ("07-existing-objects", "force-provider-up"): ("create namespace rec-a", "label namespace rec-a rec=rec", _CREATE_CONFIG_MAP),
}
"""Actions by hand before a step that have no line. The managed fields in the answers show them."""


class Replay:
    """One scenario in progress: the calls and answers so far."""

    def __init__(self, found: list[Line], stub: Any, recorded_cluster: RecordedCluster, kubeconfig: str) -> None:
        self._lines = found
        self._stub = stub
        self._cluster = recorded_cluster
        self._names: dict[str, str] = {"<kubeconfig>": kubeconfig}
        self._failures: dict[str, Any] = {}
        self._objects = _objects_in(found)
        self.compared: Counter[str] = Counter()
        self.found: list[str] = []

    def play(self) -> None:
        """Play every line in its order."""
        meanwhile = [each for each in self._lines if each.method == "@kubectl" and "comment" in (each.response or {})]
        step = ""
        for position, each in enumerate(self._lines):
            if each.step != step:
                step = each.step
                for command in BY_HAND.get((each.scenario, step), ()):
                    assert self._cluster.kubectl(*command.split()).returncode == 0, command
            if each in meanwhile:
                # Done by hand while a call waited, and so with that call.
                self.compared[each.method] += 1
            elif each.method == "@kubectl":
                self._by_hand(each)
            elif each.method == "@cluster":
                self._look(each)
            elif each.method == "@state":
                self._check_state(each)
            elif each.unanswered:
                self._interrupt(each, self._lines[position:])
            elif each.is_call:
                self._call(each, meanwhile if each.milliseconds > _WAITED_MILLISECONDS and each.method == "Delete" else [])

    def _call(self, each: Line, meanwhile: list[Line]) -> None:
        self._presuppose(each)
        self._note(each)
        answer, error, details = self._asked(each, meanwhile)
        self._learn(each, answer, error)
        if details is not None:
            self._failures[each.urn] = details
        recorded: Any = {"error": each.error} if each.error else expected(each)
        ours: Any = {"error": error} if error else answer
        self._compare(each, recorded, json.loads(self._as_recorded(json.dumps(ours))))

    def _interrupt(self, each: Line, later: list[Line]) -> None:
        """Handle a call whose answer never came: it took effect if later lines show that."""
        self.compared["unanswered"] += 1
        again = next((line for line in later if (line.urn, line.method) == (each.urn, "Create") and not line.unanswered), None)
        if each.method != "Create" or again is None:
            return
        recorded = (again.response or {}).get("properties", {})
        managers = {entry["manager"] for entry in recorded.get("metadata", {}).get("managedFields", []) if entry["operation"] == "Apply"}
        theirs = managers - {recorded.get("__fieldManager")}
        if not theirs and "already exists" not in again.error:
            return
        self._note(each)
        answer, _, _ = self._asked(each, [])
        if theirs:
            self._names[theirs.pop()] = answer["properties"]["__fieldManager"]

    def _note(self, each: Line) -> None:
        """Remember the objects that a call created or changed, so that they do not count as missing in the recording."""
        if each.method in {"Create", "Update", "Delete", "Read"} and not each.is_preview:
            for name in ("properties", "olds"):
                about = self._about(each.request.get(name) or {})
                if "name" in about.get("metadata", {}):
                    self._cluster.note(about)

    def _compare(self, each: Line, recorded: Any, ours: Any) -> None:
        keeps_status = each.method == "Create" and each.is_preview
        self.compared[each.method.partition(" ")[0]] += 1
        one, other = (without_arbitrary_values(value, keeps_status=keeps_status) for value in (recorded, ours))
        self.found += [f"{each.where} {difference}" for difference in differences(one, other)]

    def _asked(self, each: Line, meanwhile: list[Line]) -> tuple[Any, str, Any]:
        """Return the answer, or the error, with the part of the object that the engine keeps."""
        request = message_of(each.method, json.loads(self._as_ours(json.dumps(each.request))))
        call = getattr(self._stub, each.method)
        helping = threading.Timer(1, lambda: [self._by_hand(one) for one in meanwhile])
        if meanwhile:
            helping.start()
        try:
            return written(call(request)), "", None
        except grpc.RpcError as caught:
            error: Any = caught
            prefix = "" if error.code() is grpc.StatusCode.UNKNOWN else f"rpc error: code = {error.code().name.title()} desc = "
            return {}, prefix + error.details(), _details(error)

    def _presuppose(self, each: Line) -> None:
        """Create what the call requires and no recorded call has created."""
        if each.method not in {"Create", "Read", "Update", "Delete"} or each.unanswered:
            return
        properties: dict[str, Any] = each.request.get("properties") or {}
        olds: dict[str, Any] = each.request.get("olds") or {}
        if each.method == "Create":
            namespace = _namespace(properties)
            if namespace and not each.is_preview and f'namespaces "{namespace}" not found' not in each.error:
                self._presuppose_namespace(namespace)
            if "name" in properties.get("metadata", {}) and not each.is_preview and not each.error:
                # A deletion that does not wait (pulumi.com/skipAwait) had ended by then, when the calls were recorded.
                self._cluster.wait_until_gone(self._about(properties))
            return
        known = next((about for about in (olds, properties) if "metadata" in about), None)
        about = self._about(known or (each.response or {}).get("properties", {}))
        is_gone = "not found" in each.error or (each.method == "Read" and not each.response)
        if "metadata" in about and not is_gone:
            self._create_if_omitted(about)

    def _about(self, recorded: dict[str, Any]) -> KubeObject:
        """Return an object of a request with our names and without the signs of secrets."""
        found: KubeObject = json.loads(self._as_ours(json.dumps(_plain(recorded))))
        return found

    def _presuppose_named(self, kind: str, namespace: str, name: str) -> None:
        """Create an object that an action by hand or an observation of the cluster requires, as it was first seen in the recording."""
        if about := self._objects.get((kind, namespace, name)):
            self._create_if_omitted(self._about(about))

    def _create_if_omitted(self, about: KubeObject) -> None:
        if self._cluster.is_new(about) and not self._cluster.exists(about):
            if namespace := _namespace(about):
                self._presuppose_namespace(namespace)
            self._cluster.make(about)

    def _presuppose_namespace(self, name: str) -> None:
        self._presuppose_named("namespace", "", name)
        self._cluster.make_namespace(name)

    def _learn(self, each: Line, answer: Any, error: str) -> None:
        """Record which of our names corresponds to which recorded one: field managers and generated names are random."""
        recorded = each.response or {}
        pairs: list[tuple[Any, Any]] = []
        if each.method == "Check":
            pairs.append((_autoname(recorded.get("inputs", {})), _autoname(answer.get("inputs", {}))))
        pairs.append((recorded.get("properties", {}).get("__fieldManager"), answer.get("properties", {}).get("__fieldManager")))
        pairs += zip(re.findall(_OWN_MANAGER, each.error), re.findall(_OWN_MANAGER, error), strict=False)
        for theirs, ours in pairs:
            if theirs and ours and theirs != ours and re.search(r"-[0-9a-f]{8}$", theirs):
                self._names.setdefault(theirs, ours)

    def _as_ours(self, text: str) -> str:
        for theirs, ours in self._names.items():
            text = text.replace(theirs, ours)
        return text

    def _as_recorded(self, text: str) -> str:
        for theirs, ours in self._names.items():
            text = text.replace(ours, theirs)
        return text

    def _by_hand(self, each: Line) -> None:
        done: dict[str, Any] = each.response or {}
        stdin = done.get("stdin")
        self.compared[each.method] += "comment" not in done
        words: list[str] = done["kubectl"]
        namespace = words[words.index("-n") + 1] if "-n" in words else ""
        if done.get("rc") == 0 and words[0] in {"delete", "label", "patch"}:
            self._presuppose_named(words[1], namespace, words[2])
        answer = self._cluster.kubectl(*(self._as_ours(word) for word in words), stdin=stdin)
        if words[0] == "delete":
            self._cluster.forget(words[1], namespace, words[2])
        if "rc" in done and answer.returncode != done["rc"]:
            self.found.append(f"{each.where} {' '.join(done['kubectl'])}: {done['rc']} -> {answer.returncode} {answer.stderr}")

    def _look(self, each: Line) -> None:
        """Compare an object on the cluster with the recorded one. Before the first call, create it: it was created by hand."""
        recorded: dict[str, Any] = each.response or {}
        kind, namespace, name = self._as_ours(recorded["cluster"]).split("/", 2)
        if recorded["exists"]:
            if self.compared.keys() <= {each.method}:
                # Before the first call: created by hand.
                self._cluster.make(
                    {**recorded["object"], "metadata": {**recorded["object"]["metadata"], "managedFields": recorded["managedFields"]}}
                )
            self._presuppose_named(kind, namespace, name)
        live = self._cluster.get(kind, namespace, name)
        ours: dict[str, Any] = {"cluster": recorded["cluster"], "exists": live is not None}
        if live:
            entries = live["metadata"].pop("managedFields", [])
            kept = [{key: value for key, value in entry.items() if key not in {"time", "fieldsType"}} for entry in entries]
            ours |= {"managedFields": kept, "object": live}
        ours = json.loads(self._as_recorded(json.dumps(ours)))
        recorded = {key: value for key, value in recorded.items() if key != "answer"}
        self._compare(replace(each, method=f"@cluster {recorded['cluster']}"), recorded, ours)

    def _check_state(self, each: Line) -> None:
        recorded: dict[str, Any] = (each.response or {})["state"]
        failure = self._failures.get(recorded["urn"])
        if "initErrors" not in recorded:
            # A pending replacement is the engine's record.
            self.compared[each.method] += 1
            return
        ours: dict[str, Any] = {"urn": recorded["urn"]}
        if failure:
            ours |= {"id": failure.id, "initErrors": list(failure.reasons), "hasOutputs": sorted(failure.properties.fields)}
        self._compare(replace(each, request={"urn": recorded["urn"]}), recorded, json.loads(self._as_recorded(json.dumps(ours))))


_OWN_MANAGER = re.compile(r'field manager "([^"]+)"')


def _autoname(inputs: dict[str, Any]) -> str | None:
    metadata = inputs.get("metadata", {})
    return metadata.get("name") if metadata.get("annotations", {}).get("pulumi.com/autonamed") else None


def _namespace(each: KubeObject) -> str:
    return each.get("metadata", {}).get("namespace", "")


_SECRET = "4dabf18193072939515e22adb298388d"  # noqa: S105 -- Pulumi's sign for a secret


def _plain(value: Any) -> Any:
    if is_object(value):
        return _plain(value["value"]) if _SECRET in value else {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if is_list(value) else value


def _details(error: Any) -> Any:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status: Any = status_pb2.Status.FromString(value)
            detail: Any = provider_pb2.ErrorResourceInitFailed()
            status.details[0].Unpack(detail)
            return detail
    return None


def _objects_in(found: list[Line]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the objects in a scenario's states by kind as users write it, namespace and name; each as it was seen first."""
    objects: dict[tuple[str, str, str], dict[str, Any]] = {}
    for each in found:
        holders: list[dict[str, Any]] = [each.request.get("olds", {}), each.request.get("properties", {})]
        for holder in [*holders, (each.response or {}).get("properties", {})]:
            metadata: dict[str, Any] = holder.get("metadata", {})
            if "managedFields" in metadata:
                objects.setdefault((holder["kind"].lower(), metadata.get("namespace", ""), metadata["name"]), holder)
    return objects
