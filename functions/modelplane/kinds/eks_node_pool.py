"""EKSNodePool: one pool of a cluster on EKS as one node group per zone, and what its nodes offer.

No input drops a group that runs: a change that EKS refuses in place makes a new group beside the old one, and
the old one goes when the new one is active. A spec in doubt leaves everything as it is.
"""

from collections.abc import Iterator, Mapping, Sequence

from modelplane import contracts as c
from modelplane import names
from modelplane.api.eks import EKSNodePoolSpec
from modelplane.clouds.eks import inside, pools
from modelplane.clouds.eks.aws import Aws
from modelplane.clouds.eks.groups import GROUP, PLACEMENT, TEMPLATE, Groups
from modelplane.clouds.eks.site import serving
from modelplane.core import (
    Condition,
    Desired,
    Event,
    Hold,
    Inputs,
    Kind,
    Manifest,
    Plan,
    Requirement,
    Waiting,
    keep,
    paths,
    specs,
    usages,
)
from modelplane.facts import aws as facts
from modelplane.kinds import eks_node_pool_status as status

UNKNOWN_INSTANCE_TYPE = "UnknownInstanceType"
UNSUPPORTED_INSTANCE_TYPE = "UnsupportedInstanceType"
NO_EFA, NO_DISKS, ONE_ZONE = "NoEFA", "NoLocalDisks", "OneZoneNeeded"
WAITING = "WaitingForCluster"
NODES = "nodes"


def requires(pool: Manifest) -> list[Requirement]:
    """Return the lookups: groups that are still being deleted, the pool's Nodes, and what is published."""
    space, labels = paths.namespace(pool) or None, paths.labels(pool)
    cluster, name = labels.get(c.CLUSTER_LABEL), labels.get(c.POOL_LABEL)
    if not isinstance(cluster, str) or not isinstance(name, str):
        return []
    ours = {c.CLUSTER_LABEL: cluster, c.POOL_LABEL: name}
    published = {c.CLUSTER_LABEL: cluster, c.ROLE_LABEL: c.ROLE_SLICE}
    return [
        Requirement("groups", c.EKS_API, "NodeGroup", match_labels=ours, namespace=space),
        Requirement(
            status.NODES,
            c.KUBERNETES_API,
            "Object",
            match_labels={**ours, c.ROLE_LABEL: c.ROLE_NODE},
            namespace=space,
        ),
        Requirement(status.SLICES, c.KUBERNETES_API, "Object", match_labels=published, namespace=space),
    ]


def compose(inputs: Inputs) -> Plan:
    """Return the Plan of a pool."""
    spec = specs.parse(EKSNodePoolSpec, inputs.spec, c.ACCEPTED)
    groups = Groups(inputs, spec, _aws(inputs, spec), _hardware(spec))
    if lacks := _lacks(spec):
        return Plan(
            status=keep.kept_status(inputs.composite),
            conditions=[
                Condition(c.ACCEPTED, True, "Available"),
                Condition(c.NODES_READY, False, WAITING, f"waiting for {lacks} of the cluster"),
            ],
            keep_all=True,
            ready=False,
        )
    built = list(groups.resources())
    wanted = {r.key for r in built}
    old = _old(inputs, wanted)
    replaced = bool(_current(built)) and all(_serves(inputs, key) for key in _current(built))
    kept = old if not replaced else {}
    keys = _with_theirs(inputs, {*kept, *_going(inputs)}) - wanted
    resources = [*built, *_nodes(inputs, spec), *_outlived(inputs, spec, built)]
    found = status.report(inputs, spec, _current(built), sorted(kept))
    return Plan(
        resources=resources,
        status=found.fields,
        conditions=[Condition(c.ACCEPTED, True, "Available"), found.nodes_ready],
        events=[Event(found.failure, warning=True)] if found.failure else [],
        keep=frozenset(keys),
        ready=_ready(inputs, built, kept),
    )


def _aws(inputs: Inputs, spec: EKSNodePoolSpec) -> Aws:
    label = paths.labels(inputs.composite).get(c.CLUSTER_LABEL)
    return Aws(
        cluster=spec.cluster_name,
        label=label if isinstance(label, str) and label else names.label_value(spec.cluster_name),
        region=spec.region,
        credentials=spec.credentials,
        tags=spec.tags,
    )


def _hardware(spec: EKSNodePoolSpec) -> facts.InstanceType | None:
    """Return what is known of the instance type; a GPU type nobody knows is refused, never guessed."""
    name = spec.instance_type
    known = facts.instance_types().get(name)
    if known is None and spec.role == c.GPU_ROLE:
        raise Hold(
            c.ACCEPTED,
            UNKNOWN_INSTANCE_TYPE,
            f"pool {spec.pool_name}: instanceType: {name} is not in {facts.INSTANCE_FILE}; add it there"
            " (`modelplane facts` makes the entry from describe-instance-types), or choose a type that is",
        )
    if known is not None and known.unsupported:
        message = f"pool {spec.pool_name}: instanceType: {name} cannot run here: {known.unsupported}"
        raise Hold(c.ACCEPTED, UNSUPPORTED_INSTANCE_TYPE, message)
    if spec.fabric == c.FABRIC_EFA and (known is None or not known.efa_cards):
        message = f"pool {spec.pool_name}: fabric: {name} has no EFA; choose a type that has, or fabric None"
        raise Hold(c.ACCEPTED, NO_EFA, message)
    if spec.local_storage == "RAID0" and known is not None and not known.nvme:
        message = (
            f"pool {spec.pool_name}: localStorage: {name} has no nvmeGb in {facts.INSTANCE_FILE}; leave it"
            " None, or add it there where the type has disks of its own"
        )
        raise Hold(c.ACCEPTED, NO_DISKS, message)
    if why := pools.one_zone_fault(spec, len(spec.subnets)):
        raise Hold(c.ACCEPTED, ONE_ZONE, f"pool {spec.pool_name}: {why}")
    return known


