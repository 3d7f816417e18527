package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	watcherv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/cozystack/cozydev/operator/apply"
	"github.com/cozystack/cozydev/operator/plan"
)

// stalls remembers which generators lost their Ready condition, and how often each was nudged. It is lost when the
// operator restarts, and then counting starts again.
type stalls struct {
	mu    sync.Mutex
	known map[string]plan.Stall
}

// next records whether the generator is stalled now, and returns what to do about it.
func (s *stalls) next(name string, stalled bool, now time.Time) plan.StallStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !stalled {
		delete(s.known, name)
		return plan.StallStep{}
	}
	stall, step := plan.NextStall(s.known[name], now)
	if s.known == nil {
		s.known = map[string]plan.Stall{}
	}
	s.known[name] = stall
	return step
}

func (s *stalls) forget(name string) { s.next(name, false, time.Time{}) }

// nudge gives the generator the condition it lost, as not ready, and asks source-watcher for another round.
func (r *sourceReconciler) nudge(ctx context.Context, generator *watcherv1.ArtifactGenerator) error {
	before := generator.DeepCopy()
	generator.Status.Conditions = plan.NudgedConditions(generator, r.now())
	owner := client.FieldOwner(apply.FieldManager)
	if err := r.client.Status().Patch(ctx, generator, client.MergeFrom(before), owner); err != nil {
		return fmt.Errorf("nudging the artifact generator %q: %w", generator.Name, err)
	}
	before = generator.DeepCopy()
	if generator.Annotations == nil {
		generator.Annotations = map[string]string{}
	}
	generator.Annotations[fluxmeta.ReconcileRequestAnnotation] = r.now().UTC().Format(time.RFC3339Nano)
	if err := r.client.Patch(ctx, generator, client.MergeFrom(before), owner); err != nil {
		return fmt.Errorf("nudging the artifact generator %q: %w", generator.Name, err)
	}
	return nil
}

func generatorChanged() predicate.Predicate {
	return onUpdate(func(before, after client.Object) bool {
		a, b := before.(*watcherv1.ArtifactGenerator), after.(*watcherv1.ArtifactGenerator)
		return a.Generation != b.Generation || plan.Stalled(a) != plan.Stalled(b) ||
			!equality.Semantic.DeepEqual(a.Labels, b.Labels) ||
			!equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) ||
			readyChanged(a.Status.Conditions, b.Status.Conditions)
	})
}
