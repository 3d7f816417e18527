package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every object in this package. It is never changed.
var GroupVersion = schema.GroupVersion{Group: "cozystack.io", Version: "v1alpha1"}

// AddToScheme makes the objects of this package known to s. It may be called twice.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Package{}, &PackageList{},
		&PackageSource{}, &PackageSourceList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
