// Package substrate makes machines. A machine is an address at which the Talos machine API answers on port 50000, in
// maintenance mode until it has a machine config. Everything above it is the same on every substrate.
package substrate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cozystack/cozydev/sandbox"
)

// Machine is everything a substrate needs to know of one machine.
type Machine struct {
	// Sandbox is the sandbox's name.
	Sandbox string
	Node    sandbox.Node
	Gateway netip.Addr
	// StateDir belongs to the machine; its disk (persisted config, /var, logs) lives there.
	StateDir string
	// Console is the file that the machine's console is appended to.
	Console string
	// Binaries is the directory of the node binaries, Cozynode the path of cozynode.
	Binaries, Cozynode string
}

// Substrate makes, finds again and removes machines. Its methods are safe for concurrent use on different machines.
type Substrate interface {
	// Start starts the machine and returns once it runs; its API may need a moment more. Start MUST first end what is
	// left of an earlier run of the machine, MUST keep its disk, and MUST leave nothing running when it fails. The
	// running machine MUST NOT depend on the calling process to stay alive. The context bounds the starting only.
	Start(ctx context.Context, machine Machine) (Instance, error)
	// Adopt finds a machine that an earlier process started, by what Instance.Process returned then. It MUST return
	// ErrGone when that very machine no longer runs.
	Adopt(ctx context.Context, machine Machine, process sandbox.Process) (Instance, error)
	// Remove ends the machine at once and removes all that Start made outside of StateDir. It MUST succeed when there
	// is nothing to remove, MUST work without knowledge of the process, and MUST touch nothing of other machines.
	Remove(ctx context.Context, machine Machine) error
	// Memory returns the resident bytes of the machine, 0 when unknown.
	Memory(machine Machine) int64
}

// Instance is a running machine.
type Instance interface {
	// Process names the machine's process, for Adopt.
	Process() sandbox.Process
	// Wait returns how the machine ended, or the context's error. It MUST be called by one goroutine only.
	Wait(ctx context.Context) (Exit, error)
	// Stop asks for an orderly shutdown and returns without waiting for it.
	Stop() error
}

// Exit says how a machine ended.
type Exit struct {
	// Code is the exit code, -1 when a signal ended it.
	Code int
	// Signal is the name of that signal, empty otherwise.
	Signal string
	// Unknown tells that the code could not be learned: an adopted process is not our child.
	Unknown bool
}

// Exit codes by which cozynode tells what it wants next.
const (
	CodeShutdown = 0
	CodeReboot   = 10
	CodeReset    = 11
)

// String describes the exit for logs and status output.
func (e Exit) String() string {
	switch {
	case e.Unknown:
		return "ended"
	case e.Signal != "":
		return "killed by " + e.Signal
	case e.Code == CodeShutdown:
		return "shut down"
	case e.Code == CodeReboot:
		return "rebooting"
	case e.Code == CodeReset:
		return "reset"
	default:
		return fmt.Sprintf("exit code %d", e.Code)
	}
}

// ErrGone is returned by Adopt when the machine no longer runs.
var ErrGone = errors.New("the machine no longer runs")

// New returns the substrate of that name (not "auto", which the caller resolves).
func New(name string) (Substrate, error) {
	switch name {
	case sandbox.SubstrateHost:
		return newHost()
	case sandbox.SubstrateQEMU, sandbox.SubstrateContainer:
		return nil, fmt.Errorf("substrate %q is not built yet; use --substrate host", name)
	default:
		return nil, fmt.Errorf("there is no substrate %q; use --substrate host", name)
	}
}
