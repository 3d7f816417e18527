package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cozystack/cozydev/operator/apply"
	"github.com/cozystack/cozydev/operator/plan"
)

// FluxMode says who reconciles the Flux objects.
type FluxMode string

const (
	// FluxDistribution installs the Flux controllers.
	FluxDistribution FluxMode = "distribution"
	// FluxEmbedded leaves the objects to the operator's own engine.
	FluxEmbedded FluxMode = "embedded"
)

// ParseFluxMode returns the mode of that name.
func ParseFluxMode(name string) (FluxMode, error) {
	switch mode := FluxMode(name); mode {
	case FluxDistribution, FluxEmbedded:
		return mode, nil
	default:
		return "", fmt.Errorf("flux mode %q is not known: use %q or %q", name, FluxDistribution, FluxEmbedded)
	}
}

// Options say what to set up.
type Options struct {
	// InstallCRDs writes the CRDs of the operator and of Flux and waits until they are served.
	InstallCRDs bool
	// InstallFlux sets up Flux in the way that Flux says.
	InstallFlux bool
	Flux        FluxMode
	// Source of the package tree; nil leaves the platform out.
	Source *Source
	// Namespace that the operator and its sources live in.
	Namespace string
	// Patience is how long a step is tried again while the API server cannot be reached.
	Patience time.Duration
	// Log gets one line per step.
	Log *slog.Logger
}

// step is one part of the set-up. It may run again after it failed or succeeded.
type step struct {
	name string
	run  func(context.Context) error
}

// Run sets everything up, in order. It tries again while the API server cannot be reached or is not ready, and returns
// the first error that trying again does not mend.
func Run(ctx context.Context, c client.Client, opts Options) error {
	for _, step := range steps(c, opts) {
		begin := time.Now()
		if err := runStep(ctx, step, opts); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		opts.Log.InfoContext(ctx, step.name, "took", time.Since(begin).Round(time.Millisecond))
	}
	return nil
}

func steps(c client.Client, opts Options) []step {
	var all []step
	add := func(wanted bool, name string, run func(context.Context) error) {
		if wanted {
			all = append(all, step{name, run})
		}
	}
	add(opts.InstallCRDs, "installing CRDs", func(ctx context.Context) error { return installCRDs(ctx, c, opts.Flux) })
	add(opts.InstallFlux && opts.Flux == FluxDistribution, "installing Flux",
		func(ctx context.Context) error { return installFlux(ctx, c) })
	add(opts.Source != nil, "creating the namespace",
		func(ctx context.Context) error { return ensureNamespace(ctx, c, opts.Namespace) })
	add(opts.Source != nil, "setting the platform source",
		func(ctx context.Context) error { return applySource(ctx, c, opts) })
	return all
}

// runStep tries a step until it succeeds, fails for good or patience ends.
func runStep(ctx context.Context, step step, opts Options) error {
	ctx, cancel := context.WithTimeout(ctx, opts.Patience)
	defer cancel()
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: 2 * time.Second, Steps: 1 << 20}
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		err := step.run(ctx)
		if err == nil || !passes(err) {
			return err == nil, err
		}
		if last == nil {
			opts.Log.WarnContext(ctx, step.name+": trying again", "error", err)
		}
		last = err
		return false, nil
	})
	if last != nil && wait.Interrupted(err) {
		return last
	}
	return err
}

// passes tells whether an error can be gone at the next try: the API server is starting, or has not noticed a new CRD.
func passes(err error) bool {
	var netErr net.Error
	var urlErr *url.Error
	return errors.As(err, &netErr) || errors.As(err, &urlErr) || meta.IsNoMatchError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsConflict(err) ||
		apierrors.IsNotFound(err) || errors.Is(err, errNotEstablished)
}

// ensureNamespace creates the namespace when it is not there; the chart that made it knows its labels best.
func ensureNamespace(ctx context.Context, c client.Client, name string) error {
	err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	return apply.Object(ctx, c, plan.Namespace(name, false))
}
