package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// releaseState is how far a HelmRelease is.
type releaseState int

const (
	stateReady releaseState = iota
	stateProgressing
	stateFailed
)

// ReleasesStatus counts the releases and sums them up as the condition ReleasesReady. Of those that are not Ready a
// failed one is named before one that is only waiting.
func ReleasesStatus(releases []*helmv2.HelmRelease) (v1alpha1.ReleasesStatus, metav1.Condition) {
	counts := v1alpha1.ReleasesStatus{Total: int32(len(releases))}
	var failed, waiting string
	for _, release := range releases {
		state, why := stateOf(release)
		clause := fmt.Sprintf("%s/%s is not ready: %s", release.Namespace, release.Name, why)
		switch state {
		case stateReady:
			counts.Ready++
		case stateFailed:
			counts.Failed++
			failed = firstOf(failed, clause)
		case stateProgressing:
			waiting = firstOf(waiting, clause)
		}
	}
	return counts, releasesCondition(counts, failed, waiting)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func releasesCondition(counts v1alpha1.ReleasesStatus, failed, waiting string) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionReleasesReady, Status: metav1.ConditionFalse}
	switch {
	case failed != "":
		condition.Reason, condition.Message = v1alpha1.ReasonReleasesFailed, failed
	case waiting != "":
		condition.Reason, condition.Message = v1alpha1.ReasonReleasesProgressing, waiting
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonReleasesReady
		condition.Message = fmt.Sprintf("%d release(s) ready", counts.Ready)
	}
	return condition
}

// stateOf returns the state of a release and, when it is not Ready, why.
func stateOf(release *helmv2.HelmRelease) (releaseState, string) {
	ready := meta.FindStatusCondition(release.Status.Conditions, fluxmeta.ReadyCondition)
	switch {
	case release.Spec.Suspend && (ready == nil || ready.Status != metav1.ConditionTrue):
		return stateProgressing, "it is suspended"
	case ready == nil:
		return stateProgressing, "it has not been reconciled yet"
	case ready.ObservedGeneration != 0 && ready.ObservedGeneration != release.Generation:
		return stateProgressing, "its latest spec has not been reconciled yet"
	case ready.Status == metav1.ConditionTrue:
		return stateReady, ""
	}
	why := ready.Reason
	if ready.Message != "" {
		why += ": " + ready.Message
	}
	if ready.Status == metav1.ConditionFalse && isFailure(release, ready.Reason) {
		return stateFailed, why
	}
	return stateProgressing, why
}

// isFailure tells failures from waiting: a release waits for its dependencies and for its chart.
func isFailure(release *helmv2.HelmRelease, reason string) bool {
	if meta.IsStatusConditionTrue(release.Status.Conditions, fluxmeta.StalledCondition) {
		return true
	}
	waiting := []string{helmv2.DependencyNotReadyReason, fluxmeta.ProgressingReason, "SourceNotReady"}
	return !slices.Contains(waiting, reason)
}

// VariantNames returns the names of the variants of src as its status shows them.
func VariantNames(src *v1alpha1.PackageSource) string {
	names := make([]string, len(src.Spec.Variants))
	for i, variant := range src.Spec.Variants {
		names[i] = variant.Name
	}
	return strings.Join(names, ",")
}

// PackageStatus is the status of pkg after decision was carried out. Releases are those it has now, and actErr says
// why carrying it out failed.
func PackageStatus(
	pkg *v1alpha1.Package, decision Decision, releases []*helmv2.HelmRelease, actErr error,
) v1alpha1.PackageStatus {
	status := *pkg.Status.DeepCopy()
	status.Dependencies = decision.Dependencies
	ready := decision.Ready
	if actErr != nil {
		ready = failed(actErr)
	}
	counts, released := ReleasesStatus(releases)
	if counts.Total == 0 && ready.Status != metav1.ConditionTrue {
		released.Status, released.Reason = metav1.ConditionFalse, v1alpha1.ReasonReleasesProgressing
		released.Message = "no release has been made yet"
	}
	status.Releases = &counts
	for _, condition := range []metav1.Condition{ready, released} {
		condition.ObservedGeneration = pkg.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

func failed(err error) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonHelmReleaseFailed, Message: err.Error(),
	}
}
