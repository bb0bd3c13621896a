"""The stand-in for the Kubernetes provider. It answers like the official one, for the local control plane only.

It is frozen: it gets no features. It exists for machines without the official plugin. Changes may only bring it closer to the recordings of
that plugin in tests/lab/recordings, which test it.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import grpc
import yaml
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2
from yaml import YAMLError

from flexspot.lab.ports import HOST
from flexspot.lab.providers import lifecycle, planning
from flexspot.lab.providers.api import ApiRefusal, CancelledError, LabApi, UnreachableError
from flexspot.lab.providers.objects import NoNameError, name_of, namespace_of
from flexspot.lab.providers.planning import ProviderSettings
from flexspot.lab.providers.readiness import rule_for
from flexspot.lab.providers.serving import PartialFailureError, ProviderError, StandIn, abort, abort_partial
from flexspot.lab.providers.values import Properties, decode, encode, has_unknown, is_object, plain

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot.lab.cluster import KubeObject


class _GoLoader(yaml.SafeLoader):
    """YAML 1.1 as Go's parser reads it: a lone y or n is a boolean. PyYAML reads these as strings."""

    bool_values: ClassVar[dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


_GoLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"[yYnN]$"), list("yYnN"))


def decoded_yaml(text: str) -> list[KubeObject]:
    """Return the documents in `text` that are not empty. Raises yaml.YAMLError."""
    documents: Any = yaml.load_all(text, Loader=_GoLoader)
    return [each for each in documents if each]


_LOOPBACK = {HOST, "localhost", "::1"}


class ProviderSettingsError(Exception):
    """A setting of the provider is wrong. The text names it, the allowed values and the remedy."""


def server_of(kubeconfig: Path | str, context: str = "", cluster: str = "") -> str:
    """Return the server's address in a kubeconfig (a file, or its text in YAML or JSON). Raises ProviderSettingsError if there is none."""
    where = f"the file {kubeconfig}" if isinstance(kubeconfig, Path) else "the kubeconfig given as text"
    try:
        text = kubeconfig.read_text(encoding="utf-8") if isinstance(kubeconfig, Path) else kubeconfig
        content: Any = yaml.safe_load(text)
        context = context or content["current-context"]
        cluster = cluster or next(each["context"]["cluster"] for each in content["contexts"] if each["name"] == context)
        return str(next(each["cluster"]["server"] for each in content["clusters"] if each["name"] == cluster))
    except (OSError, yaml.YAMLError, KeyError, TypeError, StopIteration) as error:
        raise ProviderSettingsError(
            f"{where} has no server (context {context!r}, cluster {cluster!r}; {type(error).__name__}: {error}). "
            "Leave `kubeconfig`, `context` and `cluster` out, or give the kubeconfig of the lab."
        ) from error


def require_loopback(server: str) -> None:
    """Raise ProviderSettingsError unless `server` is on this machine."""
    if urlsplit(server).hostname not in _LOOPBACK:
        raise ProviderSettingsError(
            f"the stand-in Kubernetes provider was started for {server}, which is not on {HOST}. It is for the local control plane "
            "alone; use the real provider for any other server."
        )


def read_settings(given: Properties, bound: Path) -> ProviderSettings:
    """Return the settings of a program's provider.

    Raises ProviderSettingsError if they name another server than `bound`, or request an unsupported feature.
    """
    values: Properties = {key: _value(each) for key, each in plain(given).items()}
    _require_lab_server(values, bound)
    if values.get("enableServerSideApply") in (False, "false"):
        raise ProviderSettingsError(
            "enableServerSideApply: false is not offered by the stand-in provider; leave it out, as server-side apply is the default."
        )
    if values.get("renderYamlToDirectory"):
        raise ProviderSettingsError("renderYamlToDirectory is not offered by the stand-in provider; leave it out.")
    return settings_in(values)


def settings_in(values: Properties) -> ProviderSettings:
    """Return the provider's settings that the stand-in supports, from the engine's format."""
    namespace = values.get("namespace")
    return ProviderSettings(
        namespace if isinstance(namespace, str) else "",
        *(
            values.get(name) in (True, "true")
            for name in ("enableConfigMapMutable", "enableSecretMutable", "upsertExistingObjects", "enablePatchForce")
        ),
    )


