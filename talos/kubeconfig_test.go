package talos_test

import (
	stdx509 "crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
	"k8s.io/client-go/tools/clientcmd"
)

// admin is a kubeconfig as a node gives it, whose certificate is good for ttl.
func (s *sandbox) admin(ttl time.Duration) []byte {
	s.t.Helper()

	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(s.secrets.Certs.K8s)
	if err != nil {
		s.t.Fatal(err)
	}

	pair, err := x509.NewKeyPair(ca, x509.CommonName("admin"), x509.Organization("system:masters"),
		x509.NotAfter(time.Now().Add(ttl)), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))
	if err != nil {
		s.t.Fatal(err)
	}

	encode := base64.StdEncoding.EncodeToString

	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://127.77.0.1:6443", certificate-authority-data: %s}}]
users: [{name: admin@test, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: admin@test, context: {cluster: test, user: admin@test}}]
current-context: admin@test
`, encode(s.secrets.Certs.K8s.Crt), encode(pair.CrtPEM), encode(pair.KeyPEM))
}

func TestKubeconfigIsFetchedOnlyWhenItMust(t *testing.T) {
	s := newSandbox(t, options(2, 0)).boot()
	c := s.applied()
	cp2 := s.machines["cp2"]
	path := filepath.Join(t.TempDir(), "kubeconfig")

	for _, step := range []struct {
		name    string
		server  string
		ttl     time.Duration
		changed bool
	}{
		{"new", "https://127.0.0.1:40001", time.Hour, true},
		{"soon to expire", "https://127.0.0.1:40001", 90 * 24 * time.Hour, true},
		{"right", "https://127.0.0.1:40001", time.Hour, false},
		{"another port", "https://127.0.0.1:40002", time.Hour, true},
	} {
		// cp1 is never ready to give one.
		cp2.change(func() { cp2.kubeconfig = s.admin(step.ttl) })
		before := cp2.kubeconfigs

		data, changed, err := c.Kubeconfig(within(t, 20*time.Second), path, step.server)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}

		if changed != step.changed || (cp2.kubeconfigs > before) != step.changed {
			t.Errorf("%s: changed is %v after %d requests", step.name, changed, cp2.kubeconfigs-before)
		}

		cfg, err := clientcmd.Load(data)
		if err != nil || cfg.Clusters["test"].Server != step.server {
			t.Errorf("%s: the server of %s is not %s (%v)", step.name, data, step.server, err)
		}
	}

	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v (%v), want 0600", info.Mode(), err)
	}
}

func TestKubeconfigTellsWhyThereIsNone(t *testing.T) {
	s := newSandbox(t, options(1, 0)).boot()

	_, _, err := s.applied().Kubeconfig(within(t, 500*time.Millisecond), filepath.Join(t.TempDir(), "kubeconfig"), "https://127.0.0.1:1")
	wantError(t, err, "fetching the kubeconfig: cp1: making a kubeconfig: making a kubeconfig: not possible in the node's present state")
}
