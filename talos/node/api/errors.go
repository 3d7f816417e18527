package api

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The errors a Machine tells the server apart by; wrap them with what was asked for.
var (
	// ErrUnsupported says that cozynode does not do what was asked.
	ErrUnsupported = errors.New("not supported by cozynode")
	// ErrNotFound says that what was named does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotReady says that the node's present state does not allow it.
	ErrNotReady = errors.New("not possible in the node's present state")
	// ErrAlready says that it was done before and cannot be done twice.
	ErrAlready = errors.New("already done")
	// ErrInvalid says that the request's content is wrong.
	ErrInvalid = errors.New("invalid")
)

// statusOf turns an error into the gRPC status that a Talos client expects of it; a status passes unchanged.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codeOf(err), err.Error())
}

func codeOf(err error) codes.Code {
	for _, known := range []struct {
		err  error
		code codes.Code
	}{
		{ErrUnsupported, codes.Unimplemented},
		{ErrNotFound, codes.NotFound},
		{ErrNotReady, codes.FailedPrecondition},
		{ErrAlready, codes.AlreadyExists},
		{ErrInvalid, codes.InvalidArgument},
		{context.Canceled, codes.Canceled},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
	} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return codes.Internal
}