def changed_settings(old: Properties, new: Properties) -> list[str]:
    """Return the names of the settings that differ."""
    old, new = plain(old), plain(new)
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def _require_lab_server(values: Properties, bound: Path) -> None:
    own = server_of(bound)
    require_loopback(own)
    kubeconfig, context, cluster = (values.get(key) or "" for key in ("kubeconfig", "context", "cluster"))
    if has_unknown([kubeconfig, context, cluster]) or not (kubeconfig or context or cluster):
        return
    if is_object(kubeconfig):
        kubeconfig = json.dumps(kubeconfig)
    source: Path | str = kubeconfig or bound
    if isinstance(source, str) and "\n" not in source and not source.lstrip().startswith("{"):
        source = Path(source).expanduser()
    server = server_of(source, context, cluster)
    if not urlsplit(server).netloc:
        # The official provider's message, from client-go, for an address that is not known yet and is passed as "".
        raise ProviderSettingsError(f'failed to initialize discovery client: host must be a URL or a host:port pair: "{server}"')
    if server != own:
        raise ProviderSettingsError(
            f"the provider's kubeconfig leads to {server}, but this stand-in provider serves the lab at {own} alone. "
            f"Give the lab's kubeconfig ({bound}) or none; for another server use the real provider, without `cloud: local`."
        )


def _value(each: Any) -> Any:
    # The engine sends objects and booleans in a provider's settings as JSON text.
    if isinstance(each, str) and each[:1] in {"{", '"'}:
        try:
            return json.loads(each)
        except ValueError:
            return each
    return each


VERSION = "4.34.2"
"""Version of the official provider, and of the SDK."""

PATIENCE_SECONDS = 63.0
"""Seconds that the official provider waits for a missing namespace or a missing kind."""

_RESTART_SECONDS = 30.0
"""Longest wait for a restart of the API server."""

_DECODE_YAML = "kubernetes:yaml:decode"


