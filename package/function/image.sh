#!/usr/bin/env bash
# Build the image that serves the function, as an OCI layout, with whichever builder is here.
#
# usage: image.sh FOLDER, in the project's folder. FOLDER is made anew.
#   BUILDER   docker, podman or buildah; the first that works
#   BASE      the Debian 12 that it is built in; docker.io/library/debian:12-slim
#   PLATFORM  linux/amd64; one of another machine needs that machine's emulation
#   BUILD_FLAGS  more flags for the builder's `build`, such as a mount of your proxy's certificates
set -euo pipefail

folder=$1
image=localhost/modelplane-runtime:build
platform=${PLATFORM:-linux/amd64}
options=(--platform "$platform" --file package/function/Dockerfile --tag "$image")
[ -z "${BASE:-}" ] || options+=(--build-arg "BASE=$BASE")
# shellcheck disable=SC2206  # several flags, split at blanks
options+=(${BUILD_FLAGS:-})

works() {
  case $1 in
    # A client without a daemon is no builder.
    docker) command -v docker && docker info ;;
    *) command -v "$1" ;;
  esac >/dev/null 2>&1
}

if [ -z "${BUILDER:-}" ]; then
  for one in docker podman buildah; do
    if works "$one"; then BUILDER=$one && break; fi
  done
fi

case ${BUILDER:-} in
  docker | podman | buildah)
    works "$BUILDER" || { echo "image.sh: $BUILDER does not work here: \`$BUILDER info\` says why" >&2; exit 1; }
    ;;
  "")
    echo "image.sh: no docker daemon, podman or buildah here: install one, or \`make package RUNTIME=none\`" \
      "packs a function that runs elsewhere" >&2
    exit 1
    ;;
  *)
    echo "image.sh: BUILDER is $BUILDER: want docker, podman or buildah" >&2
    exit 1
    ;;
esac

rm -rf "$folder"
mkdir -p "$folder"
# No clock in what is built: the same sources and packages make the same image.
case $BUILDER in
  docker)
    # Since version 25 what docker saves is an OCI layout as well.
    SOURCE_DATE_EPOCH=0 docker build --provenance=false "${options[@]}" .
    docker save "$image" | tar --extract --directory "$folder"
    ;;
  podman)
    podman build --timestamp 0 "${options[@]}" .
    podman save --format oci-dir --output "$folder" "$image"
    ;;
  buildah)
    buildah build --timestamp 0 "${options[@]}" .
    buildah push "$image" "oci:$folder"
    ;;
esac
[ -f "$folder/index.json" ] || {
  echo "image.sh: $BUILDER wrote no OCI layout: use a newer one, or another builder" >&2
  exit 1
}
