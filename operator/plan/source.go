package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	watcherv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/cozystack/cozydev/operator/api/v1alpha1"
)

// MergeGenerator returns existing with everything that desired says, and whether that is a change.
func MergeGenerator(existing, desired *watcherv1.ArtifactGenerator) (*watcherv1.ArtifactGenerator, bool) {
	merged := existing.DeepCopy()
	merged.Labels = overlay(existing.Labels, desired.Labels)
	merged.OwnerReferences = desired.OwnerReferences
	desired.Spec.DeepCopyInto(&merged.Spec)
	changed := !equality.Semantic.DeepEqual(existing.ObjectMeta, merged.ObjectMeta) ||
		!equality.Semantic.DeepEqual(existing.Spec, merged.Spec)
	return merged, changed
}

// InvalidSource is the condition of a PackageSource that no generator can be made of.
func InvalidSource(message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonInvalidConfiguration, Message: message,
	}
}

// SourceReady is the condition of a PackageSource with that generator, which is nil when there is nothing to
// generate. Exhausted says that nudging a stalled generator was given up.
func SourceReady(generator *watcherv1.ArtifactGenerator, exhausted bool) metav1.Condition {
	if generator == nil {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonReconciliationSucceeded, Message: "no components, nothing to generate",
		}
	}
	if exhausted {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
			Reason:  v1alpha1.ReasonGeneratorStalled,
			Message: "the artifact generator lost its Ready condition; restart source-watcher",
		}
	}
	ready := meta.FindStatusCondition(generator.Status.Conditions, fluxmeta.ReadyCondition)
	if ready == nil {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown,
			Reason: v1alpha1.ReasonGeneratorPending, Message: "the artifact generator has not been reconciled yet",
		}
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready.Status, Reason: ready.Reason, Message: ready.Message,
	}
}

// SourceStatus is the status of src with that Ready condition.
func SourceStatus(src *v1alpha1.PackageSource, ready metav1.Condition) v1alpha1.PackageSourceStatus {
	status := *src.Status.DeepCopy()
	status.Variants = VariantNames(src)
	ready.ObservedGeneration = src.Generation
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}

const (
	stallPatience = 30 * time.Second
	stallLongest  = 4 * time.Minute
	stallNudges   = 5
)

// Stall is the memory of a generator that has made artifacts but lost its Ready condition.
type Stall struct {
	// Nudges is how often it was nudged.
	Nudges int
	// Next is when to nudge it again, or to give up.
	Next time.Time
}

// StallStep is what to do about a stalled generator now.
type StallStep struct {
	// Nudge asks source-watcher for another round.
	Nudge bool
	// Exhausted is true when nudging was given up.
	Exhausted bool
	// Wait is when to look again; zero means not by time.
	Wait time.Duration
}

// Stalled tells whether the generator has made artifacts but has no Ready condition: source-watcher writes both
// apart, and the second write can be lost (fluxcd/pkg#934).
func Stalled(generator *watcherv1.ArtifactGenerator) bool {
	if generator == nil || len(generator.Status.Inventory) == 0 {
		return false
	}
	ready := meta.FindStatusCondition(generator.Status.Conditions, fluxmeta.ReadyCondition)
	return ready == nil || ready.Reason == nudgedReason
}

// NextStall decides about a generator that is stalled at now. The first nudge comes after 30 s, later ones after a
// wait that doubles up to 4 min; after the fifth it is given up.
func NextStall(stall Stall, now time.Time) (Stall, StallStep) {
	switch {
	case stall.Next.IsZero():
		stall.Next = now.Add(stallPatience)
		return stall, StallStep{Wait: stallPatience}
	case stall.Nudges >= stallNudges && !now.Before(stall.Next):
		return stall, StallStep{Exhausted: true}
	case now.Before(stall.Next):
		return stall, StallStep{Wait: stall.Next.Sub(now)}
	}
	stall.Nudges++
	wait := min(stallPatience<<stall.Nudges, stallLongest)
	stall.Next = now.Add(wait)
	return stall, StallStep{Nudge: true, Wait: wait}
}

// nudgedReason marks the condition that a nudge has set, so that it does not pass for source-watcher's answer.
const nudgedReason = "ReconcileRequested"

// NudgedConditions returns the conditions of the generator with Ready=False in the place of the lost one.
func NudgedConditions(generator *watcherv1.ArtifactGenerator, now time.Time) []metav1.Condition {
	conditions := append([]metav1.Condition(nil), generator.Status.Conditions...)
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse,
		Reason: nudgedReason, Message: "the Ready condition was lost, asking source-watcher again",
		LastTransitionTime: metav1.NewTime(now), ObservedGeneration: generator.Generation,
	})
	return conditions
}
