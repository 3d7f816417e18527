package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/security"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// requestTimeout bounds one control plane's answer to a certificate request.
const requestTimeout = 5 * time.Second

// Certificate is what a control plane issued.
type Certificate struct {
	// CA is the issuer's certificate in PEM.
	CA []byte
	// Certificate is the certificate issued, in PEM.
	Certificate []byte
}

// RequestCertificate asks the control planes, one after the other, to sign a PEM certificate request, until one does.
// An endpoint is a host with or without a port (50001 else). Its certificate must come from one of the CAs in ca (PEM). The token is
// machine.token of the cluster's configs. The error names what each endpoint answered.
func RequestCertificate(ctx context.Context, endpoints []string, token string, ca, csr []byte) (*Certificate, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("requesting a certificate: no CA certificate to trust: %w\ncheck machine.ca.crt", ErrInvalid)
	}
	if len(endpoints) == 0 {
		return nil, errors.New("requesting a certificate: no control plane is known\ncheck cluster.controlPlane.endpoint")
	}
	var failures []error
	for _, endpoint := range endpoints {
		issued, err := requestFrom(ctx, withPort(endpoint), token, roots, csr)
		if err == nil {
			return issued, nil
		}
		failures = append(failures, fmt.Errorf("requesting a certificate from %q: %w", endpoint, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(failures...)
}

func withPort(endpoint string) string {
	if _, _, err := net.SplitHostPort(endpoint); err == nil {
		return endpoint
	}
	return net.JoinHostPort(endpoint, strconv.Itoa(constants.TrustdPort))
}

func requestFrom(ctx context.Context, endpoint, token string, roots *x509.CertPool, csr []byte) (*Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:///"+endpoint,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots})),
		grpc.WithPerRPCCredentials(tokenCredentials(token)),
	)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	response, err := security.NewSecurityServiceClient(conn).Certificate(ctx, &security.CertificateRequest{Csr: csr})
	if err != nil {
		return nil, err
	}
	return &Certificate{CA: response.GetCa(), Certificate: response.GetCrt()}, nil
}

// tokenCredentials sends the machine token with each request.
type tokenCredentials string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t tokenCredentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{tokenKey: string(t)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (t tokenCredentials) RequireTransportSecurity() bool { return true }
