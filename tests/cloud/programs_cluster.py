"""The Kubernetes provider of the tests: the lab's stand-in, bound to the kubeconfig that the program gives it.

Without a kubeconfig, as in the first preview of a cluster that is not there yet, it answers as the official one does then: with the inputs.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from cloud_folder import Event, Held
from cloud_refusals import CloudRefusalError
from cluster_side import ClusterSide
from google.protobuf import empty_pb2
from kubernetes.config import ConfigException
from pulumi.runtime.proto import provider_pb2
from ways_in import kept_out

from lab.providers.kubernetes import VERSION, KubernetesStandIn
from lab.providers.objects import type_of
from lab.providers.offline import OfflineProvider
from lab.providers.planning import diff_answer, differences, top_level
from lab.providers.serving import abort
from lab.providers.settings import SettingsError
from lab.providers.values import UNKNOWN, decode, encode, has_unknown, plain

if TYPE_CHECKING:
    from collections.abc import Generator

    import grpc
    from cloud_folder import CloudFolder

PATIENCE_SECONDS = 20.0

RELEASE = "kubernetes:helm.sh/v3:Release"


class HelmReleases:
    """The releases on one cluster, as the official provider has them: no chart is rendered, the release is kept in the cloud's folder.

    What a chart installs is on the lab's control plane already (Kueue, Karpenter), or is not looked at by any test.
    """

    def __init__(self, cloud: CloudFolder, side: ClusterSide) -> None:
        self._cloud = cloud
        self._side = side

    def install(self, urn: str, inputs: dict[str, Any]) -> Held:
        """A new release. Raises CloudRefusalError where one of its name is installed."""
        held = _released(urn, inputs, 1)
        with self._cloud.changing():
            if self._cloud.get(RELEASE, held.identity) is not None:
                raise CloudRefusalError("cannot re-use a name that is still in use")
            self._cloud.put(held)
        self._side.bring(inputs["chart"].rpartition("/")[2])
        return held

    def get(self, identity: str) -> Held | None:
        """Return a release, or None if it does not exist."""
        return self._cloud.get(RELEASE, identity)

    def upgrade(self, urn: str, identity: str, inputs: dict[str, Any]) -> Held:
        """A release with other values or another chart, as its next revision."""
        with self._cloud.changing():
            found = self._cloud.get(RELEASE, identity)
            if found is None:
                raise CloudRefusalError(f"release: not found: {identity}")
            held = _released(urn, inputs, found.outputs["status"]["revision"] + 1)
            self._cloud.put(held)
        return held

    def uninstall(self, identity: str) -> None:
        """Takes a release away, with the definitions that its chart brought."""
        held = self._cloud.get(RELEASE, identity)
        if held is None:
            return
        self._side.take_away(held.inputs["chart"].rpartition("/")[2])
        with self._cloud.changing():
            self._cloud.remove(RELEASE, identity)


def _released(urn: str, inputs: dict[str, Any], revision: int) -> Held:
    name, namespace = inputs["name"], inputs["namespace"]
    status = {
        "appVersion": inputs["version"],
        "chart": inputs["chart"].rpartition("/")[2],
        "name": name,
        "namespace": namespace,
        "revision": revision,
        "status": "deployed",
        "version": inputs["version"],
    }
    return Held(RELEASE, f"{namespace}/{name}", urn, inputs, {**inputs, "status": status, "resourceNames": {}})


class ProgramsCluster(OfflineProvider):
    """Hands what concerns objects to the stand-in, and keeps releases itself."""

    def __init__(self, cloud: CloudFolder) -> None:
        super().__init__("kubernetes", VERSION)
        self._cloud = cloud
        self._releases = HelmReleases(cloud, ClusterSide(cloud))
        self._folder = tempfile.TemporaryDirectory(prefix="programs-cluster-")
        self._objects: KubernetesStandIn | None = None
        self._unreachable = ""

    def close(self) -> None:
        """Ends all that waits."""
        if self._objects is not None:
            self._objects.close()
        self._folder.cleanup()

    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Another kubeconfig of the same cluster is no other provider."""
        return KubernetesStandIn.DiffConfig(self, request, context)  # pyrefly: ignore[bad-argument-type] -- asks nothing of its self

    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Takes the kubeconfig and looks whether it leads to a cluster, which runs the program that gives credentials."""
        given = plain(decode(request.args))
        kubeconfig = given.get("kubeconfig", UNKNOWN)
        if not has_unknown(kubeconfig):
            file = self._file_of(kubeconfig)
            try:
                self._unreachable = kept_out(self._cloud, server_of(file))
                self._objects = None if self._unreachable else KubernetesStandIn(file, PATIENCE_SECONDS)
            except (ConfigException, SettingsError, OSError) as error:
                self._unreachable = str(error)
            if self._objects is not None:
                return self._objects.Configure(request, context)
        return super().Configure(request, context)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """The inputs with a name; a release has one already."""
        if type_of(request.urn) == RELEASE:
            return provider_pb2.CheckResponse(inputs=request.news)
        return self._objects.Check(request, context) if self._objects else super().Check(request, context)

    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """What changed. A release under another name or in another namespace is another one."""
        if type_of(request.urn) == RELEASE:
            return _release_diff(plain(decode(request.old_inputs)), plain(decode(request.news)))
        return self._objects.Diff(request, context) if self._objects else super().Diff(request, context)

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Makes an object or a release."""
        if request.preview:
            is_object = self._objects and type_of(request.urn) != RELEASE and not self._unreachable
            return self._objects.Create(request, context) if is_object and self._objects else super().Create(request, context)
        with self._asked(context, "create", request.urn) as objects:
            if type_of(request.urn) == RELEASE:
                held = self._releases.install(request.urn, plain(decode(request.properties)))
                return provider_pb2.CreateResponse(id=held.identity, properties=encode(held.outputs))
            return objects.Create(request, context)

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """An object or a release as it is now."""
        objects = self._reached(context)
        self._cloud.note(Event("read", request.urn, "done", request.id))
        if type_of(request.urn) != RELEASE:
            return objects.Read(request, context)
        held = self._releases.get(request.id)
        return provider_pb2.ReadResponse() if held is None else _read(held, plain(decode(request.inputs)))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Changes an object or a release."""
        is_release = type_of(request.urn) == RELEASE
        if request.preview:
            return self._objects.Update(request, context) if self._objects and not is_release else super().Update(request, context)
        with self._asked(context, "update", request.urn, request.id) as objects:
            if is_release:
                held = self._releases.upgrade(request.urn, request.id, plain(decode(request.news)))
                return provider_pb2.UpdateResponse(properties=encode(held.outputs))
            return objects.Update(request, context)

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Deletes an object or a release."""
        with self._asked(context, "delete", request.urn, request.id) as objects:
            if type_of(request.urn) == RELEASE:
                self._releases.uninstall(request.id)
                return empty_pb2.Empty()
            return objects.Delete(request, context)

    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """What the stand-in offers."""
        return self._objects.Invoke(request, context) if self._objects else super().Invoke(request, context)

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Ends everything that waits."""
        return self._objects.Cancel(request, context) if self._objects else super().Cancel(request, context)

    def _file_of(self, kubeconfig: Any) -> Path:
        """The file of a kubeconfig, which a program gives as a path or as the text itself."""
        text = kubeconfig if isinstance(kubeconfig, str) else json.dumps(kubeconfig)
        if "\n" not in text and not text.lstrip().startswith("{"):
            return Path(text)
        file = Path(self._folder.name) / "kubeconfig"
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        return file

    def _reached(self, context: grpc.ServicerContext) -> KubernetesStandIn:
        if self._objects is None:
            abort(context, f"configured Kubernetes cluster is unreachable: {self._unreachable or 'the kubeconfig is not known yet'}")
        return self._objects

    @contextmanager
    def _asked(self, context: grpc.ServicerContext, operation: str, urn: str, identity: str = "") -> Generator[KubernetesStandIn]:
        """Notes what was asked and what came of it."""
        objects = self._reached(context)
        self._cloud.note(Event(operation, urn, "begun", identity))
        phase, detail = "refused", ""
        try:
            yield objects
            phase = "done"
        except CloudRefusalError as error:
            detail = str(error)
        finally:
            self._cloud.note(Event(operation, urn, phase, identity, detail))
        if detail:
            abort(context, detail)


def server_of(kubeconfig: Path) -> str:
    """The address of the API server that a kubeconfig leads to."""
    return yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]


def _release_diff(old: dict[str, Any], new: dict[str, Any]) -> Any:
    found = differences(old, new, [("name",), ("namespace",)])
    return diff_answer(found, replaces=top_level(each for each in found if each.replaces))


def _read(held: Held, wanted: dict[str, Any]) -> Any:
    inputs = {key: value for key, value in held.inputs.items() if key in wanted} if wanted else held.inputs
    return provider_pb2.ReadResponse(id=held.identity, properties=encode(held.outputs), inputs=encode(inputs))
