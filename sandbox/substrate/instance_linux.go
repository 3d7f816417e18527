package substrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cozystack/cozydev/sandbox"
)

// child is a machine that this process started.
type child struct {
	process sandbox.Process
	command *exec.Cmd
	exit    chan Exit
}

func newChild(command *exec.Cmd, process sandbox.Process) *child {
	c := &child{process: process, command: command, exit: make(chan Exit, 1)}
	go func() {
		_ = command.Wait() // the state below says it all
		c.exit <- exitOf(command.ProcessState)
	}()
	return c
}

func exitOf(state *os.ProcessState) Exit {
	status, ok := state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return Exit{Code: -1, Signal: unix.SignalName(status.Signal())}
	}
	return Exit{Code: state.ExitCode()}
}

func (c *child) Process() sandbox.Process { return c.process }

func (c *child) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	case exit := <-c.exit:
		return exit, nil
	}
}

func (c *child) Stop() error { return c.command.Process.Signal(syscall.SIGTERM) }

// adopted is a machine that an earlier process started. A pidfd names it without the danger of a reused pid.
type adopted struct {
	process sandbox.Process
	pidfd   *os.File
}

func adopt(process sandbox.Process) (*adopted, error) {
	if process.PID <= 0 {
		return nil, ErrGone
	}
	fd, err := unix.PidfdOpen(process.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("opening process %d: %w", process.PID, err)
	}
	file := os.NewFile(uintptr(fd), fmt.Sprintf("pidfd of %d", process.PID))
	if !process.Alive() { // asked after the opening, so the answer is about what was opened
		_ = file.Close()
		return nil, ErrGone
	}
	return &adopted{process: process, pidfd: file}, nil
}

func (a *adopted) Process() sandbox.Process { return a.process }

// Wait waits until the pidfd is readable, which is when the process has ended.
func (a *adopted) Wait(ctx context.Context) (Exit, error) {
	defer a.pidfd.Close()
	stop := context.AfterFunc(ctx, func() { _ = a.pidfd.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	raw, err := a.pidfd.SyscallConn()
	if err != nil {
		return Exit{}, fmt.Errorf("waiting for process %d: %w", a.process.PID, err)
	}
	if err := raw.Read(ended); err != nil {
		if ctx.Err() != nil {
			return Exit{}, ctx.Err()
		}
		return Exit{}, fmt.Errorf("waiting for process %d: %w", a.process.PID, err)
	}
	return exitOfPidfd(raw), nil
}

func ended(fd uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(poll, 0)
	return n > 0
}

func (a *adopted) Stop() error {
	raw, err := a.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), unix.SIGTERM, nil, 0) })
	return errors.Join(err, sent)
}
