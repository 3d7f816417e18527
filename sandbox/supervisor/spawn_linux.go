package supervisor

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/cgroup"
	"github.com/cozystack/cozydev/sandbox/network"
)

type spawnOptions struct {
	state            sandbox.State
	name, executable string
	listeners        hostListeners
}

// Descriptors that the supervisor inherits, in the order of exec.Cmd.ExtraFiles.
const (
	fdAPI   = 3 + iota // loopback listener of the Kubernetes API
	fdTalos            // loopback listener of the Talos API
	fdHost             // the host's network namespace
	fdReady            // pipe on which the supervisor reports that it is up, or why not
)

const readyMessage = "ready"

// readyTimeout bounds the wait for the supervisor to report. Machines start after that.
const readyTimeout = 15 * time.Second

// spawn forks the supervisor into the sandbox's namespace and waits until it answers.
func spawn(ctx context.Context, options spawnOptions) error {
	log, err := os.OpenFile(options.state.SupervisorLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the supervisor's log: %w", err)
	}
	defer log.Close()
	files, report, err := inherited(options.listeners)
	if err != nil {
		return err
	}
	defer report.Close()
	command := &exec.Cmd{
		Path: options.executable, Args: []string{options.executable, "supervise", "--state", options.state.Dir()},
		Dir: "/", Env: os.Environ(), Stdout: log, Stderr: log, ExtraFiles: files,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = fork(options.name, command)
	for _, file := range files {
		_ = file.Close()
	}
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	pid := command.Process.Pid
	if err := awaitReady(ctx, report); err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		return fmt.Errorf("starting the supervisor (process %d): %w\nits log is %s", pid, err, options.state.SupervisorLog())
	}
	return command.Process.Release()
}

// inherited collects the files for the supervisor and the end of the pipe on which it reports.
func inherited(listeners hostListeners) (files []*os.File, report *os.File, err error) {
	api, err := listeners.api.File()
	if err != nil {
		return nil, nil, err
	}
	talos, err := listeners.talos.File()
	if err != nil {
		return nil, nil, err
	}
	host, err := network.Current()
	if err != nil {
		return nil, nil, err
	}
	report, ready, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return []*os.File{api, talos, host.File(), ready}, report, nil
}

// fork starts the command in the sandbox's network namespace and the supervisor's cgroup.
func fork(name string, command *exec.Cmd) error {
	cgroups, err := cgroup.Detect()
	if err != nil {
		return err
	}
	group := cgroup.Supervisor(name)
	if err := cgroups.Make(group); err != nil {
		return err
	}
	directory, err := cgroups.Open(group)
	if err != nil {
		return err
	}
	if directory != nil {
		defer directory.Close()
		command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(directory.Fd())
	}
	return network.Do(network.Name(name), func() error {
		if err := cgroups.PlaceThread(group); err != nil {
			return err
		}
		return command.Start()
	})
}

// awaitReady reads the supervisor's report. The pipe ends without one when the supervisor dies.
func awaitReady(ctx context.Context, report *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = report.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	message, err := io.ReadAll(report)
	switch text := strings.TrimSpace(string(message)); {
	case text == readyMessage:
		return nil
	case text != "":
		return fmt.Errorf("%s", text)
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for it to answer: %w", ctx.Err())
	case err != nil:
		return fmt.Errorf("waiting for it to answer: %w", err)
	default:
		return fmt.Errorf("it ended at once")
	}
}
