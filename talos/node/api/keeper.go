package api

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/siderolabs/crypto/x509"
)

// A worker waits issueRetry and then ever longer, up to maxIssueRetry, between two rounds of asking the control planes for
// its certificate. Their trustd listens within a second of their config, so the first waits are short.
const (
	issueRetry    = 250 * time.Millisecond
	maxIssueRetry = 5 * time.Second
)

// keeper holds the node's certificates and keeps them in step with its config.
type keeper struct {
	machine Machine
	logger  *slog.Logger
	// request asks the control planes for a certificate.
	request func(ctx context.Context, m material, csr []byte) (*Certificate, error)

	wanted chan struct{} // a signal to run: a certificate from trustd is due

	mu          sync.Mutex
	current     *keypairs
	changed     chan struct{} // closed when current changes
	maintenance *tls.Certificate
	roots       *stdx509.CertPool
	rootsID     string
}

func newKeeper(machine Machine, logger *slog.Logger) *keeper {
	return &keeper{machine: machine, logger: logger, wanted: make(chan struct{}, 1), changed: make(chan struct{})}
}

// material returns the material of the config in force; ok is false in maintenance mode.
func (k *keeper) material() (m material, ok bool) {
	cfg := k.machine.Config()
	if !configured(cfg) {
		return material{}, false
	}
	return materialOf(cfg, k.machine), true
}

// pool returns the CAs trusted by m.
func (k *keeper) pool(m material) (*stdx509.CertPool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id := m.trustID(); k.roots == nil || k.rootsID != id {
		pool, err := m.pool()
		if err != nil {
			return nil, err
		}
		k.roots, k.rootsID = pool, id
	}
	return k.roots, nil
}

// maintenanceCertificate returns the self-signed certificate, made once.
func (k *keeper) maintenanceCertificate() (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.maintenance != nil {
		return k.maintenance, nil
	}
	cert, err := selfSigned(k.machine)
	if err != nil {
		return nil, err
	}
	if leaf, err := leafOf(cert); err == nil {
		k.logger.Info("serving in maintenance mode", "fingerprint", x509.SPKIFingerprint(leaf).String())
	}
	k.maintenance = &cert
	return k.maintenance, nil
}

// pairs returns certificates for m. On a worker without any it waits until the control planes issued them or ctx ends.
func (k *keeper) pairs(ctx context.Context, m material) (*keypairs, error) {
	for {
		pairs, changed, err := k.pairsNow(m)
		if err != nil || pairs != nil {
			return pairs, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.New("no API certificate yet: the control planes have not issued it")
		case <-changed:
		}
	}
}

// pairsNow returns what certificates there are for m, issuing them where the node can, else asking run for them. Without any
// it returns a channel that is closed at the next change.
func (k *keeper) pairsNow(m material) (*keypairs, <-chan struct{}, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.current.fresh(m, now) {
		return k.current, nil, nil
	}
	if m.canSign() {
		pairs, err := issueLocally(m)
		if err != nil {
			return nil, nil, err
		}
		k.set(pairs)
		return pairs, nil, nil
	}
	select {
	case k.wanted <- struct{}{}:
	default:
	}
	if k.current.usable(m, now) {
		return k.current, nil, nil
	}
	return nil, k.changed, nil
}

// set replaces the current pairs; the caller holds mu.
func (k *keeper) set(pairs *keypairs) {
	k.current = pairs
	close(k.changed)
	k.changed = make(chan struct{})
}

// run fetches a worker's certificates from the control planes when they are due, until ctx ends.
func (k *keeper) run(ctx context.Context) {
	wait := issueRetry
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wanted:
		}
		err := k.fetch(ctx)
		if err == nil {
			wait = issueRetry
			continue
		}
		k.logger.Warn("no API certificate yet, asking again", "in", wait, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			k.want()
		}
		wait = min(2*wait, maxIssueRetry)
	}
}

// want asks run for certificates, if they are due.
func (k *keeper) want() {
	if m, ok := k.material(); ok {
		// An error here comes back at the next handshake, to the client that it concerns.
		_, _, _ = k.pairsNow(m)
	}
}

func (k *keeper) fetch(ctx context.Context) error {
	m, ok := k.material()
	if !ok || m.canSign() {
		return nil
	}
	csr, key, err := x509.NewEd25519CSRAndIdentity(m.subject()...)
	if err != nil {
		return err
	}
	issued, err := k.request(ctx, m, csr.X509CertificateRequestPEM)
	if err != nil {
		return err
	}
	server, err := tls.X509KeyPair(issued.Certificate, key.Key)
	if err != nil {
		return err
	}
	pairs, err := newKeypairs(m, server, nil)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set(pairs)
	return nil
}
