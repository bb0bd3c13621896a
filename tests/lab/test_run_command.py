"""`flexspot run` and `flexspot jobs` with a team member's own kubeconfig: a real API server, real Kueue, and the platform's policies."""

from __future__ import annotations

import base64
import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from admission_fixtures import with_policies
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from queue_fixtures import FOUR_L4, GUARDS, QueuePlatform, queues_of
from queue_objects import admission_objects
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app
from flexspot.infra.jobs.access import connect
from flexspot.infra.jobs.submission import script_map
from flexspot.lab.cluster import POD
from flexspot.lab.exercise.play import JOB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster
    from flexspot.lab.control_plane import LabControlPlane

pytestmark = pytest.mark.lab

MEMBERS, VIEWERS = "alpha@acme.com", "looking@acme.com"
MAP = "v1/ConfigMap"
SCRIPT = 'print("hello from the script")\n'


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield four GPUs of team alpha on one node, and the platform's policies."""
    pool = {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": 1, "serves": ["training"]}
    alpha = {"name": "alpha", "shares": {"l4-spot": 4}, "submitters": [MEMBERS], "viewers": [VIEWERS]}
    with (
        queues_of(cluster, register, {"l4-spot": 1}, pools=[pool], teams=[alpha], without=GUARDS) as deployed,
        with_policies(cluster, admission_objects(deployed.plan, register), deployed.own("alpha")),
    ):
        yield deployed


def kubeconfig(lab: LabControlPlane, folder: Path, group: str, namespace: str) -> str:
    """Return the path of a kubeconfig of a user in a group: a certificate of the lab's authority, like those of a self-managed cluster."""
    certificates = lab.home.certificates
    authority = x509.load_pem_x509_certificate((certificates / "ca.crt").read_bytes())
    signer = serialization.load_pem_private_key((certificates / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ann@acme.com"), x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(authority.subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now).not_valid_after(now + dt.timedelta(hours=1))
    usage = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = builder.add_extension(usage, critical=False).sign(signer, hashes.SHA256())  # pyrefly: ignore[bad-argument-type] -- the lab's key is RSA
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    written = yaml.safe_load(lab.home.kubeconfig.read_text(encoding="utf-8"))
    written["users"] = [
        {
            "name": "ann",
            "user": {
                "client-certificate-data": base64.b64encode(certificate.public_bytes(serialization.Encoding.PEM)).decode(),
                "client-key-data": base64.b64encode(key.private_bytes(*pem)).decode(),
            },
        }
    ]
    cluster = written["clusters"][0]["name"]
    written["contexts"] = [{"name": "team", "context": {"cluster": cluster, "user": "ann", "namespace": namespace}}]
    written["current-context"] = "team"
    file = folder / f"{group}.yaml"
    file.write_text(yaml.safe_dump(written), encoding="utf-8")
    return str(file)


def flexspot(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, arguments)
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        raise answer.exception
    return answer.exit_code, answer.output


@pytest.fixture
def member(platform: QueuePlatform, lab: LabControlPlane, tmp_path: Path) -> tuple[str, ...]:
    return ("--kubeconfig", kubeconfig(lab, tmp_path, MEMBERS, platform.own("alpha")))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(SCRIPT, encoding="utf-8")
    return file


SMALL = ("--image", "trainer:1", "--cpu", "1", "--memory", "1Gi")


def listed(member: tuple[str, ...]) -> dict[str, Any]:
    _, shown = flexspot("jobs", "list", "--format", "json", *member)
    return {each["name"]: each for each in json.loads(shown)}


def test_a_script_becomes_a_queued_job_that_is_followed_to_its_end(
    platform: QueuePlatform, cluster: Cluster, member: tuple[str, ...], script: Path
) -> None:
    code, shown = flexspot("run", *member, *SMALL, str(script), "--lr", "1")

    assert code == 0
    assert "train is submitted to the queue of team" in shown
    assert "train is done" in shown.splitlines()
    [job] = cluster.list(JOB, platform.own("alpha"))
    assert job["metadata"]["name"] == "train"
    assert job["metadata"]["labels"]["flexspot.dev/class"] == "training"
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "/opt/flexspot/train.py", "--lr", "1"]
    sent = cluster.get(MAP, "train-script", platform.own("alpha"))
    assert sent is not None
    assert sent["data"] == {"train.py": SCRIPT}
    assert [each["uid"] for each in sent["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]], "it goes with its job"

    # The same again: the ended job is deleted, and the new one resumes under its name.
    code, shown = flexspot("run", *member, *SMALL, "--no-follow", str(script))
    assert code == 0
    assert "train of an earlier run was deleted; its checkpoints are kept." in shown
    [again] = cluster.list(JOB, platform.own("alpha"))
    assert again["metadata"]["uid"] != job["metadata"]["uid"]
    # The garbage collector may have been faster.
    connect(Path(member[1]), None, None).delete(MAP, script_map("gone"))


def test_a_waiting_job_shows_its_reason_and_is_stopped_with_its_objects(
    platform: QueuePlatform, cluster: Cluster, member: tuple[str, ...], script: Path
) -> None:
    namespace = platform.own("alpha")
    platform.submit("alpha", "first")
    platform.wait_for_running("alpha", "first")
    flexspot("run", *member, *SMALL, "--no-follow", "--gpus", "4", "--name", "large", str(script))
    platform.wait_for_refusal("alpha", "large", "insufficient unused quota")

    # The Job's own count of its pods is updated a moment after they run.
    cluster.wait_for(JOB, lambda jobs: any(each.get("status", {}).get("ready") for each in jobs), "its pod counted", namespace=namespace)
    found = listed(member)
    assert (found["first"]["state"], found["first"]["pods"], found["first"]["gpus"]) == ("running", 1, 1)
    assert found["large"]["state"] == "waiting"
    assert "insufficient unused quota" in found["large"]["why"]
    [job] = [each for each in cluster.list(JOB, namespace) if each["metadata"]["name"] == "large"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][:5] == ["python", "-m", "flexspot_runtime.launch", "--ranks=$(NPROC_PER_NODE)", "--"], "a rank on each GPU"

    with pytest.raises(ExplainedError, match="large: a job of this name has not finished") as refused:
        flexspot("run", *member, *SMALL, "--name", "large", str(script))
    assert "end it with `flexspot jobs stop large`" in refused.value.remedy
    code, shown = flexspot("jobs", "stop", "large", *member)
    assert (code, shown.strip()) == (0, "large is stopped.")
    assert "large" not in listed(member)
    cluster.wait_for(
        MAP, lambda maps: "large-script" not in {each["metadata"]["name"] for each in maps}, "its script's end", namespace=namespace
    )
    with pytest.raises(ExplainedError, match="job large does not exist in namespace"):
        flexspot("jobs", "logs", "large", *member)

    # It returns only when the pods are gone, too: until then a job with the same name would write into their checkpoints.
    code, _ = flexspot("jobs", "stop", "first", *member)
    assert code == 0
    assert cluster.list(POD, namespace) == []


def test_a_job_that_cannot_run_or_is_forbidden_gets_an_error_and_leaves_nothing(
    platform: QueuePlatform, lab: LabControlPlane, member: tuple[str, ...], script: Path
) -> None:
    with pytest.raises(ExplainedError, match="train cannot run") as refused:
        flexspot("run", *member, *SMALL, "--gpu", "h100", str(script))
    assert "allowed: l4 (24 GB" in str(refused.value)

    looking = ("--kubeconfig", kubeconfig(lab, script.parent, VIEWERS, platform.own("alpha")))
    assert listed(looking) == {}
    with pytest.raises(ExplainedError, match="the platform's ConfigMap cannot be read: you lack the permission") as denied:
        flexspot("run", *looking, *SMALL, str(script))
    assert "to add you to a group of the team's `submitters`" in denied.value.remedy
    assert platform.cluster.list(JOB, platform.own("alpha")) == []
    assert platform.cluster.list(POD, platform.own("alpha")) == []
