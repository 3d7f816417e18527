// Package bootstrap does what has to be there before the reconcilers start: CRDs, Flux, the source of the platform's
// package tree and the PackageSource of the platform itself.
//
// Everything is written by server-side apply, so that a second start changes nothing and two operators that start at
// once write the same.
package bootstrap
