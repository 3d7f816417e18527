#!/usr/bin/env bash
# Writes every generated file of the operator: deepcopy functions, our CRDs, and Flux's CRDs from the Go types of the
# API modules that go.mod pins. Running it again changes nothing; `make verify` counts on that.
set -euo pipefail
cd "$(dirname "$0")/.."

controller_gen() {
	go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.1 "$@"
}

# Flux's CRDs carry no prose: it is a megabyte that nobody reads in a cluster.
flux_apis="github.com/fluxcd/source-controller/api/v1;github.com/fluxcd/helm-controller/api/v2;github.com/fluxcd/source-watcher/api/v2/v1beta1"

rm -f operator/bootstrap/crds/cozystack/*.yaml operator/bootstrap/crds/flux/*.yaml
controller_gen object paths=./operator/api/...
controller_gen crd paths=./operator/api/... output:crd:dir=operator/bootstrap/crds/cozystack
controller_gen crd:maxDescLen=0 "paths=$flux_apis" output:crd:dir=operator/bootstrap/crds/flux
