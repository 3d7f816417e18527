package bootstrap

import (
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

const (
	// PlatformPackage is the name of the PackageSource, and so of the Package, of the platform chart.
	PlatformPackage = "cozystack.cozystack-platform"

	platformRelease   = "cozystack-platform"
	platformComponent = "platform"
	platformPath      = "core/platform"
	sourceInterval    = 5 * time.Minute
)

// platformVariants are the variants of the platform chart; each but the first has a values file of its own.
func platformVariants() []string {
	return []string{v1alpha1.DefaultVariant, "isp-full", "isp-hosted", "isp-full-generic"}
}

// sourceObject returns the Flux object for the source.
func sourceObject(source Source, namespace string) client.Object {
	object := metav1.ObjectMeta{Name: source.Name, Namespace: namespace}
	interval := metav1.Duration{Duration: sourceInterval}
	var secret *fluxmeta.LocalObjectReference
	if source.Secret != "" {
		secret = &fluxmeta.LocalObjectReference{Name: source.Secret}
	}
	if source.Kind == sourcev1.OCIRepositoryKind {
		repository := &sourcev1.OCIRepository{ObjectMeta: object, Spec: sourcev1.OCIRepositorySpec{
			URL: source.URL, SecretRef: secret, Insecure: source.Insecure, Interval: interval,
		}}
		if len(source.Ref) > 0 {
			repository.Spec.Reference = &sourcev1.OCIRepositoryRef{
				Digest: source.Ref["digest"], Tag: source.Ref["tag"],
				SemVer: source.Ref["semver"], SemverFilter: source.Ref["semverFilter"],
			}
		}
		return repository
	}
	repository := &sourcev1.GitRepository{ObjectMeta: object, Spec: sourcev1.GitRepositorySpec{
		URL: source.URL, SecretRef: secret, Interval: interval,
	}}
	if len(source.Ref) > 0 {
		repository.Spec.Reference = &sourcev1.GitRepositoryRef{
			Branch: source.Ref["branch"], Tag: source.Ref["tag"], SemVer: source.Ref["semver"],
			Name: source.Ref["name"], Commit: source.Ref["commit"],
		}
	}
	return repository
}

// platform returns the PackageSource of the platform chart. That chart makes the values Secret, so it takes none.
func platform(source Source, namespace string) *v1alpha1.PackageSource {
	src := &v1alpha1.PackageSource{
		ObjectMeta: metav1.ObjectMeta{
			Name:        PlatformPackage,
			Annotations: map[string]string{v1alpha1.AnnotationSkipValues: "true"},
		},
		Spec: v1alpha1.PackageSourceSpec{SourceRef: &v1alpha1.PackageSourceRef{
			Kind: source.Kind, Name: source.Name, Namespace: namespace,
		}},
	}
	for _, name := range platformVariants() {
		files := []string{"values.yaml"}
		if name != v1alpha1.DefaultVariant {
			files = append(files, "values-"+name+".yaml")
		}
		src.Spec.Variants = append(src.Spec.Variants, v1alpha1.Variant{
			Name: name,
			Components: []v1alpha1.Component{{
				Name: platformComponent, Path: platformPath, ValuesFiles: files,
				Install: &v1alpha1.ComponentInstall{ReleaseName: platformRelease, Namespace: namespace},
			}},
		})
	}
	return src
}
