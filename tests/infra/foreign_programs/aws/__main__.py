"""A web service and a training cluster on AWS, written as is common."""

import json

import pulumi_aws as aws

vpc = aws.ec2.Vpc("main", cidr_block="10.0.0.0/16")
internet = aws.ec2.InternetGateway("main", vpc_id=vpc.id)
subnets = [
    aws.ec2.Subnet(f"public-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{index}.0/24", availability_zone=f"us-east-1{zone}")
    for index, zone in enumerate("ab")
]
address = aws.ec2.Eip("nat", domain="vpc")
nat = aws.ec2.NatGateway("main", allocation_id=address.id, subnet_id=subnets[0].id)
endpoint = aws.ec2.VpcEndpoint(
    "registry",
    vpc_id=vpc.id,
    service_name="com.amazonaws.us-east-1.ecr.dkr",
    vpc_endpoint_type="Interface",
    subnet_ids=[each.id for each in subnets],
)
aws.ec2.VpcEndpoint("buckets", vpc_id=vpc.id, service_name="com.amazonaws.us-east-1.s3")

key = aws.kms.Key("cluster")
role = aws.iam.Role(
    "cluster",
    assume_role_policy=json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}],
        }
    ),
)
cluster = aws.eks.Cluster("training", role_arn=role.arn, vpc_config={"subnet_ids": [each.id for each in subnets]})
template = aws.ec2.LaunchTemplate(
    "nodes",
    block_device_mappings=[{"device_name": "/dev/xvda", "ebs": {"volume_type": "gp3", "volume_size": 50}}],
)
aws.eks.NodeGroup(
    "system",
    cluster_name=cluster.name,
    node_role_arn=role.arn,
    subnet_ids=[each.id for each in subnets],
    instance_types=["m6i.xlarge"],
    launch_template={"id": template.id, "version": "$Latest"},
    scaling_config={"min_size": 1, "desired_size": 2, "max_size": 4},
)
gpus = aws.ec2.LaunchTemplate(
    "gpus",
    image_id="ami-0123456789abcdef0",
    block_device_mappings=[
        {"device_name": "/dev/xvda", "ebs": {"volume_type": "gp3", "volume_size": 100, "iops": 3500, "throughput": 250}}
    ],
)
aws.autoscaling.Group(
    "gpus",
    min_size=0,
    desired_capacity=4,
    max_size=8,
    vpc_zone_identifiers=[each.id for each in subnets],
    mixed_instances_policy={
        "instances_distribution": {"on_demand_base_capacity": 1, "on_demand_percentage_above_base_capacity": 25},
        "launch_template": {
            "launch_template_specification": {"launch_template_id": gpus.id},
            "overrides": [{"instance_type": "g6.xlarge"}, {"instance_type": "g5.xlarge"}],
        },
    },
)

aws.ec2.Instance(
    "bastion",
    ami="ami-0123456789abcdef0",
    instance_type="t3.micro",
    subnet_id=subnets[0].id,
    associate_public_ip_address=True,
    root_block_device={"volume_type": "gp3", "volume_size": 30},
)
aws.ebs.Volume("scratch", availability_zone="us-east-1a", size=500, type="gp2")
balancer = aws.lb.LoadBalancer("web", load_balancer_type="application", subnets=[each.id for each in subnets])
aws.lb.LoadBalancer("inference", load_balancer_type="network", subnets=[each.id for each in subnets])
aws.s3.Bucket("checkpoints")
aws.rds.Instance("accounts", engine="postgres", instance_class="db.t3.medium", allocated_storage=20, skip_final_snapshot=True)
