package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/kustomize"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PackageSource says where the charts of a package lie and which variants of it there are.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pks
// +kubebuilder:printcolumn:name="Variants",type="string",JSONPath=".status.variants"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].message"
type PackageSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PackageSourceSpec   `json:"spec,omitempty"`
	Status PackageSourceStatus `json:"status,omitempty"`
}

// PackageSourceList is a list of PackageSources.
//
// +kubebuilder:object:root=true
type PackageSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PackageSource `json:"items"`
}

// PackageSourceSpec is what a PackageSource offers.
type PackageSourceSpec struct {
	// SourceRef names the Flux source that holds the charts.
	// +optional
	SourceRef *PackageSourceRef `json:"sourceRef,omitempty"`

	// Variants are the ways this package can be installed. A Package chooses one.
	// +listType=map
	// +listMapKey=name
	// +optional
	Variants []Variant `json:"variants,omitempty"`
}

// PackageSourceRef names a Flux source and a folder in it.
type PackageSourceRef struct {
	// Kind of the Flux source.
	// +kubebuilder:validation:Enum=GitRepository;OCIRepository
	Kind string `json:"kind"`

	// Name of the Flux source.
	Name string `json:"name"`

	// Namespace of the Flux source.
	Namespace string `json:"namespace"`

	// Path is the folder that component and library paths start from. It defaults to "packages" for a GitRepository
	// and to the root for an OCIRepository; "/" is the root.
	// +optional
	Path string `json:"path,omitempty"`
}

// Variant is one way to install a package.
type Variant struct {
	// Name that a Package chooses the variant by.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// DependsOn names the PackageSources whose Packages have to be there first.
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`

	// Libraries are charts that components of this variant can take in.
	// +optional
	Libraries []Library `json:"libraries,omitempty"`

	// Components are the charts of this variant.
	// +listType=map
	// +listMapKey=name
	// +optional
	Components []Component `json:"components,omitempty"`
}

// Library is a chart that is copied into the charts folder of the components that name it.
type Library struct {
	// Name that components use. It defaults to the last element of the path.
	// +optional
	Name string `json:"name,omitempty"`

	// Path of the chart, from the source's folder.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
}

// Component is one chart of a variant.
type Component struct {
	// Name of the component, unique in its variant.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`

	// Path of the chart, from the source's folder.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`

	// Libraries names libraries of the variant to copy into the chart.
	// +optional
	Libraries []string `json:"libraries,omitempty"`

	// ValuesFiles are files of the chart that make up its values.yaml, each merged over the ones before it.
	// +optional
	ValuesFiles []string `json:"valuesFiles,omitempty"`

	// Install says how to install the chart. Without it the chart is offered as an artifact and not installed.
	// +optional
	Install *ComponentInstall `json:"install,omitempty"`
}

// ComponentInstall says how a component is installed.
type ComponentInstall struct {
	// ReleaseName is the name of the HelmRelease. It defaults to the component's name.
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`

	// Namespace to install into. It is made when it is not there.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Privileged lets the namespace run privileged pods.
	// +optional
	Privileged bool `json:"privileged,omitempty"`

	// DependsOn names components of the same variant that have to be Ready first.
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`

	// UpgradeCRDs says what an upgrade does with the chart's CRDs.
	// +kubebuilder:validation:Enum=Skip;Create;CreateReplace
	// +optional
	UpgradeCRDs string `json:"upgradeCRDs,omitempty"`

	// WaitStrategy says how to wait for the chart's objects. Health check expressions imply "poller".
	// +kubebuilder:validation:Enum=poller;legacy
	// +optional
	WaitStrategy string `json:"waitStrategy,omitempty"`

	// HealthCheckExprs say by CEL expressions when custom resources of the chart are healthy.
	// +optional
	HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs,omitempty"`
}

// PackageSourceStatus is what the operator last saw of a PackageSource.
type PackageSourceStatus struct {
	// Variants are the names of the variants, comma-separated.
	// +optional
	Variants string `json:"variants,omitempty"`

	// Conditions of the PackageSource; Ready follows that of its ArtifactGenerator.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Variant returns the variant of that name, or nil.
func (s *PackageSource) Variant(name string) *Variant {
	for i := range s.Spec.Variants {
		if s.Spec.Variants[i].Name == name {
			return &s.Spec.Variants[i]
		}
	}
	return nil
}
