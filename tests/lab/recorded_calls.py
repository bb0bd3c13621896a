"""Recorded answers of the official Kubernetes provider, and their comparison with others.

The files and the fields of a line are described in recordings/README.md.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import plugin_pb2, provider_pb2

from flexspot.lab.providers.values import is_list, is_object

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).with_name("recordings")

SCENARIOS = tuple(sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz")))

Messages = tuple[Any, Any]

MESSAGES: dict[str, Messages] = {
    "Handshake": (provider_pb2.ProviderHandshakeRequest, provider_pb2.ProviderHandshakeResponse),
    "GetPluginInfo": (empty_pb2.Empty, plugin_pb2.PluginInfo),
    "CheckConfig": (provider_pb2.CheckRequest, provider_pb2.CheckResponse),
    "DiffConfig": (provider_pb2.DiffRequest, provider_pb2.DiffResponse),
    "Configure": (provider_pb2.ConfigureRequest, provider_pb2.ConfigureResponse),
    "Check": (provider_pb2.CheckRequest, provider_pb2.CheckResponse),
    "Diff": (provider_pb2.DiffRequest, provider_pb2.DiffResponse),
    "Create": (provider_pb2.CreateRequest, provider_pb2.CreateResponse),
    "Read": (provider_pb2.ReadRequest, provider_pb2.ReadResponse),
    "Update": (provider_pb2.UpdateRequest, provider_pb2.UpdateResponse),
    "Delete": (provider_pb2.DeleteRequest, empty_pb2.Empty),
    "Invoke": (provider_pb2.InvokeRequest, provider_pb2.InvokeResponse),
    "Cancel": (empty_pb2.Empty, empty_pb2.Empty),
}
"""Message types of each call and its answer."""


@dataclass(frozen=True)
class Line:
    """One line: a call of the engine, or an observation or action next to it (then `method` begins with @)."""

    scenario: str
    step: str
    method: str
    request: dict[str, Any]
    response: dict[str, Any] | None
    error: str
    unanswered: bool
    milliseconds: int

    @property
    def is_call(self) -> bool:
        return not self.method.startswith("@")

    @property
    def urn(self) -> str:
        return self.request.get("urn", "")

    @property
    def resource(self) -> str:
        """The name that the program gave the resource."""
        return self.urn.rpartition("::")[2]

    @property
    def is_preview(self) -> bool:
        return bool(self.request.get("preview"))

    @property
    def where(self) -> str:
        return " ".join(part for part in (self.step, self.method, self.resource) if part)


def lines(scenario: str) -> Iterator[Line]:
    """Yield the lines of a scenario, in the order in which calls ended."""
    with gzip.open(FOLDER / f"{scenario}.jsonl.gz", "rt", encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            yield Line(
                line["scenario"],
                line["step"],
                line["method"],
                line.get("request", {}),
                line.get("response"),
                line.get("error", "").removeprefix("rpc error: code = Unknown desc = "),
                line.get("unanswered", False),
                line.get("milliseconds", 0),
            )


def message_of(method: str, request: dict[str, Any]) -> Any:
    """Return the message of a call, from the line's request."""
    return json_format.ParseDict(request, MESSAGES[method][0](), ignore_unknown_fields=True)


def written(message: Any) -> dict[str, Any]:
    """Return a message in the format of the lines."""
    return json_format.MessageToDict(message)


def expected(line: Line) -> dict[str, Any]:
    """Return the recorded answer in the format of answers (for example, a whole number as 1.0)."""
    return written(json_format.ParseDict(line.response or {}, MESSAGES[line.method][1]()))


# Rules for arbitrary values. Each replaces a value by the name of its kind, so that its presence is still compared.

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_COUNTERS = {"resourceVersion", "generation", "observedGeneration"}
_ADDRESSES = {"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"}
CONTROLLERS = {"karpenter", "kueue", "kube-controller-manager", "kube-scheduler", "kwok", "validatingadmissionpolicy-status"}
"""Field managers of the programs in the cluster."""

_CONTROLLERS_ANNOTATIONS = ("karpenter.sh/nodepool-hash", "deployment.kubernetes.io/revision")


def without_arbitrary_values(value: Any, key: str = "", *, keeps_status: bool = False) -> Any:
    """Return an answer without values that differ between runs, and without what controllers write at any time."""
    if is_object(value):
        return {
            name: without_arbitrary_values(each, name, keeps_status=keeps_status)
            for name, each in value.items()
            if (keeps_status and name == "status") or not _is_of_a_controller(name, each, value)
        }
    if key in _ADDRESSES and value not in ("None", ["None"]):
        return "<address>"
    if is_list(value):
        found = [without_arbitrary_values(each) for each in value]
        if key == "managedFields":
            kept = [each for each in found if each["manager"] not in CONTROLLERS and each.get("subresource") != "status"]
            return sorted(kept, key=lambda each: (each["manager"], each["operation"], each.get("subresource", "")))
        # Go's maps have no order.
        return sorted(found) if key == "replaces" else found
    if key in _COUNTERS:
        return "<counter>"
    return _TIME.sub("<time>", _UID.sub("<uid>", value)) if isinstance(value, str) else value


def _is_of_a_controller(name: str, value: Any, holder: dict[str, Any]) -> bool:
    if name == "status":
        # Written by a controller some time after the object; whether it was in time differs.
        return "metadata" in holder
    if name == "annotations" and is_object(value):
        return bool(value) and all(each.startswith(_CONTROLLERS_ANNOTATIONS) for each in value)
    return name.startswith(_CONTROLLERS_ANNOTATIONS)


def differences(recorded: Any, answered: Any, path: str = "") -> Iterator[str]:
    """Yield the differences of an answer, as `PATH: RECORDED -> ANSWERED`."""
    if is_object(recorded) and is_object(answered):
        for key in sorted({*recorded, *answered}):
            yield from differences(recorded.get(key, "<nothing>"), answered.get(key, "<nothing>"), f"{path}.{key}")
    elif is_list(recorded) and is_list(answered) and len(recorded) == len(answered):
        for position, (one, other) in enumerate(zip(recorded, answered, strict=True)):
            yield from differences(one, other, f"{path}[{position}]")
    elif recorded != answered:
        yield f"{path}: {json.dumps(recorded)} -> {json.dumps(answered)}"
