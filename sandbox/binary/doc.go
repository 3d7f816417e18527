// Package binary makes the pinned node binaries available: etcd, the
// Kubernetes components, containerd, the CNI plugins, and the servers that go
// into the package tree's images.
//
// pins.yaml, embedded here, is the single place that names them. Three sources
// can yield them: published releases, a build of the pinned Go module
// hack/node, and a directory of the user's. Releases and builds are kept in a
// cache whose folders are named by what went into them, so that a second call
// costs a few file lookups, and two versions of cozydev never disturb each
// other.
package binary
