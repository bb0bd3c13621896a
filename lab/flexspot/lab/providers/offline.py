"""Providers for `preview --offline`: no cloud, no credentials, and nothing is ever created.

They say to a preview what can be said without asking anybody: the inputs, and what the real providers' own validation refuses of them.
What only a cloud can know stays unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2

from flexspot.lab.providers.cloud_rules.rule_checks import refused_inputs
from flexspot.lab.providers.objects import NoNameError, autonamed, kind_of, resource_name, type_of, with_old_autoname
from flexspot.lab.providers.planning import diff_answer, differences, top_level, with_secrets
from flexspot.lab.providers.serving import StandIn, abort
from flexspot.lab.providers.values import Properties, decode, encode, has_secret, plain

if TYPE_CHECKING:
    import grpc

_KUBERNETES = "kubernetes"
_PROVIDERS = "pulumi:providers:"

UNANSWERED = frozenset({"gcp:container/getEngineVersions:getEngineVersions", "aws:eks/getAddonVersion:getAddonVersion"})
"""What the program asks a cloud and goes on without: offline the answer has nothing in it."""


class OfflineProvider(StandIn):
    """Stands in for the provider `name` (`gcp`, `aws`, `kubernetes`) at the `version` of its SDK, in previews alone."""

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Any settings will do."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Settings may change in place: whether they may in the cloud is for the real provider to say."""
        return _difference(decode(request.olds), decode(request.news))

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Asks for secrets to be marked, and for previews."""
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """The inputs, with what the real provider would refuse of them.

        Kubernetes objects without a name get the one that the Kubernetes provider would give them.
        """
        news = decode(request.news)
        if self._name == _KUBERNETES:
            wish = request.autonaming if request.HasField("autonaming") else None
            try:
                news = _named(request.urn, decode(request.olds), news, request.randomSeed, wish)
            except NoNameError as error:
                abort(context, str(error))
        refused = refused_inputs(type_of(request.urn), news)
        # Without a property: the engine would look for one of this name among the resource's own, and find none inside a block.
        failures = [provider_pb2.CheckFailure(reason=f"{each.place}: {each.reason}") for each in refused]
        return provider_pb2.CheckResponse(inputs=encode(news), failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Whether the inputs changed. Never a replacement: which changes need one is for the real provider to say."""
        return _difference(decode(request.old_inputs) or decode(request.olds), decode(request.news))

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """In a preview the inputs; the engine takes what is not among them as unknown."""
        if not request.preview:
            self._refuse(context, "create", request.urn)
        return provider_pb2.CreateResponse(properties=request.properties)

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """In a preview the old outputs with the new inputs over them."""
        if not request.preview:
            self._refuse(context, "update", request.urn)
        return provider_pb2.UpdateResponse(properties=encode({**decode(request.olds), **decode(request.news)}))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refused: a preview deletes nothing."""
        self._refuse(context, "delete", request.urn)

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """What the state knows; of what is only named, by a `get` or an import, the name, and the engine takes the rest as unknown."""
        known = request.properties if request.properties.fields else encode({"id": request.id})
        return provider_pb2.ReadResponse(id=request.id, properties=known, inputs=request.inputs)

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refused, since a made-up answer would be a false preview; what the program can do without is answered with nothing."""
        if request.tok not in UNANSWERED:
            self._refuse(context, "call", request.tok, "An offline preview needs an explicit value where the program calls it.")
        return provider_pb2.InvokeResponse()

    def Call(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refused, as Invoke."""
        self._refuse(context, "call", request.tok, "An offline preview needs an explicit value where the program calls it.")

    def Construct(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refused: what a remote component is made of only its plugin knows."""
        self._refuse(context, "construct", request.type, "Declare the resources themselves.")

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Nothing waits here."""
        return empty_pb2.Empty()

    def _refuse(self, context: grpc.ServicerContext, operation: str, what: str, remedy: str = "") -> NoReturn:
        abort(
            context,
            f"cannot {operation} {what}: the {self._name} provider here is an offline stand-in, for `preview --offline` alone, and "
            f"never writes or invents state. {remedy or f'Run this with the real {self._name} provider.'}",
        )


def _named(urn: str, olds: Properties, news: Properties, seed: bytes, wish: Any) -> Properties:
    if resource_name(urn) == "" or f"::{_PROVIDERS}" in urn or urn.split("::")[2].count(":") < 2:  # noqa: PLR2004 -- parts of a type token
        return news
    inputs: Properties = plain(news)
    inputs["apiVersion"], inputs["kind"] = kind_of(urn, inputs)
    old: Properties = plain(olds)
    named = with_old_autoname(inputs, old) if old else autonamed(inputs, resource_name(urn), seed, wish)
    return with_secrets(named, news) if has_secret(news) or named["kind"] == "Secret" else named


def _difference(old: Properties, new: Properties) -> Any:
    found = differences(plain(old), plain(new))
    return diff_answer(found, replaces=(), diffs=top_level(found))
