"""ServingStack: what a cluster needs to serve models, installed, ordered and removed.

Which components there are, and what each needs, is data (`stacks/`); this composer parses the spec, reaches
the cluster, and reports. What the spec asks for and is not understood keeps all that runs.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from modelplane import contracts as c
from modelplane import names
from modelplane.api.serving_stack import ServingStackSpec
from modelplane.core import Desired, Inputs, InvalidSpecError, Kind, Plan, Ready, paths, specs
from modelplane.core.builders import Identity, SecretKey, Target, provider_config
from modelplane.facts.versions import Pin, Release
from modelplane.kinds import serving_stack_lifelines as lifelines
from modelplane.kinds import serving_stack_move as move
from modelplane.kinds import serving_stack_rivals as rivals
from modelplane.kinds import serving_stack_secrets as secrets
from modelplane.kinds import serving_stack_standing as standing
from modelplane.kinds import serving_stack_status as status
from modelplane.stacks import join
from modelplane.stacks.component import ChartComponent, Component, Context, Images, Listener
from modelplane.stacks.render import Renderer

HELM_CONFIG = "provider-config-helm"
KUBERNETES_CONFIG = "provider-config-kubernetes"
GATEWAY_KEY = "gateway"
# Of a component's values, as JSON: a response holds all of them, and core refuses one of 4 MiB.
VALUES_LIMIT = 32768


def compose(inputs: Inputs) -> Plan:
    """Return what the stack wants on its cluster."""
    spec = specs.parse(ServingStackSpec, inputs.spec, c.COMPONENTS_READY)
    components = _components(spec)
    moves = move.plan(spec.stack_release, components, inputs)
    renderer = _renderer(spec, inputs, components, moves)
    _check_values(spec, components, renderer.context)
    rendered = renderer.render(components)
    managed = replace(renderer, provided=False).render(components) if renderer.provided else rendered
    installed = standing.installed(managed, inputs)
    standing.refuse_unwinding(spec, installed, inputs)
    looks = rivals.looks(rendered, renderer, inputs, first=not installed)
    rendered = rivals.held(rendered, looks, first=not installed)
    pace = move.pace(rendered, inputs, moves)
    copies = secrets.copies(rendered, renderer, inputs)
    scene = status.Scene(
        inputs, moves.target, moves.before if moves.under_way else None, looks, pace.moved, pace.waits
    )
    reports = status.reports(rendered, scene)
    serving = move.serving(rendered, inputs, moves)
    fields: dict[str, Any] = {
        "stackRelease": moves.target.name if pace.done else moves.recorded,
        "components": [report.entry() for report in reports],
    }
    if address := _address(inputs):
        fields["gateway"] = {"address": address}
    whole = _whole(spec, inputs, withheld=secrets.withheld(copies, inputs.observed))
    moving = f"moves from {moves.recorded} to {moves.target.name}" if moves.under_way else ""
    configs = _configs(spec, inputs)
    return Plan(
        resources=[
            *configs,
            *pace.resources,
            *rivals.objects(looks),
            *copies,
            *lifelines.held(inputs, configs),
        ],
        status=fields,
        conditions=[
            status.components_ready(reports, replace(whole, serving=serving, move=moving)),
            status.requirements_met(reports, spec.provided),
        ],
        unused=secrets.unused(inputs),
        # What comes up beside the components in a move takes nothing away from what they serve.
        ready=True if serving and not whole.withheld else None,
    )


def _renderer(
    spec: ServingStackSpec, inputs: Inputs, components: list[Component], moves: move.Move
) -> Renderer:
    return Renderer(
        owner=inputs.name,
        target=Target(
            config=names.child(inputs.name, "cluster"),
            labels={c.CLUSTER_LABEL: names.label_value(spec.cluster_name or inputs.name)},
        ),
        configs=(HELM_CONFIG, KUBERNETES_CONFIG),
        context=_context(spec, moves.target, move.crd_charts(components, moves)),
        overrides={key: settings.values for key, settings in spec.components.items()},
        provided=spec.provided == c.PROVIDED,
        installed=_installed(inputs),
    )


def _whole(spec: ServingStackSpec, inputs: Inputs, *, withheld: bool) -> status.Whole:
    return status.Whole(
        connected=HELM_CONFIG in inputs.observed and KUBERNETES_CONFIG in inputs.observed,
        secrets=secrets.problems(spec, inputs),
        pull=secrets.pull_problem(inputs),
        withheld=withheld,
    )


def _components(spec: ServingStackSpec) -> list[Component]:
    if spec.stack not in join.STACKS:
        known = ", ".join(join.STACKS)
        raise InvalidSpecError(c.COMPONENTS_READY, "spec.stack", f"{spec.stack} is not one of {known}")
    components = join.stack(spec.stack)
    by_key = {x.key: x for x in components}
    charts = ", ".join(sorted(x.key for x in components if isinstance(x, ChartComponent)))
    for key, settings in sorted(spec.components.items()):
        field = f"spec.components.{key}"
        if key not in by_key:
            raise InvalidSpecError(
                c.COMPONENTS_READY, field, f"stack {spec.stack} has no such component; it has {charts}"
            )
        if settings.values and not isinstance(by_key[key], ChartComponent):
            message = f"{key} is no chart and has no values; charts are {charts}"
            raise InvalidSpecError(c.COMPONENTS_READY, f"{field}.values", message)
        if not settings.enabled and not by_key[key].optional:
            optional = ", ".join(x.key for x in components if x.optional)
            message = f"the stack does not work without {key}; only {optional} can be left out"
            raise InvalidSpecError(c.COMPONENTS_READY, f"{field}.enabled", message)
    return [x for x in components if x.key not in spec.components or spec.components[x.key].enabled]


def _check_values(spec: ServingStackSpec, components: list[Component], context: Context) -> None:
    """Refuse values that are too large, or that undo what the stack does not work without."""
    for component in components:
        values = spec.components[component.key].values if component.key in spec.components else {}
        if not values or not isinstance(component, ChartComponent):
            continue
        field = f"spec.components.{component.key}.values"
        if len(json.dumps(values)) > VALUES_LIMIT:
            message = f"are larger than {VALUES_LIMIT} bytes: have fewer, or a chart of your own"
            raise InvalidSpecError(c.COMPONENTS_READY, field, message)
        ours, merged = component.merged(context, {}), component.merged(context, values)
        for fixed in component.fixed:
            if paths.at(ours, *fixed.path) != paths.at(merged, *fixed.path):
                message = (
                    f"{'.'.join(fixed.path)} is the stack's own, since otherwise {fixed.why}: leave it out"
                )
                raise InvalidSpecError(c.COMPONENTS_READY, field, message)


def _context(spec: ServingStackSpec, release: Release, crd_charts: Sequence[Pin]) -> Context:
    # Credentials for the mirror: sent to a public registry they would turn anonymous pulls into failed ones.
    ref = spec.images.pull_secret_ref if spec.images.mirror else None
    settings: dict[str, Any] = {}
    if spec.gateway.listeners:
        settings["listeners"] = tuple(
            Listener(entry.name, entry.port, entry.protocol) for entry in spec.gateway.listeners
        )
    return Context(
        release=release,
        cloud=spec.cloud,
        gateway_class=spec.gateway.class_name,
        images=Images(spec.images.mirror, ref.name if ref else ""),
        pool_taints=spec.pool_taints,
        crd_charts=crd_charts,
        **settings,
    )


def _configs(spec: ServingStackSpec, inputs: Inputs) -> list[Desired]:
    """The helm and kubernetes configs. Ready once observed: configs have no condition of their own."""
    kubeconfig, identity = _credentials(spec, inputs.namespace)
    name = names.child(inputs.name, "cluster")
    return [
        Desired(
            key,
            provider_config(api, "ProviderConfig", name, kubeconfig, identity, None),
            Ready.exists(),
        )
        for key, api in ((HELM_CONFIG, c.HELM_API), (KUBERNETES_CONFIG, c.KUBERNETES_API))
    ]


def _credentials(spec: ServingStackSpec, namespace: str) -> tuple[SecretKey, Identity | None]:
    kubeconfig: SecretKey | None = None
    identity: Identity | None = None
    for entry in spec.secrets:
        secret = SecretKey(entry.namespace or namespace, entry.name, entry.key)
        if entry.type == c.KUBECONFIG:
            kubeconfig = kubeconfig or secret
        else:
            identity = identity or Identity(entry.type, secret)
    if kubeconfig is None:
        raise InvalidSpecError(
            c.COMPONENTS_READY,
            "spec.secrets",
            f"no entry has type {c.KUBECONFIG}: add the one that reaches the cluster",
        )
    return kubeconfig, identity


def _address(inputs: Inputs) -> str:
    """The gateway's address, an IP or a host name; the last known one where it is not reported now."""
    for entry in paths.mappings(inputs.remote(GATEWAY_KEY), "status", "addresses"):
        if value := paths.text(entry, "value"):
            return value
    return paths.text(inputs.composite, "status", "gateway", "address")


def _installed(inputs: Inputs) -> frozenset[str]:
    def is_installed(key: str) -> bool:
        revision = paths.integer(inputs.observed[key], "status", "atProvider", "revision", default=0) or 0
        return inputs.is_ready(key) or revision > 1

    return frozenset(key for key in inputs.observed if is_installed(key))


KIND = Kind(
    api_version=c.INFRA_API,
    kind="ServingStack",
    compose=compose,
    conditions=(c.COMPONENTS_READY, c.REQUIREMENTS_MET),
    requires=lambda composite: [*secrets.requirements(composite), *lifelines.requirements(composite)],
    # Cores up to 2.3 do not watch what is required: so long a changed Secret waits for its copies.
    ttl=60,
    health=c.COMPONENTS_READY,
)
