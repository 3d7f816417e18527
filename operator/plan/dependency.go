package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// Dependencies returns the state of every dependency that the Package of that name waits for.
func Dependencies(w World, name string) map[string]v1alpha1.DependencyStatus {
	states := map[string]v1alpha1.DependencyStatus{}
	for _, dependency := range w.DependsOn(name) {
		states[dependency] = v1alpha1.DependencyStatus{Ready: w.Ready(dependency)}
	}
	return states
}

// CheckDependencies returns what waiting cannot mend in the dependencies of a Package: those that no PackageSource
// offers, and a circle that leads back to the Package.
func CheckDependencies(w World, name string) []string {
	var problems []string
	for _, dependency := range w.DependsOn(name) {
		if w.Sources[dependency] == nil {
			problems = append(problems, fmt.Sprintf("depends on %q, and there is no PackageSource of that name", dependency))
		}
	}
	if cycle := cycleThrough(name, w.DependsOn); cycle != nil {
		problems = append(problems, fmt.Sprintf(
			"dependency cycle %s: remove one of these dependencies or name it in ignoreDependencies",
			strings.Join(cycle, " → ")))
	}
	return problems
}

// Blocker is a dependency that is not Ready, and the root cause of it.
type Blocker struct {
	// Chain leads from the dependency to the package that holds it up; both are the same when it has only one name.
	Chain []string
	// Why says what is the matter with the last of the chain.
	Why string
}

// String renders the blocker as one clause of a condition message.
func (b Blocker) String() string {
	if len(b.Chain) == 1 {
		return fmt.Sprintf("%q %s", b.Chain[0], b.Why)
	}
	return fmt.Sprintf("%q is blocked by %s, which %s", b.Chain[0], quotedChain(b.Chain[1:]), b.Why)
}

func quotedChain(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, " → ")
}

// Blockers returns the dependencies of the Package of that name that are not Ready, each with its root cause.
func Blockers(w World, name string) []Blocker {
	var blockers []Blocker
	for _, dependency := range w.DependsOn(name) {
		if !w.Ready(dependency) {
			blockers = append(blockers, rootOf(w, []string{dependency}))
		}
	}
	return blockers
}

// rootOf follows the first dependency that is not Ready until one is found that does not wait for another.
func rootOf(w World, chain []string) Blocker {
	name := chain[len(chain)-1]
	for _, dependency := range w.DependsOn(name) {
		if w.Ready(dependency) {
			continue
		}
		if slices.Contains(chain, dependency) {
			return Blocker{Chain: chain, Why: fmt.Sprintf("is part of a dependency cycle with %q", dependency)}
		}
		return rootOf(w, append(slices.Clone(chain), dependency))
	}
	return Blocker{Chain: chain, Why: whyNotReady(w, name)}
}

func whyNotReady(w World, name string) string {
	switch pkg := w.Packages[name]; {
	case w.Sources[name] == nil && pkg == nil:
		return "does not exist: there is no PackageSource of that name"
	case pkg == nil:
		return "is not enabled: there is no Package of that name"
	default:
		ready := meta.FindStatusCondition(pkg.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil {
			return "has not been reconciled yet"
		}
		return fmt.Sprintf("is not ready (%s: %s)", ready.Reason, ready.Message)
	}
}

// blockedMessage joins blockers into the message of DependenciesNotReady.
func blockedMessage(blockers []Blocker) string {
	clauses := make([]string, len(blockers))
	for i, blocker := range blockers {
		clauses[i] = blocker.String()
	}
	return "waiting for dependencies: " + strings.Join(clauses, "; ")
}
