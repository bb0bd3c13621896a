"""The Kubernetes provider of the tests: the lab's stand-in, bound to the kubeconfig that the program gives it.

Without a kubeconfig, as in the first preview of a cluster that is not there yet, it answers as the official one does then: with the inputs.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from cloud_folder import Event
from cloud_provider import RELEASE, CloudProvider
from kubernetes.config import ConfigException
from pulumi.runtime.proto import provider_pb2
from ways_in import kept_out

from flexspot.lab.providers.kubernetes import VERSION, KubernetesStandIn, ProviderSettingsError
from flexspot.lab.providers.objects import type_of
from flexspot.lab.providers.offline import OfflineProvider
from flexspot.lab.providers.planning import diff_answer, differences, top_level
from flexspot.lab.providers.serving import abort
from flexspot.lab.providers.values import UNKNOWN, decode, has_unknown, plain

if TYPE_CHECKING:
    import grpc
    from cloud_folder import CloudFolder

PATIENCE_SECONDS = 20.0


class ProgramsCluster(OfflineProvider):
    """Hands what concerns objects to the stand-in. Releases are kept in the cloud's folder, and no chart is rendered.

    What a chart installs is on the lab's control plane already (Kueue, Karpenter), or is not looked at by any test.
    """

    def __init__(self, cloud: CloudFolder) -> None:
        super().__init__("kubernetes", VERSION)
        self._cloud = cloud
        self._releases = CloudProvider("kubernetes", VERSION, cloud)
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
        self._releases.Configure(request, context)
        given = plain(decode(request.args))
        kubeconfig = given.get("kubeconfig", UNKNOWN)
        if not has_unknown(kubeconfig):
            file = self._file_of(kubeconfig)
            try:
                self._unreachable = kept_out(self._cloud, server_of(file))
                self._objects = None if self._unreachable else KubernetesStandIn(file, PATIENCE_SECONDS)
            except (ConfigException, ProviderSettingsError, OSError) as error:
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
        return self._asked("Create", request, context)

    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """An object or a release as it is now."""
        objects = self._reached(context)
        if type_of(request.urn) == RELEASE:
            return self._releases.Read(request, context)
        self._cloud.note(Event("read", request.urn, "done", request.id))
        return objects.Read(request, context)

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Changes an object or a release."""
        if request.preview:
            is_object = self._objects and type_of(request.urn) != RELEASE
            return self._objects.Update(request, context) if is_object and self._objects else super().Update(request, context)
        return self._asked("Update", request, context, request.id)

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Deletes an object or a release."""
        return self._asked("Delete", request, context, request.id)

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

    def _asked(self, method: str, request: Any, context: grpc.ServicerContext, identity: str = "") -> Any:
        """Calls the provider that the resource is of, and notes what came of it; for a release that provider does."""
        objects = self._reached(context)
        if type_of(request.urn) == RELEASE:
            return getattr(self._releases, method)(request, context)
        self._cloud.note(Event(method.lower(), request.urn, "begun", identity))
        phase = "refused"
        try:
            answer = getattr(objects, method)(request, context)
            phase = "done"
        finally:
            self._cloud.note(Event(method.lower(), request.urn, phase, identity))
        return answer


def server_of(kubeconfig: Path) -> str:
    """The address of the API server that a kubeconfig leads to."""
    return yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]


def _release_diff(old: dict[str, Any], new: dict[str, Any]) -> Any:
    found = differences(old, new, [("name",), ("namespace",)])
    return diff_answer(found, replaces=top_level(each for each in found if each.replaces))
