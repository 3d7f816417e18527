package api

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Bootstrap implements machine.MachineServiceServer.
func (s *service) Bootstrap(ctx context.Context, request *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	if request.GetRecoverEtcd() {
		return nil, fmt.Errorf("bootstrapping etcd from a snapshot: %w", ErrUnsupported)
	}
	if cfg := s.machine.Config(); configured(cfg) && !cfg.Machine().Type().IsControlPlane() {
		return nil, fmt.Errorf("bootstrapping etcd: %w: this is a worker\nname a control plane node", ErrNotReady)
	}
	if err := s.machine.Bootstrap(ctx); err != nil {
		return nil, fmt.Errorf("bootstrapping etcd: %w", err)
	}
	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

// EtcdMemberList implements machine.MachineServiceServer.
func (s *service) EtcdMemberList(ctx context.Context, request *machine.EtcdMemberListRequest) (*machine.EtcdMemberListResponse, error) {
	members, err := s.machine.EtcdMembers(ctx, request.GetQueryLocal())
	if err != nil {
		return nil, fmt.Errorf("listing etcd members: %w", err)
	}
	list := &machine.EtcdMembers{}
	for _, member := range members {
		list.LegacyMembers = append(list.LegacyMembers, member.Hostname)
		list.Members = append(list.Members, &machine.EtcdMember{
			Id:         member.ID,
			Hostname:   member.Hostname,
			PeerUrls:   member.PeerURLs,
			ClientUrls: member.ClientURLs,
			IsLearner:  member.IsLearner,
		})
	}
	return &machine.EtcdMemberListResponse{Messages: []*machine.EtcdMembers{list}}, nil
}

// EtcdStatus implements machine.MachineServiceServer.
func (s *service) EtcdStatus(ctx context.Context, _ *emptypb.Empty) (*machine.EtcdStatusResponse, error) {
	state, err := s.machine.EtcdStatus(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the etcd member for its status: %w", err)
	}
	return &machine.EtcdStatusResponse{Messages: []*machine.EtcdStatus{{MemberStatus: &machine.EtcdMemberStatus{
		MemberId:         state.MemberID,
		Leader:           state.Leader,
		IsLearner:        state.IsLearner,
		ProtocolVersion:  state.ProtocolVersion,
		StorageVersion:   state.StorageVersion,
		DbSize:           state.DBSize,
		DbSizeInUse:      state.DBSizeInUse,
		RaftIndex:        state.RaftIndex,
		RaftTerm:         state.RaftTerm,
		RaftAppliedIndex: state.RaftAppliedIndex,
		Errors:           state.Errors,
	}}}}, nil
}

// Kubeconfig implements machine.MachineServiceServer.
func (s *service) Kubeconfig(_ *emptypb.Empty, stream grpc.ServerStreamingServer[common.Data]) error {
	kubeconfig, err := s.machine.Kubeconfig(stream.Context())
	if err != nil {
		return fmt.Errorf("making a kubeconfig: %w", err)
	}
	archive, err := archiveOf("kubeconfig", kubeconfig, time.Now())
	if err != nil {
		return err
	}
	return stream.Send(&common.Data{Bytes: archive})
}

// archiveOf packs one file into a tar.gz, the form in which the API copies files.
func archiveOf(name string, content []byte, modified time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	compressor := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(compressor)
	if err := archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600, ModTime: modified,
	}); err != nil {
		return nil, fmt.Errorf("packing %q: %w", name, err)
	}
	if _, err := archive.Write(content); err != nil {
		return nil, fmt.Errorf("packing %q: %w", name, err)
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("packing %q: %w", name, err)
	}
	if err := compressor.Close(); err != nil {
		return nil, fmt.Errorf("packing %q: %w", name, err)
	}
	return buffer.Bytes(), nil
}
