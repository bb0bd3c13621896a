"""Which GCP machine has which GPUs, checked before GKE is asked for it."""

from capacity.catalog.machines import Cloud, Machine, machines_of, machines_with


def gpu_machine(where: str, machine: str, accelerator: str, gpus: int) -> Machine:
    """The catalog's row of `machine`, which has `gpus` GPUs of `accelerator` (GKE's name, such as nvidia-l4).

    Raises ValueError, beginning with `where`, when there is no such machine, and names the machines that have those GPUs.
    """
    machines = machines_of(Cloud.GCP)
    fits = machines_with(machines, accelerator, gpus)
    if machine in fits:
        return machines[machine]
    found = machines.get(machine)
    if found is None:
        has = "is not in the machine catalog (capacity/catalog/gcp.yaml)"
    elif found.gpu is None:
        has = "has no GPUs"
    else:
        has = f"has {' or '.join(map(str, found.gpu.counts))} of {found.gpu.name}"
    if fits:
        remedy = f"machines that have these are {', '.join(fits)}"
    else:
        kinds = sorted({each.gpu.name for each in machines.values() if each.gpu})
        remedy = f"no machine has these; accelerators are {', '.join(kinds)}"
    raise ValueError(f"{where}: machine {machine} {has}; asked for {gpus} of {accelerator}; {remedy}")
