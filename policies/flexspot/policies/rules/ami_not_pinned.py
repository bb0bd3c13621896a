"""A Karpenter node class whose image can change without a change to the class."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import NodeClass
from flexspot.policies.judging import Cloud, Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field, Tri, all_of, any_of, negated


def judge(node_class: NodeClass, parameters: Parameters) -> Outcome:
    """A term is pinned if it names an image, or a version of an alias. One that goes by tags moves only when its owner tags an image."""
    if node_class.group != "karpenter.k8s.aws":
        return not_applicable("not an EC2NodeClass")
    terms = node_class.spec.at("amiSelectorTerms").parts()
    if terms.complete and not terms.fields:
        return not_applicable("it selects no AMI")
    found = [(_floats(term, parameters.texts("moving-parameters")), place, term) for place, term in terms.named]
    for (floats, field), place, term in found:
        if floats is True:
            at = f"spec.amiSelectorTerms[{place}].{field}"
            return fails(f"{at} is {term.at(field).text()}, which selects a new AMI whenever AWS publishes one", _remedy(at, field), at)
    if not terms.complete or any(floats is UNKNOWN for (floats, _), _, _ in found):
        return undecided("spec.amiSelectorTerms is not fully known yet")
    return PASSES


def _floats(term: Field, moving: tuple[str, ...]) -> tuple[Tri, str]:
    """Whether the term selects the newest of several images, and by which field."""

    def holds(field: str, marks: tuple[str, ...]) -> Tri:
        text = term.at(field).text()
        return UNKNOWN if text is UNKNOWN else any(mark in (text or "") for mark in marks)

    # An id settles it, whatever stands beside it.
    if term.at("id").known and not term.at("id").absent:
        return False, "id"
    # Windows has no other version of its aliases.
    pinnable = negated(holds("alias", ("windows",)))
    answers = {
        "alias": all_of([pinnable, holds("alias", ("@latest",))]),
        "name": holds("name", ("*", "?")),
        "ssmParameter": holds("ssmParameter", moving),
    }
    found = any_of(answers.values())
    return found, next((field for field, answer in answers.items() if answer is found), "")


def _remedy(at: str, field: str) -> str:
    pinned = {"alias": "a version, such as al2023@v20260903", "name": "the full name of one AMI, and its owner"}
    return f"set {at} to {pinned.get(field, 'the parameter of one version')}; update it after you have tested a new AMI"


RULE = Rule(
    code="FLX027",
    severity=Severity.MEDIUM,
    clouds=(Cloud.EKS,),
    judge=judge,
    why="Every image release makes all nodes drift: Karpenter replaces them, with their jobs, using an image that you have not tested.",
    remediation="Pin the image by an alias with a version or by its ID, and upgrade it like any other change.",
    link="https://karpenter.sh/docs/tasks/managing-amis/",
    sources=("https://karpenter.sh/docs/concepts/disruption/#drift",),
    parameters=(
        Parameter("moving-parameters", ("/latest/", "/recommended"), "Parts of an SSM parameter's name which show that AWS updates it."),
    ),
)
