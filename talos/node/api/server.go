package api

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
)

// stopGrace is how long answers under way may take when the server ends. Streams that follow a log are cut off then.
const stopGrace = 300 * time.Millisecond

// Options configures a Server; the zero value serves as Talos does.
type Options struct {
	// Address to listen on for the machine API; ":50000" when empty. Other nodes are reached at the same port.
	Address string
	// TrustAddress to listen on for signing certificates, on control planes; ":50001" when empty.
	TrustAddress string
	// TrustEndpoints returns more endpoints a worker may ask for its certificate, after the host of
	// cluster.controlPlane.endpoint (port 50001). May be nil.
	TrustEndpoints func() []string
	// Logger receives what the server does; nothing is logged when nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = ":" + strconv.Itoa(constants.ApidPort)
	}
	if o.TrustAddress == "" {
		o.TrustAddress = ":" + strconv.Itoa(constants.TrustdPort)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server serves the machine API of one node, and on control planes the signing of certificates.
type Server struct {
	machine Machine
	options Options
	keeper  *keeper
	service *service

	// refreshed wakes the loop that follows the config.
	refreshed chan struct{}
	ready     chan struct{}
	readyOnce sync.Once
}

// New makes a server for a machine. It listens once Serve is called.
func New(machine Machine, options Options) *Server {
	s := &Server{
		machine:   machine,
		options:   options.withDefaults(),
		refreshed: make(chan struct{}, 1),
		ready:     make(chan struct{}),
	}
	s.keeper = newKeeper(machine, s.options.Logger)
	s.keeper.request = s.requestCertificate
	s.service = newService(machine, s.Refresh, s.options.Logger)
	return s
}

// Refresh tells the server that the machine's config, names or addresses may have changed. Configs applied through the API
// are noticed without it. It never blocks.
func (s *Server) Refresh() {
	select {
	case s.refreshed <- struct{}{}:
	default:
	}
}

// Ready is closed once the API port is open.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Serve listens and answers until ctx ends (then it returns nil) or a port cannot be opened. It may be called once.
func (s *Server) Serve(ctx context.Context) error {
	listener, err := listen(ctx, s.options.Address)
	if err != nil {
		return err
	}
	s.readyOnce.Do(func() { close(s.ready) })

	group, ctx := errgroup.WithContext(ctx)
	inner := newPipeListener()
	local, err := dialLocal(inner)
	if err != nil {
		return err
	}
	defer func() { _ = local.Close() }()
	peers := &peers{keeper: s.keeper, port: portOf(listener.Addr()), conns: map[string]*grpc.ClientConn{}}
	defer peers.close()
	front := newFront(s.keeper, &router{keeper: s.keeper, local: local, peers: peers})

	group.Go(func() error { return serve(ctx, s.service.server(), inner) })
	group.Go(func() error { return serve(ctx, front, listener) })
	group.Go(func() error { s.keeper.run(ctx); return nil })
	group.Go(func() error { s.service.trials.run(ctx); return nil })
	group.Go(func() error { return s.followConfig(ctx) })
	return group.Wait()
}

// followConfig opens the signing port when the node becomes a control plane, closes it when it is none any more, and has the
// certificates issued ahead of the first client.
func (s *Server) followConfig(ctx context.Context) error {
	stop := func() error { return nil }
	defer func() { _ = stop() }()
	signing := false
	for {
		m, ok := s.keeper.material()
		if ok {
			s.service.maintenance.leave()
			s.keeper.want()
		}
		if wanted := ok && m.controlPlane && m.canSign(); wanted != signing {
			if err := stop(); err != nil {
				return err
			}
			stop, signing = func() error { return nil }, wanted
			if wanted {
				var err error
				if stop, err = s.startTrustd(ctx); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.refreshed:
		}
	}
}

// startTrustd opens the signing port; the function returned closes it and waits for its end.
func (s *Server) startTrustd(ctx context.Context) (func() error, error) {
	listener, err := listen(ctx, s.options.TrustAddress)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	server := newTrustServer(s.keeper, s.options.Logger)
	go func() { done <- serve(ctx, server, listener) }()
	return func() error { cancel(); return <-done }, nil
}

func (s *Server) requestCertificate(ctx context.Context, m material, csr []byte) (*Certificate, error) {
	var endpoints []string
	if m.endpoint != "" {
		endpoints = append(endpoints, m.endpoint)
	}
	if s.options.TrustEndpoints != nil {
		endpoints = append(endpoints, s.options.TrustEndpoints()...)
	}
	return RequestCertificate(ctx, endpoints, m.token, bytes.Join(m.roots, []byte("\n")), csr)
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening %q for the machine API: %w\nend what uses this port", address, err)
	}
	return listener, nil
}

func portOf(addr net.Addr) int {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return constants.ApidPort
}

// serve answers on a listener until ctx ends, then lets answers under way finish for stopGrace.
func serve(ctx context.Context, server *grpc.Server, listener net.Listener) error {
	stopped := context.AfterFunc(ctx, func() {
		hard := time.AfterFunc(stopGrace, server.Stop)
		defer hard.Stop()
		server.GracefulStop()
	})
	err := server.Serve(listener)
	if stopped() && err != nil {
		return fmt.Errorf("serving the machine API on %q: %w", listener.Addr(), err)
	}
	return nil
}
