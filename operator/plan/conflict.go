package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// Rival is another Package with an active component that stands for the same HelmRelease.
type Rival struct {
	Package   *v1alpha1.Package
	Component string
	Key       types.NamespacedName
}

// CheckClaims returns which releases of pkg it must not touch: those that two of its own components claim, and those
// that belong to a rival. A release belongs to the Package that its label names while that Package still claims it,
// else to the older claimant.
func CheckClaims(
	pkg *v1alpha1.Package, claims []Claim, rivals []Rival, existing map[types.NamespacedName]*helmv2.HelmRelease,
) []string {
	problems := claimedTwice(claims)
	for _, claim := range claims {
		for _, rival := range rivals {
			if rival.Key != claim.Key || !belongsTo(rival, pkg, existing[claim.Key]) {
				continue
			}
			problems = append(problems, fmt.Sprintf(
				"component %q claims the release %q, which belongs to component %q of the package %q",
				claim.Component.Name, claim.Key, rival.Component, rival.Package.Name))
		}
	}
	return problems
}

func claimedTwice(claims []Claim) []string {
	var problems []string
	claimants := map[types.NamespacedName]string{}
	for _, claim := range claims {
		if other, taken := claimants[claim.Key]; taken {
			problems = append(problems, fmt.Sprintf(
				"components %q and %q both claim the release %q", other, claim.Component.Name, claim.Key))
			continue
		}
		claimants[claim.Key] = claim.Component.Name
	}
	return problems
}

// belongsTo tells whether the release is the rival's rather than pkg's.
func belongsTo(rival Rival, pkg *v1alpha1.Package, existing *helmv2.HelmRelease) bool {
	if existing != nil {
		switch existing.Labels[v1alpha1.LabelPackage] {
		case pkg.Name:
			return false
		case rival.Package.Name:
			return true
		}
	}
	return older(rival.Package, pkg)
}
