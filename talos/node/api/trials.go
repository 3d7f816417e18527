package api

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
)

// revertTimeout bounds the return to the previous config after a trial.
const revertTimeout = time.Minute

// trials applies configs one at a time, and takes back those applied for trial unless another follows in time.
type trials struct {
	machine Machine
	changed func()
	logger  *slog.Logger
	expired chan *trial

	mu      sync.Mutex
	current *trial
}

// trial is a config in force until its timer fires.
type trial struct {
	previous config.Provider
	timer    *time.Timer
}

// application is a config to be applied.
type application struct {
	cfg     config.Provider
	mode    ApplyMode
	timeout time.Duration // of a trial
	// first demands that the node has no config yet: its caller is anyone.
	first bool
}

func newTrials(m Machine, changed func(), logger *slog.Logger) *trials {
	return &trials{machine: m, changed: changed, logger: logger, expired: make(chan *trial, 1)}
}

// apply applies a config; one that was on trial is replaced by it for good.
func (t *trials) apply(ctx context.Context, a application) (Plan, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	previous := t.machine.Config()
	if err := a.check(previous); err != nil {
		return Plan{}, err
	}
	if t.current != nil {
		previous = t.current.previous
	}
	plan, err := t.machine.Apply(ctx, a.cfg, a.mode)
	if err != nil {
		return Plan{}, err
	}
	t.endLocked()
	if a.mode == ApplyTry {
		t.beginLocked(previous, a.timeout)
		plan.Details += fmt.Sprintf("\nThe config will be reverted in %s, unless another is applied before.", a.timeout)
	}
	t.logger.Info("applied a machine config", "mode", plan.Mode)
	t.changed()
	return plan, nil
}

func (t *trials) beginLocked(previous config.Provider, timeout time.Duration) {
	begun := &trial{previous: previous}
	begun.timer = time.AfterFunc(timeout, func() { t.expired <- begun })
	t.current = begun
}

func (t *trials) endLocked() {
	if t.current != nil {
		t.current.timer.Stop()
		t.current = nil
	}
}

// run takes back the configs whose trial is over, until ctx ends.
func (t *trials) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case over := <-t.expired:
			if err := t.revert(ctx, over); err != nil {
				t.logger.Error("the config on trial stays in force", "error", err)
			}
		}
	}
}

func (t *trials) revert(ctx context.Context, over *trial) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != over {
		return nil
	}
	t.current = nil
	ctx, cancel := context.WithTimeout(ctx, revertTimeout)
	defer cancel()
	if _, err := t.machine.Apply(ctx, over.previous, ApplyNoReboot); err != nil {
		return fmt.Errorf("returning to the config before the trial: %w", err)
	}
	t.logger.Info("returned to the config before the trial")
	t.changed()
	return nil
}
