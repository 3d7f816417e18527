package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
	"github.com/cozystack/cozydev/operator/plan"
)

// Indexes of the cache. Those of a PackageSource cover all of its variants: which one counts is the Package's choice.
const (
	// indexDependsOn finds PackageSources by the name of a dependency.
	indexDependsOn = "dependsOn"
	// indexRelease finds PackageSources by namespace/name of a release.
	indexRelease = "release"
	// indexNamespace finds PackageSources by install namespace.
	indexNamespace = "installNamespace"
	// indexPrivileged finds PackageSources by a namespace they need privileged pods in.
	indexPrivileged = "privilegedNamespace"
	// indexPackage finds HelmReleases by the Package of their label.
	indexPackage = "package"
)

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range indexes() {
		if err := indexer.IndexField(ctx, index.object, index.name, index.values); err != nil {
			return fmt.Errorf("adding the index %q: %w", index.name, err)
		}
	}
	return nil
}

// index is one index of the cache.
type index struct {
	object client.Object
	name   string
	values client.IndexerFunc
}

func indexes() []index {
	return []index{
		{&v1alpha1.PackageSource{}, indexDependsOn, ofSource(plan.AllDependencies)},
		{&v1alpha1.PackageSource{}, indexRelease, ofSource(plan.AllReleases)},
		{&v1alpha1.PackageSource{}, indexNamespace, ofSource(plan.AllNamespaces)},
		{&v1alpha1.PackageSource{}, indexPrivileged, ofSource(plan.AllPrivileged)},
		{&helmv2.HelmRelease{}, indexPackage, packageOfRelease},
	}
}

func ofSource(values func(*v1alpha1.PackageSource) []string) client.IndexerFunc {
	return func(obj client.Object) []string {
		src, ok := obj.(*v1alpha1.PackageSource)
		if !ok {
			return nil
		}
		return values(src)
	}
}

func packageOfRelease(obj client.Object) []string {
	if name := obj.GetLabels()[v1alpha1.LabelPackage]; name != "" {
		return []string{name}
	}
	return nil
}