class KubernetesStandIn(StandIn):
    """A stand-in for the lab of one kubeconfig. Raises ProviderSettingsError if its server is not on this machine.

    `patience_seconds` is the time to wait for a missing namespace, a missing kind and, up to half a minute, the API server itself.
    """

    def __init__(self, kubeconfig: Path, patience_seconds: float = PATIENCE_SECONDS) -> None:
        super().__init__("kubernetes", VERSION)
        require_loopback(server_of(kubeconfig))
        self._kubeconfig = kubeconfig
        self._patience_seconds = patience_seconds
        self._api = LabApi(kubeconfig, min(patience_seconds, _RESTART_SECONDS))
        # The engine connects to one address for all providers of a program, with a connection for each. It cancels the official plugin, a
        # separate process, when another one replaces it during a run. The calls of the other one must continue.
        self._settings: dict[str, ProviderSettings] = {}
        self._apis: dict[str, LabApi] = {}

    def close(self) -> None:
        """End all waits, and the connections to the API server."""
        for api in list(self._apis.values()):
            api.cancelled.set()
        self._api.close()

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Refuse the engine's description of itself, which the official provider ignores, too."""
        abort(context, "method Handshake not implemented", grpc.StatusCode.UNIMPLEMENTED)

    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the provider's settings. Refuse settings that lead to another server than the lab."""
        with self._reporting_errors(context):
            read_settings(decode(request.news), self._kubeconfig)
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Allow all settings to change in place: the server stays the same."""
        found: Any = provider_pb2.DiffResponse
        changed = changed_settings(decode(request.olds), decode(request.news))
        return provider_pb2.DiffResponse(changes=found.DIFF_SOME if changed else found.DIFF_NONE, diffs=changed)

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Store the settings of one provider of the program."""
        self._api_of(context).cancelled.clear()
        with self._reporting_errors(context):
            given = decode(request.args) or {name.rpartition(":")[2]: value for name, value in request.variables.items()}
            self._settings[context.peer()] = read_settings(given, self._kubeconfig)
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Normalize an object, name it and assign its namespace."""
        with self._reporting_errors(context):
            wish = request.autonaming if request.HasField("autonaming") else None
            settings, olds, news = self._settings_of(context), decode(request.olds), decode(request.news)
            inputs = planning.check(self._api_of(context), settings, request.urn, olds, news, seed=request.randomSeed, wish=wish)
            return provider_pb2.CheckResponse(inputs=encode(inputs))

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the properties that an update would change."""
        with self._reporting_errors(context):
            verdict = planning.diff(
                self._api_of(context),
                self._settings_of(context),
                state=decode(request.olds),
                old_inputs=decode(request.old_inputs),
                news=decode(request.news),
                ignored=list(request.ignoreChanges),
                is_unready=self._is_unready,
            )
            return verdict.answer()

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Create an object and wait until it is ready. In a preview, only a dry run."""
        with self._reporting_errors(context):
            identity, outputs = lifecycle.create(
                self._call_context(context), request.urn, decode(request.properties), timeout=request.timeout, preview=request.preview
            )
            return provider_pb2.CreateResponse(id=identity, properties=encode(outputs))

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Return the current object, or an empty answer if it does not exist."""
        with self._reporting_errors(context):
            found = lifecycle.read(self._call_context(context), request.urn, request.id, decode(request.properties), decode(request.inputs))
            if found is None:
                return provider_pb2.ReadResponse()
            identity, outputs, inputs = found
            return provider_pb2.ReadResponse(id=identity, properties=encode(outputs), inputs=encode(inputs))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Update an object and wait until it is ready. In a preview, only a dry run."""
        with self._reporting_errors(context):
            outputs = lifecycle.update(
                self._call_context(context),
                request.urn,
                decode(request.olds),
                decode(request.old_inputs),
                decode(request.news),
                ignored=list(request.ignoreChanges),
                timeout=request.timeout,
                preview=request.preview,
            )
            return provider_pb2.UpdateResponse(properties=encode(outputs))

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Delete an object and wait until it is gone."""
        with self._reporting_errors(context):
            state, old_inputs = decode(request.properties), decode(request.old_inputs)
            lifecycle.delete(self._call_context(context), request.id, state, old_inputs, timeout=request.timeout)
            return empty_pb2.Empty()

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Parse YAML for pulumi_kubernetes.yaml. Functions for charts and kustomize are not supported."""
        if request.tok != _DECODE_YAML:
            abort(context, f'unknown Invoke type "{request.tok}"')
        with self._reporting_errors(context):
            arguments = plain(decode(request.args))
            try:
                objects = decoded_yaml(arguments["text"])
            except (KeyError, YAMLError) as error:
                raise ProviderError(f"{_DECODE_YAML}: `text` is not valid YAML: {error}") from error
            answer = {"return": encode({"result": objects})}
            return provider_pb2.InvokeResponse(**answer)  # pyrefly: ignore[unexpected-keyword] -- the stub cannot spell it

    def Construct(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refuse components that a plugin renders: only that plugin knows their parts."""
        abort(
            context,
            f"{request.type} is rendered only by the real Kubernetes provider. Declare the objects themselves.",
            grpc.StatusCode.UNIMPLEMENTED,
        )

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """End all waits of the caller on this connection."""
        self._api_of(context).cancelled.set()
        return empty_pb2.Empty()

    def _call_context(self, context: grpc.ServicerContext) -> lifecycle.CallContext:
        return lifecycle.CallContext(self._api_of(context), self._settings_of(context), self._patience_seconds)

    def _is_unready(self, live: KubeObject) -> bool:
        """Return whether a Job has not completed yet."""
        found = self._api.get(live["apiVersion"], live["kind"], namespace_of(live), name_of(live))
        rule = rule_for(found) if found else None
        return bool(found and rule and not rule.look(found, self._api).ready)

    def _api_of(self, context: grpc.ServicerContext) -> LabApi:
        peer = context.peer()
        if peer not in self._apis:
            self._apis.setdefault(peer, self._api.for_caller())
        return self._apis[peer]

    def _settings_of(self, context: grpc.ServicerContext) -> ProviderSettings:
        return self._settings.get(context.peer(), ProviderSettings())

    @contextmanager
    def _reporting_errors(self, context: grpc.ServicerContext) -> Generator[None]:
        """Report errors to the engine in its own format."""
        try:
            yield
        except PartialFailureError as failure:
            abort_partial(context, failure)
        except (ProviderError, ProviderSettingsError, NoNameError, UnreachableError, CancelledError) as error:
            abort(context, str(error))
        except ApiRefusal as refusal:
            abort(context, f"the API server answered {refusal.status} {refusal.reason}: {refusal.message}")
