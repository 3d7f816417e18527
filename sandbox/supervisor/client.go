package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/cozystack/cozydev/sandbox"
)

// Client talks to a supervisor over its unix socket. It is safe for concurrent use.
type Client struct {
	state sandbox.State
	http  *http.Client
}

// ErrNotRunning is returned when no supervisor answers.
var ErrNotRunning = errors.New("the sandbox's supervisor does not run; `cozydev up` starts it")

// Connect returns a client of the sandbox's supervisor, or an error that wraps ErrNotRunning.
func Connect(ctx context.Context, state sandbox.State) (*Client, error) {
	client := newClient(state)
	if _, err := client.Status(ctx); err != nil {
		return nil, err
	}
	return client, nil
}

func newClient(state sandbox.State) *Client {
	client := &Client{state: state}
	client.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return client.socket(ctx) },
	}}
	return client
}

// State is the sandbox's state directory.
func (c *Client) State() sandbox.State { return c.state }

func (c *Client) socket(ctx context.Context) (net.Conn, error) {
	conn, err := dialSocket(ctx, c.state.Socket())
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNotRunning, err)
	}
	return conn, nil
}

// Status describes the sandbox.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	body, err := c.do(ctx, http.MethodGet, "/v1/status", nil, nil)
	if err != nil {
		return status, fmt.Errorf("asking for the sandbox's status: %w", err)
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&status); err != nil {
		return status, fmt.Errorf("reading the sandbox's status: %w", err)
	}
	return status, nil
}

// Update hands the supervisor a changed spec. It refuses what a running sandbox cannot follow.
func (c *Client) Update(ctx context.Context, spec sandbox.Spec) error {
	return c.send(ctx, http.MethodPut, "/v1/spec", nil, spec)
}

// Emit adds an event to the sandbox's journal.
func (c *Client) Emit(ctx context.Context, event Event) error {
	return c.send(ctx, http.MethodPost, "/v1/events", nil, event)
}

// Shutdown ends the supervisor; with nodes it shuts them down first. It does not remove the sandbox: Down does.
func (c *Client) Shutdown(ctx context.Context, nodes bool) error {
	return c.send(ctx, http.MethodPost, "/v1/shutdown", url.Values{"nodes": {fmt.Sprint(nodes)}}, nil)
}

// Logs copies a log to the writer; see LogSources for the sources.
func (c *Client) Logs(ctx context.Context, source string, options LogOptions, to io.Writer) error {
	query := url.Values{"source": {source}, "follow": {fmt.Sprint(options.Follow)}, "tail": {fmt.Sprint(options.Tail)}}
	body, err := c.do(ctx, http.MethodGet, "/v1/logs", query, nil)
	if err != nil {
		return fmt.Errorf("reading log %q: %w", source, err)
	}
	defer body.Close()
	if _, err := io.Copy(to, body); err != nil && ctx.Err() == nil {
		return fmt.Errorf("reading log %q: %w", source, err)
	}
	return nil
}

// Events calls each for every event so far and, with follow, for those to come until the context ends or each errs.
func (c *Client) Events(ctx context.Context, follow bool, each func(Event) error) error {
	body, err := c.do(ctx, http.MethodGet, "/v1/events", url.Values{"follow": {fmt.Sprint(follow)}}, nil)
	if err != nil {
		return fmt.Errorf("reading events: %w", err)
	}
	defer body.Close()
	decoder := json.NewDecoder(body)
	for {
		var event Event
		if err := decoder.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("reading events: %w", err)
		}
		if err := each(event); err != nil {
			return err
		}
	}
}

// Dial connects to IP:port inside the sandbox. It has the type of dialers everywhere.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("dialling %q in the sandbox: %w", address, err)
	}
	return conn, nil
}

func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.socket(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	upgraded, err := upgrade(ctx, conn, url.Values{"network": {network}, "address": {address}})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return upgraded, nil
}

func upgrade(ctx context.Context, conn net.Conn, query url.Values) (net.Conn, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://supervisor/v1/dial?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "tcp")
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, answerError(response)
	}
	return &bufferedConn{Conn: conn, reader: reader}, nil
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, content any) error {
	body, err := c.do(ctx, method, path, query, content)
	if err != nil {
		return err
	}
	return body.Close()
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, content any) (io.ReadCloser, error) {
	var body io.Reader
	if content != nil {
		data, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path+"?"+query.Encode(), body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil, answerError(response)
	}
	return response.Body, nil
}

// answerError is the error that the supervisor answered with.
func answerError(response *http.Response) error {
	defer response.Body.Close()
	const longest = 4 << 10
	message, _ := io.ReadAll(io.LimitReader(response.Body, longest)) // a cut message is better than none
	return errors.New(strings.TrimSpace(string(message)))
}
