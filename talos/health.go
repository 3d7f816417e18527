package talos

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/cozystack/cozydev/talos/config"
)

// NodeHealth is a look at one node.
type NodeHealth struct {
	Node config.Node
	// Stage is empty when the node's API does not answer.
	Stage Stage
	// Services are the node's components, when it is configured.
	Services []Service
	// Etcd says how its etcd member is; empty on workers.
	Etcd string
	// EtcdHealthy tells whether the member is a voter that sees a leader.
	EtcdHealthy bool
	// Err is why a part of this could not be seen.
	Err error
}

// Healthy tells whether the node is configured and all its components run.
func (h NodeHealth) Healthy() bool {
	if h.Err != nil || h.Stage != Configured || len(h.Services) == 0 {
		return false
	}

	for _, s := range h.Services {
		if !s.Running() && s.State != "Finished" && s.State != "Skipped" {
			return false
		}
	}

	return h.EtcdHealthy || h.Node.Role == config.Worker
}

// Health looks at every node once, at all at the same time, and waits for nothing. The result is in the order of the
// cluster's nodes.
func (c *Cluster) Health(ctx context.Context) []NodeHealth {
	nodes := c.bundle.Nodes()
	out := make([]NodeHealth, len(nodes))

	var wg sync.WaitGroup

	for i, node := range nodes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
			defer cancel()

			out[i] = c.health(ctx, node)
		})
	}

	wg.Wait()

	return out
}

func (c *Cluster) health(ctx context.Context, node config.Node) NodeHealth {
	h := NodeHealth{Node: node}

	if h.Stage, h.Err = c.probe(ctx, node); h.Err != nil || h.Stage != Configured {
		return h
	}

	if h.Services, h.Err = c.services(ctx, node); h.Err != nil || node.Role == config.Worker {
		return h
	}

	h.Etcd, h.EtcdHealthy, h.Err = c.etcdState(ctx, node)

	return h
}

const (
	// tailLines is how much of a log goes into an error.
	tailLines = 5
	// tailTimeout bounds the look at logs after a wait has failed.
	tailTimeout = 3 * time.Second
)

// withKubeletLogs adds to the error of a wait for nodes what kubelet says on those that are not ready.
func (c *Cluster) withKubeletLogs(ctx context.Context, err error) error {
	failed, isWait := err.(*WaitError)
	if !isWait {
		return err
	}

	// The wait's own context is over.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tailTimeout)
	defer cancel()

	found := make([][]string, len(failed.States))

	var wg sync.WaitGroup

	for i, state := range failed.States {
		wg.Go(func() { found[i] = c.kubeletEvidence(ctx, state.Node) })
	}

	wg.Wait()

	for _, lines := range found {
		failed.Evidence = append(failed.Evidence, lines...)
	}

	return failed
}

func (c *Cluster) kubeletEvidence(ctx context.Context, name string) []string {
	for _, node := range c.bundle.Nodes() {
		if node.Name != name {
			continue
		}

		list, err := c.services(ctx, node)
		if err != nil {
			return []string{name + ": " + brief(err)}
		}

		out := []string{name + ": " + service(list, kubeletService).String()}
		for _, line := range c.tail(ctx, node, kubeletService) {
			out = append(out, name+": kubelet log: "+line)
		}

		return out
	}

	return nil
}

// tail reads the last lines of a component's log, as many as can be had.
func (c *Cluster) tail(ctx context.Context, node config.Node, id string) []string {
	cl, err := c.client(ctx, node)
	if err != nil {
		return nil
	}

	stream, err := cl.Logs(ctx, constants.SystemContainerdNamespace, common.ContainerDriver_CONTAINERD, id, false, tailLines)
	if err != nil {
		return nil
	}

	var text strings.Builder

	for {
		data, err := stream.Recv()
		if err != nil {
			// The end, or a failure: what came before is worth showing all the same.
			break
		}

		text.Write(data.GetBytes())
	}

	return lastLines(text.String(), tailLines)
}

func lastLines(text string, most int) []string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}

	return lines
}
