package plan

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchLabel on a Secret makes helm-controller reconcile the releases that take values from it when it changes.
const watchLabel = "reconcile.fluxcd.io/watch"

// ValuesCopy returns the copy of a values Secret for a namespace. What says that Helm or kubectl owns the original is
// left out: the copy is ours.
func ValuesCopy(original *corev1.Secret, namespace string) *corev1.Secret {
	copied := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        original.Name,
			Namespace:   namespace,
			Labels:      without(original.Labels, "app.kubernetes.io/managed-by", "helm.toolkit.fluxcd.io/"),
			Annotations: without(original.Annotations, "meta.helm.sh/", "kubectl.kubernetes.io/", "helm.sh/"),
		},
		Type: original.Type,
		Data: original.Data,
	}
	copied.Labels[watchLabel] = "Enabled"
	return copied
}

// without returns a copy of m, never nil, that lacks the keys with one of the prefixes.
func without(m map[string]string, prefixes ...string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, m)
	maps.DeleteFunc(result, func(key, _ string) bool {
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
		return false
	})
	return result
}

// MergeValues returns existing with the data, labels and annotations of desired, and whether that is a change.
func MergeValues(existing, desired *corev1.Secret) (*corev1.Secret, bool) {
	merged := existing.DeepCopy()
	merged.Labels = overlay(existing.Labels, desired.Labels)
	merged.Annotations = overlay(existing.Annotations, desired.Annotations)
	merged.Data = desired.Data
	changed := !equality.Semantic.DeepEqual(existing.ObjectMeta, merged.ObjectMeta) ||
		!equality.Semantic.DeepEqual(existing.Data, merged.Data)
	return merged, changed
}
