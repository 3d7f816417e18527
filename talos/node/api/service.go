package api

import (
	"context"
	"log/slog"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/version"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// service implements the machine API's methods for one node. Only the public server of the same process reaches it.
type service struct {
	machine.UnimplementedMachineServiceServer

	machine     Machine
	trials      *trials
	maintenance maintenance
	// changed is called after a config was applied.
	changed func()
	logger  *slog.Logger
	rules   map[string]rule
}

func newService(m Machine, changed func(), logger *slog.Logger) *service {
	return &service{machine: m, trials: newTrials(m, changed, logger), changed: changed, logger: logger, rules: rules()}
}

// server returns the gRPC server of the methods, with their authorization.
func (s *service) server() *grpc.Server {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(constants.GRPCMaxMessageSize),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
		// Methods of other services pass the interceptor too, which refuses them by name; this is never reached.
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { return statusOf(ErrUnsupported) }),
	)
	machine.RegisterMachineServiceServer(server, s)
	return server
}

func (s *service) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := authorize(s.rules, info.FullMethod, callerFrom(ctx)); err != nil {
		return nil, err
	}
	response, err := handle(ctx, request)
	return response, statusOf(err)
}

func (s *service) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	who := callerFrom(stream.Context())
	if err := authorize(s.rules, info.FullMethod, who); err != nil {
		return err
	}
	if who.maintenance {
		return statusOf(s.maintenance.handle(srv, stream, s.inMaintenance, handle))
	}
	return statusOf(handle(srv, stream))
}

func (s *service) inMaintenance() bool { return !configured(s.machine.Config()) }

// Version implements machine.MachineServiceServer. The version is that of the Talos whose API this is, because clients
// compare it with their own.
func (s *service) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	info := version.NewVersion()
	return &machine.VersionResponse{Messages: []*machine.Version{{
		Version:  info,
		Platform: &machine.PlatformInfo{Name: "cozynode", Mode: runtimeMode{}.String()},
		Features: &machine.FeaturesInfo{Rbac: true},
	}}}, nil
}

// Hostname implements machine.MachineServiceServer.
func (s *service) Hostname(context.Context, *emptypb.Empty) (*machine.HostnameResponse, error) {
	return &machine.HostnameResponse{Messages: []*machine.Hostname{{Hostname: s.machine.Hostname()}}}, nil
}
