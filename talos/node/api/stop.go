package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// Reboot implements machine.MachineServiceServer. A power cycle is the same as a reboot: there is no kernel to exchange.
func (s *service) Reboot(ctx context.Context, request *machine.RebootRequest) (*machine.RebootResponse, error) {
	actor, err := s.stop(ctx, StopRequest{Action: StopReboot, Force: request.GetMode() == machine.RebootRequest_FORCE})
	if err != nil {
		return nil, err
	}
	return &machine.RebootResponse{Messages: []*machine.Reboot{{ActorId: actor}}}, nil
}

// Shutdown implements machine.MachineServiceServer.
func (s *service) Shutdown(ctx context.Context, request *machine.ShutdownRequest) (*machine.ShutdownResponse, error) {
	actor, err := s.stop(ctx, StopRequest{Action: StopShutdown, Force: request.GetForce()})
	if err != nil {
		return nil, err
	}
	return &machine.ShutdownResponse{Messages: []*machine.Shutdown{{ActorId: actor}}}, nil
}

// Reset implements machine.MachineServiceServer.
func (s *service) Reset(ctx context.Context, request *machine.ResetRequest) (*machine.ResetResponse, error) {
	stop, err := resetOf(request)
	if err != nil {
		return nil, err
	}
	actor, err := s.stop(ctx, stop)
	if err != nil {
		return nil, err
	}
	return &machine.ResetResponse{Messages: []*machine.Reset{{ActorId: actor}}}, nil
}

func (s *service) stop(ctx context.Context, request StopRequest) (string, error) {
	request.ActorID = uuid.NewString()
	s.logger.Info("stop requested", "action", request.Action, "actor", request.ActorID)
	if err := s.machine.Stop(ctx, request); err != nil {
		return "", fmt.Errorf("requesting a %s: %w", request.Action, err)
	}
	return request.ActorID, nil
}

// resetOf turns a reset request into what a node without disks of its own can do: wipe all it stored. Parts that it cannot
// wipe alone are refused.
func resetOf(request *machine.ResetRequest) (StopRequest, error) {
	if request.GetMode() == machine.ResetRequest_USER_DISKS || len(request.GetUserDisksToWipe()) > 0 {
		return StopRequest{}, fmt.Errorf("wiping user disks: %w: a node has none", ErrUnsupported)
	}
	var labels []string
	for _, partition := range request.GetSystemPartitionsToWipe() {
		if !partition.GetWipe() {
			return StopRequest{}, fmt.Errorf("keeping the content of partition %q in a reset: %w", partition.GetLabel(), ErrUnsupported)
		}
		labels = append(labels, partition.GetLabel())
	}
	both := slices.Contains(labels, constants.StatePartitionLabel) && slices.Contains(labels, constants.EphemeralPartitionLabel)
	if len(labels) > 0 && !both {
		return StopRequest{}, fmt.Errorf("wiping only the partitions %v: %w\nwipe %s and %s together, or name none",
			labels, ErrUnsupported, constants.StatePartitionLabel, constants.EphemeralPartitionLabel)
	}
	return StopRequest{Action: StopReset, Graceful: request.GetGraceful(), Halt: !request.GetReboot()}, nil
}
