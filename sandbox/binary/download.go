package binary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"time"
)

var errStalled = errors.New("the server went silent")

// downloader fetches files over HTTP, resuming and trying again.
type downloader struct {
	client *http.Client
	log    *slog.Logger
	timing timing
}

// newClient never limits the whole transfer, only its silences, and never
// follows a redirect from https to plain http.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	transport.ResponseHeaderTimeout = 30 * time.Second
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) >= 10 {
				return errors.New("ten redirects")
			}
			if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
				return fmt.Errorf("redirect from https to %q", req.URL.Redacted())
			}
			return nil
		},
	}
}

// fetch appends to the file at part until it holds all of url. It does not
// verify. report is called with the bytes there are and the bytes there will
// be, zero if unknown.
func (d downloader) fetch(ctx context.Context, url, part string, report func(done, total int64)) error {
	for failures := 0; ; {
		before := fileSize(part)
		err := d.attempt(ctx, url, part, report)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failures++
		if fileSize(part) > before {
			failures = 1
		}
		if permanent(err) || failures >= maxAttempts {
			return fmt.Errorf("downloading %q: %w", url, err)
		}
		delay := backoff(d.timing.firstDelay, failures, rand.Float64())
		d.log.Warn("download interrupted, trying again", "url", url, "error", err, "delay", delay)
		if err := sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// attempt makes one request for what is missing of part.
func (d downloader) attempt(ctx context.Context, url, part string, report func(done, total int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	offset := fileSize(part)
	response, err := d.request(ctx, url, offset)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	flags := os.O_CREATE | os.O_WRONLY
	switch action(response, offset) {
	case actionComplete:
		return nil
	case actionRestart:
		if err := os.Truncate(part, 0); err != nil {
			return err
		}
		return errors.New("the server does not know the part that is here, starting over")
	case actionFail:
		return statusError(response)
	case actionReplace:
		offset, flags = 0, flags|os.O_TRUNC
	case actionAppend:
		flags |= os.O_APPEND
	}
	f, err := os.OpenFile(part, flags, 0o644)
	if err != nil {
		return err
	}
	meter := &meter{done: offset, total: offset + response.ContentLength, report: report}
	if response.ContentLength < 0 {
		meter.total = 0
	}
	err = copyUnlessStalled(ctx, cancel, io.MultiWriter(f, meter), response.Body, d.timing.stall)
	return errors.Join(err, f.Close())
}

func (d downloader) request(ctx context.Context, url string, offset int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, permanentError{err}
	}
	// A transparently compressed body would have other offsets.
	request.Header.Set("Accept-Encoding", "identity")
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	return d.client.Do(request)
}

// text fetches a small text file.
func (d downloader) text(ctx context.Context, url, scratch string) (string, error) {
	if err := os.RemoveAll(scratch); err != nil {
		return "", err
	}
	defer os.Remove(scratch)
	if err := d.fetch(ctx, url, scratch, func(int64, int64) {}); err != nil {
		return "", err
	}
	f, err := os.Open(scratch)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return string(data), err
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// copyUnlessStalled copies until the end, an error, or a silence of src.
func copyUnlessStalled(ctx context.Context, cancel context.CancelCauseFunc, dst io.Writer, src io.Reader, stall time.Duration) error {
	watchdog := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	_, err := io.Copy(dst, readerFunc(func(p []byte) (int, error) {
		n, err := src.Read(p)
		watchdog.Reset(stall)
		return n, err
	}))
	if err != nil && context.Cause(ctx) == errStalled {
		return errStalled
	}
	return err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// meter reports what passes through it, at most five times a second.
type meter struct {
	done, total int64
	report      func(done, total int64)
	last        time.Time
}

func (m *meter) Write(p []byte) (int, error) {
	m.done += int64(len(p))
	if now := time.Now(); m.done == m.total || now.Sub(m.last) > 200*time.Millisecond {
		m.last = now
		m.report(m.done, m.total)
	}
	return len(p), nil
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
