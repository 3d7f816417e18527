// Package talos brings a sandbox's machines to a Kubernetes cluster through the Talos machine API.
//
// A [Cluster] offers the steps apply, bootstrap, etcd, kubeconfig and nodes. Each may be called again at any time and
// changes nothing that is already right; each works on all nodes at once, tells what it waits for, and on the end of its
// context returns a [WaitError] with the state it last saw of every node. The machines may be cozynode or real Talos.
package talos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/cozystack/cozydev/talos/config"
)

// Dialer connects to an address as the nodes see it, from wherever this process is.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Step is one of the cluster's steps.
type Step string

// The steps, in the order of a bring-up.
const (
	StepApply      Step = "apply"
	StepBootstrap  Step = "bootstrap"
	StepKubeconfig Step = "kubeconfig"
	StepEtcd       Step = "etcd"
	StepNodes      Step = "nodes"
)

// doing begins the step's errors.
func (s Step) doing() string {
	switch s {
	case StepApply:
		return "applying machine configs"
	case StepBootstrap:
		return "bootstrapping etcd"
	case StepKubeconfig:
		return "fetching the kubeconfig"
	case StepEtcd:
		return "waiting for etcd"
	case StepNodes:
		return "waiting for Kubernetes nodes"
	default:
		return string(s)
	}
}

// Report is a piece of progress: what a step sees of a node, sent whenever that changes.
type Report struct {
	Step Step
	// Node is the node's name, or empty for the cluster as a whole.
	Node string
	// State is what was seen, for people.
	State string
	// Done tells that the step is over for that node.
	Done bool
}

// Options are what a Cluster needs.
type Options struct {
	// Bundle holds the nodes, their configs and the credentials.
	Bundle *config.Bundle
	// Dial reaches the nodes and the Kubernetes endpoint.
	Dial Dialer
	// Progress, when set, is told what the steps see. It is called from many goroutines at once and must not block.
	Progress func(Report)
}

// Cluster is a client of all nodes of one cluster. Its methods may be called concurrently.
type Cluster struct {
	bundle *config.Bundle
	dial   Dialer
	report func(Report)
	tls    *tls.Config

	mu      sync.Mutex
	clients map[string]*client.Client
}

// New makes a Cluster. It connects to nothing yet. The caller closes it.
func New(opts Options) (*Cluster, error) {
	if opts.Bundle == nil || opts.Dial == nil {
		return nil, errors.New("making a Talos client: a bundle and a dialer are needed")
	}

	cfg, err := opts.Bundle.ClientTLS()
	if err != nil {
		return nil, err
	}

	report := opts.Progress
	if report == nil {
		report = func(Report) {}
	}

	return &Cluster{
		bundle: opts.Bundle, dial: opts.Dial, report: report, tls: cfg,
		clients: map[string]*client.Client{},
	}, nil
}

// Close ends all connections. The Cluster may be used again.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	var errs []error
	for name, cl := range c.clients {
		errs = append(errs, cl.Close())
		delete(c.clients, name)
	}

	return errors.Join(errs...)
}

// Client is the machinery's client of the named node's machine API, with an admin's certificate. It belongs to the
// Cluster and ends with it.
func (c *Cluster) Client(ctx context.Context, node string) (*client.Client, error) {
	for _, n := range c.bundle.Nodes() {
		if n.Name == node {
			return c.client(ctx, n)
		}
	}

	return nil, fmt.Errorf("connecting to node %q: there is no such node", node)
}

func (c *Cluster) client(ctx context.Context, node config.Node) (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if cl := c.clients[node.Name]; cl != nil {
		return cl, nil
	}

	cl, err := c.connect(ctx, node, c.tls)
	if err == nil {
		c.clients[node.Name] = cl
	}

	return cl, err
}

// connect makes a client that connects when it is first used.
func (c *Cluster) connect(ctx context.Context, node config.Node, cfg *tls.Config) (*client.Client, error) {
	// gRPC's own first pause after a refused connection is a second, which is as long as a node takes to start.
	quick := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.1, MaxDelay: time.Second},
		MinConnectTimeout: attemptTimeout,
	}

	cl, err := client.New(ctx,
		client.WithTLSConfig(cfg.Clone()),
		client.WithEndpoints(apiAddress(node)),
		client.WithGRPCDialOptions(
			grpc.WithNoProxy(),
			grpc.WithConnectParams(quick),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return c.dial(ctx, "tcp", address)
			}),
		),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to node %q: %w", node.Name, err)
	}

	return cl, nil
}

func apiAddress(node config.Node) string {
	return net.JoinHostPort(node.Address.Addr().String(), strconv.Itoa(constants.ApidPort))
}

func (c *Cluster) controlPlanes() []config.Node {
	var out []config.Node

	for _, node := range c.bundle.Nodes() {
		if node.Role == config.ControlPlane {
			out = append(out, node)
		}
	}

	return out
}
