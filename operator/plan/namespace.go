package plan

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

const (
	tenantPrefix     = "tenant-"
	resourcePolicy   = "helm.sh/resource-policy"
	podSecurityLabel = "pod-security.kubernetes.io/enforce"
	privilegedLevel  = "privileged"
	managedLabelPath = "f:labels"
)

// PrivilegedNamespaces returns the namespaces in which an active component of pkg needs privileged pods.
func PrivilegedNamespaces(pkg *v1alpha1.Package, variant *v1alpha1.Variant) []string {
	var names []string
	for _, claim := range Claims(pkg, variant) {
		if claim.Component.Install.Privileged {
			names = append(names, claim.Key.Namespace)
		}
	}
	return names
}

// Namespaces returns the namespaces that the claims install into, sorted by name, ready for server-side apply.
// Privileged holds those in which any active package needs privileged pods.
func Namespaces(claims []Claim, privileged map[string]bool) []*corev1.Namespace {
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Key.Namespace)
	}
	slices.Sort(names)
	var namespaces []*corev1.Namespace
	for _, name := range slices.Compact(names) {
		namespaces = append(namespaces, Namespace(name, privileged[name]))
	}
	return namespaces
}

// Namespace returns the install namespace of that name, ready for server-side apply.
func Namespace(name string, privileged bool) *corev1.Namespace {
	ns := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{},
			Annotations: map[string]string{resourcePolicy: "keep"},
		},
	}
	if !strings.HasPrefix(name, tenantPrefix) {
		ns.Labels[v1alpha1.LabelSystem] = "true"
	}
	if privileged {
		ns.Labels[podSecurityLabel] = privilegedLevel
	}
	return ns
}

// NamespaceDiffers tells whether applying desired as manager would change existing, which may be nil.
func NamespaceDiffers(existing, desired *corev1.Namespace, manager string) bool {
	if existing == nil {
		return true
	}
	if !includes(existing.Labels, desired.Labels) || !includes(existing.Annotations, desired.Annotations) {
		return true
	}
	_, wanted := desired.Labels[podSecurityLabel]
	return !wanted && ownsLabel(existing, manager, podSecurityLabel)
}

func includes(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// ownsLabel tells whether manager has applied the label, so that leaving it out of an apply takes it away.
func ownsLabel(obj metav1.Object, manager, label string) bool {
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata map[string]map[string]json.RawMessage `json:"f:metadata"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, owned := fields.Metadata[managedLabelPath]["f:"+label]; owned {
			return true
		}
	}
	return false
}
