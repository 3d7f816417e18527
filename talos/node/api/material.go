package api

import (
	"bytes"
	"crypto/sha256"
	stdx509 "crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config"
)

// material is what a node's certificates are made from: a value, so that two of them tell whether to issue again.
type material struct {
	// ca issues certificates; its key is empty on workers, and ca is nil where only accepted CAs are configured.
	ca *x509.PEMEncodedCertificateAndKey
	// roots are the PEM certificates that clients and servers of this cluster may be issued by.
	roots    [][]byte
	token    string
	hostname string
	names    []string
	ips      []netip.Addr
	// controlPlane says that the node signs for others and forwards requests.
	controlPlane bool
	// endpoint is the host of the cluster's control plane endpoint.
	endpoint string
}

// configured reports whether cfg is a config that ends maintenance mode.
func configured(cfg config.Provider) bool {
	return cfg != nil && cfg.Machine() != nil && cfg.Cluster() != nil
}

// materialOf collects the certificate material of a configured node.
func materialOf(cfg config.Provider, who Identity) material {
	security := cfg.Machine().Security()
	m := material{
		ca:           security.IssuingCA(),
		token:        security.Token(),
		hostname:     who.Hostname(),
		controlPlane: cfg.Machine().Type().IsControlPlane(),
	}
	if m.ca != nil && len(m.ca.Crt) > 0 {
		m.roots = append(m.roots, m.ca.Crt)
	}
	for _, accepted := range security.AcceptedCAs() {
		m.roots = append(m.roots, accepted.Crt)
	}
	if endpoint := cfg.Cluster().Endpoint(); endpoint != nil {
		m.endpoint = hostOf(endpoint)
	}
	m.addSANs(who, security.CertSANs())
	return m
}

func hostOf(endpoint *url.URL) string {
	return strings.TrimSuffix(endpoint.Hostname(), ".")
}

// addSANs fills in what the node is called: its own names and addresses, the config's, and, on a control plane, the
// cluster's endpoint, because a load balancer there passes connections through to any of them.
func (m *material) addSANs(who Identity, extra []string) {
	m.ips = append(m.ips, who.Addresses()...)
	extra = append(slices.Clone(extra), m.hostname)
	if m.controlPlane && m.endpoint != "" {
		extra = append(extra, m.endpoint)
	}
	for _, san := range extra {
		if ip, err := netip.ParseAddr(san); err == nil {
			m.ips = append(m.ips, ip)
		} else if san != "" {
			m.names = append(m.names, san)
		}
	}
	slices.SortFunc(m.ips, netip.Addr.Compare)
	m.ips = slices.Compact(m.ips)
	slices.Sort(m.names)
	m.names = slices.Compact(m.names)
}

// canSign reports whether the node holds the CA's key.
func (m material) canSign() bool { return m.ca != nil && len(m.ca.Key) > 0 }

// trustID names the set of CAs trusted.
func (m material) trustID() string {
	return digest(bytes.Join(m.roots, []byte{0}))
}

// id names everything that the node's certificates depend on.
func (m material) id() string {
	return digest(fmt.Appendf(nil, "%s|%v|%s|%q|%v", m.trustID(), m.canSign(), m.hostname, m.names, m.ips))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pool returns the CAs trusted as a certificate pool.
func (m material) pool() (*stdx509.CertPool, error) {
	pool := stdx509.NewCertPool()
	for _, root := range m.roots {
		if !pool.AppendCertsFromPEM(root) {
			return nil, fmt.Errorf("reading the machine CA: no certificate in it: %w\ncheck machine.ca.crt and machine.acceptedCAs", ErrInvalid)
		}
	}
	return pool, nil
}

func (m material) netIPs() []net.IP {
	ips := make([]net.IP, 0, len(m.ips))
	for _, ip := range m.ips {
		ips = append(ips, ip.AsSlice())
	}
	return ips
}
