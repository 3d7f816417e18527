package plan

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// World is the part of the cluster that decisions about a Package look at: itself and everything it depends on,
// directly or not. An object that does not exist has no entry.
type World struct {
	Sources  map[string]*v1alpha1.PackageSource
	Packages map[string]*v1alpha1.Package
}

// Variant returns the variant that the Package of that name has chosen, or nil when the Package, its source or the
// variant does not exist.
func (w World) Variant(name string) *v1alpha1.Variant {
	pkg, src := w.Packages[name], w.Sources[name]
	if pkg == nil || src == nil {
		return nil
	}
	return src.Variant(pkg.VariantName())
}

// DependsOn returns the dependencies that the Package of that name waits for.
func (w World) DependsOn(name string) []string {
	variant := w.Variant(name)
	if variant == nil {
		return nil
	}
	var names []string
	for _, dependency := range variant.DependsOn {
		if !w.Packages[name].Ignores(dependency) {
			names = append(names, dependency)
		}
	}
	return names
}

// Ready tells whether the Package of that name exists and is Ready.
func (w World) Ready(name string) bool {
	pkg := w.Packages[name]
	return pkg != nil && meta.IsStatusConditionTrue(pkg.Status.Conditions, v1alpha1.ConditionReady)
}

// Claim is a HelmRelease that an active component stands for.
type Claim struct {
	Key       types.NamespacedName
	Component *v1alpha1.Component
}

// Claims returns the releases of the enabled, installable components of the variant that pkg has chosen, in the
// order of the variant.
func Claims(pkg *v1alpha1.Package, variant *v1alpha1.Variant) []Claim {
	var claims []Claim
	for i := range variant.Components {
		component := &variant.Components[i]
		if component.Install == nil || !pkg.Enabled(component.Name) {
			continue
		}
		claims = append(claims, Claim{
			Key:       types.NamespacedName{Namespace: component.Install.Namespace, Name: releaseName(component)},
			Component: component,
		})
	}
	return claims
}

// older tells whether a was made before b; of two made in the same second the name decides.
func older(a, b metav1.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.Equal(&bt) {
		return a.GetName() < b.GetName()
	}
	return at.Before(&bt)
}
