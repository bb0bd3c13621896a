"""A GPU job whose checkpoints are stored where they are lost with the pod or its node."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import PodSet
from flexspot.policies.judging import Parameter, Parameters, Rule
from flexspot.policies.pods.volumes import checkpoint_places
from flexspot.policies.values.field import UNKNOWN

LOST = "{place} is {ends}"


def judge(pods: PodSet, parameters: Parameters) -> Outcome:
    """Judged are mounts whose path says checkpoint, and absolute paths that an argument or a variable of such a name gives."""
    if pods.kind not in parameters.texts("kinds"):
        return not_applicable("not a kind that runs to completion")
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    places = list(checkpoint_places(pods, parameters.texts("path-words"), parameters.texts("names")))
    for place in places:
        if isinstance(place.ends_with, str) and place.ends_with and asks is True:
            return fails(LOST.format(place=place.described, ends=place.ends_with), at=place.at)
    if asks is UNKNOWN or any(place.ends_with is UNKNOWN for place in places):
        return undecided(f"{pods.where}: whether it requests GPUs, or where it writes checkpoints, is not known yet")
    return PASSES if places else not_applicable("nothing in it names checkpoints")


RULE = Rule(
    code="FLX043",
    severity=Severity.HIGH,
    judge=judge,
    why="An interruption removes the pod and node, and the checkpoint with them: the job restarts at step one, and all GPU hours are lost.",
    remediation="Write checkpoints to a bucket (gs://, s3://), or to a claim or a CSI volume that outlives the pod.",
    link="https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/",
    sources=("https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",),
    parameters=(
        Parameter("path-words", ("checkpoint", "ckpt"), "Words in a part of a mount path which show that checkpoints are written there."),
        Parameter(
            "names",
            (
                "checkpoint-dir",
                "checkpoint-path",
                "checkpoint-directory",
                "checkpoints-dir",
                "ckpt-dir",
                "ckpt-path",
                "save-checkpoint-dir",
                # Of Transformers' Trainer, and of Megatron-LM.
                "output-dir",
                "save",
            ),
            "Names of arguments and variables that set where checkpoints are written; case, _ and - are ignored.",
        ),
        Parameter("kinds", ("CronJob", "Job", "JobSet", "Pod", "PyTorchJob", "RayJob"), "Kinds of work that run to completion."),
    ),
)
