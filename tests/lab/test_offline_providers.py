"""The offline providers: previews by the real engine without a cloud, and nothing but previews."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pulumi_aws as aws
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes
import pytest
from provider_driver import refusal
from provider_engine import stack_of
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from flexspot.lab.ports import HOST
from flexspot.lab.providers.offline import OfflineProvider
from flexspot.lab.providers.serving import serve
from flexspot.lab.providers.values import Secret, decode, encode

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    import pulumi

    from flexspot.lab.tools.build import Tools

# The SDK warns about one of its own functions when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:gcp.storage.getTransferProjectServieAccount:DeprecationWarning")

_BUCKET = "urn:pulumi:dev::trial::gcp:storage/bucket:Bucket::data"
_PROJECT = "gcp:organizations/getClientConfig:getClientConfig"
_MAP = "urn:pulumi:dev::trial::kubernetes:core/v1:ConfigMap::settings"


def _offline() -> dict[str, OfflineProvider]:
    versions = {"gcp": "10.2.0", "aws": "7.51.1", "kubernetes": "4.34.2"}
    return {name: OfflineProvider(name, version) for name, version in versions.items()}


@contextmanager
def _stub(name: str) -> Generator[Any]:
    with serve(_offline()[name]) as port, grpc.insecure_channel(f"{HOST}:{port}", [("grpc.enable_http_proxy", 0)]) as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)


@pytest.mark.engine
def test_a_preview_knows_the_inputs_and_leaves_the_rest_unknown(tools: Tools, tmp_path: Path) -> None:
    known: dict[str, Any] = {}
    registered: list[str] = []

    def program() -> None:
        bucket = gcp.storage.Bucket("data", location="EU", uniform_bucket_level_access=True)
        queue = aws.sqs.Queue("work", visibility_timeout_seconds=30)
        system = kubernetes.core.v1.Namespace("system")
        kubernetes.core.v1.ConfigMap("found", metadata={"namespace": system.metadata.name}, data={"bucket": bucket.url})
        outputs: dict[str, pulumi.Output[Any]] = {
            "location": bucket.location,
            "url": bucket.url,
            "timeout": queue.visibility_timeout_seconds,
            "arn": queue.arn,
            "name": system.metadata.name,
            "status": system.status,
        }
        for name, output in outputs.items():
            output.apply(lambda value, name=name: known.setdefault(name, value))

    with stack_of(program, tmp_path, tools.links, **_offline()) as stack:
        preview = stack.preview(
            on_event=lambda event: registered.append(event.resource_pre_event.metadata.type) if event.resource_pre_event else None
        )
    assert preview.change_summary == {"create": 5}
    assert "gcp:storage/bucket:Bucket" in registered
    assert known.pop("name").startswith("system-")
    assert known == {"location": "EU", "timeout": 30}


def test_changes_outside_a_preview_and_calls_to_the_cloud_are_refused() -> None:
    with _stub("gcp") as stub:
        calls = {
            "create": (stub.Create, provider_pb2.CreateRequest(urn=_BUCKET, properties=encode({"location": "EU"}))),
            "update": (stub.Update, provider_pb2.UpdateRequest(urn=_BUCKET, id="x")),
            "delete": (stub.Delete, provider_pb2.DeleteRequest(urn=_BUCKET, id="x")),
            "call": (stub.Invoke, provider_pb2.InvokeRequest(tok=_PROJECT)),
        }
        for operation, (call, request) in calls.items():
            with refusal() as refused:
                call(request)
            assert f"cannot {operation} {_PROJECT if operation == 'call' else _BUCKET}" in refused.text
            assert "never writes or invents state" in refused.text


def test_reading_returns_the_state_of_a_known_object_and_only_the_name_of_others() -> None:
    with _stub("gcp") as stub:
        state = encode({"location": "EU"})
        assert stub.Read(provider_pb2.ReadRequest(urn=_BUCKET, id="x", properties=state)).properties == state
        assert decode(stub.Read(provider_pb2.ReadRequest(urn=_BUCKET, id="x")).properties) == {"id": "x"}


def test_changed_inputs_are_a_difference_at_their_path() -> None:
    with _stub("gcp") as stub:
        request: Any = provider_pb2.DiffRequest(
            urn=_BUCKET, old_inputs=encode({"location": "EU", "labels": {"a": "1"}}), news=encode({"location": "EU", "labels": {"a": "2"}})
        )
        found = stub.Diff(request)
        assert found.changes == provider_pb2.DiffResponse.DIFF_SOME
        assert list(found.detailedDiff) == ["labels.a"]
        request.news.CopyFrom(request.old_inputs)
        assert stub.Diff(request).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_kubernetes_objects_are_named_and_their_secrets_marked() -> None:
    with _stub("kubernetes") as stub:
        first = decode(stub.Check(provider_pb2.CheckRequest(urn=_MAP, news=encode({"data": {"a": "1"}}), randomSeed=b"x")).inputs)
        assert first["metadata"]["name"].startswith("settings-")
        again = provider_pb2.CheckRequest(urn=_MAP, olds=encode(first), news=encode({"data": {"a": Secret("2")}}), randomSeed=b"y")
        second = decode(stub.Check(again).inputs)
        assert second["metadata"] == first["metadata"]
        assert second["data"] == {"a": Secret("2")}


def test_refusals_of_inputs_contain_no_secret() -> None:
    """A refusal contains the value, and is printed on the terminal and stored in logs of previews."""
    urn, inside = "urn:pulumi:dev::trial::aws:sqs/queue:Queue::work", "not a name: hunter2"
    with _stub("aws") as stub:
        for name, is_refused in ((inside, True), (Secret(inside), False)):
            request = provider_pb2.CheckRequest(urn=urn, news=encode({"name": name, "tags": {"a": name}}))
            answer = stub.Check(request)
            assert bool(answer.failures) is is_refused
            assert (inside in str(answer.failures)) is is_refused
        nested = {"redrivePolicy": Secret("hunter2"), "visibilityTimeoutSeconds": Secret(99_999_999)}
        assert not stub.Check(provider_pb2.CheckRequest(urn=urn, news=encode(nested))).failures
