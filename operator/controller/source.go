package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	watcherv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
	"github.com/cozystack/cozydev/operator/apply"
	"github.com/cozystack/cozydev/operator/plan"
)

// sourceReconciler turns PackageSources into ArtifactGenerators.
type sourceReconciler struct {
	client    client.Client
	namespace string
	stalls    *stalls
	now       func() time.Time
}

func newSourceReconciler(mgr ctrl.Manager, opts Options) *sourceReconciler {
	return &sourceReconciler{
		client:    mgr.GetClient(),
		namespace: opts.Release.SystemNamespace,
		stalls:    &stalls{},
		now:       time.Now,
	}
}

func (r *sourceReconciler) setup(mgr ctrl.Manager, concurrent int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("packagesource").
		For(&v1alpha1.PackageSource{}, builder.WithPredicates(sourceChanged())).
		Owns(&watcherv1.ArtifactGenerator{}, builder.WithPredicates(generatorChanged())).
		WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r)
}

// Reconcile brings the generator and the status of one PackageSource to what it says.
func (r *sourceReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	src, err := lookUp(ctx, r.client, req.NamespacedName, &v1alpha1.PackageSource{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if src == nil || !src.DeletionTimestamp.IsZero() {
		r.stalls.forget(req.Name)
		return ctrl.Result{}, nil
	}
	if problems := plan.CheckSource(src); len(problems) > 0 {
		return ctrl.Result{}, r.report(ctx, src, plan.InvalidSource(strings.Join(problems, "; ")))
	}
	generator, err := r.writeGenerator(ctx, src)
	if isRace(err) {
		return ctrl.Result{RequeueAfter: raceDelay}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.follow(ctx, src, generator)
}

// follow mirrors the generator's condition, and nudges a generator that lost it.
func (r *sourceReconciler) follow(
	ctx context.Context, src *v1alpha1.PackageSource, generator *watcherv1.ArtifactGenerator,
) (ctrl.Result, error) {
	step := r.stalls.next(src.Name, plan.Stalled(generator), r.now())
	if step.Nudge {
		if err := r.nudge(ctx, generator); err != nil {
			return ctrl.Result{}, err
		}
	}
	condition := plan.SourceReady(generator, step.Exhausted)
	if condition.Status == metav1.ConditionUnknown {
		if pause := settling(src, src.Status.Conditions, r.now()); pause > 0 {
			return ctrl.Result{RequeueAfter: pause}, nil
		}
	}
	return ctrl.Result{RequeueAfter: step.Wait}, r.report(ctx, src, condition)
}

// writeGenerator returns the generator as it is now, or nil when src needs none.
func (r *sourceReconciler) writeGenerator(
	ctx context.Context, src *v1alpha1.PackageSource,
) (*watcherv1.ArtifactGenerator, error) {
	key := types.NamespacedName{Namespace: r.namespace, Name: src.Name}
	existing, err := lookUp(ctx, r.client, key, &watcherv1.ArtifactGenerator{})
	if err != nil {
		return nil, err
	}
	desired := plan.Generator(src, r.namespace)
	switch {
	case desired == nil:
		return nil, r.deleteGenerator(ctx, existing, src)
	case existing == nil:
		ctrl.LoggerFrom(ctx).Info("creating generator")
		if err := r.client.Create(ctx, desired, client.FieldOwner(apply.FieldManager)); err != nil {
			return nil, fmt.Errorf("creating the artifact generator %q: %w", key, err)
		}
		return desired, nil
	}
	merged, changed := plan.MergeGenerator(existing, desired)
	if !changed {
		return existing, nil
	}
	ctrl.LoggerFrom(ctx).Info("updating generator")
	if err := r.client.Update(ctx, merged, client.FieldOwner(apply.FieldManager)); err != nil {
		return nil, fmt.Errorf("updating the artifact generator %q: %w", key, err)
	}
	return merged, nil
}

func (r *sourceReconciler) deleteGenerator(
	ctx context.Context, existing *watcherv1.ArtifactGenerator, src *v1alpha1.PackageSource,
) error {
	if existing == nil || !metav1.IsControlledBy(existing, src) {
		return nil
	}
	if err := r.client.Delete(ctx, existing); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the artifact generator %q: %w", existing.Name, err)
	}
	return nil
}

func (r *sourceReconciler) report(
	ctx context.Context, src *v1alpha1.PackageSource, condition metav1.Condition,
) error {
	before := src.DeepCopy()
	src.Status = plan.SourceStatus(src, condition)
	if equality.Semantic.DeepEqual(before.Status, src.Status) {
		return nil
	}
	err := r.client.Status().Patch(ctx, src, client.MergeFrom(before), client.FieldOwner(apply.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of package source %q: %w", src.Name, err)
	}
	return nil
}
