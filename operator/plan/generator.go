package plan

import (
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	watcherv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// Generator returns the ArtifactGenerator that makes one artifact per component of every variant of src, or nil when
// src has no component. It counts on src having passed CheckSource.
func Generator(src *v1alpha1.PackageSource, namespace string) *watcherv1.ArtifactGenerator {
	outputs := outputArtifacts(src)
	if len(outputs) == 0 {
		return nil
	}
	ref := src.Spec.SourceRef
	return &watcherv1.ArtifactGenerator{
		ObjectMeta: metav1.ObjectMeta{
			Name:            src.Name,
			Namespace:       namespace,
			Labels:          map[string]string{v1alpha1.LabelPackageSource: src.Name},
			OwnerReferences: []metav1.OwnerReference{owner("PackageSource", src)},
		},
		Spec: watcherv1.ArtifactGeneratorSpec{
			Sources: []watcherv1.SourceReference{{
				Alias: ref.Name, Kind: ref.Kind, Name: ref.Name, Namespace: ref.Namespace,
			}},
			OutputArtifacts: outputs,
		},
	}
}

func outputArtifacts(src *v1alpha1.PackageSource) []watcherv1.OutputArtifact {
	var outputs []watcherv1.OutputArtifact
	for i := range src.Spec.Variants {
		variant := &src.Spec.Variants[i]
		for j := range variant.Components {
			component := &variant.Components[j]
			outputs = append(outputs, watcherv1.OutputArtifact{
				Name: ArtifactName(src.Name, variant.Name, component.Name),
				Copy: copyOperations(src.Spec.SourceRef, variant, component),
			})
		}
	}
	return outputs
}

// copyOperations lays out one chart: the chart itself, then its libraries, then its values files.
func copyOperations(
	ref *v1alpha1.PackageSourceRef, variant *v1alpha1.Variant, component *v1alpha1.Component,
) []watcherv1.CopyOperation {
	from := func(elements ...string) string {
		return "@" + ref.Name + "/" + path.Join(append([]string{basePath(ref)}, elements...)...)
	}
	to := "@artifact/" + path.Base(path.Clean(component.Path)) + "/"

	ops := []watcherv1.CopyOperation{{From: from(component.Path, "**"), To: to}}
	for _, name := range component.Libraries {
		if lib := findLibrary(variant, name); lib != nil {
			ops = append(ops, watcherv1.CopyOperation{From: from(lib.Path, "**"), To: to + "charts/" + name + "/"})
		}
	}
	strategy := watcherv1.OverwriteStrategy
	for _, file := range component.ValuesFiles {
		ops = append(ops, watcherv1.CopyOperation{
			From: from(component.Path, file), To: to + "values.yaml", Strategy: strategy,
		})
		strategy = watcherv1.MergeStrategy
	}
	return ops
}

func findLibrary(variant *v1alpha1.Variant, name string) *v1alpha1.Library {
	for i := range variant.Libraries {
		if libraryName(variant.Libraries[i]) == name {
			return &variant.Libraries[i]
		}
	}
	return nil
}
