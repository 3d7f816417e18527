// Package step runs long work as a graph of named steps: each starts as soon
// as those it needs are done, so that independent ones overlap.
package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cozystack/cozydev/cmd/cozydev/internal/progress"
)

// Report lets a step say what it sees while it runs.
type Report interface {
	// Seef replaces the step's current message.
	Seef(format string, args ...any)
	// Notef says something that stays on the screen.
	Notef(format string, args ...any)
}

// Step is one named piece of work. Run must be idempotent: a second run after
// an interrupted or a finished one changes nothing that is already right. It
// returns a summary for the reader, such as "3 nodes Ready".
type Step struct {
	Name  string
	Title string
	Needs []string
	Run   func(ctx context.Context, report Report) (string, error)
}

// Error says which step failed.
type Error struct {
	Step string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Step, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

type result struct {
	name string
	err  error
}

// Run runs the steps and returns the first failure as *Error. On a failure the
// others are cancelled and awaited; nothing is left running. A need that no
// step has is a programming error and returned as such before anything runs.
func Run(ctx context.Context, steps []Step, render progress.Renderer) error {
	if err := check(steps); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, started := map[string]bool{}, map[string]bool{}
	results := make(chan result)
	running := 0
	var first error
	for {
		if first == nil && ctx.Err() == nil {
			for _, s := range ready(steps, done, started) {
				started[s.Name] = true
				running++
				go func() { results <- result{s.Name, runOne(ctx, s, render)} }()
			}
		}
		if running == 0 {
			return finish(ctx, first)
		}
		r := <-results
		running--
		if r.err == nil {
			done[r.name] = true
			continue
		}
		if first == nil || errors.Is(first, context.Canceled) {
			first = &Error{Step: r.name, Err: r.err}
		}
		cancel()
	}
}

func finish(ctx context.Context, first error) error {
	if first != nil {
		return first
	}
	return ctx.Err()
}

// ready lists the steps that may start: not started, and all needs done.
func ready(steps []Step, done, started map[string]bool) []Step {
	var out []Step
next:
	for _, s := range steps {
		if started[s.Name] {
			continue
		}
		for _, need := range s.Needs {
			if !done[need] {
				continue next
			}
		}
		out = append(out, s)
	}
	return out
}

// check finds needs that come after their step or exist nowhere; an order in
// which every need stands above its step has no cycle.
func check(steps []Step) error {
	seen := map[string]bool{}
	for _, s := range steps {
		for _, need := range s.Needs {
			if !seen[need] {
				return fmt.Errorf("ordering steps: %q needs %q, which does not stand above it", s.Name, need)
			}
		}
		seen[s.Name] = true
	}
	return nil
}

func runOne(ctx context.Context, s Step, render progress.Renderer) error {
	start := time.Now()
	emit := func(state progress.State, message string, age float64) {
		render.Emit(progress.Event{Time: time.Now(), Step: s.Name, State: state, Message: message, Seconds: age})
	}
	emit(progress.Started, s.Title, 0)
	summary, err := s.Run(ctx, reporter{emit})
	age := time.Since(start).Seconds()
	switch {
	case err != nil && ctx.Err() != nil:
		emit(progress.Skipped, "interrupted", age)
	case err != nil:
		emit(progress.Failed, firstLine(err.Error()), age)
	default:
		emit(progress.Done, summary, age)
	}
	return err
}

type reporter struct {
	emit func(progress.State, string, float64)
}

func (r reporter) Seef(format string, args ...any) {
	r.emit(progress.Running, fmt.Sprintf(format, args...), 0)
}

func (r reporter) Notef(format string, args ...any) {
	r.emit(progress.Note, fmt.Sprintf(format, args...), 0)
}

func firstLine(s string) string {
	for i, c := range s {
		if c == '\n' {
			return s[:i]
		}
	}
	return s
}
