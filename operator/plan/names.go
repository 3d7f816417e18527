package plan

import (
	"maps"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// maxLabelValue is the longest value a Kubernetes label can have.
const maxLabelValue = 63

// ArtifactName returns the name of the artifact that the generator of source makes for a component of a variant.
func ArtifactName(source, variant, component string) string {
	return strings.ReplaceAll(source+"-"+variant+"-"+component, ".", "-")
}

// basePath returns the folder of the source that component paths start from, without slashes around it.
func basePath(ref *v1alpha1.PackageSourceRef) string {
	if ref.Path == "" {
		if ref.Kind == sourcev1.GitRepositoryKind {
			return "packages"
		}
		return ""
	}
	return strings.Trim(path.Clean("/"+ref.Path), "/")
}

// libraryName returns the name that components call the library by.
func libraryName(lib v1alpha1.Library) string {
	if lib.Name != "" {
		return lib.Name
	}
	return path.Base(path.Clean(lib.Path))
}

// releaseName returns the name of the HelmRelease of an installable component.
func releaseName(component *v1alpha1.Component) string {
	if component.Install.ReleaseName != "" {
		return component.Install.ReleaseName
	}
	return component.Name
}

// owner returns a controller reference to a cluster-scoped object of our group.
func owner(kind string, obj metav1.Object) metav1.OwnerReference {
	controller := true
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(),
		Kind:       kind,
		Name:       obj.GetName(),
		UID:        obj.GetUID(),
		Controller: &controller,
	}
}

// sortedKeys returns the keys of m in the order of their text.
func sortedKeys[V any](m map[types.NamespacedName]V) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		return strings.Compare(a.String(), b.String())
	})
}
