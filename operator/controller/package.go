package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
	"github.com/cozystack/cozydev/operator/apply"
	"github.com/cozystack/cozydev/operator/plan"
)

// valuesKeeper puts the platform's values Secret into a namespace.
type valuesKeeper interface {
	Keep(ctx context.Context, namespace *corev1.Namespace) error
}

// packageReconciler turns Packages into HelmReleases.
type packageReconciler struct {
	client client.Client
	values valuesKeeper
	opts   plan.ReleaseOptions
	now    func() time.Time
}

func newPackageReconciler(mgr ctrl.Manager, values valuesKeeper, opts Options) *packageReconciler {
	return &packageReconciler{client: mgr.GetClient(), values: values, opts: opts.Release, now: time.Now}
}

// Reconcile brings the namespaces, HelmReleases and status of one Package to what it asks for.
func (r *packageReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pkg, err := lookUp(ctx, r.client, req.NamespacedName, &v1alpha1.Package{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if pkg == nil || !pkg.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.releaseNamespaces(ctx, req.Name)
	}
	seen, err := observer{r.client}.observe(ctx, pkg)
	if err != nil {
		return ctrl.Result{}, err
	}
	decision := plan.Decide(seen, r.opts)
	if pause := settling(pkg, pkg.Status.Conditions, r.now()); decision.Waiting && pause > 0 {
		return ctrl.Result{RequeueAfter: pause}, nil
	}
	releases, err := r.act(ctx, seen, decision)
	if isRace(err) {
		return ctrl.Result{RequeueAfter: raceDelay}, nil
	}
	if reportErr := r.report(ctx, pkg, decision, releases, err); reportErr != nil {
		return ctrl.Result{}, reportErr
	}
	return ctrl.Result{}, err
}

// settling returns how much longer a new object may wait for others before that is written into its status.
func settling(obj metav1.Object, conditions []metav1.Condition, now time.Time) time.Duration {
	if meta.FindStatusCondition(conditions, v1alpha1.ConditionReady) != nil {
		return 0
	}
	age := now.Sub(obj.GetCreationTimestamp().Time)
	if age < 0 || age >= settleTime {
		return 0
	}
	return settleTime - age
}

// act writes what was decided and returns the releases as they are now.
func (r *packageReconciler) act(
	ctx context.Context, seen plan.Observation, decision plan.Decision,
) ([]*helmv2.HelmRelease, error) {
	if !decision.Apply {
		return plan.OwnReleases(seen), nil
	}
	for _, ns := range decision.Namespaces {
		if err := r.applyNamespace(ctx, ns); err != nil {
			return plan.OwnReleases(seen), err
		}
		if err := r.values.Keep(ctx, ns); err != nil {
			return plan.OwnReleases(seen), err
		}
	}
	releases := make([]*helmv2.HelmRelease, 0, len(decision.Releases))
	for _, desired := range decision.Releases {
		release, err := r.writeRelease(ctx, seen.Existing[client.ObjectKeyFromObject(desired)], desired)
		if err != nil {
			return plan.OwnReleases(seen), err
		}
		releases = append(releases, release)
	}
	return releases, r.deleteReleases(ctx, decision.Unwanted)
}

func (r *packageReconciler) writeRelease(
	ctx context.Context, existing, desired *helmv2.HelmRelease,
) (*helmv2.HelmRelease, error) {
	key := client.ObjectKeyFromObject(desired)
	if existing == nil {
		ctrl.LoggerFrom(ctx).Info("creating release", "release", key)
		if err := r.client.Create(ctx, desired, client.FieldOwner(apply.FieldManager)); err != nil {
			return nil, fmt.Errorf("creating the release %q: %w", key, err)
		}
		return desired, nil
	}
	if !existing.DeletionTimestamp.IsZero() {
		return nil, fmt.Errorf("writing the release %q: it is being deleted and will be made anew when it is gone", key)
	}
	merged, changed := plan.MergeRelease(existing, desired)
	if !changed {
		return existing, nil
	}
	ctrl.LoggerFrom(ctx).Info("updating release", "release", key)
	if err := r.client.Update(ctx, merged, client.FieldOwner(apply.FieldManager)); err != nil {
		return nil, fmt.Errorf("updating the release %q: %w", key, err)
	}
	return merged, nil
}

func (r *packageReconciler) deleteReleases(ctx context.Context, releases []*helmv2.HelmRelease) error {
	for _, release := range releases {
		key := client.ObjectKeyFromObject(release)
		ctrl.LoggerFrom(ctx).Info("deleting release", "release", key)
		uid := release.UID
		err := r.client.Delete(ctx, release, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting the release %q: %w", key, err)
		}
	}
	return nil
}

func (r *packageReconciler) applyNamespace(ctx context.Context, desired *corev1.Namespace) error {
	existing, err := lookUp(ctx, r.client, types.NamespacedName{Name: desired.Name}, &corev1.Namespace{})
	if err != nil {
		return err
	}
	if !plan.NamespaceDiffers(existing, desired, apply.FieldManager) {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("applying namespace", "namespace", desired.Name)
	if err := apply.Object(ctx, r.client, desired); err != nil {
		return fmt.Errorf("applying the namespace %q: %w", desired.Name, err)
	}
	return nil
}

// releaseNamespaces takes the privileged label from the namespaces of a Package that is gone, where no other needs it.
func (r *packageReconciler) releaseNamespaces(ctx context.Context, name string) error {
	src, err := lookUp(ctx, r.client, types.NamespacedName{Name: name}, &v1alpha1.PackageSource{})
	if err != nil || src == nil {
		return err
	}
	namespaces := plan.AllPrivileged(src)
	privileged, err := observer{r.client}.privileged(ctx, name, namespaces)
	if err != nil {
		return err
	}
	for _, ns := range namespaces {
		existing, err := lookUp(ctx, r.client, types.NamespacedName{Name: ns}, &corev1.Namespace{})
		if err != nil {
			return err
		}
		if existing == nil || !existing.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.applyNamespace(ctx, plan.Namespace(ns, privileged[ns])); err != nil {
			return err
		}
	}
	return nil
}

// report writes the status, if it differs from what is there.
func (r *packageReconciler) report(
	ctx context.Context, pkg *v1alpha1.Package, decision plan.Decision, releases []*helmv2.HelmRelease, actErr error,
) error {
	before := pkg.DeepCopy()
	pkg.Status = plan.PackageStatus(pkg, decision, releases, actErr)
	if equality.Semantic.DeepEqual(before.Status, pkg.Status) {
		return nil
	}
	err := r.client.Status().Patch(ctx, pkg, client.MergeFrom(before), client.FieldOwner(apply.FieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of package %q: %w", pkg.Name, err)
	}
	return nil
}

// raceDelay is the pause before another try when the cache was behind the cluster.
const raceDelay = 50 * time.Millisecond

// isRace tells whether err means only that the cache was behind the cluster.
func isRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

var _ reconcile.Reconciler = (*packageReconciler)(nil)
