package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"

	"github.com/cozystack/cozydev/talos/config"
)

// Change is what applying a config did to a node.
type Change string

// The outcomes of applying a config.
const (
	// Unchanged means that the node ran with this very config already.
	Unchanged Change = "unchanged"
	// Installed means that the node was in maintenance and got its first config.
	Installed Change = "installed"
	// Updated means that another config of this cluster was replaced while the node runs.
	Updated Change = "updated"
	// Rebooting means that the replacement needs a reboot, which the node has begun.
	Rebooting Change = "rebooting"
)

// Applied is the outcome for one node.
type Applied struct {
	Change Change
	// Warnings name what the node does without, of what its config asks for.
	Warnings []string
}

// errForeign is the state of a machine that this cluster's credentials do not open.
var errForeign = errors.New("it runs with a config of another cluster and takes none of this one; " +
	"reset the machine, or remove the sandbox and start it again")

// Apply gives every node its machine config, and waits for the machine API of each as long as the context allows. The
// result tells what changed on each node.
func (c *Cluster) Apply(ctx context.Context) (map[string]Applied, error) {
	var mu sync.Mutex

	changes := map[string]Applied{}
	nodes := c.bundle.Nodes()
	w := c.start(StepApply, nodes...)

	err := w.each(ctx, nodes, func(ctx context.Context, node config.Node) error {
		return w.until(ctx, node.Name, func(ctx context.Context) (string, bool, error) {
			applied, err := c.applyTo(ctx, node)
			if err != nil {
				return outcome(err)
			}

			mu.Lock()
			changes[node.Name] = applied
			mu.Unlock()

			return string(applied.Change), true, nil
		})
	})

	return changes, err
}

func (c *Cluster) applyTo(ctx context.Context, node config.Node) (Applied, error) {
	stage, err := c.probe(ctx, node)
	if err != nil {
		return Applied{}, err
	}

	switch stage {
	case Maintenance:
		return c.install(ctx, node)
	case Configured:
		return c.update(ctx, node)
	default:
		return Applied{}, permanent{errForeign}
	}
}

// install gives a machine in maintenance its config. There is no trust yet on either side.
func (c *Cluster) install(ctx context.Context, node config.Node) (Applied, error) {
	//nolint:gosec // A machine in maintenance has only a certificate it signed itself.
	cl, err := c.connect(ctx, node, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err != nil {
		return Applied{}, err
	}
	defer cl.Close() //nolint:errcheck // The request's outcome is what matters.

	reply, err := c.give(ctx, cl, node, false)

	return Applied{Change: Installed, Warnings: reply.GetWarnings()}, err
}

// update gives a running node its config when that differs from the one it has.
func (c *Cluster) update(ctx context.Context, node config.Node) (Applied, error) {
	cl, err := c.client(ctx, node)
	if err != nil {
		return Applied{}, err
	}

	plan, err := c.give(ctx, cl, node, true)
	if err != nil {
		return Applied{}, err
	}

	if sameConfig(plan) {
		return Applied{Change: Unchanged, Warnings: plan.GetWarnings()}, nil
	}

	reply, err := c.give(ctx, cl, node, false)
	if err != nil {
		return Applied{}, err
	}

	change := Updated
	if reply.GetMode() == machine.ApplyConfigurationRequest_REBOOT {
		change = Rebooting
	}

	return Applied{Change: change, Warnings: reply.GetWarnings()}, nil
}

// give sends the node's config; the node itself finds out whether the change needs a reboot.
func (c *Cluster) give(ctx context.Context, cl *client.Client, node config.Node, dryRun bool) (*machine.ApplyConfiguration, error) {
	reply, err := cl.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data:   c.bundle.MachineConfig(node.Name),
		Mode:   machine.ApplyConfigurationRequest_AUTO,
		DryRun: dryRun,
	})
	if err != nil {
		return nil, final(err)
	}

	if len(reply.GetMessages()) == 0 {
		return nil, errors.New("the node's answer is empty")
	}

	return reply.GetMessages()[0], nil
}

// sameConfig reads a node's answer to a dry run. Talos ends it with the difference of the configs, and with these words
// when there is none. Should an answer be worded otherwise, the config is applied again, which does no harm.
func sameConfig(plan *machine.ApplyConfiguration) bool {
	return strings.Contains(strings.ToLower(plan.GetModeDetails()), "no changes")
}
