// Package apply writes objects by server-side apply as the operator.
package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// FieldManager is the name under which the operator applies and updates objects.
const FieldManager = "cozystack-operator"

// Object applies obj and takes over fields of other managers. Its kind is taken from the client's scheme when obj
// does not say it. Obj itself is not changed. Applying the same object twice changes nothing.
func Object(ctx context.Context, c client.Client, obj client.Object) error {
	u, err := toUnstructured(obj, c.Scheme())
	if err != nil {
		return fmt.Errorf("encoding %T %q: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	config := client.ApplyConfigurationFromUnstructured(u)
	return c.Apply(ctx, config, client.ForceOwnership, client.FieldOwner(FieldManager))
}

// toUnstructured drops what must not be applied: the status and fields that the API server fills.
func toUnstructured(obj client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := (&unstructured.Unstructured{Object: content}).DeepCopy()
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	if spec, found, _ := unstructured.NestedMap(u.Object, "spec"); found && len(spec) == 0 {
		unstructured.RemoveNestedField(u.Object, "spec")
	}
	return u, nil
}
