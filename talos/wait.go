package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cozystack/cozydev/talos/config"
)

// attemptTimeout bounds one request, so that a machine that hangs does not hide that others, or it itself later, answer.
const attemptTimeout = 5 * time.Second

// WaitError tells what a step saw last when its context ended.
type WaitError struct {
	// Step is the one that waited.
	Step Step
	// States are the nodes that were not done, in the order of the cluster's nodes.
	States []NodeState
	// Evidence are further lines that explain it, such as the end of a log.
	Evidence []string
	// Err is why the wait ended.
	Err error
}

// NodeState is what was last seen of a node.
type NodeState struct{ Node, State string }

// Error gives the states in one line, and the evidence in lines after it.
func (e *WaitError) Error() string {
	states := make([]string, 0, len(e.States))

	for _, s := range e.States {
		states = append(states, strings.TrimPrefix(s.Node+": "+s.State, ": "))
	}

	text := fmt.Sprintf("%s: %s: %v", e.Step.doing(), strings.Join(states, "; "), e.Err)

	return strings.Join(append([]string{text}, e.Evidence...), "\n")
}

// Unwrap gives the reason of the end.
func (e *WaitError) Unwrap() error { return e.Err }

// permanent is an error that trying again does not cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// wait is one step's run: it knows what was last seen of each node and reports changes of it.
type wait struct {
	step   Step
	report func(Report)

	mu    sync.Mutex
	order []string
	last  map[string]string
}

// start begins a step over nodes; none means the cluster as a whole, which goes by the empty name.
func (c *Cluster) start(step Step, nodes ...config.Node) *wait {
	w := &wait{step: step, report: c.report, last: map[string]string{}}
	for _, node := range nodes {
		w.order = append(w.order, node.Name)
	}

	if len(nodes) == 0 {
		w.order = []string{""}
	}

	for _, name := range w.order {
		w.last[name] = "nothing seen yet"
	}

	return w
}

// see records what a node looks like now.
func (w *wait) see(node, state string) {
	w.mu.Lock()
	changed := w.last[node] != state
	w.last[node] = state
	w.mu.Unlock()

	if changed {
		w.report(Report{Step: w.step, Node: node, State: state})
	}
}

// seeAll records the same of every node that is not done.
func (w *wait) seeAll(state string) {
	for _, node := range w.order {
		w.mu.Lock()
		_, open := w.last[node]
		w.mu.Unlock()

		if open {
			w.see(node, state)
		}
	}
}

// knows tells whether the step is about the node.
func (w *wait) knows(node string) bool { return slices.Contains(w.order, node) }

// done records that a node is finished.
func (w *wait) done(node, state string) {
	w.mu.Lock()
	_, open := w.last[node]
	delete(w.last, node)
	w.mu.Unlock()

	if open {
		w.report(Report{Step: w.step, Node: node, State: state, Done: true})
	}
}

// explain turns the end of a context into a WaitError.
func (w *wait) explain(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	out := &WaitError{Step: w.step, Err: err}

	for _, node := range w.order {
		if state, open := w.last[node]; open {
			out.States = append(out.States, NodeState{Node: node, State: state})
		}
	}

	return out
}

// each runs do for all nodes at once. The first failure ends the others.
func (w *wait) each(ctx context.Context, nodes []config.Node, do func(context.Context, config.Node) error) error {
	group, inner := errgroup.WithContext(ctx)

	for _, node := range nodes {
		group.Go(func() error { return do(inner, node) })
	}

	return w.result(ctx, group.Wait())
}

func (w *wait) result(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return w.explain(context.Cause(ctx))
	}

	return err
}

// attempt looks once: the state seen, whether that is what is waited for, and an error when more looking is of no use.
type attempt func(ctx context.Context) (state string, done bool, err error)

// until makes attempts for one node until one succeeds.
func (w *wait) until(ctx context.Context, node string, try attempt) error {
	began := time.Now()

	for {
		bounded, cancel := context.WithTimeout(ctx, attemptTimeout)
		state, done, err := try(bounded)

		cancel()

		switch {
		// Checked before anything is recorded: the last attempt saw nothing but its own end.
		case ctx.Err() != nil && !done:
			return ctx.Err()
		case err != nil:
			return w.failed(node, err)
		case done:
			w.done(node, state)

			return nil
		}

		w.see(node, state)

		if err := pause(ctx, pace(time.Since(began))); err != nil {
			return err
		}
	}
}

// failed says that a node cannot be waited for any longer.
func (w *wait) failed(node string, err error) error {
	if node == "" {
		return fmt.Errorf("%s: %w", w.step.doing(), err)
	}

	return fmt.Errorf("%s: node %q: %w", w.step.doing(), node, err)
}

// pace is how long to rest between attempts: short while a start is still in its usual time, long when it is not.
func pace(elapsed time.Duration) time.Duration {
	switch {
	case elapsed < 20*time.Second:
		return 100 * time.Millisecond
	case elapsed < time.Minute:
		return 500 * time.Millisecond
	default:
		return 2 * time.Second
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// outcome sorts an error of an attempt: its text becomes the state, or, when it is permanent, it ends the wait.
func outcome(err error) (state string, done bool, fatal error) {
	if stop := (permanent{}); errors.As(err, &stop) {
		return "", false, stop.error
	}

	return brief(err), false, nil
}
