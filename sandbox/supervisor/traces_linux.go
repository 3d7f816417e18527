package supervisor

import (
	"context"
	"errors"

	"github.com/cozystack/cozydev/sandbox/cgroup"
	"github.com/cozystack/cozydev/sandbox/network"
)

// removeTraces removes what is the sandbox's by its name: processes that still stand in its cgroups or namespaces,
// the namespaces, the cgroups.
func removeTraces(ctx context.Context, name string) error {
	cgroups, err := cgroup.Detect()
	if err != nil {
		return err
	}
	if err := cgroups.Kill(ctx, cgroup.Sandbox(name)); err != nil {
		return err
	}
	return errors.Join(removeNamespaces(ctx, name), removeCgroups(ctx, cgroups, name))
}

func removeNamespaces(_ context.Context, name string) error {
	return network.DeleteSandbox(network.Name(name))
}

func removeCgroups(ctx context.Context, cgroups cgroup.Hierarchies, name string) error {
	if err := cgroups.Remove(ctx, cgroup.Sandbox(name)); err != nil {
		return err
	}
	cgroups.RemoveRootIfEmpty()
	return nil
}
