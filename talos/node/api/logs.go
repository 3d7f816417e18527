package api

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// chunkSize is how much of a log goes into one message.
const chunkSize = 32 << 10

// Logs implements machine.MachineServiceServer.
func (s *service) Logs(request *machine.LogsRequest, stream grpc.ServerStreamingServer[common.Data]) error {
	if namespace := request.GetNamespace(); namespace != "" && namespace != constants.SystemContainerdNamespace {
		return fmt.Errorf("reading the log of container %q in namespace %q: %w\nuse kubectl logs",
			request.GetId(), namespace, ErrUnsupported)
	}
	reader, err := s.machine.Logs(stream.Context(), request.GetId(), LogOptions{
		Follow: request.GetFollow(), Tail: int(request.GetTailLines()),
	})
	if err != nil {
		return fmt.Errorf("reading the log of service %q: %w", request.GetId(), err)
	}
	return sendAll(stream, reader)
}

// LogsContainers implements machine.MachineServiceServer.
func (s *service) LogsContainers(context.Context, *emptypb.Empty) (*machine.LogsContainersResponse, error) {
	return &machine.LogsContainersResponse{Messages: []*machine.LogsContainer{{Ids: s.machine.LogIDs()}}}, nil
}

// Dmesg implements machine.MachineServiceServer. The kernel is not the node's own, so what it shows is the node's console.
func (s *service) Dmesg(request *machine.DmesgRequest, stream grpc.ServerStreamingServer[common.Data]) error {
	options := LogOptions{Follow: request.GetFollow(), Tail: -1}
	if request.GetTail() {
		options.Tail = 0
	}
	reader, err := s.machine.Console(stream.Context(), options)
	if err != nil {
		return fmt.Errorf("reading the node's console: %w", err)
	}
	return sendAll(stream, reader)
}

// sendAll sends what a reader yields until its end, then closes it. It closes it early when the caller leaves, for a reader
// that follows a log may block.
func sendAll(stream grpc.ServerStreamingServer[common.Data], reader io.ReadCloser) error {
	ctx := stream.Context()
	left := context.AfterFunc(ctx, func() { _ = reader.Close() })
	defer func() {
		if left() {
			_ = reader.Close()
		}
	}()
	buffer := make([]byte, chunkSize)
	for {
		n, err := reader.Read(buffer)
		if n > 0 {
			if err := stream.Send(&common.Data{Bytes: buffer[:n]}); err != nil {
				return err
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading a log: %w", err)
		}
	}
}
