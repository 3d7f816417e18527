// Package tree reads a package tree as the operator would, without a cluster:
// it renders the platform chart, finds out which packages and releases follow,
// and renders each of them. So what cannot work is known before any machine
// starts.
package tree
