package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cozystack/cozydev/operator/apply"
	"github.com/cozystack/cozydev/operator/plan"
)

// Values copies one Secret to every namespace that the selector chooses and keeps the copies equal to it. When the
// original is deleted, the copies stay.
type Values struct {
	// Client reads namespaces.
	Client client.Client
	// Secrets reads and writes the Secrets of that name.
	Secrets client.Client
	// Name and Namespace of the original.
	Name, Namespace string
	// Selector chooses the namespaces.
	Selector labels.Selector
}

func onlySecretsNamed(name string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
	}
}

func (v *Values) setup(mgr ctrl.Manager, secrets cluster.Cluster) error {
	toNamespaces := handler.TypedEnqueueRequestsFromMapFunc(v.fromSecret)
	return ctrl.NewControllerManagedBy(mgr).
		Named("values").
		For(&corev1.Namespace{}, builder.WithPredicates(labelsChanged())).
		WatchesRawSource(source.Kind(secrets.GetCache(), &corev1.Secret{}, toNamespaces)).
		Complete(v)
}

// Reconcile brings the copy in one namespace to the original.
func (v *Values) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ns, err := lookUp(ctx, v.Client, types.NamespacedName{Name: req.Name}, &corev1.Namespace{})
	if err != nil || ns == nil {
		return ctrl.Result{}, err
	}
	err = v.Keep(ctx, ns)
	if isRace(err) {
		return ctrl.Result{RequeueAfter: raceDelay}, nil
	}
	return ctrl.Result{}, err
}

// Keep brings the copy in ns to the original at once, so that a release made right after finds it. It does nothing
// when ns is not chosen or there is no original.
func (v *Values) Keep(ctx context.Context, ns *corev1.Namespace) error {
	if ns.Name == v.Namespace || !ns.DeletionTimestamp.IsZero() || !v.Selector.Matches(labels.Set(ns.Labels)) {
		return nil
	}
	original, err := v.secret(ctx, v.Namespace)
	if err != nil || original == nil {
		return err
	}
	desired := plan.ValuesCopy(original, ns.Name)
	existing, err := v.secret(ctx, ns.Name)
	if err != nil {
		return err
	}
	if existing != nil && existing.Type != desired.Type {
		if err := v.Secrets.Delete(ctx, existing); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("replacing the secret %q in namespace %q: %w", v.Name, ns.Name, err)
		}
		existing = nil
	}
	return v.write(ctx, existing, desired)
}

func (v *Values) write(ctx context.Context, existing, desired *corev1.Secret) error {
	owner := client.FieldOwner(apply.FieldManager)
	if existing == nil {
		ctrl.LoggerFrom(ctx).Info("copying the values", "namespace", desired.Namespace)
		err := v.Secrets.Create(ctx, desired, owner)
		if err != nil {
			return fmt.Errorf("copying the secret %q to namespace %q: %w", v.Name, desired.Namespace, err)
		}
		return nil
	}
	merged, changed := plan.MergeValues(existing, desired)
	if !changed {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("updating the values", "namespace", desired.Namespace)
	if err := v.Secrets.Update(ctx, merged, owner); err != nil {
		return fmt.Errorf("updating the secret %q in namespace %q: %w", v.Name, desired.Namespace, err)
	}
	return nil
}

func (v *Values) secret(ctx context.Context, namespace string) (*corev1.Secret, error) {
	return lookUp(ctx, v.Secrets, types.NamespacedName{Namespace: namespace, Name: v.Name}, &corev1.Secret{})
}

// fromSecret yields every namespace when the original changes, and its own when a copy does.
func (v *Values) fromSecret(ctx context.Context, secret *corev1.Secret) []reconcile.Request {
	if secret.Namespace != v.Namespace {
		return []reconcile.Request{requestFor(secret.Namespace)}
	}
	var namespaces corev1.NamespaceList
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: v.Selector}, client.UnsafeDisableDeepCopy}
	if err := v.Client.List(ctx, &namespaces, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing namespaces")
		return nil
	}
	requests := make([]reconcile.Request, len(namespaces.Items))
	for i := range namespaces.Items {
		requests[i] = requestFor(namespaces.Items[i].Name)
	}
	return requests
}

// labelsChanged passes new namespaces and those whose labels changed.
func labelsChanged() predicate.Predicate {
	return predicate.And(
		predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }},
		onUpdate(func(before, after client.Object) bool {
			return !equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels())
		}))
}
