package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/cozystack/cozydev/sandbox"
	"github.com/cozystack/cozydev/sandbox/balancer"
)

// handler is the API on the unix socket. The socket's directory is private to the user, so there is no other
// authentication.
func (s *Supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/status", s.serveStatus)
	mux.HandleFunc("PUT /v1/spec", s.serveSpec)
	mux.HandleFunc("GET /v1/logs", s.serveLogs)
	mux.HandleFunc("GET /v1/events", s.serveEvents)
	mux.HandleFunc("POST /v1/events", s.serveEmit)
	mux.HandleFunc("POST /v1/dial", s.serveDial)
	mux.HandleFunc("POST /v1/shutdown", s.serveShutdown)
	return mux
}

func (s *Supervisor) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.Status()) // the client has gone when this errs
}

func (s *Supervisor) serveSpec(w http.ResponseWriter, r *http.Request) {
	var spec sandbox.Spec
	if err := json.NewDecoder(r.Body).Decode(&spec); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := spec.Validate(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	running := s.record.Spec
	s.mu.Unlock()
	if err := refuseChanges(running, spec); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	s.follow(spec)
	w.WriteHeader(http.StatusNoContent)
}

func (s *Supervisor) serveLogs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	source := query.Get("source")
	if source == "" {
		_ = json.NewEncoder(w).Encode(LogSources(s.state))
		return
	}
	if _, err := logPath(s.state, source); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	options := LogOptions{Tail: -1, Follow: query.Get("follow") == "true"}
	if tail, err := strconv.Atoi(query.Get("tail")); err == nil {
		options.Tail = tail
	}
	writer := &flushWriter{to: w}
	writer.Flush()
	if err := ReadLog(r.Context(), s.state, source, options, writer); err != nil {
		s.log.Debug("sending a log", "source", source, "error", err)
	}
}

// serveEvents streams the persisted events as JSON lines, then, when asked to follow, those to come.
func (s *Supervisor) serveEvents(w http.ResponseWriter, r *http.Request) {
	var live <-chan Event
	if r.URL.Query().Get("follow") == "true" {
		listener, end := s.journal.listen() // before the file is read, so that none falls between
		defer end()
		live = listener
	}
	w.Header().Set("Content-Type", "application/jsonl")
	writer := &flushWriter{to: w}
	past, err := os.ReadFile(s.state.Events())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = writer.Write(past)
	last := lastTime(past)
	for live != nil {
		select {
		case <-r.Context().Done():
			return
		case event := <-live:
			if !event.Time.After(last) {
				continue // it was in the file already
			}
			if json.NewEncoder(writer).Encode(event) != nil {
				return
			}
		}
	}
}

// lastTime returns the time of the last event in JSON lines.
func lastTime(lines []byte) time.Time {
	lines = bytes.TrimRight(lines, "\n")
	var event Event
	_ = json.Unmarshal(lines[bytes.LastIndexByte(lines, '\n')+1:], &event) // without events the time is zero
	return event.Time
}

func (s *Supervisor) serveEmit(w http.ResponseWriter, r *http.Request) {
	var event Event
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil || event.Type == "" {
		http.Error(w, "an event needs a type", http.StatusBadRequest)
		return
	}
	s.journal.emit(event)
	w.WriteHeader(http.StatusNoContent)
}

const dialTimeout = 10 * time.Second

// serveDial connects the client to an address in the sandbox: it dials first, so that the client learns why it
// cannot, and then turns the HTTP connection into the TCP one.
func (s *Supervisor) serveDial(w http.ResponseWriter, r *http.Request) {
	network, address := r.URL.Query().Get("network"), r.URL.Query().Get("address")
	if host, _, err := net.SplitHostPort(address); err != nil || net.ParseIP(host) == nil {
		http.Error(w, fmt.Sprintf("address %q must be IP:port", address), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
	defer cancel()
	remote, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer remote.Close()
	local, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer local.Close()
	stop := context.AfterFunc(s.ctx, func() { _ = local.Close(); _ = remote.Close() })
	defer stop()
	if _, err := io.WriteString(local, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"); err != nil {
		return
	}
	balancer.Pipe(&bufferedConn{Conn: local, reader: buffered.Reader}, remote)
}

// serveShutdown ends the supervisor; with nodes=true it shuts the nodes down first.
func (s *Supervisor) serveShutdown(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("nodes") == "true" {
		s.stopMachines()
		waitFor(r.Context(), &s.loops)
	}
	w.WriteHeader(http.StatusNoContent)
	_ = http.NewResponseController(w).Flush()
	s.stop()
}

// waitFor waits for the group or the context, whichever ends first.
func waitFor(ctx context.Context, group interface{ Wait() }) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		group.Wait()
	}()
	select {
	case <-ctx.Done():
	case <-done:
	}
}

// flushWriter sends every write at once.
type flushWriter struct{ to http.ResponseWriter }

func (f *flushWriter) Write(data []byte) (int, error) {
	n, err := f.to.Write(data)
	f.Flush()
	return n, err
}

// Flush sends what is buffered.
func (f *flushWriter) Flush() { _ = http.NewResponseController(f.to).Flush() }

// bufferedConn is a connection of which some bytes were already read into a buffer.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func (b *bufferedConn) Read(data []byte) (int, error) { return b.reader.Read(data) }

// CloseWrite passes a half-close on.
func (b *bufferedConn) CloseWrite() error {
	if half, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
