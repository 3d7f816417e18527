package binary

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"
)

// maxAttempts is how often in a row a download may fail without receiving
// anything. An attempt that got further starts the count again.
const maxAttempts = 5

// maxDelay bounds the pause between two attempts.
const maxDelay = 10 * time.Second

// permanentError is one that another attempt would meet again.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

type responseAction int

const (
	actionFail responseAction = iota
	actionAppend
	actionReplace
	actionRestart
	actionComplete
)

// action decides what an answer to a request for the bytes from offset means.
func action(r *http.Response, offset int64) responseAction {
	contentRange := r.Header.Get("Content-Range")
	switch r.StatusCode {
	case http.StatusOK:
		return actionReplace
	case http.StatusPartialContent:
		if strings.HasPrefix(contentRange, fmt.Sprintf("bytes %d-", offset)) {
			return actionAppend
		}
		return actionRestart
	case http.StatusRequestedRangeNotSatisfiable:
		if contentRange == fmt.Sprintf("bytes */%d", offset) {
			return actionComplete
		}
		return actionRestart
	default:
		return actionFail
	}
}

// statusError tells whether it may go away by itself (RFC 9110, section 15).
func statusError(r *http.Response) error {
	err := fmt.Errorf("the server answered %q", r.Status)
	switch r.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return err
	}
	if r.StatusCode >= 500 {
		return err
	}
	return permanentError{err}
}

// permanent tells whether trying again is of no use: the request is wrong, or
// the trouble is on this side.
func permanent(err error) bool {
	var refused permanentError
	var local *fs.PathError
	return errors.As(err, &refused) || errors.As(err, &local)
}

// backoff is the pause after the given number of failures: doubled each time,
// with a quarter of jitter so that parallel downloads spread out.
func backoff(first time.Duration, failures int, random float64) time.Duration {
	delay := first << (failures - 1)
	if delay > maxDelay {
		delay = maxDelay
	}
	return delay + time.Duration(random*float64(delay)/4)
}

// timing holds the durations that tests shorten.
type timing struct {
	// probe bounds the question whether releases can be reached.
	probe time.Duration
	// stall ends a download attempt that receives nothing for so long.
	stall time.Duration
	// firstDelay is the pause before the second attempt; it doubles.
	firstDelay time.Duration
}

func (t timing) complete() timing {
	if t.probe == 0 {
		t.probe = 3 * time.Second
	}
	if t.stall == 0 {
		t.stall = 30 * time.Second
	}
	if t.firstDelay == 0 {
		t.firstDelay = 500 * time.Millisecond
	}
	return t
}
