package talos

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// brief is an error's text for a progress line: without the wrapping that gRPC and HTTP clients put around the cause.
func brief(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded {
		return "no answer within " + attemptTimeout.String()
	}

	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		err = urlErr.Err
	}

	text := err.Error()
	if s, isStatus := status.FromError(err); isStatus {
		text = s.Message()
	}

	for _, wrapping := range []string{
		`connection error: desc = "`,
		"transport: Error while dialing: ",
		"transport: authentication handshake failed: ",
	} {
		if _, inner, found := strings.Cut(text, wrapping); found {
			text = strings.TrimSuffix(inner, `"`)
		}
	}

	return strings.Join(strings.Fields(text), " ")
}

// final marks the errors of a call that no waiting cures.
func final(err error) error {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return permanent{errors.New(brief(err))}
	default:
		return err
	}
}
