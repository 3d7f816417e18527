package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/role"
)

// Bundle is everything generated for one cluster.
type Bundle struct {
	options  Options
	secrets  *Secrets
	configs  map[string][]byte
	warnings []string
}

// MachineConfig is the config of the named node as YAML, or nil when there is no such node.
func (b *Bundle) MachineConfig(node string) []byte { return slices.Clone(b.configs[node]) }

// Nodes are the cluster's nodes in the order of the options.
func (b *Bundle) Nodes() []Node { return slices.Clone(b.options.Nodes) }

// Cluster is the cluster's name.
func (b *Bundle) Cluster() string { return b.options.Cluster }

// Endpoint is the URL of the Kubernetes API as the nodes reach it.
func (b *Bundle) Endpoint() string { return b.options.Endpoint }

// Warnings are the validator's remarks on the configs, each once.
func (b *Bundle) Warnings() []string { return slices.Clone(b.warnings) }

// KubernetesCA is the certificate of the Kubernetes CA as PEM.
func (b *Bundle) KubernetesCA() []byte { return slices.Clone(b.secrets.Certs.K8s.Crt) }

// WriteMachineConfigs writes each config to DIR/NODE.yaml, mode 0600. Files that are right are left alone.
func (b *Bundle) WriteMachineConfigs(dir string) error {
	for _, node := range b.options.Nodes {
		path := filepath.Join(dir, node.Name+".yaml")
		if data, err := os.ReadFile(path); err == nil && bytes.Equal(data, b.configs[node.Name]) {
			continue
		}

		if err := writePrivate(path, b.configs[node.Name]); err != nil {
			return err
		}
	}

	return nil
}

// ClientTLS makes the TLS side of an admin's client of the Talos API: a new certificate, and trust in nothing but this
// cluster's Talos CA. The caller owns the result.
func (b *Bundle) ClientTLS() (*tls.Config, error) {
	pair, err := b.secrets.GenerateTalosAPIClientCertificate(role.MakeSet(role.Admin))
	if err != nil {
		return nil, fmt.Errorf("making a client certificate for the Talos API: %w", err)
	}

	cert, err := tls.X509KeyPair(pair.Crt, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("making a client certificate for the Talos API: %w", err)
	}

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b.secrets.Certs.OS.Crt) {
		return nil, errors.New("making a client certificate for the Talos API: the Talos CA is not a certificate")
	}

	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}
