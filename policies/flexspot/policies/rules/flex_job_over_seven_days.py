"""Work that requests flex-start capacity for longer than its limit of seven days."""

from collections.abc import Iterator
from decimal import Decimal

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ComputeClassView, ProvisioningRequest, ProvisioningRequestConfig
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.pods.interruption import LONGEST_SECONDS, flex_start_of, ignores_interruptions
from flexspot.policies.values.field import UNKNOWN, Field, Tri

RUN_TIME = "maxRunDurationSeconds"
ANNOTATION = f"provreq.kueue.x-k8s.io/{RUN_TIME}"
SELECTOR = "cloud.google.com/gke-max-run-duration-seconds"

TOO_LONG = "{at} is {seconds} seconds, and a flex-start node ends after {most}{also}"
TOO_LONG_REMEDY = "write {most} or less in {at}"
ALSO = " ({by})"

Asker = PodSet | ProvisioningRequest | ProvisioningRequestConfig | ComputeClassView


def judge(asker: Asker, parameters: Parameters, inventory: Inventory) -> Outcome:
    """A deadline alone says little of a Job that goes on after an interruption: it may need several nodes, one after the other."""
    most = parameters.number("most-seconds")
    flex, by = flex_start_of(asker, inventory) if isinstance(asker, PodSet) and asker.asks_for_gpus is not False else (False, "")
    asked = [each for each in _asked(asker, flex) if each[2] is not False]
    known = [(at, seconds.number()) for at, seconds, _ in asked]
    long = [(at, seconds) for at, seconds in known if isinstance(seconds, Decimal) and seconds > most]
    sure = [at for at, _, is_flex in asked if is_flex is True]
    for at, seconds in long:
        if at in sure:
            # Where the capacity is not certain, it is the field itself that asks flex-start.
            also = ALSO.format(by=by) if flex is True else ""
            return fails(TOO_LONG.format(at=at, seconds=seconds, most=most, also=also), TOO_LONG_REMEDY.format(most=most, at=at), at)
    if long or any(seconds is UNKNOWN for _, seconds in known):
        return undecided(f"{asked[0][0]}, or whether it runs on flex-start, is not known")
    return PASSES if asked and sure else not_applicable("it requests no run time of its own from flex-start")


def _asked(asker: Asker, flex: Tri) -> Iterator[tuple[str, Field, Tri]]:
    """Each field that asks for seconds, and whether it asks flex-start for them."""
    if isinstance(asker, PodSet):
        for annotations in asker.annotations:
            if not annotations.at(ANNOTATION).absent and annotations.known:
                yield f'metadata.annotations["{ANNOTATION}"]', annotations.at(ANNOTATION), True
        fields = {f'{asker.where}.nodeSelector["{SELECTOR}"]': asker.pod.at("nodeSelector", SELECTOR)}
        if asker.job is None or ignores_interruptions(asker.job) is False:
            fields[f"{asker.where}.activeDeadlineSeconds"] = asker.pod.at("activeDeadlineSeconds")
            fields["spec.activeDeadlineSeconds"] = asker.object_spec.at("activeDeadlineSeconds")
            fields["spec.runPolicy.activeDeadlineSeconds"] = asker.object_spec.at("runPolicy", "activeDeadlineSeconds")
            if asker.job is not None:
                fields[f"{asker.where.removesuffix('.template.spec')}.activeDeadlineSeconds"] = asker.job.at("activeDeadlineSeconds")
        written = {at: field for at, field in fields.items() if not field.absent and (field.known or not field.partial)}
        yield from ((at, field, flex) for at, field in written.items())
    elif isinstance(asker, ComputeClassView):
        for place, priority in asker.spec.at("priorities").parts().named:
            if not priority.at(RUN_TIME).absent:
                yield f"spec.priorities[{place}].{RUN_TIME}", priority.at(RUN_TIME), priority.at("flexStart", "enabled").equals("true")
    else:
        seconds = asker.spec.at("parameters", RUN_TIME)
        if not seconds.absent:
            yield f"spec.parameters.{RUN_TIME}", seconds, asker.spec.at("provisioningClassName").equals("queued-provisioning.gke.io")


RULE = Rule(
    code="FLX046",
    severity=Severity.HIGH,
    clouds=(Cloud.GKE,),
    judge_among=judge,
    why="GKE refuses a longer request, and ends every flex-start node after seven days: work that needs longer is cut off.",
    remediation="Ask for seven days (604800 seconds) or less, or let the job write checkpoints and go on with a new node.",
    link="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/dws",
    sources=("GoogleCloudPlatform/cluster-autoscaler (2026-08): run times of flex-start, 10 minutes to 7 days.",),
    parameters=(Parameter("most-seconds", LONGEST_SECONDS, "The longest run of a flex-start node, in seconds."),),
)
