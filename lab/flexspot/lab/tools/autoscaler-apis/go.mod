// Pins the files that the lab takes from k8s.io/autoscaler/cluster-autoscaler/apis; see tools.yaml for which. Nothing of it is compiled.
// The version is the one that Kueue v0.19.2's own go.mod asks for: its provisioning controller is written against it.
module flexspot.local/tools/autoscaler-apis

go 1.26.6

require k8s.io/autoscaler/cluster-autoscaler/apis v0.0.0-20240830133931-adfbe7e45277 // indirect
