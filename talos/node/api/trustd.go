package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	stdx509 "crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/api/security"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// tokenKey is the metadata key under which a worker sends machine.token, as Talos' trustd expects it.
const tokenKey = "token"

// trustd signs the API certificates of workers, which hold the machine CA's certificate but not its key.
type trustd struct {
	security.UnimplementedSecurityServiceServer

	keeper *keeper
	logger *slog.Logger
}

// Certificate implements security.SecurityServiceServer.
func (t *trustd) Certificate(ctx context.Context, request *security.CertificateRequest) (*security.CertificateResponse, error) {
	m, ok := t.keeper.material()
	if !ok || !m.canSign() {
		return nil, status.Error(codes.FailedPrecondition, "this node signs no certificates: it is not a configured control plane")
	}
	if err := checkToken(ctx, m.token); err != nil {
		return nil, err
	}
	signed, err := signServer(m, request.GetCsr())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "signing the certificate request: %v", err)
	}
	t.logger.Info("signed an API certificate", "for", signed.X509Certificate.Subject.CommonName)
	return &security.CertificateResponse{Ca: m.ca.Crt, Crt: signed.X509CertificatePEM}, nil
}

// checkToken compares hashes, so that neither the token's content nor its length shows in the time it takes.
func checkToken(ctx context.Context, token string) error {
	md, _ := metadata.FromIncomingContext(ctx)
	sent := md.Get(tokenKey)
	if len(sent) == 0 || token == "" {
		return status.Error(codes.Unauthenticated, "the request carries no machine token")
	}
	got, want := sha256.Sum256([]byte(sent[0])), sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		return status.Error(codes.Unauthenticated, "the machine token is wrong\ncheck machine.token: it must be the same on every node")
	}
	return nil
}

// signServer signs a request for serving only. The token is on every worker, so what it buys must never make a client: the
// usage is fixed and the organizations, which are roles, are dropped.
func signServer(m material, csr []byte) (*x509.Certificate, error) {
	return x509.NewCertificateFromCSRBytes(m.ca.Crt, m.ca.Key, csr,
		x509.NotAfter(time.Now().Add(x509.DefaultCertificateValidityDuration)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}),
		x509.OverrideSubject(func(subject *pkix.Name) { subject.Organization = nil }),
	)
}
