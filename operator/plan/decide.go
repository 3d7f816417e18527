package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// Observation is everything that the decision about a Package rests on.
type Observation struct {
	// Name of the Package; the world holds it.
	Name  string
	World World
	// Rivals claim releases that the Package claims too.
	Rivals []Rival
	// Existing HelmReleases: those labelled with the Package, and those of a name that it claims.
	Existing map[types.NamespacedName]*helmv2.HelmRelease
	// Privileged holds the namespaces where another active package needs privileged pods.
	Privileged map[string]bool
}

// Decision is what to do about a Package and what its status says once that is done.
type Decision struct {
	// Ready is the condition to set when everything below has been written.
	Ready metav1.Condition
	// Waiting is true when Ready may become True without anybody changing the Package.
	Waiting bool
	// Apply is true when the objects below are to be written.
	Apply bool

	Dependencies map[string]v1alpha1.DependencyStatus
	Namespaces   []*corev1.Namespace
	Releases     []*helmv2.HelmRelease
	// Unwanted releases are deleted after the wanted ones have been written.
	Unwanted []*helmv2.HelmRelease
}

// Decide works out what a Package needs. The first obstacle decides the condition, and then nothing is written.
func Decide(seen Observation, opts ReleaseOptions) Decision {
	pkg, src := seen.World.Packages[seen.Name], seen.World.Sources[seen.Name]
	if src == nil {
		return waiting(v1alpha1.ReasonPackageSourceNotFound, "there is no PackageSource %q", pkg.Name)
	}
	variant := src.Variant(pkg.VariantName())
	if variant == nil {
		return waiting(v1alpha1.ReasonVariantNotFound, "the PackageSource has no variant %q, only: %s",
			pkg.VariantName(), VariantNames(src))
	}
	claims := Claims(pkg, variant)
	decision := decideReadiness(seen, pkg, variant, claims)
	decision.Dependencies = Dependencies(seen.World, seen.Name)
	if decision.Ready.Reason != "" {
		return decision
	}
	return decideObjects(seen, decision, claims, opts)
}

// decideReadiness finds what stands in the way of writing anything; without an obstacle the reason is empty.
func decideReadiness(seen Observation, pkg *v1alpha1.Package, variant *v1alpha1.Variant, claims []Claim) Decision {
	problems := CheckVariant(variant)
	problems = append(problems, CheckClaims(pkg, claims, seen.Rivals, seen.Existing)...)
	problems = append(problems, CheckDependencies(seen.World, seen.Name)...)
	if len(problems) > 0 {
		return waiting(v1alpha1.ReasonInvalidConfiguration, "%s", strings.Join(problems, "; "))
	}
	if blockers := Blockers(seen.World, seen.Name); len(blockers) > 0 {
		return waiting(v1alpha1.ReasonDependenciesNotReady, "%s", blockedMessage(blockers))
	}
	for _, dependency := range seen.World.DependsOn(seen.Name) {
		if seen.World.Variant(dependency) == nil {
			return waiting(v1alpha1.ReasonDependsOnFailed,
				"the releases of %q are unknown: its PackageSource has no variant %q",
				dependency, seen.World.Packages[dependency].VariantName())
		}
	}
	return Decision{}
}

func decideObjects(seen Observation, decision Decision, claims []Claim, opts ReleaseOptions) Decision {
	decision.Apply = true
	decision.Namespaces = Namespaces(claims, privilegedWith(seen.Privileged, claims))
	decision.Releases = Releases(seen.World, seen.Name, opts)
	decision.Unwanted = unwanted(seen, claims)
	decision.Ready = metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
		Reason:  v1alpha1.ReasonReconciliationSucceeded,
		Message: fmt.Sprintf("generated %d helmrelease(s)", len(decision.Releases)),
	}
	return decision
}

func privilegedWith(others map[string]bool, claims []Claim) map[string]bool {
	privileged := map[string]bool{}
	for _, claim := range claims {
		ns := claim.Key.Namespace
		privileged[ns] = privileged[ns] || others[ns] || claim.Component.Install.Privileged
	}
	return privileged
}

// unwanted returns the existing releases of the Package that no claim stands for, in the order of their names.
func unwanted(seen Observation, claims []Claim) []*helmv2.HelmRelease {
	claimed := map[types.NamespacedName]bool{}
	for _, claim := range claims {
		claimed[claim.Key] = true
	}
	var releases []*helmv2.HelmRelease
	for _, key := range sortedKeys(seen.Existing) {
		release := seen.Existing[key]
		if !claimed[key] && release.Labels[v1alpha1.LabelPackage] == seen.Name && release.DeletionTimestamp.IsZero() {
			releases = append(releases, release)
		}
	}
	return releases
}

func waiting(reason, format string, args ...any) Decision {
	return Decision{
		Waiting: true,
		Ready: metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
			Reason: reason, Message: fmt.Sprintf(format, args...),
		},
	}
}

// OwnReleases returns the existing releases that carry the label of the Package, in the order of their names.
func OwnReleases(seen Observation) []*helmv2.HelmRelease {
	var releases []*helmv2.HelmRelease
	for _, key := range sortedKeys(seen.Existing) {
		if seen.Existing[key].Labels[v1alpha1.LabelPackage] == seen.Name {
			releases = append(releases, seen.Existing[key])
		}
	}
	return releases
}
