package api

import (
	"log/slog"
	"time"

	"github.com/siderolabs/grpc-proxy/proxy"
	"github.com/siderolabs/talos/pkg/machinery/api/security"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// handshakeTimeout bounds a connection's start; on a worker it includes the wait for its first certificate.
const handshakeTimeout = 20 * time.Second

// newFront makes the public server. It knows no methods itself: it finds out who calls and passes everything on.
func newFront(k *keeper, r *router) *grpc.Server {
	return grpc.NewServer(
		grpc.Creds(credentials.NewTLS(k.serverConfig())),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.SharedWriteBuffer(true),
		keepalivePolicy(),
		grpc.ForceServerCodecV2(proxy.Codec()),
		grpc.UnknownServiceHandler(proxy.TransparentHandler(r.direct, proxy.WithStreamedDetector(streamed))),
	)
}

// dialLocal connects the public server with the node's own service.
func dialLocal(inner *pipeListener) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///cozynode",
		grpc.WithContextDialer(inner.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(constants.GRPCMaxMessageSize),
			grpc.ForceCodecV2(proxy.Codec()),
		),
	)
}

// newTrustServer makes the server that signs certificates.
func newTrustServer(k *keeper, logger *slog.Logger) *grpc.Server {
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(k.trustdConfig())),
		grpc.ConnectionTimeout(handshakeTimeout),
		keepalivePolicy(),
	)
	security.RegisterSecurityServiceServer(server, &trustd{keeper: k, logger: logger})
	return server
}

// keepalivePolicy allows clients to ping as often as the Talos client may be told to.
func keepalivePolicy() grpc.ServerOption {
	return grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true})
}
