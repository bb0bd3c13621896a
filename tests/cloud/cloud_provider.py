"""The stand-in gcp and aws providers of the tests: Pulumi's protocol on one side, a cloud's folder on the other.

They refuse what the real providers' validation refuses, and what the clouds refuse as far as it matters to the stacks; they keep what was
made, so that the next process finds it.
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
"""What a cloud keeps for a while after its deletion, by design."""


class CloudProvider(OfflineProvider):
    """Stands in for the provider `name` (gcp or aws) over one cloud, and for the releases of its clusters (kubernetes)."""

    def __init__(self, name: str, version: str, cloud: CloudFolder) -> None:
        super().__init__(name, version)
        self._cloud_name = name
        self._cloud = cloud
        self._side = ClusterSide(cloud)
        self._configuration: Properties = {}

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Takes the provider's settings; AWS credentials of another account than the allowed ones are refused."""
        self._configuration = plain(decode(request.args))
        allowed: Any = self._configuration.get("allowedAccountIds")
        account = self._cloud.settings.get("account")
        if allowed and account not in allowed:
            abort(context, f"AWS account ID not allowed: {account}")
        self._finish()
        return super().Configure(request, context)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """The inputs, or what the real provider's validation refuses of them."""
        refused = violations(type_of(request.urn), decode(request.news))
        failures = [provider_pb2.CheckFailure(property=each.place, reason=f"{each.place} {each.reason}") for each in refused]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Which inputs changed, and for which the resource is made anew."""
        found = changes(type_of(request.urn), plain(decode(request.old_inputs)), plain(decode(request.news)))
        return diff_answer(found, diffs=top_level(found), replaces=top_level(each for each in found if each.replaces))

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Makes a resource, as far as the cloud lets it; a preview is answered with the inputs."""
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
        return provider_pb2.CreateResponse(id=held.identity, properties=encode(_told(held.outputs)))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """A resource as it is, with those inputs that the program set; nothing when it is gone."""
        token = type_of(request.urn)
        self._cloud.note(Event("read", request.urn, "done", request.id))
        held = self._cloud.get(token, request.id)
        if held is None or not held.is_there:
            return provider_pb2.ReadResponse()
        wanted = plain(decode(request.inputs))
        inputs = {key: value for key, value in held.inputs.items() if key in wanted} if wanted else held.inputs
        return provider_pb2.ReadResponse(id=held.identity, properties=encode(_told(held.outputs)), inputs=encode(inputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Changes a resource in place."""
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
        return provider_pb2.UpdateResponse(properties=encode(_told(changed.outputs)))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Deletes a resource, as far as the cloud lets it; nothing happens when it is gone."""
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
        """What GKE offers, and which version of an add-on AWS recommends, where the program asks for that."""
        if request.tok not in {TOKEN, ADDON_TOKEN}:
            return super().Invoke(request, context)
        self._cloud.note(Event("invoke", request.tok, "done", ""))
        asked: dict[str, Any] = plain(decode(request.args))
        answer: Any = provider_pb2.InvokeResponse
        try:
            told = engine_versions(asked) if request.tok == TOKEN else addon_version(asked)
        except NoAddonVersionError as error:
            abort(context, str(error))
        return answer(**{"return": encode(told)})

    def _make(self, held: Held) -> None:
        """What a cloud does for a new resource on the control plane of its clusters, and then the resource is there."""
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
        """A cloud goes on with what it was asked for, also when who asked was killed; here when it is next looked at."""
        for held in self._cloud.all():
            if held.token.startswith(f"{self._cloud_name}:"):
                if held.state == CREATING:
                    self._make(held)
                elif held.state == DELETING:
                    self._unmake(held)

    def _place(self, settings: dict[str, Any]) -> dict[str, Any]:
        """What is the same for all resources of the provider."""
        own = {key: value for key, value in self._configuration.items() if key in {"project", "region"}}
        return {"partition": "aws", "account": settings.get("account", ""), "project": settings.get("project", ""), **own}

    @contextmanager
    def _asked(
        self, context: grpc.ServicerContext, operation: str, urn: str, identity: str
    ) -> Generator[tuple[ResourceKind, dict[str, Any]]]:
        """Notes what was asked and what came of it, and tells the engine when the cloud refuses."""
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
    """The inputs of an update, with what the cloud has filled in inside their blocks, as the real providers plan it."""
    if isinstance(outputs, Secret):
        return Secret(planned(outputs.value, plain(old_inputs), plain(news)))
    if not (is_object(outputs) and is_object(news)):
        return news
    before: dict[str, Any] = old_inputs if is_object(old_inputs) else {}
    filled_in = {key: value for key, value in outputs.items() if key not in before}
    return {**filled_in, **{key: planned(outputs.get(key), before.get(key), value) for key, value in news.items()}}


def known_name(inputs: dict[str, Any]) -> str:
    """What a resource is called in its inputs, "" when nothing is."""
    return next((str(inputs[key]) for key in ("name", "bucket", "accountId", "role", "key") if isinstance(inputs.get(key), str)), "")


def _brings(held: Held) -> str:
    """What brings definitions along: a resource's type, and of a release its chart."""
    return held.inputs["chart"].rpartition("/")[2] if held.token == RELEASE else held.token


def _told(outputs: dict[str, Any]) -> Properties:
    """The outputs as they go to the engine, with what is secret marked."""
    authority = outputs.get("masterAuth")
    if is_object(authority) and authority.get("clientKey") == CLIENT_KEY:
        return {**outputs, "masterAuth": {**authority, "clientKey": Secret(CLIENT_KEY)}}
    return outputs
