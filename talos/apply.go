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

// errForeign is the state of a machine that this cluster's credentials do not open.
var errForeign = errors.New("it runs with a config of another cluster and takes none of this one; " +
	"reset the machine, or remove the sandbox and start it again")

// Apply gives every node its machine config, and waits for the machine API of each as long as the context allows. The
// result tells what changed on each node.
func (c *Cluster) Apply(ctx context.Context) (map[string]Change, error) {
	var mu sync.Mutex

	changes := map[string]Change{}
	nodes := c.bundle.Nodes()
	w := c.start(StepApply, nodes...)

	err := w.each(ctx, nodes, func(ctx context.Context, node config.Node) error {
		return w.until(ctx, node.Name, func(ctx context.Context) (string, bool, error) {
			change, err := c.applyTo(ctx, node)
			if err != nil {
				return outcome(err)
			}

			mu.Lock()
			changes[node.Name] = change
			mu.Unlock()

			return string(change), true, nil
		})
	})

	return changes, err
}

func (c *Cluster) applyTo(ctx context.Context, node config.Node) (Change, error) {
	stage, err := c.probe(ctx, node)
	if err != nil {
		return "", err
	}

	switch stage {
	case Maintenance:
		return c.install(ctx, node)
	case Configured:
		return c.update(ctx, node)
	default:
		return "", permanent{errForeign}
	}
}

// install gives a machine in maintenance its config. There is no trust yet on either side.
func (c *Cluster) install(ctx context.Context, node config.Node) (Change, error) {
	//nolint:gosec // A machine in maintenance has only a certificate it signed itself.
	cl, err := c.connect(ctx, node, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err != nil {
		return "", err
	}
	defer cl.Close() //nolint:errcheck // The request's outcome is what matters.

	_, err = cl.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{
		Data: c.bundle.MachineConfig(node.Name),
		Mode: machine.ApplyConfigurationRequest_AUTO,
	})

	return Installed, final(err)
}

// update gives a running node its config when that differs from the one it has.
func (c *Cluster) update(ctx context.Context, node config.Node) (Change, error) {
	cl, err := c.client(ctx, node)
	if err != nil {
		return "", err
	}

	plan, err := c.replace(ctx, cl, node, true)
	if err != nil {
		return "", err
	}

	if sameConfig(plan) {
		return Unchanged, nil
	}

	done, err := c.replace(ctx, cl, node, false)
	if err != nil {
		return "", err
	}

	if done.GetMode() == machine.ApplyConfigurationRequest_REBOOT {
		return Rebooting, nil
	}

	return Updated, nil
}

func (c *Cluster) replace(ctx context.Context, cl *client.Client, node config.Node, dryRun bool) (*machine.ApplyConfiguration, error) {
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
