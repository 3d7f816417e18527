package talos

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/cozystack/cozydev/talos/config"
)

// Stage is how far a machine is.
type Stage string

const (
	// Maintenance is a machine without a config: it takes one from anybody.
	Maintenance Stage = "maintenance"
	// Configured is a machine that runs with a config of this cluster.
	Configured Stage = "configured"
	// Foreign is a machine that runs with a config of another cluster.
	Foreign Stage = "foreign"
)

// probe finds a machine's stage from one TLS handshake: in maintenance the server asks for no client certificate, later
// it does, and shows one that its cluster's CA issued.
func (c *Cluster) probe(ctx context.Context, node config.Node) (Stage, error) {
	conn, err := c.dial(ctx, "tcp", apiAddress(node))
	if err != nil {
		return "", err
	}
	defer conn.Close()

	asked := false
	shake := tls.Client(conn, &tls.Config{
		// Who the server is gets judged below, by more than yes or no. Nothing is sent to it here.
		InsecureSkipVerify: true, //nolint:gosec
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true

			return &c.tls.Certificates[0], nil
		},
	})

	if err := shake.HandshakeContext(ctx); err != nil {
		return "", fmt.Errorf("TLS handshake: %w", err)
	}

	return stageOf(shake.ConnectionState(), asked, c.tls.RootCAs)
}

// stageOf judges a finished handshake.
func stageOf(state tls.ConnectionState, askedForCertificate bool, roots *x509.CertPool) (Stage, error) {
	if len(state.PeerCertificates) == 0 {
		return "", errors.New("TLS handshake: the server has no certificate")
	}

	if !askedForCertificate {
		return Maintenance, nil
	}

	intermediates := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}

	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})

	switch unknown := (x509.UnknownAuthorityError{}); {
	case err == nil:
		return Configured, nil
	case errors.As(err, &unknown):
		return Foreign, nil
	default:
		return "", fmt.Errorf("the server's certificate: %w", err)
	}
}
