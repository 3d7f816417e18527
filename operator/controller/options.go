package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/cozystack/cozydev/operator/plan"
)

// settleTime is how long a new object may wait for others before that is written into its status. Objects that are
// created together are complete within it, and so get one status write instead of several.
const settleTime = 2 * time.Second

// Options set up the reconcilers.
type Options struct {
	// Release settings for every HelmRelease.
	Release plan.ReleaseOptions
	// ValuesNamespace holds the original of the values Secret, named Release.ValuesSecret.
	ValuesNamespace string
	// ValuesSelector chooses the namespaces that get a copy.
	ValuesSelector labels.Selector
	// Concurrent is how many objects of a kind are reconciled at once.
	Concurrent int
	// Log gets what the reconcilers do.
	Log *slog.Logger
}

// AddToManager registers every reconciler with mgr. The scheme of mgr knows the objects of package v1alpha1 and of
// Flux; their CRDs are there before mgr starts. It may be called once per manager.
func AddToManager(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	secrets, err := newSecretCluster(mgr, opts.Release.ValuesSecret)
	if err != nil {
		return fmt.Errorf("preparing the cache of secrets: %w", err)
	}
	values := &Values{
		Client:    mgr.GetClient(),
		Secrets:   secrets.GetClient(),
		Name:      opts.Release.ValuesSecret,
		Namespace: opts.ValuesNamespace,
		Selector:  opts.ValuesSelector,
	}
	setups := []func() error{
		func() error { return mgr.Add(secrets) },
		func() error { return values.setup(mgr, secrets) },
		func() error { return newSourceReconciler(mgr, opts).setup(mgr, opts.Concurrent) },
		func() error { return newPackageReconciler(mgr, values, opts).setup(mgr, opts.Concurrent) },
	}
	for _, setup := range setups {
		if err := setup(); err != nil {
			return fmt.Errorf("registering the reconcilers: %w", err)
		}
	}
	return nil
}

// newSecretCluster returns a cache and client that hold only Secrets of the given name. Other parts of the process
// see all Secrets through the manager's own client.
func newSecretCluster(mgr ctrl.Manager, name string) (cluster.Cluster, error) {
	return cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.HTTPClient = mgr.GetHTTPClient()
		o.Logger = mgr.GetLogger()
		o.Cache.ByObject = onlySecretsNamed(name)
	})
}
