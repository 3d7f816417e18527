package binary

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killDelay is how long the go command may take to end after an interrupt.
const killDelay = 10 * time.Second

// errorLines is how much of the go command's output an error carries.
const errorLines = 12

// killedError marks a go command that did not end by itself.
type killedError struct{ error }

func (e killedError) Unwrap() error { return e.error }

// goTool runs go commands in a module.
type goTool struct {
	dir string
	// env is added to the process's own.
	env []string
}

// run runs a go command, passing its lines to the functions, which may be nil.
// On cancellation Go is interrupted, ends its compilers and cleans up.
func (g goTool) run(ctx context.Context, args []string, stdout, stderr func(string)) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), g.env...)
	// A group of its own, so that an interrupt reaches compilers and linkers.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = killDelay
	tail := &tail{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting go: %w", err)
	}
	var readers sync.WaitGroup
	readers.Go(func() { eachLine(out, stdout) })
	readers.Go(func() {
		eachLine(errs, func(line string) {
			tail.add(line)
			if stderr != nil {
				stderr(line)
			}
		})
	})
	readers.Wait()
	if err = cmd.Wait(); err == nil {
		return nil
	}
	err = fmt.Errorf("running go %s: %w:\n%s", args[0], err, tail)
	if ctx.Err() != nil {
		err = fmt.Errorf("running go %s: %w", args[0], ctx.Err())
	}
	if !cmd.ProcessState.Exited() {
		// Whatever of the group outlived its leader has no business here.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		err = killedError{err}
	}
	return err
}

// eachLine calls f for every line until the end; a nil f discards them.
func eachLine(r io.Reader, f func(string)) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if line := scanner.Text(); f != nil && line != "" {
			f(line)
		}
	}
	// A line beyond the buffer must not block the writer.
	_, _ = io.Copy(io.Discard, r)
}

// tail keeps the last lines that may tell of an error.
type tail struct{ lines []string }

func (t *tail) add(line string) {
	// A bare package path is progress, not a complaint.
	if !strings.ContainsAny(line, " \t") {
		return
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > errorLines {
		t.lines = t.lines[1:]
	}
}

func (t *tail) String() string { return strings.Join(t.lines, "\n") }

// goHint adds what to do to errors of the go command that users meet.
func goHint(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "no space left on device"):
		return errors.Join(err, syscall.ENOSPC)
	case strings.Contains(text, "dial tcp"), strings.Contains(text, "module lookup disabled"):
		return fmt.Errorf("%w\nset GOPROXY to a module proxy this machine reaches, or choose another source of the node binaries", err)
	case strings.Contains(text, "(running go "), strings.Contains(text, "toolchain not available"):
		return fmt.Errorf("%w\ninstall a newer Go from https://go.dev/dl/", err)
	}
	return err
}

// withHint adds what to do to errors of every source.
func withHint(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w\nfree 4 GiB there, or set XDG_CACHE_HOME to a bigger disk", err)
	}
	return err
}
