package api_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"

	"github.com/cozystack/cozydev/talos/node/api"
)

// cluster is the secrets of a cluster and the configs made from them.
type cluster struct {
	t      *testing.T
	bundle *secrets.Bundle
	input  *generate.Input
	port   int // of the machine API, on every node
	trust  int // of trustd, on every node
}

// testSecrets makes the secrets that all tests share. Those of an older Talos have no RSA key, which would take seconds.
var testSecrets = sync.OnceValues(func() (*secrets.Bundle, error) {
	return secrets.NewBundle(secrets.NewClock(), config.TalosVersion1_6)
})

func newCluster(t *testing.T) *cluster {
	t.Helper()
	bundle, err := testSecrets()
	if err != nil {
		t.Fatal(err)
	}
	input, err := generate.NewInput("test", "https://127.0.0.2:6443", "1.36.3", generate.WithSecretsBundle(bundle))
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, bundle: bundle, input: input, port: freePort(t), trust: freePort(t)}
}

// strangerCA makes the machine CA of another cluster.
func strangerCA(t *testing.T) *x509.PEMEncodedCertificateAndKey {
	t.Helper()
	ca, err := secrets.NewTalosCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return x509.NewCertificateAndKeyFromCertificateAuthority(ca)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

func (c *cluster) config(kind machine.Type) config.Provider {
	c.t.Helper()
	cfg, err := c.input.Config(kind)
	if err != nil {
		c.t.Fatal(err)
	}
	return cfg
}

func (c *cluster) bytes(kind machine.Type) []byte {
	c.t.Helper()
	data, err := c.config(kind).Bytes()
	if err != nil {
		c.t.Fatal(err)
	}
	return data
}

// start runs a node's server; cfg nil starts it in maintenance mode.
func (c *cluster) start(hostname, address string, cfg config.Provider) (*fakeMachine, *api.Server) {
	c.t.Helper()
	node := &fakeMachine{hostname: hostname, address: netip.MustParseAddr(address), config: cfg}
	server := api.New(node, api.Options{
		Address:        net.JoinHostPort(address, strconv.Itoa(c.port)),
		TrustAddress:   net.JoinHostPort(address, strconv.Itoa(c.trust)),
		TrustEndpoints: func() []string { return []string{net.JoinHostPort("127.0.0.2", strconv.Itoa(c.trust))} },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	select {
	case <-server.Ready():
	case err := <-done:
		c.t.Fatalf("serving: %v", err)
	}
	c.t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				c.t.Errorf("Serve returned %v", err)
			}
		case <-time.After(5 * time.Second):
			c.t.Error("Serve does not end with its context")
		}
	})
	return node, server
}

// client connects to a node with a certificate of these roles.
func (c *cluster) client(address string, roles ...role.Role) *client.Client {
	c.t.Helper()
	pair, err := secrets.NewAdminCertificateAndKey(time.Now(), c.bundle.Certs.OS, role.MakeSet(roles...), time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.clientWith(address, c.bundle.Certs.OS, pair)
}

func (c *cluster) clientWith(address string, ca, pair *x509.PEMEncodedCertificateAndKey) *client.Client {
	c.t.Helper()
	endpoint := net.JoinHostPort(address, strconv.Itoa(c.port))
	return c.open(client.WithConfig(clientconfig.NewConfig("test", []string{endpoint}, ca.Crt, pair)))
}

// insecure connects to a node as talosctl --insecure does.
func (c *cluster) insecure(address string) *client.Client {
	c.t.Helper()
	return c.open(
		client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}),
		client.WithEndpoints(net.JoinHostPort(address, strconv.Itoa(c.port))),
	)
}

func (c *cluster) open(options ...client.OptionFunc) *client.Client {
	c.t.Helper()
	opened, err := client.New(context.Background(), options...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = opened.Close() })
	return opened
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := client.StatusCode(err); got != want {
		t.Errorf("%s: got code %s (%v), want %s", what, got, err, want)
	}
}

func apply(data []byte, mode machineapi.ApplyConfigurationRequest_Mode) *machineapi.ApplyConfigurationRequest {
	return &machineapi.ApplyConfigurationRequest{Data: data, Mode: mode}
}
