package config_test

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"

	"github.com/cozystack/cozydev/talos/config"
)

func generate(t *testing.T) *config.Bundle {
	t.Helper()

	bundle, err := config.Generate(options(), fixedSecrets(t))
	if err != nil {
		t.Fatal(err)
	}

	return bundle
}

func TestWriteTalosconfigOnlyWhenItMustChange(t *testing.T) {
	bundle, path := generate(t), filepath.Join(t.TempDir(), "talosconfig")

	for _, step := range []struct {
		endpoint string
		changed  bool
	}{{"127.0.0.1:50000", true}, {"127.0.0.1:50000", false}, {"127.0.0.1:50001", true}} {
		changed, err := bundle.WriteTalosconfig(path, []string{step.endpoint})
		if err != nil {
			t.Fatal(err)
		}

		if changed != step.changed {
			t.Errorf("endpoint %s: changed is %v", step.endpoint, changed)
		}

		cfg, err := clientconfig.Open(path)
		if err != nil {
			t.Fatal(err)
		}

		ctx := cfg.Contexts[cfg.Context]
		if cfg.Context != "cozydev" || !slices.Equal(ctx.Endpoints, []string{step.endpoint}) {
			t.Errorf("context %q has the endpoints %q", cfg.Context, ctx.Endpoints)
		}

		if want := []string{"192.168.123.11", "192.168.123.12"}; !slices.Equal(ctx.Nodes, want) {
			t.Errorf("the nodes are %q", ctx.Nodes)
		}
	}

	wantPrivate(t, path)

	// Rubbish and another cluster's file are replaced.
	if err := os.WriteFile(path, []byte("context: other\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	if changed, err := bundle.WriteTalosconfig(path, nil); err != nil || !changed {
		t.Errorf("changed is %v, the error %v", changed, err)
	}
}

func TestWriteMachineConfigs(t *testing.T) {
	bundle, dir := generate(t), filepath.Join(t.TempDir(), "machines")
	if err := bundle.WriteMachineConfigs(dir); err != nil {
		t.Fatal(err)
	}

	data, err := os.ReadFile(filepath.Join(dir, "worker1.yaml"))
	if err != nil || !bytes.Equal(data, bundle.MachineConfig("worker1")) {
		t.Errorf("worker1.yaml is not its machine config (%v)", err)
	}

	wantPrivate(t, filepath.Join(dir, "cp1.yaml"))
}

func TestClientTLSIsSignedByTheTalosCA(t *testing.T) {
	cfg, err := generate(t).ClientTLS()
	if err != nil {
		t.Fatal(err)
	}

	leaf, err := x509.ParseCertificate(cfg.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}

	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: cfg.RootCAs, KeyUsages: usage}); err != nil {
		t.Error(err)
	}

	if !slices.Equal(leaf.Subject.Organization, []string{"os:admin"}) {
		t.Errorf("the roles are %q", leaf.Subject.Organization)
	}
}

func TestValidFor(t *testing.T) {
	secrets := fixedSecrets(t)
	crt := secrets.Certs.OS.Crt

	block := time.Now()
	if !config.ValidFor(crt, block) || config.ValidFor(crt, block.AddDate(20, 0, 0)) || config.ValidFor([]byte("x"), block) {
		t.Error("a certificate is valid between its two dates and at no other time")
	}
}
