package api

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/siderolabs/grpc-proxy/proxy"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
)

const (
	// peerIdle is how long a connection to another node is kept open without a request.
	peerIdle = 2 * time.Minute
	// peerRetry bounds the wait between attempts to reach a node; nodes here are back within seconds.
	peerRetry = time.Second
	// maxPeers bounds the connections kept, for callers may name any target.
	maxPeers = 64
)

// peers are the connections to other nodes, all under one set of trusted CAs.
type peers struct {
	keeper *keeper
	port   int

	mu      sync.Mutex
	trustID string
	conns   map[string]*grpc.ClientConn
}

// connect returns the connection to a node. It does not wait until the node answers.
func (p *peers) connect(ctx context.Context, m material, node string) (*grpc.ClientConn, error) {
	config, err := p.keeper.clientConfig(ctx, m)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if id := m.trustID(); p.trustID != id || len(p.conns) >= maxPeers {
		p.closeLocked()
		p.trustID = id
	}
	if conn, ok := p.conns[node]; ok {
		return conn, nil
	}
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(node, strconv.Itoa(p.port)),
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithIdleTimeout(peerIdle),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: peerRetry / 10, Multiplier: 1.6, Jitter: 0.2, MaxDelay: peerRetry,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize),
			grpc.ForceCodecV2(proxy.Codec()),
		),
	)
	if err != nil {
		return nil, err
	}
	p.conns[node] = conn
	return conn, nil
}

// close ends every connection.
func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked()
}

func (p *peers) closeLocked() {
	for _, conn := range p.conns {
		// Closing a client connection fails only when it was closed before.
		_ = conn.Close()
	}
	p.conns = map[string]*grpc.ClientConn{}
}
