package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
	"github.com/cozystack/cozydev/operator/plan"
)

// observer reads from the cache what a decision about a Package rests on.
type observer struct {
	client.Reader
}

func (o observer) observe(ctx context.Context, pkg *v1alpha1.Package) (plan.Observation, error) {
	seen := plan.Observation{Name: pkg.Name}
	world, err := o.world(ctx, pkg)
	if err != nil {
		return seen, err
	}
	seen.World = world
	if seen.Existing, err = o.releasesOf(ctx, pkg.Name); err != nil {
		return seen, err
	}
	variant := world.Variant(pkg.Name)
	if variant == nil {
		return seen, nil
	}
	claims := plan.Claims(pkg, variant)
	if err := o.addClaimed(ctx, claims, seen.Existing); err != nil {
		return seen, err
	}
	if seen.Rivals, err = o.rivals(ctx, pkg.Name, claims); err != nil {
		return seen, err
	}
	seen.Privileged, err = o.privileged(ctx, pkg.Name, namespacesOf(claims))
	return seen, err
}

// world reads the Package and everything it depends on, directly or not.
func (o observer) world(ctx context.Context, pkg *v1alpha1.Package) (plan.World, error) {
	world := plan.World{
		Sources:  map[string]*v1alpha1.PackageSource{},
		Packages: map[string]*v1alpha1.Package{pkg.Name: pkg},
	}
	seen := map[string]bool{pkg.Name: true}
	for queue := []string{pkg.Name}; len(queue) > 0; queue = queue[1:] {
		if err := o.addToWorld(ctx, queue[0], world); err != nil {
			return world, err
		}
		for _, dependency := range world.DependsOn(queue[0]) {
			if !seen[dependency] {
				seen[dependency] = true
				queue = append(queue, dependency)
			}
		}
	}
	return world, nil
}

func (o observer) addToWorld(ctx context.Context, name string, world plan.World) error {
	src, err := lookUp(ctx, o, types.NamespacedName{Name: name}, &v1alpha1.PackageSource{})
	if err != nil {
		return err
	}
	if src != nil {
		world.Sources[name] = src
	}
	if world.Packages[name] != nil {
		return nil
	}
	pkg, err := lookUp(ctx, o, types.NamespacedName{Name: name}, &v1alpha1.Package{})
	if err != nil {
		return err
	}
	if pkg != nil && pkg.DeletionTimestamp.IsZero() {
		world.Packages[name] = pkg
	}
	return nil
}

func (o observer) releasesOf(
	ctx context.Context, name string,
) (map[types.NamespacedName]*helmv2.HelmRelease, error) {
	var list helmv2.HelmReleaseList
	if err := o.List(ctx, &list, client.MatchingFields{indexPackage: name}); err != nil {
		return nil, fmt.Errorf("listing the releases of package %q: %w", name, err)
	}
	releases := make(map[types.NamespacedName]*helmv2.HelmRelease, len(list.Items))
	for i := range list.Items {
		releases[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	return releases, nil
}

// addClaimed adds releases that the Package claims and that do not carry its label.
func (o observer) addClaimed(
	ctx context.Context, claims []plan.Claim, existing map[types.NamespacedName]*helmv2.HelmRelease,
) error {
	for _, claim := range claims {
		if existing[claim.Key] != nil {
			continue
		}
		release, err := lookUp(ctx, o, claim.Key, &helmv2.HelmRelease{})
		if err != nil {
			return err
		}
		if release != nil {
			existing[claim.Key] = release
		}
	}
	return nil
}

// rivals finds other Packages with an active component for one of the claims.
func (o observer) rivals(ctx context.Context, name string, claims []plan.Claim) ([]plan.Rival, error) {
	var rivals []plan.Rival
	for _, claim := range claims {
		err := o.eachActive(ctx, indexRelease, claim.Key.String(),
			func(other *v1alpha1.Package, variant *v1alpha1.Variant) {
				if other.Name == name {
					return
				}
				for _, its := range plan.Claims(other, variant) {
					if its.Key == claim.Key {
						rivals = append(rivals, plan.Rival{Package: other, Component: its.Component.Name, Key: its.Key})
					}
				}
			})
		if err != nil {
			return nil, err
		}
	}
	return rivals, nil
}

// privileged returns those of the namespaces where a Package other than the named one needs privileged pods.
func (o observer) privileged(ctx context.Context, except string, namespaces []string) (map[string]bool, error) {
	privileged := map[string]bool{}
	for _, ns := range namespaces {
		err := o.eachActive(ctx, indexPrivileged, ns, func(other *v1alpha1.Package, variant *v1alpha1.Variant) {
			if other.Name == except {
				return
			}
			for _, needed := range plan.PrivilegedNamespaces(other, variant) {
				privileged[needed] = true
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return privileged, nil
}

// eachActive calls visit for every Package, with its chosen variant, whose source is found under value in the index.
func (o observer) eachActive(
	ctx context.Context, index, value string, visit func(*v1alpha1.Package, *v1alpha1.Variant),
) error {
	var sources v1alpha1.PackageSourceList
	if err := o.List(ctx, &sources, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing package sources by %s %q: %w", index, value, err)
	}
	for i := range sources.Items {
		src := &sources.Items[i]
		pkg, err := lookUp(ctx, o, types.NamespacedName{Name: src.Name}, &v1alpha1.Package{})
		if err != nil {
			return err
		}
		if pkg == nil || !pkg.DeletionTimestamp.IsZero() {
			continue
		}
		if variant := src.Variant(pkg.VariantName()); variant != nil {
			visit(pkg, variant)
		}
	}
	return nil
}

// lookUp reads one object, or nil when it does not exist.
func lookUp[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, obj T) (T, error) {
	var none T
	switch err := reader.Get(ctx, key, obj); {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("reading %T %q: %w", obj, key, err)
	}
	return obj, nil
}

func namespacesOf(claims []plan.Claim) []string {
	names := make([]string, len(claims))
	for i, claim := range claims {
		names[i] = claim.Key.Namespace
	}
	return names
}
