"""A cache that is a claim of the team's own: it is looked at on the cluster, and nothing is copied."""

from modelplane import contracts as c
from modelplane import names
from modelplane.core import Condition, Desired, Manifest, Plan, builders, paths
from modelplane.kinds.cache_scene import BOUND, Ground

KEY = "claim"
FOUND = "ClaimBound"
WAITING_FOR_CLAIM = "WaitingForClaim"
WAITING_FOR_CLUSTER = "WaitingForCluster"


def compose(ground: Ground, claim: str) -> Plan:
    """Return the Plan of a cache that is a claim; what an earlier source staged stays until that is bound."""
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim, "namespace": ground.place.namespace},
    }
    looked_at = ground.target.object(
        names.child(ground.inputs.name, KEY),
        manifest,
        ready_when=builders.CLAIM_BOUND,
        policies=builders.OBSERVE_ONLY,
    )
    text = f"{c.CLAIM}/{claim}"
    bound = _bound(ground, claim, text)
    condition = (
        Condition(c.ARTIFACT_READY, True, FOUND)
        if bound
        else Condition(c.ARTIFACT_READY, False, *_waits(ground, claim))
    )
    status: Manifest = {
        "phase": c.CACHE_READY if bound else c.CACHE_PENDING,
        "claimName": claim,
        "namespace": ground.place.namespace,
        "artifact": text if bound else paths.text(ground.inputs.composite, "status", "artifact"),
    }
    if not bound:
        status["message"] = condition.message
    return Plan(
        resources=[Desired(KEY, looked_at, blocked=ground.unprepared)],
        status={key: value for key, value in status.items() if value},
        conditions=[condition],
        keep_all=not bound,
        ready=None if bound else False,
    )


def _bound(ground: Ground, claim: str, text: str) -> bool:
    remote = ground.inputs.remote(KEY)
    if paths.name(remote) == claim and (phase := paths.text(remote, "status", "phase")):
        return phase == BOUND
    # Not shown in this pass: what was on record stays true.
    recorded = paths.text(ground.inputs.composite, "status", "artifact") == text
    return recorded and KEY in ground.inputs.observed


def _waits(ground: Ground, claim: str) -> tuple[str, str]:
    if ground.unprepared and KEY not in ground.inputs.observed:
        return WAITING_FOR_CLUSTER, ground.unprepared
    where = f"PersistentVolumeClaim {ground.place.namespace}/{claim} on {ground.spec.cluster_name}"
    return WAITING_FOR_CLAIM, f"{where} is not there or not bound: create it there, with ReadWriteMany"
