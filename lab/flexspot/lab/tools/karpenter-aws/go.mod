// Pins the files that the lab takes from github.com/aws/karpenter-provider-aws; see tools.yaml for which. Nothing of it is compiled.
module flexspot.local/tools/karpenter-aws

go 1.26.6

require github.com/aws/karpenter-provider-aws v1.14.1 // indirect
