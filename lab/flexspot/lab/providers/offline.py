"""Providers for `preview --offline`: no cloud, no credentials, and nothing is ever created.

They return what is known without any request: the inputs, and the real providers' own validation errors. What only a cloud knows stays
unknown.
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
"""Calls that the program works without: offline their answer is empty."""


class OfflineProvider(StandIn):
    """Stand-in for the provider `name` (`gcp`, `aws`, `kubernetes`) at the `version` of its SDK, in previews only."""

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Accept any settings."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Allow all settings to change in place: only the real provider knows which cannot in the cloud."""
        return _difference(decode(request.olds), decode(request.news))

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Request marked secrets, and previews."""
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the inputs, with the errors that the real provider would report.

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
        # Without a property: the engine would search for it among the resource's own properties, and find none inside a block.
        failures = [provider_pb2.CheckFailure(reason=f"{each.place}: {each.reason}") for each in refused]
        return provider_pb2.CheckResponse(inputs=encode(news), failures=failures)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Return whether the inputs changed. Never a replacement: only the real provider knows which changes need one."""
        return _difference(decode(request.old_inputs) or decode(request.olds), decode(request.news))

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the inputs in a preview. The engine treats missing outputs as unknown."""
        if not request.preview:
            self._refuse(context, "create", request.urn)
        return provider_pb2.CreateResponse(properties=request.properties)

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the old outputs, overridden by the new inputs, in a preview."""
        if not request.preview:
            self._refuse(context, "update", request.urn)
        return provider_pb2.UpdateResponse(properties=encode({**decode(request.olds), **decode(request.news)}))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refuse: a preview deletes nothing."""
        self._refuse(context, "delete", request.urn)

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Return the properties in the state. A `get` or an import has only the name, and the engine treats the rest as unknown."""
        known = request.properties if request.properties.fields else encode({"id": request.id})
        return provider_pb2.ReadResponse(id=request.id, properties=known, inputs=request.inputs)

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refuse, since an invented answer would be a false preview. Calls that the program works without get an empty answer."""
        if request.tok not in UNANSWERED:
            self._refuse(context, "call", request.tok, "An offline preview needs an explicit value where the program calls it.")
        return provider_pb2.InvokeResponse()

    def Call(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refuse, as Invoke."""
        self._refuse(context, "call", request.tok, "An offline preview needs an explicit value where the program calls it.")

    def Construct(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refuse: only its plugin knows the parts of a remote component."""
        self._refuse(context, "construct", request.type, "Declare the resources themselves.")

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Do nothing: there are no waits."""
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
