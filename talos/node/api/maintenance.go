package api

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errConfigured ends what anyone may do in maintenance mode, once the node has its config.
var errConfigured = status.Error(codes.Unauthenticated,
	"the node has its config and left maintenance mode\nconnect again with the client certificate in the talosconfig")

// maintenance ends the streams that callers without a certificate opened, when the node leaves maintenance mode. Its zero value
// is ready.
type maintenance struct {
	mu   sync.Mutex
	left chan struct{}
}

// leave ends the streams under way.
func (m *maintenance) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left != nil {
		close(m.left)
		m.left = nil
	}
}

// leaving returns a channel that the next leave closes.
func (m *maintenance) leaving() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == nil {
		m.left = make(chan struct{})
	}
	return m.left
}

// handle runs a stream's handler under a context that leave ends. still reports whether the node is in maintenance mode yet.
func (m *maintenance) handle(srv any, stream grpc.ServerStream, still func() bool, handle grpc.StreamHandler) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	left := m.leaving()
	if !still() {
		return errConfigured
	}
	go func() {
		select {
		case <-left:
			cancel(errConfigured)
		case <-ctx.Done():
		}
	}()
	err := handle(srv, &boundStream{ServerStream: stream, ctx: ctx})
	if errors.Is(context.Cause(ctx), errConfigured) {
		return errConfigured
	}
	return err
}

// boundStream is a stream under a context of its own.
type boundStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (b *boundStream) Context() context.Context { return b.ctx }
