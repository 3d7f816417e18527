package api

import (
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// eventTypePrefix begins the type URL of every event's payload.
const eventTypePrefix = "talos/runtime/"

// errStreamEnded stops the event log's follower when the stream cannot take more; the error beside it says why.
var errStreamEnded = errors.New("the event stream ended")

// Events implements machine.MachineServiceServer. The first message is empty: by it clients know that they will miss nothing.
func (s *service) Events(request *machine.EventsRequest, stream grpc.ServerStreamingServer[machine.Event]) error {
	if err := stream.Send(&machine.Event{}); err != nil {
		return err
	}
	now := time.Now()
	err := s.machine.Events().Follow(stream.Context(),
		func(past []Event) []Event { return selectPast(past, request, now) },
		func(event Event) error {
			if actor := request.GetWithActorId(); actor != "" && event.ActorID != actor {
				return nil
			}
			message, err := eventMessage(event)
			if err != nil {
				return err
			}
			if err := stream.Send(message); err != nil {
				return fmt.Errorf("%w: %w", errStreamEnded, err)
			}
			return nil
		})
	if errors.Is(err, errStreamEnded) && stream.Context().Err() != nil {
		return stream.Context().Err()
	}
	return err
}

// selectPast returns the remembered events which a request asks for: the last so many, those after an ID, or those of the
// last seconds.
func selectPast(past []Event, request *machine.EventsRequest, now time.Time) []Event {
	switch {
	case request.GetTailEvents() < 0:
		return past
	case request.GetTailEvents() > 0:
		return past[max(0, len(past)-int(request.GetTailEvents())):]
	case request.GetTailId() != "":
		return after(past, func(event Event) bool { return event.ID > request.GetTailId() })
	case request.GetTailSeconds() > 0:
		since := now.Add(-time.Duration(request.GetTailSeconds()) * time.Second)
		return after(past, func(event Event) bool { return !event.Time.Before(since) })
	}
	return nil
}

func after(past []Event, wanted func(Event) bool) []Event {
	for i, event := range past {
		if wanted(event) {
			return past[i:]
		}
	}
	return nil
}

func eventMessage(event Event) (*machine.Event, error) {
	payload, err := proto.Marshal(event.Payload)
	if err != nil {
		return nil, fmt.Errorf("encoding event %q: %w", event.ID, err)
	}
	return &machine.Event{
		Id:      event.ID,
		ActorId: event.ActorID,
		Data: &anypb.Any{
			TypeUrl: eventTypePrefix + string(event.Payload.ProtoReflect().Descriptor().FullName()),
			Value:   payload,
		},
	}, nil
}
