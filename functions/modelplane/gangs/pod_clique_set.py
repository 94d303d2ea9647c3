"""Gangs on the Dynamo stack: a PodCliqueSet, whose webhook refuses what others would let through.

A gang alone is one set with a replica a copy, so that copies scale in place; a prefill/decode pair is one set
with a scaling group for each engine, so that KAI places both or neither.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.model_replica import Engine, Member
from modelplane.core import builders, paths
from modelplane.core.paths import Manifest
from modelplane.gangs import copies, env, pods, workload
from modelplane.gangs.copies import Part
from modelplane.gangs.site import Site
from modelplane.gangs.workload import Workload

# Which pods are one copy: a replica of the set, or (in a pair) a replica of the scaling group.
_SET_REPLICA = "grove.io/podcliqueset-replica-index"
_GROUP_REPLICA = "grove.io/podcliquescalinggroup-replica-index"
_LEADER = "leader"
_WORKER = "worker"
# Grove's own default, in the form its webhook writes.
_TERMINATION_DELAY = "4h0m0s"
# What an update cannot change: Grove refuses it (operator/internal/webhook/admission/pcs/validation) or
# reads it at creation only, like the counts inside the template. Any of it changed makes a new set.
_MNNVL = "grove.io/mnnvl-group"
_SHARED = ("resourceSharing", "topologyConstraint")
_FIXED = ("cliqueStartupType", "resourceClaimTemplates", *_SHARED)
_FIXED_OF_GROUP = ("name", "cliqueNames", "replicas", "minAvailable", *_SHARED)
_FIXED_OF_CLIQUE = ("roleName", "replicas", "minAvailable", "startsAfter")


@dataclass(frozen=True, slots=True)
class _Group:
    """An engine's place in the set: its scaling group and what its clique names start with.

    No clique name may end with another's, since Grove finds a clique's template by suffix.
    """

    engine: Engine
    name: str
    prefix: str
    replicas: int
    copy_label: str

    def clique(self, member: Member) -> str:
        return self.prefix + (_WORKER if member.role == c.WORKER else _LEADER)


class PodCliqueSetBackend:
    """Hands gangs to Grove and their pods to KAI."""

    kind = "PodCliqueSet"
    ready_when = builders.GANGS_AVAILABLE
    pod_fields = r"spec\.template\.cliques.*\.spec\.podSpec\."

    def workload(self, site: Site, engines: tuple[Engine, ...], proxies: Mapping[str, Manifest]) -> Workload:
        """Return the set of one gang, or of a prefill/decode pair."""
        pair = len(engines) > 1
        groups = _groups(engines)
        whose = "" if pair else engines[0].name
        # Twice, since pods carry the set's name, and the name says what of the template is fixed.
        shape = names.digest(json.dumps(fixed(_template(site, "", groups, proxies)), sort_keys=True))
        name = names.pod_clique_set(site.replica, whose or "pair", shape)
        manifest: Manifest = {
            "apiVersion": c.GROVE_API,
            "kind": self.kind,
            "metadata": workload.object_metadata(site, name),
            "spec": {
                "replicas": 1 if pair else engines[0].copies,
                "updateStrategy": {"type": "RollingRecreate"},
                "template": _template(site, name, groups, proxies),
            },
        }
        return Workload(workload.key(whose, shape), manifest, self, engines)

    def ready_copies(self, engine: Engine, remote: Mapping[str, Any]) -> int | None:
        """Return the copies that serve; a pair counts as a whole, so only all of them or no answer."""
        if not paths.mapping(remote, "status"):
            return None
        available = paths.integer(remote, "status", "availableReplicas", default=0) or 0
        if len(paths.items(remote, "spec", "template", "podCliqueScalingGroups")) > 1:
            return engine.copies if available else None
        return min(engine.copies, available)

    def complaint(self, remote: Mapping[str, Any]) -> str:
        """Return the first error that Grove met."""
        return copies.last_error(remote)

    def parts(self, run: Workload, engine: Engine, /) -> list[Part]:
        """Return the PodClique of each member in each copy (grove operator/api/common/namegen.go)."""
        (group,) = [g for g in _groups(run.engines) if g.engine.name == engine.name]
        name, space = paths.name(run.manifest), paths.namespace(run.manifest)
        found = []
        for copy in range(engine.copies):
            # A copy is a replica of the set, or (in a pair) one of the scaling group.
            outer, inner = (copy, 0) if len(run.engines) == 1 else (0, copy)
            for member in _leader_first(engine):
                clique = f"{name}-{outer}-{group.name}-{inner}-{group.clique(member)}"
                looked_at = copies.at(c.GROVE_API, copies.POD_CLIQUE, clique, space)
                role = {c.LEADER: "leader", c.WORKER: "workers"}.get(member.role, "pod")
                found.append(Part(engine.name, copy, role, _pods(member), looked_at))
        return found


def _groups(engines: tuple[Engine, ...]) -> list[_Group]:
    return _pair(engines) if len(engines) > 1 else [_Group(engines[0], "g", "", 1, _SET_REPLICA)]


def _pair(engines: tuple[Engine, ...]) -> list[_Group]:
    letters = {c.PREFILL: "p", c.DECODE: "d"}
    ordered = sorted(engines, key=lambda e: e.phase or "", reverse=True)
    return [
        _Group(e, letters[e.phase or ""], letters[e.phase or ""], e.copies, _GROUP_REPLICA) for e in ordered
    ]


def fixed(template: Mapping[str, Any]) -> list[Any]:
    """Return what of a set's template no update can change; what the template does not have is left out."""
    cliques = [
        [
            q["name"],
            paths.text(q, "annotations", _MNNVL),
            paths.text(q, "spec", "podSpec", "schedulerName"),
            _picked(q, _SHARED),
            _picked(q["spec"], _FIXED_OF_CLIQUE),
        ]
        for q in template["cliques"]
    ]
    groups = [_picked(g, _FIXED_OF_GROUP) for g in template["podCliqueScalingGroups"]]
    return [_picked(template, _FIXED), cliques, groups]


