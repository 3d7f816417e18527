package api

import (
	"crypto/tls"
	stdx509 "crypto/x509"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// keypairs are a node's certificates with their keys.
type keypairs struct {
	// id and trustID are those of the material they were made from.
	id, trustID string
	server      tls.Certificate
	// client is what a control plane shows to other nodes when it forwards requests; nil elsewhere.
	client  *tls.Certificate
	renewAt time.Time
	expires time.Time
}

// fresh reports whether the pairs are right for m and not due for renewal.
func (k *keypairs) fresh(m material, now time.Time) bool {
	return k != nil && k.id == m.id() && now.Before(k.renewAt)
}

// usable reports whether the pairs still serve for m, though there should be better ones.
func (k *keypairs) usable(m material, now time.Time) bool {
	return k != nil && k.trustID == m.trustID() && now.Before(k.expires)
}

// newKeypairs binds certificates to the material they were made from. They are renewed at half their life.
func newKeypairs(m material, server tls.Certificate, client *tls.Certificate) (*keypairs, error) {
	leaf, err := leafOf(server)
	if err != nil {
		return nil, err
	}
	server.Leaf = leaf
	now := time.Now()
	return &keypairs{
		id: m.id(), trustID: m.trustID(),
		server: server, client: client,
		renewAt: now.Add(leaf.NotAfter.Sub(now) / 2),
		expires: leaf.NotAfter,
	}, nil
}

func leafOf(cert tls.Certificate) (*stdx509.Certificate, error) {
	if cert.Leaf != nil {
		return cert.Leaf, nil
	}
	leaf, err := stdx509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("reading the API certificate: %w", err)
	}
	return leaf, nil
}

// selfSigned makes the certificate of maintenance mode, which clients can only pin by its fingerprint.
func selfSigned(who Identity) (tls.Certificate, error) {
	m := material{hostname: who.Hostname()}
	m.addSANs(who, nil)
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.Organization("cozynode"))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the certificate of maintenance mode: %w", err)
	}
	return issueServer(ca, m)
}

// issueLocally makes the certificates of a node that holds the CA's key.
func issueLocally(m material) (*keypairs, error) {
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(m.ca)
	if err != nil {
		return nil, fmt.Errorf("reading the machine CA: %w\ncheck machine.ca in the machine config", err)
	}
	server, err := issueServer(ca, m)
	if err != nil {
		return nil, err
	}
	client, err := x509.NewKeyPair(ca,
		x509.CommonName(m.hostname),
		x509.Organization(string(role.Impersonator)),
		x509.NotAfter(time.Now().Add(x509.DefaultCertificateValidityDuration)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}),
	)
	if err != nil {
		return nil, fmt.Errorf("issuing the certificate for forwarding requests: %w", err)
	}
	return newKeypairs(m, server, client.Certificate)
}

func issueServer(ca *x509.CertificateAuthority, m material) (tls.Certificate, error) {
	pair, err := x509.NewKeyPair(ca, append(m.subject(),
		x509.NotAfter(time.Now().Add(x509.DefaultCertificateValidityDuration)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}),
	)...)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("issuing the API certificate: %w", err)
	}
	return *pair.Certificate, nil
}

// subject says whom the node's server certificate is for.
func (m material) subject() []x509.Option {
	return []x509.Option{x509.CommonName(m.hostname), x509.IPAddresses(m.netIPs()), x509.DNSNames(m.names)}
}
