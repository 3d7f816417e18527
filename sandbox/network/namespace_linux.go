package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Create makes the named namespace with its loopback up. An existing one is kept.
func Create(name string) error {
	if Exists(name) {
		return nil
	}
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return fmt.Errorf("making %q: %w", runDir, err)
	}
	file, err := os.OpenFile(Path(name), os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("making network namespace %q: %w", name, err)
	}
	_ = file.Close()
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), Path(name), "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return loopbackUp()
	})
	if err != nil {
		_ = Delete(name)
		return fmt.Errorf("making network namespace %q: %w", name, err)
	}
	return nil
}

// Exists tells whether the name stands for a namespace. A plain file, left by an interrupted Create, does not count.
func Exists(name string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(Path(name), &stat) == nil && stat.Type == unix.NSFS_MAGIC
}

// Delete removes the name. The namespace itself goes with its last process. A missing one is fine.
func Delete(name string) error {
	path := Path(name)
	for range 16 { // a name can be mounted over more than once
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			break // not mounted, or not there
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing network namespace %q: %w", name, err)
	}
	return nil
}

// Handle is an open namespace, named or not.
type Handle struct{ file *os.File }

// Open opens the named namespace.
func Open(name string) (*Handle, error) {
	file, err := os.Open(Path(name))
	if err != nil {
		return nil, fmt.Errorf("opening network namespace %q: %w", name, err)
	}
	return &Handle{file: file}, nil
}

// Current opens the namespace that the process started in.
func Current() (*Handle, error) {
	file, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("opening the host's network namespace: %w", err)
	}
	return &Handle{file: file}, nil
}

// FromFile makes a handle of an open namespace file, such as an inherited descriptor, and owns it from then on.
func FromFile(file *os.File) *Handle { return &Handle{file: file} }

// File is the descriptor, still owned by the handle.
func (h *Handle) File() *os.File { return h.file }

// Close gives the handle back.
func (h *Handle) Close() error { return h.file.Close() }

// Do runs f on a thread inside the namespace. Sockets that f opens and processes that it starts belong to the
// namespace; goroutines that it starts do not. The thread ends with f, so whatever else f changes about its thread
// (its cgroup, say) needs no undoing.
func (h *Handle) Do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(h.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering network namespace %q: %w", h.file.Name(), err)
		}
		return f()
	})
}

// Do is Open, Handle.Do and Close.
func Do(name string, f func() error) error {
	handle, err := Open(name)
	if err != nil {
		return err
	}
	defer handle.Close()
	return handle.Do(f)
}

// onThread runs f on a thread of its own that is thrown away afterwards. It is never the process's main thread: that
// one cannot end, and what /proc/PID shows is taken from it.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // not unlocked: the runtime ends the thread with the goroutine
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- onThread(f) // this goroutine holds the main thread meanwhile, so the next gets another
			return
		}
		done <- f()
	}()
	return <-done
}
