package config

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"slices"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// renewBefore is how long before its end a certificate that a user holds is made anew.
const renewBefore = 30 * 24 * time.Hour

// Talosconfig makes the client config of an admin, with a new certificate: talosctl connects to endpoints and asks for
// all nodes of the cluster.
func (b *Bundle) Talosconfig(endpoints []string) (*clientconfig.Config, error) {
	pair, err := b.secrets.GenerateTalosAPIClientCertificate(role.MakeSet(role.Admin))
	if err != nil {
		return nil, fmt.Errorf("making the talosconfig: %w", err)
	}

	cfg := clientconfig.NewConfig(b.options.Cluster, endpoints, b.secrets.Certs.OS.Crt, pair)
	cfg.Contexts[b.options.Cluster].Nodes = b.addresses()

	return cfg, nil
}

func (b *Bundle) addresses() []string {
	var out []string
	for _, node := range b.options.Nodes {
		out = append(out, node.Address.Addr().String())
	}

	return out
}

// WriteTalosconfig writes the client config to path, mode 0600. A file that is still right is left as it is; changed
// tells whether it was written.
func (b *Bundle) WriteTalosconfig(path string, endpoints []string) (changed bool, err error) {
	if data, err := os.ReadFile(path); err == nil && b.talosconfigHolds(data, endpoints, time.Now()) {
		return false, nil
	}

	cfg, err := b.Talosconfig(endpoints)
	if err != nil {
		return false, err
	}

	data, err := cfg.Bytes()
	if err != nil {
		return false, fmt.Errorf("encoding the talosconfig: %w", err)
	}

	return true, writePrivate(path, data)
}

// talosconfigHolds tells whether a talosconfig says what Talosconfig would, with a certificate that is good for a while.
func (b *Bundle) talosconfigHolds(data []byte, endpoints []string, now time.Time) bool {
	cfg, err := clientconfig.FromBytes(data)
	if err != nil || cfg.Context != b.options.Cluster {
		return false
	}

	ctx := cfg.Contexts[cfg.Context]
	if ctx == nil || !slices.Equal(ctx.Endpoints, endpoints) || !slices.Equal(ctx.Nodes, b.addresses()) {
		return false
	}

	ca, err := base64.StdEncoding.DecodeString(ctx.CA)
	if err != nil || !bytes.Equal(ca, b.secrets.Certs.OS.Crt) {
		return false
	}

	crt, err := base64.StdEncoding.DecodeString(ctx.Crt)

	return err == nil && ValidFor(crt, now.Add(renewBefore))
}

// ValidFor tells whether certificate, as PEM, is valid at the given time.
func ValidFor(certificate []byte, at time.Time) bool {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return false
	}

	cert, err := x509.ParseCertificate(block.Bytes)

	return err == nil && at.After(cert.NotBefore) && at.Before(cert.NotAfter)
}
