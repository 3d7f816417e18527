package api

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ServiceList implements machine.MachineServiceServer.
func (s *service) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	list := &machine.ServiceList{}
	for _, component := range s.machine.Services() {
		list.Services = append(list.Services, serviceInfo(component))
	}
	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{list}}, nil
}

func serviceInfo(component Service) *machine.ServiceInfo {
	events := &machine.ServiceEvents{}
	for _, event := range component.Events {
		events.Events = append(events.Events, &machine.ServiceEvent{
			Msg: event.Message, State: string(event.State), Ts: timestamp(event.Time),
		})
	}
	return &machine.ServiceInfo{
		Id:     component.ID,
		State:  string(component.State),
		Events: events,
		Health: &machine.ServiceHealth{
			Unknown:     component.Health.Unknown,
			Healthy:     component.Health.Healthy,
			LastMessage: component.Health.LastMessage,
			LastChange:  timestamp(component.Health.LastChange),
		},
	}
}

// timestamp leaves a time that was never set out of the answer.
func timestamp(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

// ServiceRestart implements machine.MachineServiceServer.
func (s *service) ServiceRestart(ctx context.Context, request *machine.ServiceRestartRequest) (*machine.ServiceRestartResponse, error) {
	if err := s.machine.RestartService(ctx, request.GetId()); err != nil {
		return nil, fmt.Errorf("restarting service %q: %w", request.GetId(), err)
	}
	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{
		Resp: fmt.Sprintf("Service %q restarted", request.GetId()),
	}}}, nil
}

// ServiceStart implements machine.MachineServiceServer.
func (s *service) ServiceStart(ctx context.Context, request *machine.ServiceStartRequest) (*machine.ServiceStartResponse, error) {
	if err := s.switchService(ctx, "starting", request.GetId(), ServiceSwitch.StartService); err != nil {
		return nil, err
	}
	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{
		Resp: fmt.Sprintf("Service %q started", request.GetId()),
	}}}, nil
}

// ServiceStop implements machine.MachineServiceServer.
func (s *service) ServiceStop(ctx context.Context, request *machine.ServiceStopRequest) (*machine.ServiceStopResponse, error) {
	if err := s.switchService(ctx, "stopping", request.GetId(), ServiceSwitch.StopService); err != nil {
		return nil, err
	}
	return &machine.ServiceStopResponse{Messages: []*machine.ServiceStop{{
		Resp: fmt.Sprintf("Service %q stopped", request.GetId()),
	}}}, nil
}

func (s *service) switchService(ctx context.Context, doing, id string, change func(ServiceSwitch, context.Context, string) error) error {
	machine, ok := s.machine.(ServiceSwitch)
	if !ok {
		return fmt.Errorf("%s service %q: %w\nservice restart is", doing, id, ErrUnsupported)
	}
	if err := change(machine, ctx, id); err != nil {
		return fmt.Errorf("%s service %q: %w", doing, id, err)
	}
	return nil
}
