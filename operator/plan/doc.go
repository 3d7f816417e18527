// Package plan holds the operator's decisions as functions of values: which artifacts a PackageSource yields, what
// blocks a Package, which namespaces and HelmReleases it needs and what its status says.
//
// Nothing here talks to a cluster, reads a clock or keeps state, and no argument is changed.
package plan
