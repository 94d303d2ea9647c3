"""The cluster's IAM roles: one per user of the AWS API, each with no more than it needs."""

from collections.abc import Iterator
from dataclasses import dataclass

from modelplane import contracts as c
from modelplane.clouds.eks.aws import Aws, document, partition
from modelplane.core.paths import Manifest
from modelplane.core.plan import Desired

CLUSTER_ROLE, NODE_ROLE, CNI_ROLE = "role-cluster", "role-node", "role-cni"
EBS_ROLE, EFS_ROLE, AUTOSCALER_ROLE = "role-ebs-csi", "role-efs-csi", "role-autoscaler"
# What nodes, volumes and network interfaces are taken down with: they stay until the cluster is gone.
OUTLIVING = (CLUSTER_ROLE, NODE_ROLE, CNI_ROLE, EBS_ROLE, EFS_ROLE)

_EKS, _EC2, _PODS = "eks.amazonaws.com", "ec2.amazonaws.com", "pods.eks.amazonaws.com"
# EC2 is the one whose name differs by partition (eksctl-io/eksctl, service principals by partition; the
# template of a node role in the EKS User Guide); EKS and pod identity have one name everywhere.
_EC2_BY_PARTITION = {
    "aws-cn": "ec2.amazonaws.com.cn",
    "aws-iso": "ec2.c2s.ic.gov",
    "aws-iso-b": "ec2.sc2s.sgov.gov",
}


@dataclass(frozen=True, slots=True)
class Role:
    """A role.

    Attributes:
        key: its composed key.
        service: who may assume it.
        policies: AWS's own policies it has.
    """

    key: str
    service: str
    policies: tuple[str, ...] = ()


_ROLES = (
    Role(CLUSTER_ROLE, _EKS, ("AmazonEKSClusterPolicy",)),
    # Neither the CNI's policy, which has a role of its own, nor push rights on images.
    Role(NODE_ROLE, _EC2, ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")),
    Role(CNI_ROLE, _PODS, ("AmazonEKS_CNI_Policy",)),
    Role(EBS_ROLE, _PODS, ("service-role/AmazonEBSCSIDriverPolicy",)),
    Role(EFS_ROLE, _PODS, ("service-role/AmazonEFSCSIDriverPolicy",)),
    Role(AUTOSCALER_ROLE, _PODS),
)


def roles(aws: Aws, key_arn: str) -> Iterator[Desired]:
    """Yield the cluster's roles; without a key of the user's the cluster role may use none."""
    for role in _ROLES:
        inline = {}
        if role.key == CLUSTER_ROLE and key_arn:
            inline = {"encryption": _use_key(key_arn)}
        if role.key == AUTOSCALER_ROLE:
            inline = {"scaling": _scale(aws.cluster)}
        yield Desired(role.key, _role(aws, role, inline))


def _role(aws: Aws, role: Role, inline: dict[str, str]) -> Manifest:
    # Attached by the role itself, policies come and go with it: no objects, and no order at deletion.
    parameters: Manifest = {"assumeRolePolicy": _trust(aws, role.service), "forceDetachPolicies": True}
    if role.policies:
        parameters["managedPolicyArns"] = [aws.arn("iam", f"aws:policy/{name}") for name in role.policies]
    if inline:
        parameters["inlinePolicy"] = [{"name": name, "policy": text} for name, text in inline.items()]
    if aws.boundary:
        parameters["permissionsBoundary"] = aws.boundary
    return aws.resource(c.IAM_API, "Role", role.key, parameters)


def _trust(aws: Aws, service: str) -> str:
    actions = ["sts:AssumeRole", "sts:TagSession"]
    if service == _EC2:
        service, actions = _EC2_BY_PARTITION.get(partition(aws.region), _EC2), ["sts:AssumeRole"]
    return document({"Effect": "Allow", "Principal": {"Service": service}, "Action": actions})


def _use_key(arn: str) -> str:
    # As terraform-aws-eks v21 gives the cluster role for a key of the user's (main.tf, cluster_encryption).
    actions = ["kms:Encrypt", "kms:Decrypt", "kms:ListGrants", "kms:DescribeKey"]
    return document({"Effect": "Allow", "Action": actions, "Resource": arn})


def _scale(cluster: str) -> str:
    # The actions of kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/README.md; those that change
    # something only on groups that EKS tagged for this cluster.
    reads = [
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeAutoScalingInstances",
        "autoscaling:DescribeLaunchConfigurations",
        "autoscaling:DescribeScalingActivities",
        "autoscaling:DescribeTags",
        "ec2:DescribeImages",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeLaunchTemplateVersions",
        "ec2:GetInstanceTypesFromInstanceRequirements",
        "eks:DescribeNodegroup",
    ]
    writes = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
    ours = {"StringEquals": {f"aws:ResourceTag/k8s.io/cluster-autoscaler/{cluster}": "owned"}}
    return document(
        {"Effect": "Allow", "Action": reads, "Resource": "*"},
        {"Effect": "Allow", "Action": writes, "Resource": "*", "Condition": ours},
    )
