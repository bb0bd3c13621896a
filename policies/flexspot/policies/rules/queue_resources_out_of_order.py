"""A ClusterQueue or a Cohort whose flavors list resources in a different order from coveredResources."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import ClusterQueue, Cohort
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Unknown


def judge(queue: ClusterQueue | Cohort, _: Parameters) -> Outcome:
    """Kueue compares the two lists name by name, place by place."""
    groups = queue.spec.at("resourceGroups").parts()
    hangs = not groups.complete
    for group, fields in groups.named:
        covered = _names(fields.at("coveredResources"), "")
        flavors = fields.at("flavors").parts()
        hangs |= not flavors.complete or covered is UNKNOWN
        for flavor, flavor_fields in flavors.named:
            at = f"spec.resourceGroups[{group}].flavors[{flavor}].resources"
            listed = _names(flavor_fields.at("resources"), "name")
            if listed is UNKNOWN or covered is UNKNOWN:
                hangs = True
            elif listed != covered:
                return fails(
                    f"{at} lists {', '.join(listed) or 'nothing'}, but its group covers {', '.join(covered) or 'nothing'}",
                    f"list in {at}, in this order: {', '.join(covered)}",
                    at,
                )
    if hangs:
        return undecided("spec.resourceGroups is not fully known yet")
    return PASSES if groups.fields else not_applicable("it has no resource groups")


def _names(listed: Field, key: str) -> list[str] | Unknown:
    parts = listed.parts()
    names = [(each.at(key) if key else each).text() for each in parts.fields]
    return UNKNOWN if not parts.complete or UNKNOWN in names else [str(name) for name in names]


RULE = Rule(
    code="FLX008",
    severity=Severity.HIGH,
    judge=judge,
    why="Kueue's webhook refuses such a queue when it is applied, after the preview has passed and other resources have been created.",
    remediation="List the resources of every flavor as in coveredResources: the same names in the same order.",
    link="https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#flavors-and-resources",
)
