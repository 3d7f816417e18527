package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// ReleaseOptions are the settings that every HelmRelease shares.
type ReleaseOptions struct {
	// Interval between two reconciliations of a release.
	Interval time.Duration
	// RetryInterval between two tries of a failed action.
	RetryInterval time.Duration
	// InstallTimeout and UpgradeTimeout end an action that takes longer.
	InstallTimeout time.Duration
	UpgradeTimeout time.Duration
	// MaxHistory is how many revisions Helm keeps.
	MaxHistory int
	// ValuesSecret is the name of the Secret with the platform's values in every install namespace.
	ValuesSecret string
	// SystemNamespace is where the artifacts are.
	SystemNamespace string
}

// Releases returns the HelmReleases of the claims of the Package of that name. The world holds the Package, its
// source and its direct dependencies with theirs.
func Releases(w World, name string, opts ReleaseOptions) []*helmv2.HelmRelease {
	pkg, src, variant := w.Packages[name], w.Sources[name], w.Variant(name)
	needed := packageDependencies(w, name)
	var releases []*helmv2.HelmRelease
	for _, claim := range Claims(pkg, variant) {
		release := newRelease(pkg, claim, opts)
		release.Spec.ChartRef.Name = ArtifactName(src.Name, variant.Name, claim.Component.Name)
		release.Spec.DependsOn = references(claim.Key, append(componentDependencies(pkg, variant, claim), needed...))
		if src.Annotations[v1alpha1.AnnotationSkipValues] != "true" {
			release.Spec.ValuesFrom = []helmv2.ValuesReference{{Kind: "Secret", Name: opts.ValuesSecret}}
		}
		releases = append(releases, release)
	}
	return releases
}

func newRelease(pkg *v1alpha1.Package, claim Claim, opts ReleaseOptions) *helmv2.HelmRelease {
	install := claim.Component.Install
	release := &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{
			Name:            claim.Key.Name,
			Namespace:       claim.Key.Namespace,
			Labels:          map[string]string{v1alpha1.LabelPackage: pkg.Name},
			OwnerReferences: []metav1.OwnerReference{owner("Package", pkg)},
		},
		Spec: helmv2.HelmReleaseSpec{
			ChartRef: &helmv2.CrossNamespaceSourceReference{
				Kind: sourcev1.ExternalArtifactKind, Namespace: opts.SystemNamespace,
			},
			Interval:         metav1.Duration{Duration: opts.Interval},
			MaxHistory:       &opts.MaxHistory,
			Install:          installAction(opts),
			Upgrade:          upgradeAction(opts, install.UpgradeCRDs),
			Values:           pkg.Spec.Components[claim.Component.Name].Values,
			WaitStrategy:     waitStrategy(install),
			HealthCheckExprs: install.HealthCheckExprs,
		},
	}
	if install.Privileged {
		release.Labels[v1alpha1.LabelPrivileged] = "true"
	}
	if files := claim.Component.ValuesFiles; len(files) > 0 {
		release.Annotations = map[string]string{v1alpha1.AnnotationValuesFiles: strings.Join(files, ",")}
	}
	return release
}

func installAction(opts ReleaseOptions) *helmv2.Install {
	return &helmv2.Install{
		Timeout: &metav1.Duration{Duration: opts.InstallTimeout},
		Strategy: &helmv2.InstallStrategy{
			Name:          string(helmv2.ActionStrategyRetryOnFailure),
			RetryInterval: &metav1.Duration{Duration: opts.RetryInterval},
		},
	}
}

func upgradeAction(opts ReleaseOptions, crds string) *helmv2.Upgrade {
	return &helmv2.Upgrade{
		Timeout: &metav1.Duration{Duration: opts.UpgradeTimeout},
		Strategy: &helmv2.UpgradeStrategy{
			Name:          string(helmv2.ActionStrategyRetryOnFailure),
			RetryInterval: &metav1.Duration{Duration: opts.RetryInterval},
		},
		CRDs: helmv2.CRDsPolicy(crds),
	}
}

