package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
	"github.com/cozystack/cozydev/operator/plan"
)

func (r *packageReconciler) setup(mgr ctrl.Manager, concurrent int) error {
	router := router{mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("package").
		For(&v1alpha1.Package{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Package{}, handler.EnqueueRequestsFromMapFunc(router.fromPackage),
			builder.WithPredicates(packageChanged())).
		Watches(&v1alpha1.PackageSource{}, handler.EnqueueRequestsFromMapFunc(router.fromSource),
			builder.WithPredicates(sourceChanged())).
		Watches(&helmv2.HelmRelease{}, handler.EnqueueRequestsFromMapFunc(router.fromRelease),
			builder.WithPredicates(releaseChanged())).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(router.fromNamespace),
			builder.WithPredicates(namespaceChanged())).
		WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(r)
}

// router finds the Packages that an event concerns.
type router struct {
	client.Reader
}

// fromPackage yields the Packages that depend on obj and those that may claim its releases.
func (r router) fromPackage(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.byIndex(ctx, indexDependsOn, obj.GetName())
	src, err := lookUp(ctx, r, types.NamespacedName{Name: obj.GetName()}, &v1alpha1.PackageSource{})
	if err != nil || src == nil {
		return requests
	}
	return append(requests, r.rivalsOf(ctx, src)...)
}

// fromSource yields the Package of that name, those that depend on it and those that may claim its releases.
func (r router) fromSource(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := append([]reconcile.Request{requestFor(obj.GetName())}, r.byIndex(ctx, indexDependsOn, obj.GetName())...)
	if src, ok := obj.(*v1alpha1.PackageSource); ok {
		requests = append(requests, r.rivalsOf(ctx, src)...)
	}
	return requests
}

func (r router) rivalsOf(ctx context.Context, src *v1alpha1.PackageSource) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range plan.AllReleases(src) {
		for _, request := range r.byIndex(ctx, indexRelease, key) {
			if request.Name != src.Name {
				requests = append(requests, request)
			}
		}
	}
	return requests
}

// fromRelease yields the Package that the label names, and those that may claim the release.
func (r router) fromRelease(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.byIndex(ctx, indexRelease, client.ObjectKeyFromObject(obj).String())
	if name := obj.GetLabels()[v1alpha1.LabelPackage]; name != "" {
		requests = append(requests, requestFor(name))
	}
	return requests
}

func (r router) fromNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.byIndex(ctx, indexNamespace, obj.GetName())
}

// byIndex yields the Packages whose source is found under value. The cache answers, so that an error can only mean
// that it has not started, and then everything is reconciled anyway.
func (r router) byIndex(ctx context.Context, index, value string) []reconcile.Request {
	var sources v1alpha1.PackageSourceList
	if err := r.List(ctx, &sources, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing package sources", "index", index, "value", value)
		return nil
	}
	requests := make([]reconcile.Request, len(sources.Items))
	for i := range sources.Items {
		requests[i] = requestFor(sources.Items[i].Name)
	}
	return requests
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// onUpdate returns a predicate that lets every creation and deletion pass, and updates that differ.
func onUpdate(differ func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return differ(e.ObjectOld, e.ObjectNew) }}
}

// packageChanged passes what dependents and rivals of a Package look at: its spec and its Ready condition.
func packageChanged() predicate.Predicate {
	return onUpdate(func(before, after client.Object) bool {
		return before.GetGeneration() != after.GetGeneration() ||
			deletionBegan(before, after) ||
			readyChanged(before.(*v1alpha1.Package).Status.Conditions, after.(*v1alpha1.Package).Status.Conditions)
	})
}

func sourceChanged() predicate.Predicate {
	return onUpdate(func(before, after client.Object) bool {
		return before.GetGeneration() != after.GetGeneration() ||
			before.GetAnnotations()[v1alpha1.AnnotationSkipValues] != after.GetAnnotations()[v1alpha1.AnnotationSkipValues]
	})
}

func releaseChanged() predicate.Predicate {
	return onUpdate(func(before, after client.Object) bool {
		return before.GetGeneration() != after.GetGeneration() ||
			deletionBegan(before, after) ||
			!equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
			!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) ||
			readyChanged(before.(*helmv2.HelmRelease).Status.Conditions, after.(*helmv2.HelmRelease).Status.Conditions)
	})
}

// namespaceChanged passes namespaces that lost something; a new one has nothing to mend.
func namespaceChanged() predicate.Predicate {
	return predicate.And(
		predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }},
		onUpdate(func(before, after client.Object) bool {
			return !equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
				!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations())
		}))
}

func deletionBegan(before, after client.Object) bool {
	return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// readyChanged tells whether the Ready conditions differ in more than their time.
func readyChanged(before, after []metav1.Condition) bool {
	a := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	b := meta.FindStatusCondition(after, v1alpha1.ConditionReady)
	if a == nil || b == nil {
		return a != b
	}
	return a.Status != b.Status || a.Reason != b.Reason || a.Message != b.Message ||
		a.ObservedGeneration != b.ObservedGeneration
}
