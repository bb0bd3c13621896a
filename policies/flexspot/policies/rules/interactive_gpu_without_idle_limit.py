"""A notebook or an editor on a GPU that is not stopped when it is idle."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.pods.interruption import is_ended_by_others, is_interactive, limits_itself
from flexspot.policies.values.field import UNKNOWN


def judge(pods: PodSet, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A limit of its own is enough; a culler or a scaler may be installed elsewhere, so that its absence proves little."""
    asks = pods.asks_for_gpus
    if exempt := pods.not_gpu_work:
        return not_applicable(exempt)
    if pods.kind not in parameters.texts("kinds") or not is_interactive(pods, parameters.texts("words")):
        return not_applicable("nothing marks it as interactive")
    limits = parameters.texts("limits")
    limited, ended = limits_itself(pods, limits), is_ended_by_others(pods, limits, inventory)
    if True in (limited, ended):
        return PASSES
    if UNKNOWN in (asks, limited):
        return undecided(f"{pods.where}: whether it requests GPUs, or has an idle limit, is not known yet")
    if ended is UNKNOWN:
        return undecided(f"{pods.where} has no idle limit of its own, and what may stop it when idle is not in the input")
    return fails(f"{pods.where} is interactive and has GPUs, but neither an idle limit nor a culler stops it", at=pods.where)


RULE = Rule(
    code="FLX053",
    severity=Severity.MEDIUM,
    level=Level.ADVISORY,
    judge_among=judge,
    why="A forgotten notebook keeps its GPU and its node for nights and weekends; no queue takes it back by itself.",
    remediation="Cull it when idle (the notebook controller's or JupyterHub's culler, a scaler to zero), or give it a time limit.",
    link="https://jupyterhub.readthedocs.io/en/stable/howto/idle-culler.html",
    sources=("https://www.kubeflow.org/docs/components/notebooks/",),
    parameters=(
        Parameter("kinds", ("Deployment", "Notebook", "Pod", "ReplicaSet", "StatefulSet"), "Kinds of work that do not end by themselves."),
        Parameter("words", ("notebook", "jupyter", "code-server", "rstudio", "vscode"), "Words by which such work is recognized."),
        Parameter(
            "limits",
            (
                *("cull-idle", "culling", "idle-timeout", "shutdown-no-activity-timeout", "idle-culler", "timeout-idle"),
                *("downscaler/", "kueue.x-k8s.io/max-exec-time-seconds"),
            ),
            "Words in arguments, names of variables, annotations and labels that are an idle limit or a time limit; - and _ are ignored.",
        ),
    ),
)
