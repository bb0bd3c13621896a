"""A run that fails at a bucket with files: it names the bucket and what to do. Tested with the providers' messages and the engine."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pulumi_aws
import pulumi_gcp
import pytest
from recording_provider import Call, RecordingProvider

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.deployment.engine import StackRun
from flexspot.infra.deployment.losses import filled_buckets_remedy
from flexspot.lab.engine import PLUGINS
from flexspot.lab.providers.serving import abort, serve

if TYPE_CHECKING:
    from pathlib import Path

    import grpc

    from flexspot.lab.tools.build import Tools

GOOGLE = "Error trying to delete bucket {} containing objects without `force_destroy` set to true"
AWS = (
    "deleting S3 Bucket ({}): operation error S3: DeleteBucket, \n    https response error StatusCode: 409, RequestID: 1C2CCADF4ND4N894, \n"
    "    api error BucketNotEmpty: The bucket you tried to delete is not empty. You must delete all versions in the bucket."
)


@pytest.mark.parametrize(
    "answer,advice",
    [
        (GOOGLE, "gcloud storage rm --recursive 'gs://acme-datasets/*'"),
        (AWS, 'the button "Empty" of bucket acme-datasets in the S3 console'),
    ],
)
def test_a_filled_bucket_is_reported_with_how_to_empty_it(answer: str, advice: str) -> None:
    remedy = filled_buckets_remedy(f"deleting urn: 1 error occurred:\n\t* {answer.format('acme-datasets')}")

    assert remedy is not None
    assert remedy.startswith("there are files in acme-datasets, and ")
    assert advice in remedy


def test_other_bucket_errors_get_no_advice_about_emptying() -> None:
    assert filled_buckets_remedy("error: deleting S3 Bucket (a) Policy: OperationAborted: A conflicting operation is in progress") is None


def test_only_the_filled_bucket_among_failed_ones_is_named() -> None:
    text = f"* deleting S3 Bucket (slow): OperationAborted: wait\n* {AWS.format('filled')}"

    remedy = filled_buckets_remedy(text)

    assert remedy is not None
    assert remedy.startswith("there are files in filled, and ")


class Filled(RecordingProvider):
    """A cloud in which every bucket contains files."""

    def __init__(self, name: str, answer: str, calls: list[Call]) -> None:
        super().__init__(name, PLUGINS[name], calls)
        self._answer = answer

    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 -- gRPC's
        """Refuse as the official provider does, below a heading of Pulumi's."""
        text = f"deleting {request.urn}: 1 error occurred:\n\t* {self._answer.format(request.id)}"
        abort(context, text)


@pytest.mark.engine
@pytest.mark.parametrize(
    "cloud,answer",
    [
        ("aws", AWS),
        pytest.param("gcp", GOOGLE, marks=pytest.mark.nightly(tested_by="test_a_filled_bucket_is_reported_with_how_to_empty_it")),
    ],
)
def test_a_destroy_that_fails_at_a_filled_bucket_names_it(cloud: str, answer: str, tools: Tools, tmp_path: Path) -> None:
    def program() -> None:
        if cloud == "gcp":
            pulumi_gcp.storage.Bucket("datasets", name="acme-datasets", location="us-central1", project="acme")
        else:
            pulumi_aws.s3.Bucket("acme-datasets", bucket="acme-datasets")

    (tmp_path / "state").mkdir()
    with serve(Filled(cloud, answer, [])) as port:
        environment = {
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_PROVIDERS": f"{cloud}:{port}",
        }
        root = None if shutil.which("pulumi") else tools.links
        run = StackRun("dev-gke", tmp_path / "project", f"file://{tmp_path / 'state'}", root, environment, program)
        run.up(lambda _line: None)

        with pytest.raises(ExplainedError) as refused:
            run.destroy(lambda _line: None)

    assert refused.value.remedy.startswith("there are files in acme-datasets, and ")