def _lacks(spec: EKSNodePoolSpec) -> str:
    if not spec.node_role_arn:
        return "the role of the nodes"
    if not spec.security_group_ids:
        return "the security group"
    return "" if spec.subnets else "the subnets"


def _current(built: Sequence[Desired | Waiting]) -> list[str]:
    return [r.key for r in built if r.key.startswith(GROUP)]


def _old(inputs: Inputs, wanted: set[str]) -> dict[str, Manifest]:
    """Return the groups that stand and are not asked for any more, but for those being deleted."""
    return {
        key: seen
        for key, seen in inputs.observed.items()
        if key.startswith(GROUP) and key not in wanted and not _deleted(seen)
    }


def _going(inputs: Inputs) -> set[str]:
    """Return the keys of groups that are being deleted: their templates have to outlive them."""
    found = {key for key, seen in inputs.observed.items() if key.startswith(GROUP) and _deleted(seen)}
    for group in inputs.all("groups"):
        key = paths.text(group, "metadata", "annotations", c.RESOURCE_NAME_ANNOTATION)
        if key.startswith(GROUP) and key not in inputs.observed:
            found.add(key)
    return found


def _deleted(observed: Mapping[str, object]) -> bool:
    return bool(paths.at(observed, "metadata", "deletionTimestamp"))


def _with_theirs(inputs: Inputs, groups: set[str]) -> set[str]:
    """Return the keys of these groups that stand, and of what they need until they are gone."""
    found = {key for key in groups if key in inputs.observed and not _deleted(inputs.observed[key])}
    uses = {paths.name(inputs.observed[key]) for key in groups if key in inputs.observed}
    for key in groups:
        mark = key.removeprefix(GROUP)
        found |= {f"{TEMPLATE}{mark}", f"{PLACEMENT}{mark.rpartition('-')[0]}"} & inputs.observed.keys()
    for key, seen in inputs.observed.items():
        if seen.get("apiVersion") == c.PROTECTION_API and paths.text(
            seen, "spec", "by", "resourceRef", "name"
        ) in (uses - {""}):
            found.add(key)
    return found


def _serves(inputs: Inputs, key: str) -> bool:
    seen = inputs.observed.get(key)
    return serving(seen).holds(seen)


def _ready(inputs: Inputs, built: Sequence[Desired | Waiting], kept: Mapping[str, Manifest]) -> bool:
    """Tell whether each zone has a group that serves, the new one or the one it takes over from."""
    serves = {_zone(key) for key in (*_current(built), *kept) if _serves(inputs, key)}
    return {_zone(key) for key in _current(built)} <= serves


def _zone(key: str) -> str:
    return key.removeprefix(GROUP).rpartition("-")[0]


def _nodes(inputs: Inputs, spec: EKSNodePoolSpec) -> Iterator[Desired]:
    """Yield the look at the pool's Nodes; none without a way to the cluster."""
    labels = paths.labels(inputs.composite)
    if not spec.provider_config_name or not all(
        isinstance(labels.get(x), str) for x in (c.CLUSTER_LABEL, c.POOL_LABEL)
    ):
        return
    ours = {c.CLUSTER_LABEL: str(labels[c.CLUSTER_LABEL]), c.POOL_LABEL: str(labels[c.POOL_LABEL])}
    selector = {c.POOL_LABEL: names.label_value(spec.pool_name)}
    name = names.child(inputs.name, NODES)
    made = inside.collection(
        name, spec.provider_config_name, "v1", "Node", selector, {**ours, c.ROLE_LABEL: c.ROLE_NODE}
    )
    yield Desired(NODES, made)


def _outlived(inputs: Inputs, spec: EKSNodePoolSpec, built: Sequence[Desired | Waiting]) -> Iterator[Desired]:
    """Yield a Usage per group that stands and per resource, beside the pool, that has to be there as long."""
    for group in built:
        manifest = group.manifest if isinstance(group, Desired) else inputs.observed.get(group.key)
        if not group.key.startswith(GROUP) or manifest is None:
            continue
        for other in spec.outlived_by:
            stub = {"apiVersion": other.api_version, "kind": other.kind, "metadata": {"name": other.name}}
            edge = (f"{other.kind.lower()}-{names.digest(other.name)}", group.key)
            # A Usage by what is not there would only fail; one that stands stays, whatever was lost sight of.
            if {group.key, usages.usage_key(edge)} & inputs.observed.keys():
                ends = {edge[0]: stub, edge[1]: manifest}
                yield usages.usage(inputs.name, inputs.namespace, edge, ends)


KIND = Kind(
    c.INFRA_API,
    c.EKS_NODE_POOL,
    compose,
    (c.ACCEPTED, c.NODES_READY),
    requires,
    # Nodes and slices come and go without a change of ours; the providers look every ten minutes at most.
    ttl=60,
)
