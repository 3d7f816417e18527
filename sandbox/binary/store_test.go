package binary

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestStoreFillsOnce lets two callers want the same key at once.
func TestStoreFillsOnce(t *testing.T) {
	var made, waited atomic.Int32
	begun := make(chan struct{})
	s := store{root: t.TempDir(), wait: func() { waited.Add(1) }}
	fill := func(st stage) error {
		made.Add(1)
		close(begun)
		for waited.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		writeFiles(t, st.bin, 0o755, map[string]string{"a": "x"})
		return nil
	}
	var group sync.WaitGroup
	call := func() {
		dir, err := s.fill(t.Context(), "key", []string{"a"}, fill)
		if err != nil || dir != filepath.Join(s.root, "key") {
			t.Errorf("got %q, %v", dir, err)
		}
	}
	group.Go(call)
	<-begun
	group.Go(call)
	group.Wait()
	if made.Load() != 1 || waited.Load() != 1 {
		t.Errorf("made %d times, waited %d times", made.Load(), waited.Load())
	}
}

func TestStoreWaitEndsWithContext(t *testing.T) {
	s := store{root: t.TempDir(), wait: func() {}}
	unlock, err := lock(t.Context(), filepath.Join(s.root, ".key.lock"), s.wait)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = s.fill(ctx, "key", nil, func(stage) error { return errors.New("made in spite of the lock") })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestStoreKeepsWhatWasFinished(t *testing.T) {
	s := store{root: t.TempDir()}
	broken := errors.New("broken")
	_, err := s.fill(t.Context(), "key", []string{"a", "b"}, func(st stage) error {
		writeFiles(t, st.bin, 0o755, map[string]string{"a": "x"})
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if _, ok := s.lookup("key", nil); ok {
		t.Error("a half-made set is in sight")
	}
	_, err = s.fill(t.Context(), "key", []string{"a", "b"}, func(st stage) error {
		if !st.has("a") || st.has("b") {
			t.Errorf("has a: %t, b: %t", st.has("a"), st.has("b"))
		}
		writeFiles(t, st.bin, 0o755, map[string]string{"b": "y"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.lookup("key", []string{"a", "b"}); !ok {
		t.Error("the finished set is not found")
	}
	if _, ok := s.lookup("key", []string{"a", "c"}); ok {
		t.Error("a set without c passes for one with it")
	}
}

func TestStoreDemandsEveryBinary(t *testing.T) {
	s := store{root: t.TempDir()}
	_, err := s.fill(t.Context(), "key", []string{"a"}, func(stage) error { return nil })
	if err == nil || !strings.Contains(err.Error(), `no "a"`) {
		t.Errorf("got %v", err)
	}
}
