package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Names of the locks in a state directory.
const (
	// LockUp is held by `cozydev up` from its first to its last step.
	LockUp = "up.lock"
	// LockChange is held while the supervisor is being started or the sandbox taken down.
	LockChange = "change.lock"
	// LockSupervisor is held by the supervisor as long as it lives.
	LockSupervisor = "supervisor.lock"
)

// ErrLocked is returned when another process holds the lock.
var ErrLocked = errors.New("held by another process")

const lockPoll = 50 * time.Millisecond

// Lock takes the named lock, waiting until the context ends. The returned function gives it back. The state
// directory is made if it is missing. The lock goes with the process, so a killed process leaves none.
func (s State) Lock(ctx context.Context, name string) (func(), error) {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		unlock, err := s.TryLock(name)
		if err == nil || !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another cozydev on sandbox %q: %w", filepath.Base(s.dir), ctx.Err())
		case <-ticker.C:
		}
	}
}

// TryLock is Lock without waiting: it returns an error that wraps ErrLocked when the lock is held.
func (s State) TryLock(name string) (func(), error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	path := filepath.Join(s.dir, name)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %q: %w", path, ErrLocked)
		}
		return nil, fmt.Errorf("locking %q: %w", path, err)
	}
	if !samePath(file, path) { // `down` removed the directory between the opening and the locking
		_ = file.Close()
		return nil, fmt.Errorf("lock %q: %w", path, ErrLocked)
	}
	return func() { _ = file.Close() }, nil
}

func samePath(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named)
}
