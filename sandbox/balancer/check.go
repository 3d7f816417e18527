package balancer

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

// TCP returns a check that is satisfied by an accepted connection.
func TCP(dial Dialer) Check {
	return func(ctx context.Context, address string) (Health, error) {
		conn, err := dial(ctx, "tcp", address)
		if err != nil {
			return Down, err
		}
		_ = conn.Close()
		return Ready, nil
	}
}

// HTTPS returns a check that asks for a path over TLS and keeps the connection between checks. Any answer but a server
// error is Ready: a server that demands credentials it was not shown works. The certificate is not verified, because
// the one who connects through the balancer does that.
func HTTPS(dial Dialer, path string) Check {
	client := &http.Client{Transport: &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // see above
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     time.Minute,
	}}
	return func(ctx context.Context, address string) (Health, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+path, nil)
		if err != nil {
			return Down, err
		}
		response, err := client.Do(request)
		if err != nil {
			return reachable(ctx, dial, address, err)
		}
		defer response.Body.Close()
		if response.StatusCode >= http.StatusInternalServerError {
			return Reachable, fmt.Errorf("%s answers %s", path, response.Status)
		}
		return Ready, nil
	}
}

// reachable tells a backend that is down from one that accepts but does not answer properly.
func reachable(ctx context.Context, dial Dialer, address string, cause error) (Health, error) {
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return Down, err
	}
	_ = conn.Close()
	return Reachable, cause
}

// Pipe copies between two connections until both directions have ended, passing on half-closes.
func Pipe(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyHalf(a, b)
	}()
	copyHalf(b, a)
	<-done
}
