package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// serverConfig returns the TLS config of the API port. Which certificate it shows, and whether it demands one of the
// client, is decided at each handshake, so leaving maintenance mode needs no new listener.
func (k *keeper) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2"},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			m, ok := k.material()
			if !ok {
				return k.maintenanceConfig()
			}
			return k.mutualConfig(hello.Context(), m)
		},
	}
}

func (k *keeper) maintenanceConfig() (*tls.Config, error) {
	cert, err := k.maintenanceCertificate()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"h2"},
		Certificates: []tls.Certificate{*cert},
		// Sessions would outlive the mode they began in.
		SessionTicketsDisabled: true,
	}, nil
}

func (k *keeper) mutualConfig(ctx context.Context, m material) (*tls.Config, error) {
	pool, err := k.pool(m)
	if err != nil {
		return nil, err
	}
	pairs, err := k.pairs(ctx, m)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"h2"},
		Certificates:           []tls.Certificate{pairs.server},
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              pool,
		SessionTicketsDisabled: true,
	}, nil
}

// trustdConfig returns the TLS config of the signing port: the same server certificate, but no client certificate, for a
// worker that asks has none yet.
func (k *keeper) trustdConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			m, ok := k.material()
			if !ok || !m.canSign() {
				return nil, fmt.Errorf("signing certificates: %w", ErrNotReady)
			}
			pairs, err := k.pairs(hello.Context(), m)
			if err != nil {
				return nil, err
			}
			return &pairs.server, nil
		},
		SessionTicketsDisabled: true,
	}
}

// clientConfig returns the TLS config for forwarding requests to other nodes; only nodes that hold the CA's key have one.
func (k *keeper) clientConfig(ctx context.Context, m material) (*tls.Config, error) {
	pool, err := k.pool(m)
	if err != nil {
		return nil, err
	}
	pairs, err := k.pairs(ctx, m)
	if err != nil {
		return nil, err
	}
	if pairs.client == nil {
		return nil, fmt.Errorf("forwarding a request: %w", ErrUnsupported)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    pool,
		// Asked at each connection, so that a renewed certificate is used without dialing anew.
		GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			current, ok := k.material()
			if !ok {
				return nil, fmt.Errorf("forwarding a request: %w", ErrNotReady)
			}
			pairs, err := k.pairs(info.Context(), current)
			if err != nil {
				return nil, err
			}
			return pairs.client, nil
		},
	}, nil
}

// verifyClient checks that a client's certificates were issued by a CA that m trusts now, which may be another than at the
// time of the connection's handshake.
func (k *keeper) verifyClient(m material, certs []*x509.Certificate) error {
	pool, err := k.pool(m)
	if err != nil {
		return err
	}
	intermediates := x509.NewCertPool()
	for _, cert := range certs[1:] {
		intermediates.AddCert(cert)
	}
	_, err = certs[0].Verify(x509.VerifyOptions{
		Roots:         pool,
		Intermediates: intermediates,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}
