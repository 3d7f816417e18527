package step

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cozystack/cozydev/cmd/cozydev/internal/progress"
)

// recorder makes steps that write down when they ran.
type recorder struct {
	mu  sync.Mutex
	ran []string
}

func (r *recorder) step(name string, err error, needs ...string) Step {
	return Step{Name: name, Needs: needs, Run: func(context.Context, Report) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ran = append(r.ran, name)
		return name + " done", err
	}}
}

func TestRunHonoursNeeds(t *testing.T) {
	var rec recorder
	var out bytes.Buffer
	steps := []Step{rec.step("a", nil), rec.step("b", nil, "a"), rec.step("c", nil, "a"), rec.step("d", nil, "b", "c")}
	if err := Run(t.Context(), steps, progress.New(progress.Plain, &out)); err != nil {
		t.Fatal(err)
	}
	if len(rec.ran) != 4 || rec.ran[0] != "a" || rec.ran[3] != "d" {
		t.Fatalf("ran in the order %v", rec.ran)
	}
	if !strings.Contains(out.String(), "ok d          d done") {
		t.Fatalf("output lacks the summary of d:\n%s", out.String())
	}
}

func TestRunStopsAfterAFailure(t *testing.T) {
	var rec recorder
	boom := errors.New("boom")
	steps := []Step{rec.step("a", boom), rec.step("b", nil, "a")}
	err := Run(t.Context(), steps, progress.New(progress.Plain, &bytes.Buffer{}))
	var failed *Error
	if !errors.As(err, &failed) || failed.Step != "a" || !errors.Is(err, boom) {
		t.Fatalf("got %v, want the failure of a", err)
	}
	if slices.Contains(rec.ran, "b") {
		t.Fatal("b ran although its need failed")
	}
}

func TestRunCancelsTheOthersAndNamesTheCause(t *testing.T) {
	boom := errors.New("boom")
	waiting := make(chan struct{})
	steps := []Step{
		{Name: "waits", Run: func(ctx context.Context, _ Report) (string, error) {
			close(waiting)
			<-ctx.Done()
			return "", ctx.Err()
		}},
		{Name: "fails", Run: func(context.Context, Report) (string, error) {
			<-waiting
			return "", boom
		}},
	}
	err := Run(t.Context(), steps, progress.New(progress.Plain, &bytes.Buffer{}))
	if !errors.Is(err, boom) {
		t.Fatalf("got %v, want boom", err)
	}
}

func TestRunRefusesUnknownNeeds(t *testing.T) {
	var rec recorder
	err := Run(t.Context(), []Step{rec.step("a", nil, "nowhere")}, progress.New(progress.Plain, &bytes.Buffer{}))
	if err == nil || len(rec.ran) != 0 {
		t.Fatalf("got %v with %v run, want an error and nothing run", err, rec.ran)
	}
}

func TestRunEndsOnCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var rec recorder
	err := Run(ctx, []Step{rec.step("a", nil)}, progress.New(progress.Plain, &bytes.Buffer{}))
	if !errors.Is(err, context.Canceled) || len(rec.ran) != 0 {
		t.Fatalf("got %v with %v run", err, rec.ran)
	}
}
