package bootstrap

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cozystack/cozydev/operator/apply"
)

//go:embed crds
var crdFiles embed.FS

const (
	// crdPoll is short because everything else waits for it, and an API server takes only moments.
	crdPoll     = 50 * time.Millisecond
	crdPatience = 30 * time.Second
	crdsAtOnce  = 4
	ownCRDs     = "crds/cozystack"
	fluxCRDs    = "crds/flux"
)

var errNotEstablished = errors.New("not established yet")

// CRDs returns the embedded CRDs, ours before Flux's, each in the order of their names. Those of Flux that only the
// distribution reconciles are left out for the embedded engine.
func CRDs(mode FluxMode) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, dir := range []string{ownCRDs, fluxCRDs} {
		crds, err := readCRDs(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, crds...)
	}
	if mode == FluxEmbedded {
		all = slices.DeleteFunc(all, onlyDistribution)
	}
	return all, nil
}

// onlyDistribution tells whether nothing but the Flux controllers uses the CRD. They do not start without it.
func onlyDistribution(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Contains([]string{"Bucket", "HelmChart", "HelmRepository"}, crd.Spec.Names.Kind)
}

func readCRDs(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := fs.ReadDir(crdFiles, dir)
	if err != nil {
		return nil, fmt.Errorf("listing embedded CRDs: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		content, err := crdFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading embedded CRD %q: %w", name, err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("decoding embedded CRD %q: %w", name, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// installCRDs applies all CRDs and returns when each is served.
func installCRDs(ctx context.Context, c client.Client, mode FluxMode) error {
	crds, err := CRDs(mode)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(crdsAtOnce)
	for _, crd := range crds {
		group.Go(func() error { return installCRD(ctx, c, crd) })
	}
	return group.Wait()
}

func installCRD(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	if err := apply.Object(ctx, c, crd); err != nil {
		return fmt.Errorf("applying the CRD %q: %w", crd.Name, err)
	}
	last := errNotEstablished
	err := wait.PollUntilContextTimeout(ctx, crdPoll, crdPatience, true, func(ctx context.Context) (bool, error) {
		last = served(ctx, c, crd)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the CRD %q: %w", crd.Name, last)
	}
	return nil
}

// served returns nil when the CRD is established and the API server's discovery has its kind.
func served(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	now := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(crd), now); err != nil {
		return err
	}
	for _, condition := range now.Status.Conditions {
		if condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse {
			return fmt.Errorf("its names are not accepted: %s", condition.Message)
		}
	}
	if !established(now) {
		return errNotEstablished
	}
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	_, err := c.RESTMapper().RESTMapping(kind, storageVersion(crd))
	if meta.IsNoMatchError(err) {
		return errNotEstablished
	}
	return err
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}
