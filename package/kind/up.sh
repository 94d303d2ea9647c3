#!/usr/bin/env bash
# A control plane to try things on: Crossplane in a kind cluster, and this tree's packages, built and installed.
# Called again it installs what changed. `make kind-up` calls it; it has not been run by its authors, who had no
# container engine: each step is from the documentation that it names.
set -euo pipefail

cluster=${KIND_CLUSTER:-modelplane}
registry=$cluster-registry
port=${KIND_REGISTRY_PORT:-5001}
crossplane=${CROSSPLANE_VERSION:-2.3.4}
out=${OUT:-out}
context=kind-$cluster

need() {
  command -v "$1" >/dev/null || { echo "kind-up: no $1 here: $2" >&2; exit 1; }
}

need docker "it runs the cluster's nodes, and this builds the image with it"
need kind "https://kind.sigs.k8s.io/docs/user/quick-start, v0.27 or later"
need kubectl "https://kubernetes.io/docs/tasks/tools"
need helm "https://helm.sh/docs/intro/install"
command -v skopeo crane crossplane >/dev/null ||
  { echo "kind-up: no skopeo, crane or crossplane here to push packages with: install one" >&2; exit 1; }
docker info >/dev/null 2>&1 || { echo "kind-up: docker has no daemon here: \`docker info\` says why" >&2; exit 1; }

echo "== cluster $cluster"
kind get clusters | grep --quiet --line-regexp "$cluster" || kind create cluster --name "$cluster"

# https://kind.sigs.k8s.io/docs/user/local-registry; from v0.27 on nodes read /etc/containerd/certs.d.
echo "== registry $registry, on this machine localhost:$port"
if [ "$(docker inspect --format '{{.State.Running}}' "$registry" 2>/dev/null)" != true ]; then
  docker rm --force "$registry" >/dev/null 2>&1 || true
  docker run --detach --restart always --publish "127.0.0.1:$port:5000" --network kind --name "$registry" registry:3
fi
# By its address, since core reads plain HTTP only from a private one or loopback (go-containerregistry v0.21.6,
# pkg/name/registry.go), and core's own loopback is its pod.
address=$(docker inspect --format '{{(index .NetworkSettings.Networks "kind").IPAddress}}' "$registry")
[ -n "$address" ] || { echo "kind-up: $registry is not on docker's network kind: docker rm --force $registry" >&2; exit 1; }
inside=$address:5000
for node in $(kind get nodes --name "$cluster"); do
  docker exec "$node" mkdir -p "/etc/containerd/certs.d/$inside"
  echo "[host.\"http://$inside\"]" | docker exec --interactive "$node" cp /dev/stdin "/etc/containerd/certs.d/$inside/hosts.toml"
done

echo "== packages"
# For the nodes' own kind of machine, which docker names as uname does.
case $(docker info --format '{{.Architecture}}') in
  aarch64 | arm64) PLATFORM=linux/arm64 ;;
  *) PLATFORM=linux/amd64 ;;
esac
export PLATFORM BUILDER=docker
make --no-print-directory package OUT="$out" REGISTRY="$inside"
.venv/bin/python tools/make_package.py push --out "$out/package" --registry "$inside" --through "localhost:$port"

# Without the chart's own activation of every kind, so that ours is what decides, as on a fleet of many providers.
echo "== Crossplane $crossplane"
helm upgrade --install crossplane crossplane --repo https://charts.crossplane.io/stable --version "$crossplane" \
  --kube-context "$context" --namespace crossplane-system --create-namespace \
  --set-json 'provider.defaultActivations=[]' --wait --timeout 10m

echo "== Modelplane"
kubectl --context "$context" apply --server-side --kustomize "$out/package/install"
# A tag that moves is read anew, each minute.
for package in function.pkg.crossplane.io/modelplane-function configuration.pkg.crossplane.io/modelplane; do
  kubectl --context "$context" patch "$package" --type merge --patch '{"spec":{"packagePullPolicy":"Always"}}'
done
kubectl --context "$context" wait function.pkg.crossplane.io/modelplane-function --for condition=Healthy --timeout 10m
kubectl --context "$context" wait configuration.pkg.crossplane.io/modelplane --for condition=Healthy --timeout 10m
# Healthy comes a moment before the last kind is served.
kubectl --context "$context" wait xrd --all --for condition=Established --timeout 10m
read -ra managed <<< "$(kubectl --context "$context" get mrap modelplane --output 'jsonpath={.spec.activate[*]}')"
kubectl --context "$context" wait mrd "${managed[@]}" --for condition=Established --timeout 10m

echo "kubectl --context $context get xrd shows the kinds; a cluster that is there already is declared as in" \
  "examples/single-gpu. make kind-down removes all of it."
