"""Kubernetes versions of a cluster: which are taken, and the next step of an upgrade."""

import re
from collections.abc import Mapping, Sequence

_VERSION = re.compile(r"1\.([1-9][0-9]?)")
# resource.k8s.io/v1, which every GPU is claimed by, is served from here on.
OLDEST = "1.34"


def minor(version: str) -> int | None:
    """Return the minor number of a version such as 1.36, or None for anything else."""
    found = _VERSION.fullmatch(version)
    return int(found.group(1)) if found else None


def fault(version: str) -> str:
    """Return why no cluster can be made at the version; empty where one can."""
    found, oldest = minor(version), minor(OLDEST)
    if found is None:
        return f"{version} is no Kubernetes minor version; write one such as 1.36"
    if oldest is not None and found < oldest:
        return f"{version} is too old: GPUs are claimed by DRA, which needs {OLDEST} or newer"
    return ""


def step(wanted: str, runs: str, nodes: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the version to ask for now, and what there is to say of it.

    Args:
        wanted: by the owner.
        runs: what the control plane is observed at; empty before it is.
        nodes: versions of the node groups, by pool.
    """
    goal, here = minor(wanted), minor(runs)
    if goal is None or here is None or goal == here:
        return (wanted, "") if here is None else (runs, "")
    if goal < here:
        return runs, f"kubernetesVersion {wanted}: the control plane runs {runs} and EKS never goes back"
    for pool, versions in sorted(nodes.items()):
        if behind := [v for v in versions if (minor(v) or 0) < here]:
            return (
                runs,
                f"upgrade to {wanted}: waiting for pool {pool}, whose nodes run {behind[0]}, to reach {runs}",
            )
    following = f"1.{here + 1}"
    return following, f"upgrade to {wanted}: the control plane goes from {runs} to {following}"
