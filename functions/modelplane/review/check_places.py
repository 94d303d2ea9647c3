"""Checks of what belongs together: a place in the fleet for each deployment, endpoints for each service."""

from collections.abc import Iterator, Mapping
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.core import paths
from modelplane.review.finding import ERROR, NOTE, WARNING, Finding, at
from modelplane.review.fleet import (
    CACHE,
    CLUSTER,
    DEPLOYMENT,
    ENDPOINT,
    GATEWAY,
    REPLICA,
    SERVICE,
    Fleet,
    matches,
)
from modelplane.review.forecast import forecast
from modelplane.review.view import View
from modelplane.sim.world import ref

NO_PLACE = "no-place"
NO_ENDPOINT = "no-endpoint"
NOT_CHECKED = "not-checked"
_NAMED = 3


def unchecked(view: View) -> Iterator[Finding]:
    """Say what could not be looked at, so that silence is not read as approval."""
    deployments = list(view.deployments)
    if deployments and not view.clusters:
        reason = (
            "no InferenceCluster is among the files: places, pools and footprints of caches are not checked"
        )
        step = "add the platform's files with --required"
        yield Finding(NOTE, NOT_CHECKED, reason, step)
    if deployments and not view.nodes:
        reason = "no InferenceClass is among the files: device selectors are compiled, not matched"
        yield Finding(NOTE, NOT_CHECKED, reason, "add the platform's files with --required")
    doors = [x for x in view.fleet.all(GATEWAY) if paths.name(x) == c.DEFAULT_GATEWAY]
    if view.clusters and not doors and any(view.of(SERVICE)):
        reason = (
            f"no InferenceGateway {c.DEFAULT_GATEWAY} is among the files: without one no service has a URL"
        )
        yield Finding(NOTE, NOT_CHECKED, reason, "create one, or add its file with --required")


def places(view: View) -> Iterator[Finding]:
    """Find deployments that would have no place for one replica, were the fleet empty."""
    if not view.clusters:
        return
    for source in view.deployments:
        name, cache = view.cache(source.body)
        if name and cache is None:
            continue
        spec = {**source.body["spec"], "replicas": 1}
        metadata = {k: v for k, v in source.body["metadata"].items() if k != "uid"}
        alone = {"apiVersion": c.API, "kind": "ModelDeployment", "metadata": metadata, "spec": spec}
        fleet = Fleet.of([alone, *(o for o in view.fleet.world.objects.values() if _stays(o))])
        (answer,) = forecast(fleet).answers
        if not answer.missing:
            continue
        reasons = [f"{w.cluster}{f'/{w.pool}' if w.pool else ''}: {w.reason}" for w in answer.whys]
        more = f" and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
        yield at(
            source,
            ERROR,
            NO_PLACE,
            "spec.template.spec",
            f"no cluster can take a replica, even empty: {'; '.join(reasons[:_NAMED])}{more}",
            "`modelplane plan` lists every cluster and pool",
        )


def _stays(obj: Mapping[str, Any]) -> bool:
    return ref(obj)[:2] not in (DEPLOYMENT, REPLICA, ENDPOINT)


def services(view: View) -> Iterator[Finding]:
    """Find services that select no endpoint of their namespace and no deployment that will make one."""
    for source in view.of(SERVICE):
        space = paths.namespace(source.body)
        offered = [paths.labels(x) for x in view.fleet.all(ENDPOINT) if paths.namespace(x) == space]
        offered += [_endpoint_labels(x) for x in view.fleet.all(DEPLOYMENT) if paths.namespace(x) == space]
        for index, group in enumerate(paths.mappings(source.body, "spec", "endpoints")):
            wanted = paths.mapping(group, "selector", "matchLabels")
            if not any(_may_match(labels, wanted) for labels in offered):
                labels = ", ".join(f"{k}={v}" for k, v in sorted(wanted.items()))
                yield at(
                    source,
                    WARNING,
                    NO_ENDPOINT,
                    f"spec.endpoints[{index}].selector",
                    f"no ModelEndpoint or ModelDeployment of namespace {space} here carries {labels}",
                    f"select a deployment by {c.DEPLOYMENT_LABEL}, or add its file with --required",
                )


def _endpoint_labels(deployment: Mapping[str, Any]) -> dict[str, Any]:
    own = paths.mapping(deployment, "spec", "template", "metadata", "labels")
    return {**own, c.DEPLOYMENT_LABEL: names.label_value(paths.name(deployment))}


def _may_match(labels: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    # Which cluster and index an endpoint will have is not known before it is there.
    known = {k: v for k, v in wanted.items() if k not in (c.CLUSTER_LABEL, c.REPLICA_INDEX_LABEL)}
    return matches(labels, known)


def unused(view: View) -> Iterator[Finding]:
    """Find caches that would be staged on no cluster at all."""
    for source in view.of(CACHE):
        wanted = paths.mapping(source.body, "spec", "clusterSelector", "matchLabels")
        if view.clusters and not any(matches(paths.labels(x), wanted) for x in view.fleet.all(CLUSTER)):
            reason = "no cluster here carries these labels, so it is staged nowhere"
            field = "spec.clusterSelector"
            yield at(source, WARNING, NO_PLACE, field, reason, "correct the labels, or label a cluster")
