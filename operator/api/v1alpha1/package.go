package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Package asks for a variant of the PackageSource of the same name to be installed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pkg;pkgs
// +kubebuilder:printcolumn:name="Variant",type="string",JSONPath=".spec.variant"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].message"
// +kubebuilder:printcolumn:name="Releases",type="string",priority=1,JSONPath=".status.conditions[?(@.type=='ReleasesReady')].message"
type Package struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageSpec   `json:"spec,omitempty"`
	Status PackageStatus `json:"status,omitempty"`
}

// PackageList is a list of Packages.
//
// +kubebuilder:object:root=true
type PackageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Package `json:"items"`
}

// PackageSpec is what to install.
type PackageSpec struct {
	// Variant of the PackageSource; "default" when empty.
	// +optional
	Variant string `json:"variant,omitempty"`

	// IgnoreDependencies names dependencies of the variant not to wait for.
	// +optional
	IgnoreDependencies []string `json:"ignoreDependencies,omitempty"`

	// Components changes single components, by name.
	// +optional
	Components map[string]PackageComponent `json:"components,omitempty"`
}

// PackageComponent changes one component of a Package.
type PackageComponent struct {
	// Enabled, when false, leaves the component out and removes it where it is installed.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Values for the component's chart.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

// PackageStatus is what the operator last saw of a Package.
type PackageStatus struct {
	// Conditions of the Package: Ready and ReleasesReady.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Dependencies of the chosen variant, by name.
	// +optional
	Dependencies map[string]DependencyStatus `json:"dependencies,omitempty"`

	// Releases counts the HelmReleases that this Package made.
	// +optional
	Releases *ReleasesStatus `json:"releases,omitempty"`
}

// DependencyStatus is the state of one dependency.
type DependencyStatus struct {
	// Ready is true when the Package of that name is Ready.
	Ready bool `json:"ready"`
}

// ReleasesStatus counts HelmReleases.
type ReleasesStatus struct {
	// Total is how many there are.
	Total int32 `json:"total"`
	// Ready is how many of them are Ready.
	Ready int32 `json:"ready"`
	// Failed is how many of them have failed.
	Failed int32 `json:"failed"`
}

// VariantName returns the chosen variant's name.
func (p *Package) VariantName() string {
	if p.Spec.Variant == "" {
		return DefaultVariant
	}
	return p.Spec.Variant
}

// Enabled tells whether the Package wants the component of that name.
func (p *Package) Enabled(component string) bool {
	enabled := p.Spec.Components[component].Enabled
	return enabled == nil || *enabled
}

// Ignores tells whether the Package does not wait for the dependency of that name.
func (p *Package) Ignores(dependency string) bool {
	for _, name := range p.Spec.IgnoreDependencies {
		if name == dependency {
			return true
		}
	}
	return false
}
