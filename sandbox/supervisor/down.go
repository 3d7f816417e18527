package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/substrate"
)

// downTimeout bounds the waits for killed processes and emptied cgroups.
const downTimeout = 20 * time.Second

// Down ends the sandbox and removes all that it made: processes, namespaces, interfaces, firewall rules, cgroups,
// sockets and the state directory. It needs no running supervisor, works after anything was killed, may be called
// twice, and touches nothing of other sandboxes. The shared cache stays.
func Down(ctx context.Context, state sandbox.State, name string) error {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	if err := down(ctx, state, name); err != nil {
		return fmt.Errorf("taking down sandbox %q: %w", name, err)
	}
	return nil
}

func down(ctx context.Context, state sandbox.State, name string) error {
	if state.Exists() {
		unlock, err := state.Lock(ctx, sandbox.LockChange)
		if err != nil {
			return err
		}
		defer unlock()
	}
	record, err := state.Read()
	if err != nil && !errors.Is(err, sandbox.ErrNoState) {
		record = sandbox.Record{} // damaged; what is left is found by its names
	}
	if err := endSupervisor(ctx, record.Supervisor); err != nil {
		return err
	}
	if err := removeMachines(ctx, record, name); err != nil {
		return err
	}
	if err := removeTraces(ctx, name); err != nil {
		return err
	}
	if err := os.RemoveAll(state.Dir()); err != nil {
		return fmt.Errorf("removing the state directory: %w", err)
	}
	return nil
}

// removeMachines removes the machines that the record knows, all at once.
func removeMachines(ctx context.Context, record sandbox.Record, name string) error {
	kind := record.Spec.Substrate
	if kind == "" {
		kind = sandbox.SubstrateHost
	}
	machines, err := substrate.New(kind)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range knownNodes(record) {
		group.Go(func() error { return machines.Remove(ctx, substrate.Machine{Sandbox: name, Node: node}) })
	}
	return group.Wait()
}

// knownNodes merges the planned nodes with those that were started, for a changed spec may have planned others.
func knownNodes(record sandbox.Record) map[string]sandbox.Node {
	nodes := map[string]sandbox.Node{}
	for _, node := range record.Spec.Nodes() {
		nodes[node.Name] = node
	}
	for name, machine := range record.Machines {
		nodes[name] = machine.Node
	}
	return nodes
}
