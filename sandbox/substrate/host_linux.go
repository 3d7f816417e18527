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
	"github.com/cozystack/cozydev/sandbox/cgroup"
	"github.com/cozystack/cozydev/sandbox/network"
)

// host runs a machine as a process tree in namespaces of its own: `cozynode init` is process 1 of a process
// namespace, so that its end is the end of everything in the machine.
type host struct{ cgroups cgroup.Hierarchies }

func newHost() (Substrate, error) {
	cgroups, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	return &host{cgroups: cgroups}, nil
}

// strayTimeout bounds the wait for killed processes of an earlier run to leave.
const strayTimeout = 3 * time.Second

func (h *host) Start(ctx context.Context, machine Machine) (Instance, error) {
	instance, err := h.start(ctx, machine)
	if err != nil {
		return nil, fmt.Errorf("starting node %q: %w", machine.Node.Name, err)
	}
	return instance, nil
}

func (h *host) start(ctx context.Context, machine Machine) (Instance, error) {
	group := cgroup.Node(machine.Sandbox, machine.Node.Name)
	if err := h.endStrays(ctx, group); err != nil {
		return nil, err
	}
	if err := h.cgroups.Make(cgroup.Init(group)); err != nil {
		return nil, err
	}
	if err := network.EnsureNode(link(machine)); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(machine.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the node's directory: %w", err)
	}
	console, err := os.OpenFile(machine.Console, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the console: %w", err)
	}
	defer console.Close()
	return h.spawn(machine, cgroup.Init(group), console)
}

// spawn forks the init from a thread that stands in the node's network namespace and cgroup, so that the init is in
// both from its first instruction.
func (h *host) spawn(machine Machine, group string, console *os.File) (Instance, error) {
	command := command(machine, console)
	directory, err := h.cgroups.Open(group)
	if err != nil {
		return nil, err
	}
	if directory != nil {
		defer directory.Close()
		command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(directory.Fd())
	}
	err = network.Do(network.NodeName(machine.Sandbox, machine.Node.Name), func() error {
		if err := h.cgroups.PlaceThread(group); err != nil {
			return err
		}
		return command.Start()
	})
	if err != nil {
		return nil, err
	}
	process, err := sandbox.FindProcess(command.Process.Pid)
	if err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		return nil, err
	}
	return newChild(command, process), nil
}

func command(machine Machine, console *os.File) *exec.Cmd {
	args := initArgs(machine)
	return &exec.Cmd{
		Path: args[0], Args: args, Dir: "/", Env: environment(),
		// A file, not a pipe: the node must outlive the supervisor.
		Stdout: console, Stderr: console,
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:     true,
			Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		},
	}
}

// environment is a node's: nothing of the user's shell may shape it.
func environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
}

func (h *host) Adopt(_ context.Context, machine Machine, process sandbox.Process) (Instance, error) {
	instance, err := adopt(process)
	if err != nil {
		return nil, fmt.Errorf("adopting node %q: %w", machine.Node.Name, err)
	}
	return instance, nil
}

func (h *host) Remove(ctx context.Context, machine Machine) error {
	group := cgroup.Node(machine.Sandbox, machine.Node.Name)
	err := errors.Join(h.endStrays(ctx, group), h.cgroups.Remove(ctx, group), network.DeleteNode(link(machine)))
	if err != nil {
		return fmt.Errorf("removing node %q: %w", machine.Node.Name, err)
	}
	return nil
}

func (h *host) Memory(machine Machine) int64 {
	return h.cgroups.Memory(cgroup.Node(machine.Sandbox, machine.Node.Name))
}

// endStrays kills what is left in the node's group and removes the groups that it made below.
func (h *host) endStrays(ctx context.Context, group string) error {
	ctx, cancel := context.WithTimeout(ctx, strayTimeout)
	defer cancel()
	return h.cgroups.Kill(ctx, group)
}

func link(machine Machine) network.Link {
	return network.Link{
		Sandbox:   network.Name(machine.Sandbox),
		Namespace: network.NodeName(machine.Sandbox, machine.Node.Name),
		Port:      network.PortName(machine.Node.Name),
		Address:   machine.Node.Address,
		Gateway:   machine.Gateway,
	}
}