def _picked(found: Mapping[str, Any], fields: Iterable[str]) -> Manifest:
    return {field: found[field] for field in fields if field in found}


def _template(site: Site, name: str, groups: Sequence[_Group], proxies: Mapping[str, Manifest]) -> Manifest:
    members = [(g, m) for g in groups for m in _leader_first(g.engine)]
    return {
        # A leader is ready only once its workers have joined: any order of start would wait.
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "terminationDelay": _TERMINATION_DELAY,
        # Of the pod groups; pods keep their own (operator/internal/scheduler/kai).
        "priorityClassName": c.KAI_PRIORITY,
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "cliques": [_clique(site, name, g, m, proxies.get(g.engine.name)) for g, m in members],
        "podCliqueScalingGroups": [_scaling_group(g) for g in groups],
    }


def _pods(member: Member) -> int:
    return member.worker.nodes if member.role == c.WORKER else 1


def _scaling_group(group: _Group) -> Manifest:
    return {
        "name": group.name,
        # In this order GROVE_PCSG_POD_INDEX counts: the leader is 0, workers follow.
        "cliqueNames": [group.clique(m) for m in _leader_first(group.engine)],
        "replicas": group.replicas,
        # Every copy counts: with less the set would be available while copies are missing.
        "minAvailable": group.replicas,
    }


def _leader_first(engine: Engine) -> list[Member]:
    return sorted(engine.members, key=lambda m: m.role == c.WORKER)


def _clique(site: Site, name: str, group: _Group, member: Member, proxy: Manifest | None) -> Manifest:
    engine = group.engine
    leads = member.role != c.WORKER
    placed = pods.Placed(
        name,
        contract=_contract(group, member) if engine.is_gang else (),
        labels={c.CLIQUE_ROLE_LABEL: _LEADER} if leads else {},
        copy_label=group.copy_label if engine.is_gang else "",
        proxy=proxy if leads else None,
    )
    pod = pods.spec(site, engine, member, placed)
    # Grove's webhook writes it where it is absent.
    pod["restartPolicy"] = "Always"
    return {
        "name": group.clique(member),
        **pods.metadata(site, engine, member, placed),
        "spec": {
            "roleName": group.clique(member),
            "replicas": _pods(member),
            "minAvailable": _pods(member),
            "podSpec": pod,
        },
    }


def _contract(group: _Group, member: Member) -> list[Manifest]:
    leader = group.clique(group.engine.serving)
    # By the group's own index: a set-wide address would send every copy of a pair to one leader.
    address = f"$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{leader}-0.$(GROVE_HEADLESS_SERVICE)"
    return env.contract(address, _rank(member), group.engine.gang_size)


def _rank(member: Member) -> str:
    """Return the rank; two pods need no variable of Grove, nor a release that has it (alpha.14-rc1 on)."""
    if member.role != c.WORKER:
        return "0"
    return "1" if member.worker.nodes == 1 else "$(GROVE_PCSG_POD_INDEX)"
