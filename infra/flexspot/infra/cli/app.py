"""The `flexspot` command: the table of its commands."""

from __future__ import annotations

import typer

from flexspot.infra.cli.command_line import Command, CommandGroup, application, started
from flexspot.policies import FOLDER

COMMANDS: dict[str, Command | CommandGroup] = {
    "init": Command("stacks.init", "init", "Create a project: stacks, a program, rules and a workflow."),
    "import": Command(
        "stacks.importing", "import_stack", "Propose a stack file for what already runs, from a Terraform state, a cluster, or both."
    ),
    "doctor": Command("stacks.doctor", "doctor", "Report what works on this machine, what is missing, and how to get it."),
    "stacks": Command("stacks.deploying", "stacks", "List the project's stacks: cloud, environment, and what is deployed."),
    "preview": Command("stacks.deploying", "preview", "Show what `up` would change; a violated policy stops it with exit code 1."),
    "up": Command("stacks.deploying", "up", "Deploy a stack; a violated policy stops it with exit code 1."),
    "outputs": Command("stacks.deploying", "outputs", "Print the outputs of a deployed stack."),
    "kubeconfig": Command("stacks.deploying", "kubeconfig", "Print how kubectl reaches a deployed stack."),
    "destroy": Command("stacks.deploying", "destroy", "Delete every resource of a stack."),
    "review": Command("stacks.review", "review", "Report what a change does to every stack."),
    "lint": Command("lint", "lint", "Check Kubernetes manifests with the same policies as previews."),
    "audit": Command("lint", "audit", "Check a running cluster with the rules of lint, and report wasted money."),
    "cost": Command("money.cost", "cost", "Estimate what a plan, or any Pulumi program, costs in a month."),
    "run": Command(
        "jobs",
        "run",
        "Submit a job to your team's queue and follow it.",
        # Arguments after the script belong to the script, `--lr 1` too.
        {"allow_interspersed_args": False},
    ),
    "render": Command("jobs", "render", "Print the Kubernetes objects of a workload, derived from the stack; submits nothing."),
    "jobs": CommandGroup(
        "Your team's jobs: list, follow, stop.",
        {
            "list": Command("jobs", "list_jobs", "List the team's jobs with their state and the reason."),
            "logs": Command("jobs", "follow_job", "Follow a job to its end: its state, and the output of its first pod."),
            "stop": Command("jobs", "stop_job", "Stop a job and delete it with its pods and logs."),
        },
    ),
    "settings": CommandGroup(
        "Check stack files, and help to write them.",
        {
            "check": Command("stacks.settings", "check", "Check a stack file and show what follows from it."),
            "needs": Command("stacks.settings", "needs", "Show what a cloud account must allow before a stack's nodes can start."),
            "schema": Command("stacks.settings", "schema", "Print the JSON schema of stack files."),
        },
    ),
    "versions": CommandGroup(
        "The versions of a stack on EKS: Kubernetes, add-ons, nodes, charts.",
        {
            "list": Command("stacks.versions", "list_versions", "Show which version of each part a stack gets."),
            "upgrade": Command("stacks.versions", "upgrade", "Show what another Kubernetes version would change in a stack."),
        },
    ),
    "images": CommandGroup(
        "Releases of the node images on EKS.",
        {
            "list": Command("stacks.versions", "list_known", "List the known image releases for each stack's Kubernetes version."),
            "refresh": Command("stacks.versions", "refresh_images", "Ask AWS for its image releases."),
        },
    ),
    "rules": CommandGroup(
        "The rules that lint, previews and clusters apply.",
        {
            "list": Command("lint", "list_rules", "List every rule with its code, its severity, its level, and what it finds."),
            "test": Command("lint", "try_rules", "Test the configuration's own rules on fixtures."),
            "pack": Command("app", "pack", "Print the folder of this version's policy pack."),
        },
    ),
    "prices": CommandGroup(
        "The prices that all calculations use.",
        {
            "check": Command("money.prices", "check", "Show the price of every pool's machines, with its source and date."),
            "refresh": Command("money.prices", "refresh", "Ask the cloud for prices of machines and services."),
        },
    ),
    "advise": CommandGroup(
        "Choose the capacity for a job and see its cost before you spend money.",
        {
            "job": Command("money.advise", "job", "Recommend capacity for one job, or for each job of a file, with the arithmetic."),
            "reserve": Command("money.reserve", "reserve", "Recommend how many machines to commit to."),
            "simulate": Command("money.advise", "simulate", "Replay strategies over records of Spot availability."),
        },
    ),
    "chargeback": CommandGroup(
        "Report who used which GPUs, what they cost, and how that compares with the bill.",
        {
            "report": Command("money.chargeback", "report", "Report what GPUs cost each team in a month."),
            "rules": Command("money.chargeback", "rules", "Print the recording rules of GPUs allocated, used and idle."),
            "reconcile": Command(
                "money.saved_reports", "reconcile", "Explain the differences between a chargeback report and the cloud's bill."
            ),
            "trend": Command("money.saved_reports", "trend", "Show how the teams' costs change from month to month."),
        },
    ),
    "lab": CommandGroup(
        "The local control plane: real Kubernetes, Kueue and Karpenter on fake nodes.",
        {
            "tools": Command("lab", "tools", "Build the lab's programs that are not in the cache."),
            "start": Command("lab", "start", "Start or repair a lab: healthy parts are left alone, the others are started."),
            "stop": Command("lab", "stop", "Stop a lab; leaves no process and no open port."),
            "status": Command("lab", "status", "Show each part of a lab; exit code 1 unless all are running."),
            "kubeconfig": Command("lab", "kubeconfig", "Print the path of a lab's kubeconfig."),
            "exercise": Command("lab", "exercise", "Run the course's exercise."),
            "pulumi": Command(
                "lab",
                "pulumi",
                "Run the Pulumi command line itself against a lab.",
                {"allow_extra_args": True, "ignore_unknown_options": True},
            ),
        },
    ),
}

INSTEAD = {
    "deploy": "up",
    "apply": "up",
    "refresh": "preview --refresh",
    "policy-pack": "rules pack",
    **{f"chargeback-{each}": f"chargeback {each}" for each in ("rules", "reconcile", "trend")},
    **dict.fromkeys(("advise spot", "advise units", "advise idle", "advise mix"), "advise job"),
}
"""Names that people try, and those of earlier versions, with the command to use instead."""

app = application(
    "flexspot",
    "Cost-efficient AI platforms on GKE and EKS: declare, preview, rehearse.",
    COMMANDS,
    INSTEAD,
)


def pack() -> None:
    """Print the folder of this version's policy pack.

    As in: pulumi preview --policy-pack $(flexspot rules pack).
    """
    typer.echo(FOLDER)


def main() -> None:
    """Run the command line. Exit codes are those of `started`."""
    started(app)
