package talos_test

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/cozystack/cozydev/talos"
	"github.com/cozystack/cozydev/talos/config"
	"github.com/cozystack/cozydev/talos/node/api"
)

// sandbox is a cluster of machines on loopback addresses.
type sandbox struct {
	t        *testing.T
	bundle   *config.Bundle
	secrets  *config.Secrets
	machines map[string]*machine
	// ports are where the machines' port 50000 really is, and kube where the Kubernetes API is.
	ports map[string]int
	trust map[string]int
	kube  string

	mu      sync.Mutex
	reports []talos.Report
}

func options(planes, workers int) config.Options {
	opts := config.Options{Cluster: "test", Endpoint: "https://127.77.0.1:6443", Mode: config.Container}
	node := func(name string, role config.Role) {
		address := netip.AddrFrom4([4]byte{127, 77, 0, byte(11 + len(opts.Nodes))})
		opts.Nodes = append(opts.Nodes, config.Node{Name: name, Role: role, Address: netip.PrefixFrom(address, 24)})
	}

	for i := range planes {
		node("cp"+strconv.Itoa(i+1), config.ControlPlane)
	}

	for i := range workers {
		node("worker"+strconv.Itoa(i+1), config.Worker)
	}

	return opts
}

func newSandbox(t *testing.T, opts config.Options) *sandbox {
	t.Helper()

	loaded, err := secrets.LoadBundle(filepath.Join("config", "testdata", "secrets.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	s := &sandbox{
		t: t, secrets: loaded, bundle: generate(t, opts, loaded),
		machines: map[string]*machine{}, ports: map[string]int{}, trust: map[string]int{},
	}

	for _, node := range opts.Nodes {
		address := node.Address.Addr()
		s.machines[node.Name] = &machine{hostname: node.Name, address: address}
		s.ports[address.String()], s.trust[address.String()] = freePort(t, address), freePort(t, address)
	}

	return s
}

func generate(t *testing.T, opts config.Options, secrets *config.Secrets) *config.Bundle {
	t.Helper()

	bundle, err := config.Generate(opts, secrets)
	if err != nil {
		t.Fatal(err)
	}

	return bundle
}

func freePort(t *testing.T, address netip.Addr) int {
	t.Helper()

	listener, err := net.Listen("tcp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	return listener.Addr().(*net.TCPAddr).Port
}

// boot starts the API servers of the named machines, or of all.
func (s *sandbox) boot(names ...string) *sandbox {
	for name, m := range s.machines {
		if len(names) == 0 || slices.Contains(names, name) {
			s.serve(m)
		}
	}

	return s
}

func (s *sandbox) serve(m *machine) {
	s.t.Helper()

	address := m.address.String()
	server := api.New(m, api.Options{
		Address:        net.JoinHostPort(address, strconv.Itoa(s.ports[address])),
		TrustAddress:   net.JoinHostPort(address, strconv.Itoa(s.trust[address])),
		TrustEndpoints: s.trustEndpoints,
	})

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)

	go func() { done <- server.Serve(ctx) }()

	s.t.Cleanup(func() {
		cancel()

		if err := <-done; err != nil {
			s.t.Errorf("the API server of %s: %v", m.hostname, err)
		}
	})
}

func (s *sandbox) trustEndpoints() []string {
	var out []string
	for address, port := range s.trust {
		out = append(out, net.JoinHostPort(address, strconv.Itoa(port)))
	}

	return out
}

// dial knows the machines' real ports.
func (s *sandbox) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}

	switch {
	case port == "50000":
		address = net.JoinHostPort(host, strconv.Itoa(s.ports[host]))
	case s.kube != "":
		address = s.kube
	}

	var dialer net.Dialer

	return dialer.DialContext(ctx, network, address)
}

func (s *sandbox) cluster() *talos.Cluster { return s.clusterOf(s.bundle) }

func (s *sandbox) clusterOf(bundle *config.Bundle) *talos.Cluster {
	s.t.Helper()

	c, err := talos.New(talos.Options{Bundle: bundle, Dial: s.dial, Progress: s.progress})
	if err != nil {
		s.t.Fatal(err)
	}

	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Error(err)
		}
	})

	return c
}

func (s *sandbox) progress(r talos.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.reports = append(s.reports, r)
}

// reported tells whether a step reported a state of a node.
func (s *sandbox) reported(step talos.Step, node, state string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.ContainsFunc(s.reports, func(r talos.Report) bool {
		return r.Step == step && r.Node == node && strings.Contains(r.State, state)
	})
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)

	return ctx
}

// applied takes the sandbox past Apply.
func (s *sandbox) applied() *talos.Cluster {
	s.t.Helper()

	c := s.cluster()
	if _, err := c.Apply(within(s.t, 20*time.Second)); err != nil {
		s.t.Fatal(err)
	}

	return c
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()

	if err == nil {
		t.Fatalf("no error, want %q", parts)
	}

	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}
