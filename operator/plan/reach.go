package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// AllDependencies returns the names of the PackageSources that any variant of src depends on, sorted.
func AllDependencies(src *v1alpha1.PackageSource) []string {
	var names []string
	for i := range src.Spec.Variants {
		names = append(names, src.Spec.Variants[i].DependsOn...)
	}
	return sortedSet(names)
}

// AllReleases returns namespace/name of every release that any variant of src can make, sorted.
func AllReleases(src *v1alpha1.PackageSource) []string {
	return ofInstallable(src, func(component *v1alpha1.Component) string {
		return types.NamespacedName{Namespace: component.Install.Namespace, Name: releaseName(component)}.String()
	})
}

// AllNamespaces returns the namespaces that any variant of src installs into, sorted.
func AllNamespaces(src *v1alpha1.PackageSource) []string {
	return ofInstallable(src, func(component *v1alpha1.Component) string { return component.Install.Namespace })
}

// AllPrivileged returns the namespaces in which any variant of src needs privileged pods, sorted.
func AllPrivileged(src *v1alpha1.PackageSource) []string {
	return ofInstallable(src, func(component *v1alpha1.Component) string {
		if !component.Install.Privileged {
			return ""
		}
		return component.Install.Namespace
	})
}

func ofInstallable(src *v1alpha1.PackageSource, value func(*v1alpha1.Component) string) []string {
	var values []string
	for i := range src.Spec.Variants {
		for j := range src.Spec.Variants[i].Components {
			component := &src.Spec.Variants[i].Components[j]
			if component.Install == nil {
				continue
			}
			if v := value(component); v != "" {
				values = append(values, v)
			}
		}
	}
	return sortedSet(values)
}

func sortedSet(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
