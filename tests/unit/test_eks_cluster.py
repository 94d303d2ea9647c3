"""EKSCluster: roles, control plane, access, storage and add-ons, and the order they come in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders import eks
from modelplane import contracts as c
from modelplane.core import Answer, paths
from modelplane.sim.world import World

ROLES = {
    "role-cluster": ("eks.amazonaws.com", ["AmazonEKSClusterPolicy"]),
    "role-node": ("ec2.amazonaws.com", ["AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly"]),
    "role-cni": ("pods.eks.amazonaws.com", ["AmazonEKS_CNI_Policy"]),
    "role-ebs-csi": ("pods.eks.amazonaws.com", ["service-role/AmazonEBSCSIDriverPolicy"]),
    "role-efs-csi": ("pods.eks.amazonaws.com", ["service-role/AmazonEFSCSIDriverPolicy"]),
    "role-autoscaler": ("pods.eks.amazonaws.com", []),
}


def at_rest(**spec: Any) -> tuple[World, Answer]:
    """A cluster at rest and what it answers then."""
    world = eks.at_rest(eks.cluster(**spec))
    return world, eks.again(world)


@pytest.mark.parametrize("key", ROLES)
def test_each_user_of_aws_has_a_role_with_no_more_than_it_needs(key: str) -> None:
    boundary = "arn:aws:iam::111122223333:policy/b"
    asked = eks.parameters(eks.ask(eks.cluster(access={"permissionsBoundaryArn": boundary})), key)
    service, policies = ROLES[key]
    (trust,) = json.loads(asked["assumeRolePolicy"])["Statement"]
    assert trust["Principal"] == {"Service": service}
    assert ("sts:TagSession" in trust["Action"]) is (service != "ec2.amazonaws.com")
    assert asked.get("managedPolicyArns", []) == [f"arn:aws:iam::aws:policy/{name}" for name in policies]
    assert asked["permissionsBoundary"] == boundary


def test_the_autoscaler_changes_only_groups_of_its_cluster() -> None:
    world, answer = at_rest()
    (inline,) = eks.parameters(answer, "role-autoscaler")["inlinePolicy"]
    reads, writes = json.loads(inline["policy"])["Statement"]
    assert not [
        a for a in reads["Action"] if a.partition(":")[2].startswith(("Set", "Terminate", "Delete", "Update"))
    ]
    name = eks.one(world, "Cluster")["metadata"]["name"]
    assert writes["Condition"] == {
        "StringEquals": {f"aws:ResourceTag/k8s.io/cluster-autoscaler/{name}": "owned"}
    }


PARTITIONS = [
    ("us-west-2", "aws", "ec2.amazonaws.com"),
    ("cn-north-1", "aws-cn", "ec2.amazonaws.com.cn"),
    ("us-gov-west-1", "aws-us-gov", "ec2.amazonaws.com"),
    ("us-iso-east-1", "aws-iso", "ec2.c2s.ic.gov"),
    ("us-isob-east-1", "aws-iso-b", "ec2.sc2s.sgov.gov"),
    ("eu-isoe-west-1", "aws-iso-e", "ec2.amazonaws.com"),
]


@pytest.mark.parametrize(("region", "partition", "ec2"), PARTITIONS)
def test_every_arn_and_principal_is_of_the_regions_partition(region: str, partition: str, ec2: str) -> None:
    zones = [f"{region}a", f"{region}b"]
    principal = f"arn:{partition}:iam::111122223333:role/admin"
    world = eks.at_rest(
        eks.cluster(region=region, network={"zones": zones}, access={"adminPrincipals": [principal]})
    )
    answer = eks.again(world)
    arns = [
        arn
        for composed in answer.resources.values()
        for arn in paths.items(composed.manifest, "spec", "forProvider", "managedPolicyArns")
    ]
    assert len(arns) == 6
    assert all(str(arn).startswith(f"arn:{partition}:iam::aws:policy/") for arn in arns)
    (trust,) = json.loads(eks.parameters(answer, "role-node")["assumeRolePolicy"])["Statement"]
    assert trust["Principal"] == {"Service": ec2}
    policies = [k for k in answer.resources if k.startswith("access-policy-")]
    assert eks.parameters(answer, policies[0])["policyArn"].startswith(f"arn:{partition}:eks::aws:")


def test_the_efa_driver_comes_from_the_partitions_registry() -> None:
    efa = eks.pool(fabric="EFA")
    for region, registry in (("us-gov-west-1", "013241004608.dkr.ecr.us-gov-west-1"), ("us-west-2", "")):
        body = eks.cluster(efa, region=region, network={"zones": [f"{region}a", f"{region}b"]})
        values = eks.parameters(eks.again(eks.at_rest(body)), "release-efa-dra-driver")["values"]
        assert paths.text(values, "image", "repository").startswith(registry)
        assert bool(paths.text(values, "image", "repository")) is bool(registry)


def test_the_control_plane_is_private_logged_encrypted_and_asks_who_comes() -> None:
    _, answer = at_rest(
        access={"publicCidrs": ["203.0.113.0/24"]}, supportType="EXTENDED", deletionProtection=True
    )
    asked = eks.parameters(answer, "cluster")
    assert asked["vpcConfig"]["endpointPrivateAccess"] is True
    assert asked["vpcConfig"]["publicAccessCidrs"] == ["203.0.113.0/24"]
    assert asked["accessConfig"]["authenticationMode"] == "API"
    assert asked["bootstrapSelfManagedAddons"] is False
    assert asked["encryptionConfig"]["resources"] == ["secrets"]
    assert asked["enabledClusterLogTypes"] == ["api", "audit", "authenticator"]
    assert (asked["upgradePolicy"], asked["deletionProtection"]) == ({"supportType": "EXTENDED"}, True)
    assert len(asked["vpcConfig"]["subnetIds"]) == 3


def test_without_public_ranges_the_public_endpoint_is_off() -> None:
    _, answer = at_rest(access={"publicCidrs": []})
    vpc = eks.parameters(answer, "cluster")["vpcConfig"]
    assert (vpc["endpointPublicAccess"], "publicAccessCidrs" in vpc) == (False, False)


ARN = "arn:aws:kms:us-west-2:111122223333:key/k"
KEYS = [("Managed", True, None), ("None", False, ""), (ARN, False, ARN)]


@pytest.mark.parametrize(("asked", "made", "used"), KEYS)
def test_secrets_are_encrypted_by_the_key_that_is_asked_for(asked: str, made: bool, used: str | None) -> None:
    world, answer = at_rest(encryption={"kmsKey": asked})
    arn = paths.text(eks.parameters(answer, "cluster"), "encryptionConfig", "provider", "keyArn")
    assert ("key" in answer.resources) is made
    assert arn == (eks.one(world, "Key")["status"]["atProvider"]["arn"] if used is None else used)
    inline = eks.parameters(answer, "role-cluster").get("inlinePolicy", [])
    assert [arn in x["policy"] for x in inline] == ([True] if arn else [])


def test_given_principals_administer_and_one_that_leaves_is_taken_away_in_two_steps() -> None:
    one, two = (f"arn:aws:iam::111122223333:role/{x}" for x in "ab")
    world, answer = at_rest(access={"adminPrincipals": [one, two]})
    access = eks.parameters(answer, "cluster")["accessConfig"]
    assert access["bootstrapClusterCreatorAdminPermissions"] is False
    keys = {k for k in answer.resources if k.startswith(("access-entry-", "access-policy-"))}
    assert len(keys) == 4
    # They go with the cluster: before it, nobody could take it down.
    assert all("Delete" not in answer.resources[k].manifest["spec"]["managementPolicies"] for k in keys)
    first = eks.again(world, access={"adminPrincipals": [one]})
    leaving = {k for k in keys if "Delete" in first.resources[k].manifest["spec"]["managementPolicies"]}
    assert len(leaving) == 2
    after = eks.children(world, c.EKS_CLUSTER) | {k: first.resources[k].manifest for k in leaving}
    assert not leaving & eks.again(world, after, access={"adminPrincipals": [one]}).resources.keys()


def test_the_creator_stays_what_it_was_when_principals_come_later() -> None:
    world, _ = at_rest()
    later = eks.again(world, access={"adminPrincipals": ["arn:aws:iam::111122223333:role/a"]})
    assert eks.parameters(later, "cluster")["accessConfig"]["bootstrapClusterCreatorAdminPermissions"] is True


FIRST = [
    ("log-group", "cluster", "EKS makes one without an end by itself"),
    ("role-cluster", "cluster", "it assumes it"),
    ("cluster", "cluster-auth", "nothing to log in to"),
    ("addon-vpc-cni", "pool-system", "nodes come up with it"),
    ("addon-eks-pod-identity-agent", "pool-system", "so does the CNI"),
    ("addon-kube-proxy", "pool-system", "and this"),
    ("pool-system", "addon-coredns", "it needs nodes"),
    ("pool-system", "pool-gpu", "controllers first"),
    ("pool-system", "release-cluster-autoscaler", "it needs nodes"),
    ("provider-config-helm", "release-cluster-autoscaler", "it is reached by it"),
]


@pytest.mark.parametrize(("first", "second", "reason"), FIRST, ids=[f"{x[0]}<{x[1]}" for x in FIRST])
def test_what_needs_another_comes_after_it(first: str, second: str, reason: str) -> None:
    world, _ = at_rest()
    seen = eks.children(world, c.EKS_CLUSTER)
    del seen[second]
    assert second in eks.again(world, seen).resources
    # Ready says that it exists; only a state of its own, or a condition, that it works.
    first_seen = {**seen[first], "status": {"conditions": [], "atProvider": {"status": "CREATING"}}}
    if seen[first]["kind"] == "ProviderConfig":
        del seen[first]
        assert second not in eks.again(world, seen).resources, reason
    else:
        assert second not in eks.again(world, {**seen, first: first_seen}).resources, reason


def test_ready_is_not_believed_where_eks_has_a_state() -> None:
    world, _ = at_rest()
    seen = eks.children(world, c.EKS_CLUSTER)
    del seen["cluster-auth"]
    seen["cluster"]["status"]["atProvider"]["status"] = "FAILED"
    assert paths.is_true(seen["cluster"], c.READY)
    assert "cluster-auth" not in eks.again(world, seen).resources


def test_a_mount_target_stands_in_each_zone_and_only_the_clusters_nodes_reach_it() -> None:
    world, answer = at_rest()
    targets = [k for k in answer.resources if k.startswith("mount-target-")]
    assert len(targets) == 3
    rule = eks.parameters(answer, "file-system-ingress")
    assert (
        rule["referencedSecurityGroupId"] == eks.one(world, c.EKS_CLUSTER)["status"]["clusterSecurityGroupId"]
    )
    assert "cidrIpv4" not in rule
    assert eks.parameters(answer, "file-system")["encrypted"] is True
    policy = json.loads(eks.parameters(answer, "file-system-policy")["policy"])["Statement"]
    assert {"Deny", "Allow"} == {x["Effect"] for x in policy}
    made = answer.resources["storage-class-rwx-efs"].manifest["spec"]["forProvider"]["manifest"]
    file_system = eks.children(world, c.EKS_CLUSTER)["file-system"]["status"]["atProvider"]["id"]
    assert made["parameters"]["fileSystemId"] == file_system


ADDONS = [
    ("vpc-cni", "aws-node", "role-cni"),
    ("aws-ebs-csi-driver", "ebs-csi-controller-sa", "role-ebs-csi"),
    ("aws-efs-csi-driver", "efs-csi-controller-sa", "role-efs-csi"),
    ("kube-proxy", "", ""),
    ("coredns", "", ""),
    ("eks-pod-identity-agent", "", ""),
    ("metrics-server", "", ""),
    ("eks-node-monitoring-agent", "", ""),
]


@pytest.mark.parametrize(("name", "account", "role"), ADDONS, ids=[x[0] for x in ADDONS])
def test_an_add_on_has_a_role_where_it_calls_aws_and_its_version_is_eks_s_own(
    name: str, account: str, role: str
) -> None:
    world, answer = at_rest(tags={"team": "ml"})
    asked = eks.parameters(answer, f"addon-{name}")
    pairs = asked.get("podIdentityAssociation", [])
    arn = eks.children(world, c.EKS_CLUSTER)[role]["status"]["atProvider"]["arn"] if role else ""
    assert pairs == ([{"serviceAccount": account, "roleArn": arn}] if role else [])
    assert "addonVersion" not in asked
    policies = answer.resources[f"addon-{name}"].manifest["spec"]["managementPolicies"]
    # It goes with the cluster; and the default of the day, filled in late, would be ours to keep.
    assert not {"Delete", "LateInitialize", "*"} & set(policies)
    assert asked["tags"]["team"] == "ml"


def test_volumes_are_made_by_an_encrypted_default_class_and_bear_the_users_tags() -> None:
    _, answer = at_rest(tags={"team": "ml"})
    values = json.loads(eks.parameters(answer, "addon-aws-ebs-csi-driver")["configurationValues"])
    # The driver's own class has no parameters, and two defaults are one too many.
    assert values.keys() == {"controller"}
    assert values["controller"]["extraVolumeTags"]["team"] == "ml"
    made = answer.resources["storage-class-ebs"].manifest["spec"]["forProvider"]["manifest"]
    assert made["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert made["parameters"] == {"encrypted": "true", "type": "gp3"}


def test_pods_in_the_second_range_are_told_to_the_cni() -> None:
    world, answer = at_rest(network={"secondaryCidr": "100.64.0.0/16", "podsInSecondary": True})
    values = json.loads(eks.parameters(answer, "addon-vpc-cni")["configurationValues"])
    assert values["env"]["AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"] == "true"
    assert len(values["eniConfig"]["subnets"]) == 3
    group = eks.one(world, c.EKS_CLUSTER)["status"]["clusterSecurityGroupId"]
    assert all(x["securityGroups"] == [group] for x in values["eniConfig"]["subnets"].values())


def test_every_kind_that_can_bears_the_users_tags() -> None:
    world = eks.at_rest(eks.cluster(eks.pool(fabric="EFA"), tags={"team": "ml"}))
    bare = {
        obj["kind"]
        for obj in world.objects.values()
        if ".aws.m.upbound.io/" in obj["apiVersion"]
        and paths.at(obj, "spec", "forProvider", "tags", "team") != "ml"
    }
    # By the schemas of provider-upjet-aws v2.6.0 these have no tags.
    assert bare == {
        "Alias",
        "ClusterAuth",
        "FileSystemPolicy",
        "MountTarget",
        "Route",
        "RouteTableAssociation",
    }
