// The compiler must refuse each line that ends with a number, with only that error.
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

// Correct arguments, and optional ones.
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

// Unknown names, including Python's.
new flexspot.GpuNodePool("python", { ...right, max_nodes: 8 }); // 2561
new flexspot.GpuNodePool("misspelt", { ...right, machine: ["g6.xlarge"] }); // 2561
export const id = team.namespaceName; // 2551

// A missing required argument.
const { machines, ...withoutMachines } = right;
new flexspot.GpuNodePool("missing", withoutMachines); // 2345

// An output for an argument that shapes the graph.
new flexspot.GpuNodePool("shape", { ...right, pool: team.namespace }); // 2322