func waitStrategy(install *v1alpha1.ComponentInstall) *helmv2.WaitStrategy {
	switch {
	case len(install.HealthCheckExprs) > 0:
		return &helmv2.WaitStrategy{Name: helmv2.WaitStrategyPoller}
	case install.WaitStrategy != "":
		return &helmv2.WaitStrategy{Name: helmv2.WaitStrategyName(install.WaitStrategy)}
	default:
		return nil
	}
}

// componentDependencies returns the releases of the components of the same variant that claim waits for. Components
// that are disabled or not installed are nothing to wait for.
func componentDependencies(pkg *v1alpha1.Package, variant *v1alpha1.Variant, claim Claim) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, name := range claim.Component.Install.DependsOn {
		for _, other := range Claims(pkg, variant) {
			if other.Component.Name == name {
				keys = append(keys, other.Key)
			}
		}
	}
	return keys
}

// packageDependencies returns the releases of every package that the Package of that name depends on directly.
func packageDependencies(w World, name string) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, dependency := range w.DependsOn(name) {
		variant := w.Variant(dependency)
		if variant == nil {
			continue
		}
		for _, claim := range Claims(w.Packages[dependency], variant) {
			keys = append(keys, claim.Key)
		}
	}
	return keys
}

// references turns keys into dependencies of self, each once and never self.
func references(self types.NamespacedName, keys []types.NamespacedName) []helmv2.DependencyReference {
	var refs []helmv2.DependencyReference
	for i, key := range keys {
		if key == self || slices.Contains(keys[:i], key) {
			continue
		}
		refs = append(refs, helmv2.DependencyReference{Name: key.Name, Namespace: key.Namespace})
	}
	return refs
}

// MergeRelease returns existing with everything that desired says, and whether that is a change. Labels, annotations
// and owners that are not ours and spec.suspend stay as they are.
func MergeRelease(existing, desired *helmv2.HelmRelease) (*helmv2.HelmRelease, bool) {
	merged := existing.DeepCopy()
	merged.Labels = overlay(existing.Labels, desired.Labels, v1alpha1.LabelPackage, v1alpha1.LabelPrivileged)
	merged.Annotations = overlay(existing.Annotations, desired.Annotations, v1alpha1.AnnotationValuesFiles)
	merged.OwnerReferences = mergeOwners(existing.OwnerReferences, desired.OwnerReferences)
	desired.Spec.DeepCopyInto(&merged.Spec)
	merged.Spec.Suspend = existing.Spec.Suspend
	if sameJSON(existing.Spec.Values, desired.Spec.Values) {
		merged.Spec.Values = existing.Spec.Values
	}
	changed := !equality.Semantic.DeepEqual(existing.ObjectMeta, merged.ObjectMeta) ||
		!equality.Semantic.DeepEqual(existing.Spec, merged.Spec)
	return merged, changed
}

// overlay returns base with ours laid over it; the keys in owned are taken from ours alone.
func overlay(base, ours map[string]string, owned ...string) map[string]string {
	result := maps.Clone(base)
	for _, key := range owned {
		delete(result, key)
	}
	if result == nil && len(ours) > 0 {
		result = map[string]string{}
	}
	maps.Copy(result, ours)
	return result
}

// mergeOwners keeps owners of other kinds; an object has one controller, so another's controller reference goes.
func mergeOwners(existing, ours []metav1.OwnerReference) []metav1.OwnerReference {
	var result []metav1.OwnerReference
	for _, ref := range existing {
		isPackage := ref.APIVersion == v1alpha1.GroupVersion.String() && ref.Kind == "Package"
		isController := ref.Controller != nil && *ref.Controller
		if !isPackage && !isController {
			result = append(result, ref)
		}
	}
	return append(result, ours...)
}

// sameJSON tells whether both hold the same value, however it is written.
func sameJSON(a, b *apiextensionsv1.JSON) bool {
	if a == nil || b == nil {
		return a == b
	}
	var av, bv any
	if json.Unmarshal(a.Raw, &av) != nil || json.Unmarshal(b.Raw, &bv) != nil {
		return false
	}
	return reflect.DeepEqual(av, bv)
}
