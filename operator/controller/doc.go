// Package controller holds the operator's reconcilers: PackageSource, Package and the replication of the platform's
// values Secret.
//
// Every reconciler observes, lets package plan decide, acts, and writes the status once. They react to watches; the
// only timers are the short pause before a new object's waiting is written down and the nudging of a generator that
// lost its condition.
package controller
