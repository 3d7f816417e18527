package api_test

import (
	stdx509 "crypto/x509"
	"encoding/pem"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/siderolabs/crypto/x509"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"

	"github.com/cozystack/cozydev/talos/node/api"
)

// A worker holds no CA key: it is configured before any control plane is, and answers once one signed its certificate.
func TestWorkerGetsItsCertificateFromTrustd(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", nil)
	c.start("worker1", "127.0.0.3", nil)
	ctx := testContext(t)
	for address, kind := range map[string]machine.Type{"127.0.0.3": machine.TypeWorker, "127.0.0.2": machine.TypeControlPlane} {
		if _, err := c.insecure(address).ApplyConfiguration(ctx, apply(c.bytes(kind), machineapi.ApplyConfigurationRequest_AUTO)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.client("127.0.0.3", role.Reader).Version(ctx); err != nil {
		t.Errorf("asking the worker: %v", err)
	}
	if _, err := c.client("127.0.0.2", role.Reader).Version(client.WithNode(ctx, "127.0.0.3")); err != nil {
		t.Errorf("asking the worker through the control plane: %v", err)
	}
}

func TestTrustd(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start("cp1", "127.0.0.2", c.config(machine.TypeControlPlane))
	ctx := testContext(t)
	endpoint := net.JoinHostPort("127.0.0.2", strconv.Itoa(c.trust))
	token, ca := c.bundle.TrustdInfo.Token, c.bundle.Certs.OS.Crt
	csr, _, err := x509.NewEd25519CSRAndIdentity(
		x509.CommonName("worker1"), x509.DNSNames([]string{"worker1"}), x509.Organization(string(role.Admin)))
	if err != nil {
		t.Fatal(err)
	}
	request := csr.X509CertificateRequestPEM

	var issued *api.Certificate
	eventually(t, "trustd listens", func() bool {
		issued, err = api.RequestCertificate(ctx, []string{"127.0.0.9:1", endpoint}, token, ca, request)
		return err == nil
	})
	block, _ := pem.Decode(issued.Certificate)
	certificate, err := stdx509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if len(certificate.Subject.Organization) > 0 || len(certificate.ExtKeyUsage) != 1 || certificate.ExtKeyUsage[0] != stdx509.ExtKeyUsageServerAuth {
		t.Errorf("a token bought more than a server certificate: %v, %v", certificate.Subject, certificate.ExtKeyUsage)
	}
	if certificate.DNSNames[0] != "worker1" {
		t.Errorf("names %v", certificate.DNSNames)
	}

	_, err = api.RequestCertificate(ctx, []string{endpoint}, "wrong", ca, request)
	wantCode(t, "a wrong token", err, codes.Unauthenticated)
	_, err = api.RequestCertificate(ctx, []string{endpoint}, token, ca, []byte("garbage"))
	wantCode(t, "a request that is none", err, codes.InvalidArgument)
	_, err = api.RequestCertificate(ctx, []string{endpoint}, token, strangerCA(t).Crt, request)
	if err == nil || !strings.Contains(err.Error(), endpoint) {
		t.Errorf("a server of another cluster: %v", err)
	}
}
