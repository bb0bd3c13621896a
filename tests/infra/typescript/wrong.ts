// Each line that ends with a number must be refused by the compiler, with that error and no other.
import * as pulumi from "@pulumi/pulumi";
import * as flexspot from "@pulumi/flexspot-eks";

const right: flexspot.GpuNodePoolArgs = {
    pool: "l4-spot",
    machines: ["g6.xlarge"],
    capacityTypes: ["spot"],
    nodeLabels: {},
    labels: {},
    taints: [],
    maxGpus: 8,
    maxNodes: 8,
    maxVcpu: 64,
    maxMemoryMib: 262144,
    idleSeconds: 60,
    consolidates: false,
    nodeClass: { group: "karpenter.k8s.aws", kind: "EC2NodeClass", name: "default" },
};
const team = new flexspot.Team("vision", {} as flexspot.TeamArgs);

// What is right, and what may be left out.
new flexspot.GpuNodePool("right", right);
new flexspot.GpuNodePool("optional", { ...right, weight: 10, zones: undefined, ownerLabels: { owner: "vision" } });
export const name: pulumi.Output<string> = new flexspot.GpuNodePool("output", right).name;

// Numbers, lists, maps and objects of another type.
new flexspot.GpuNodePool("text", { ...right, maxNodes: "8" }); // 2322
new flexspot.GpuNodePool("one", { ...right, machines: "g6.xlarge" }); // 2322
new flexspot.GpuNodePool("numbers", { ...right, labels: { team: 7 } }); // 2322
new flexspot.GpuNodePool("truth", { ...right, consolidates: "no" }); // 2322
new flexspot.GpuNodePool("incomplete", { ...right, nodeClass: { name: "default" } }); // 2739
new flexspot.GpuNodePool("taint", { ...right, taints: [{ key: 1, value: "present", effect: "NoSchedule" }] }); // 2322

// Names that there are not, Python's among them.
new flexspot.GpuNodePool("python", { ...right, max_nodes: 8 }); // 2561
new flexspot.GpuNodePool("misspelt", { ...right, machine: ["g6.xlarge"] }); // 2561
export const id = team.namespaceName; // 2551

// What must be given.
const { machines, ...withoutMachines } = right;
new flexspot.GpuNodePool("missing", withoutMachines); // 2345

// An output, for what shapes the graph.
new flexspot.GpuNodePool("shape", { ...right, pool: team.namespace }); // 2322
