"""Checks of classes and clusters: what a pool names, what it cannot have, what a root disk must hold."""

from collections.abc import Iterator, Mapping
from typing import Any

from modelplane import contracts as c
from modelplane.core import paths
from modelplane.facts import aws, engine_images
from modelplane.kinds import cluster_pools
from modelplane.review.finding import ERROR, WARNING, Finding, at
from modelplane.review.fleet import CLASS, CLUSTER
from modelplane.review.view import View, members

CLASS_MISSING = "class-missing"
CLUSTER_FAULT = "cluster"
INSTANCE_TYPE = "instance-type"
ROOT_DISK = "root-disk"


def classes(view: View) -> Iterator[Finding]:
    """Find pools of classes that do not exist."""
    for source in view.of(CLUSTER):
        for index, pool in enumerate(paths.mappings(source.body, "spec", "nodePools")):
            name = paths.text(pool, "className")
            if name not in view.classes:
                known = ", ".join(sorted(view.classes)) or "none"
                yield at(
                    source,
                    ERROR,
                    CLASS_MISSING,
                    f"spec.nodePools[{index}].className",
                    f"InferenceClass {name} does not exist (there are: {known})",
                    "create it, correct the name, or name the file that holds it with --required",
                )


def clusters(view: View) -> Iterator[Finding]:
    """Find what keeps a cluster from ever standing, in the words of its own condition."""
    for source in view.of(CLUSTER):
        for said in view.fleet.failing.get(paths.name(source.body), ()):
            if said.reason != cluster_pools.WAITING_FOR_CLASSES and said.type != c.BACKEND_READY:
                reason = f"the cluster would say {said.type} {said.reason}: {said.message}"
                yield at(source, ERROR, CLUSTER_FAULT, "spec", reason, "correct the spec")


def instance_types(view: View) -> Iterator[Finding]:
    """Find EC2 types that are not known or cannot run, and classes that count their GPUs otherwise."""
    for source in view.of(CLASS):
        name = paths.text(source.body, "spec", "provisioning", "eks", "instanceType")
        if not name:
            continue
        field = "spec.provisioning.eks.instanceType"
        found = aws.instance_types().get(name)
        if found is None:
            step = f"correct it, or add it to {aws.INSTANCE_FILE}"
            yield at(source, ERROR, INSTANCE_TYPE, field, f"{name} is no GPU instance type known here", step)
            continue
        if found.unsupported:
            yield at(source, ERROR, INSTANCE_TYPE, field, f"{name}: {found.unsupported}", "name another")
        said = paths.integer(source.body, "spec", "provisioning", "eks", "accelerator", "count")
        if said is not None and said != found.gpus:
            yield at(
                source,
                ERROR,
                INSTANCE_TYPE,
                "spec.provisioning.eks.accelerator.count",
                f"{name} has {found.gpus} GPUs, not {said}",
                f"write {found.gpus}, here and in the count of its device",
            )


def root_disks(view: View) -> Iterator[Finding]:
    """Find root disks that do not hold the images that deployments bring to their pools."""
    said: set[tuple[str, str]] = set()
    for deployment in view.deployments:
        for name in view.reachable(deployment.body):
            disk = _disk(view.classes[name])
            for image in _images(deployment.body):
                size = engine_images.size(image)
                if disk is None or size is None or disk >= size.disk or (name, image) in said:
                    continue
                said.add((name, image))
                holder = next((s for s in view.of(CLASS) if paths.name(s.body) == name), None)
                provider = paths.text(view.classes[name], "spec", "provisioning", "provider").lower()
                field = f"spec.provisioning.{provider}.diskSizeGb" if holder else "spec.template.spec"
                yield at(
                    holder or deployment,
                    WARNING,
                    ROOT_DISK,
                    field,
                    f"{disk} GB on nodes of class {name} do not hold {image}: {size.pulled:g} GB are pulled"
                    f" and {size.unpacked:g} GB unpacked beside them ({size.source})",
                    f"give the class at least {size.disk} GB",
                )


def _disk(inference_class: Mapping[str, Any]) -> int | None:
    provisioning = paths.mapping(inference_class, "spec", "provisioning")
    return paths.integer(provisioning, paths.text(provisioning, "provider").lower(), "diskSizeGb")


def _images(deployment: Mapping[str, Any]) -> list[str]:
    found = {paths.text(raw, "image") for member in members(deployment) for _, raw in member.containers}
    return sorted(found - {""})
