"""A Karpenter node class that selects no image."""

from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.objects import NodeClass
from flexspot.policies.judging import Cloud, Parameters, Rule


def judge(node_class: NodeClass, _: Parameters) -> Outcome:
    """In v1 amiFamily says how nodes are set up, not which image they start."""
    if node_class.group != "karpenter.k8s.aws" or node_class.version != "v1":
        return not_applicable("not an EC2NodeClass of v1")
    terms = node_class.spec.at("amiSelectorTerms")
    if not terms.known:
        return undecided("spec.amiSelectorTerms is not known yet")
    if terms.parts().fields:
        return PASSES
    also = "; amiFamily was enough to select one only in v1beta1" if not node_class.spec.at("amiFamily").absent else ""
    return fails(f"spec.amiSelectorTerms selects no AMI{also}", at="spec")


RULE = Rule(
    code="FLX018",
    severity=Severity.HIGH,
    clouds=(Cloud.EKS,),
    judge=judge,
    why="The API server refuses the class, NodePools that refer to it never become ready, and pods wait without an explanation.",
    remediation="Set spec.amiSelectorTerms to a pinned alias, such as [{alias: al2023@v20260903}].",
    link="https://karpenter.sh/docs/concepts/nodeclasses/#specamiselectorterms",
)
