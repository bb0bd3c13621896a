"""The stand-in gcp and aws providers of the tests: Pulumi's protocol on one side, a cloud's folder on the other.

They reject what the real providers' validation rejects, and what the clouds reject as far as the stacks need it. They keep created
resources, so that the next process finds them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from addon_versions import ADDON_TOKEN, NoAddonVersionError, addon_version
from cloud_answers import CLIENT_KEY, known_values, outputs_of
from cloud_folder import CREATING, DELETING, THERE, Event, Held
from cloud_refusals import CloudRefusalError, refuse_create, refuse_delete, refuse_update
from cloud_resources import kinds
from cluster_side import ClusterSide
from declared_inputs import violations
from engine_versions import TOKEN, engine_versions
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from flexspot.lab.providers.cloud_rules.rule_differences import changes
from flexspot.lab.providers.objects import resource_name, type_of
from flexspot.lab.providers.offline import OfflineProvider
from flexspot.lab.providers.planning import diff_answer, top_level
from flexspot.lab.providers.serving import abort
from flexspot.lab.providers.values import Properties, Secret, decode, encode, is_object, plain

if TYPE_CHECKING:
    from collections.abc import Generator

    import grpc
    from cloud_folder import CloudFolder
    from cloud_resources import ResourceKind

RELEASE = "kubernetes:helm.sh/v3:Release"
_KEY = "aws:kms/key:Key"
LEAVES_LATER = {_KEY: "pending deletion"}
"""Resource types that a cloud keeps for a while after their deletion, by design, with the state that they then have."""


class CloudProvider(OfflineProvider):
    """Stand-in for the provider `name` (gcp or aws) over one cloud, and for the releases of its clusters (kubernetes)."""

    def __init__(self, name: str, version: str, cloud: CloudFolder) -> None:
        super().__init__(name, version)
        self._cloud_name = name
        self._cloud = cloud
        self._side = ClusterSide(cloud)
        self._configuration: Properties = {}

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Accept the provider's settings. Reject AWS credentials of an account that is not allowed."""
        self._configuration = plain(decode(request.args))
        allowed: Any = self._configuration.get("allowedAccountIds")
        account = self._cloud.settings.get("account")
        if allowed and account not in allowed:
            abort(context, f"AWS account ID not allowed: {account}")
        self._finish()
        return super().Configure(request, context)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Return the inputs, or the violations that the real provider's validation reports."""
        refused = violations(type_of(request.urn), decode(request.news))
        failures = [provider_pb2.CheckFailure(property=each.place, reason=f"{each.place} {each.reason}") for each in refused]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Return the changed inputs, and those that force a replacement."""
        found = changes(type_of(request.urn), plain(decode(request.old_inputs)), plain(decode(request.news)))
        return diff_answer(found, diffs=top_level(found), replaces=top_level(each for each in found if each.replaces))

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Create a resource if the cloud allows it. Answer a preview with the inputs."""
        if request.preview:
            return super().Create(request, context)
        inputs: dict[str, Any] = plain(decode(request.properties))
        with self._asked(context, "create", request.urn, known_name(inputs)) as (kind, settings):
            known = known_values(kind, self._place(settings), inputs)
            held = Held(kind.token, known["id"], request.urn, inputs, outputs_of(kind, known, inputs, settings), CREATING)
            with self._cloud.changing():
                refuse_create(self._cloud, kind, known, inputs)
                self._cloud.put(held)
            self._make(held)
        return provider_pb2.CreateResponse(id=held.identity, properties=encode(_for_engine(held.outputs)))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Return a resource as it is, with the inputs that the program set; nothing if it is gone."""
        token = type_of(request.urn)
        self._cloud.note(Event("read", request.urn, "done", request.id))
        held = self._cloud.get(token, request.id)
        if held is None or not held.is_there:
            return provider_pb2.ReadResponse()
        wanted = plain(decode(request.inputs))
        inputs = {key: value for key, value in held.inputs.items() if key in wanted} if wanted else held.inputs
        return provider_pb2.ReadResponse(id=held.identity, properties=encode(_for_engine(held.outputs)), inputs=encode(inputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Change a resource in place."""
        inputs: dict[str, Any] = plain(decode(request.news))
        if request.preview:
            olds = decode(request.olds)
            outputs = {**olds, **planned(olds, decode(request.old_inputs), decode(request.news))}
            return provider_pb2.UpdateResponse(properties=encode(outputs))
        with self._asked(context, "update", request.urn, request.id) as (kind, settings), self._cloud.changing():
            held = self._cloud.get(kind.token, request.id)
            if held is None or not held.is_there:
                raise CloudRefusalError(f"{request.id} was not found")
            refuse_update(self._cloud, kind, held.inputs, inputs)
            known = known_values(kind, self._place(settings), {**held.inputs, **inputs}, held.identity)
            changed = Held(kind.token, held.identity, request.urn, inputs, outputs_of(kind, known, inputs, settings))
            self._cloud.put(changed)
        return provider_pb2.UpdateResponse(properties=encode(_for_engine(changed.outputs)))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Delete a resource if the cloud allows it. Do nothing if it is gone."""
        with self._asked(context, "delete", request.urn, request.id) as (kind, _):
            with self._cloud.changing():
                held = self._cloud.get(kind.token, request.id)
                if held is not None:
                    refuse_delete(self._cloud, held)
                    self._cloud.put(replace(held, state=DELETING))
            if held is not None:
                self._unmake(held)
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the versions that GKE offers, or the version of an add-on that AWS recommends."""
        if request.tok not in {TOKEN, ADDON_TOKEN}:
            return super().Invoke(request, context)
        self._cloud.note(Event("invoke", request.tok, "done", ""))
        asked: dict[str, Any] = plain(decode(request.args))
        answer: Any = provider_pb2.InvokeResponse
        try:
            result = engine_versions(asked) if request.tok == TOKEN else addon_version(asked)
        except NoAddonVersionError as error:
            abort(context, str(error))
        return answer(**{"return": encode(result)})

    def _make(self, held: Held) -> None:
        """Apply the effects of a new resource to the control plane of its cluster, then mark the resource as existing."""
        self._side.bring(_brings(held))
        self._side.add_nodes(held.token, held.identity, held.inputs)
        self._cloud.put(replace(held, state=THERE))

    def _unmake(self, held: Held) -> None:
        self._side.remove_nodes(held.token, held.identity, held.inputs)
        self._side.take_away(_brings(held))
        with self._cloud.changing():
            self._cloud.remove(held.token, held.identity)
            if state := LEAVES_LATER.get(held.token):
                self._cloud.put(replace(held, state=state))

    def _finish(self) -> None:
        """Finish operations in progress. A cloud continues them when the caller was killed; here, at the next look."""
        for held in self._cloud.all():
            if held.token.startswith(f"{self._cloud_name}:"):
                if held.state == CREATING:
                    self._make(held)
                elif held.state == DELETING:
                    self._unmake(held)

    def _place(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the values that all resources of the provider share."""
        own = {key: value for key, value in self._configuration.items() if key in {"project", "region"}}
        return {"partition": "aws", "account": settings.get("account", ""), "project": settings.get("project", ""), **own}

    @contextmanager
    def _asked(
        self, context: grpc.ServicerContext, operation: str, urn: str, identity: str
    ) -> Generator[tuple[ResourceKind, dict[str, Any]]]:
        """Record a request and its result, and report a refusal by the cloud to the engine."""
        token = type_of(urn)
        kind = kinds().get(token)
        self._cloud.note(Event(operation, urn, "begun", identity))
        problem = "" if kind else f"the stand-in {self._cloud_name} of the tests has no {token}; describe it in cloud_resources.yaml."
        if kind is not None:
            try:
                yield kind, self._cloud.settings
            except CloudRefusalError as error:
                problem = f"{operation} {token} {resource_name(urn)}: {error}"
            except KeyError as error:
                problem = f"{operation} {token} {resource_name(urn)}: {error} is missing, of which the id or an output is made."
        self._cloud.note(Event(operation, urn, "refused" if problem else "done", identity, problem))
        if problem:
            abort(context, problem)


def planned(outputs: Any, old_inputs: Any, news: Any) -> Any:
    """Return the inputs of an update, including values that the cloud filled in inside their blocks, as the real providers plan it."""
    if isinstance(outputs, Secret):
        return Secret(planned(outputs.value, plain(old_inputs), plain(news)))
    if not (is_object(outputs) and is_object(news)):
        return news
    before: dict[str, Any] = old_inputs if is_object(old_inputs) else {}
    filled_in = {key: value for key, value in outputs.items() if key not in before}
    return {**filled_in, **{key: planned(outputs.get(key), before.get(key), value) for key, value in news.items()}}


def known_name(inputs: dict[str, Any]) -> str:
    """Return a resource's name from its inputs, or ""."""
    return next((str(inputs[key]) for key in ("name", "bucket", "accountId", "role", "key") if isinstance(inputs.get(key), str)), "")


def _brings(held: Held) -> str:
    """Return the thing that brings definitions along: a resource's type, or a release's chart."""
    return held.inputs["chart"].rpartition("/")[2] if held.token == RELEASE else held.token


def _for_engine(outputs: dict[str, Any]) -> Properties:
    """Return the outputs as they go to the engine, with secrets marked."""
    authority = outputs.get("masterAuth")
    if is_object(authority) and authority.get("clientKey") == CLIENT_KEY:
        return {**outputs, "masterAuth": {**authority, "clientKey": Secret(CLIENT_KEY)}}
    return outputs
