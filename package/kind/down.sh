#!/usr/bin/env bash
# Remove what up.sh made. Clusters and clouds that the control plane managed are left as they are: delete their
# InferenceClusters first. `make kind-down` calls it.
set -euo pipefail

cluster=${KIND_CLUSTER:-modelplane}
kind delete cluster --name "$cluster"
docker rm --force "$cluster-registry"
