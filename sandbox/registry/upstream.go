package registry

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Upstreams makes a pull-through cache per upstream host when it is first asked for one.
type Upstreams struct {
	// Dir holds one directory per host.
	Dir string
	// Context bounds the caches' background work.
	Context context.Context //nolint:containedctx // the caches live as long as the registry, not as long as a request
	// URL turns a host into the upstream's base URL; nil means DefaultURL.
	URL func(host string) string

	mu    sync.Mutex
	hosts map[string]*upstream
}

type upstream struct {
	ready   chan struct{}
	handler http.Handler
	err     error
	at      time.Time
}

// retryAfter is how long an upstream that did not answer is not asked again.
const retryAfter = 5 * time.Second

// DefaultURL is https://host, with Docker Hub's API host for docker.io and plain HTTP for loopback.
func DefaultURL(host string) string {
	name, _, _ := strings.Cut(host, ":")
	switch {
	case host == "docker.io":
		return "https://registry-1.docker.io"
	case name == "localhost" || strings.HasPrefix(name, "127."):
		return "http://" + host
	default:
		return "https://" + host
	}
}

// handler returns the cache of a host. Making one asks the upstream for its authentication scheme, which may take
// long; callers of the same host share one attempt, and each waits only as long as its own context.
func (u *Upstreams) handler(ctx context.Context, host string) (http.Handler, error) {
	if strings.ContainsAny(host, "/\\") || strings.HasPrefix(host, ".") {
		return nil, fmt.Errorf("%q is not a registry host", host)
	}
	u.mu.Lock()
	entry, ok := u.hosts[host]
	if !ok || entry.stale() {
		entry = &upstream{ready: make(chan struct{})}
		if u.hosts == nil {
			u.hosts = map[string]*upstream{}
		}
		u.hosts[host] = entry
		go u.open(entry, host)
	}
	u.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for upstream registry %q: %w", host, ctx.Err())
	case <-entry.ready:
		return entry.handler, entry.err
	}
}

func (u *Upstreams) open(entry *upstream, host string) {
	defer close(entry.ready)
	locate := u.URL
	if locate == nil {
		locate = DefaultURL
	}
	entry.handler, entry.err = newApp(u.Context, filepath.Join(u.Dir, host), locate(host))
	entry.at = time.Now()
}

// stale tells that opening failed long enough ago to try again.
func (u *upstream) stale() bool {
	select {
	case <-u.ready:
		return u.err != nil && time.Since(u.at) > retryAfter
	default:
		return false
	}
}
