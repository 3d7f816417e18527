package api

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/grpc-proxy/proxy"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// route is where a request goes.
type route struct {
	// nodes are the nodes named by the caller; none means this one.
	nodes []string
	// aggregate asks for one answer that holds each node's.
	aggregate bool
}

// routeOf reads the routing metadata as talosctl writes it: "node" for one node whose answer passes unchanged, "nodes" for
// answers which name their node. A request that was routed before is not routed again.
func routeOf(md metadata.MD, method string) (route, error) {
	if len(md.Get(proxyKey)) > 0 {
		return route{}, nil
	}
	nodes, node := md.Get("nodes"), md.Get("node")
	switch {
	case len(nodes) > 0:
		if !strings.HasPrefix(method, machinePrefix) {
			return route{}, status.Errorf(codes.InvalidArgument, "%s cannot be asked of several nodes at once\nname one node", method)
		}
		return route{nodes: nodes, aggregate: true}, nil
	case len(node) > 1:
		return route{}, status.Error(codes.InvalidArgument, "the metadata \"node\" must name one node")
	}
	return route{nodes: node}, nil
}

// router sends requests to this node's service or on to other nodes.
type router struct {
	keeper *keeper
	local  *grpc.ClientConn
	peers  *peers
}

// direct implements proxy.StreamDirector.
func (r *router) direct(ctx context.Context, method string) (proxy.Mode, []proxy.Backend, error) {
	who, err := r.keeper.identify(ctx)
	if err != nil {
		return proxy.One2One, nil, err
	}
	md, _ := metadata.FromIncomingContext(ctx)
	to, err := routeOf(md, method)
	if err != nil {
		return proxy.One2One, nil, err
	}
	if len(to.nodes) == 0 {
		return proxy.One2One, []proxy.Backend{&backend{conn: r.local, md: who.metadata()}}, nil
	}
	backends := make([]proxy.Backend, 0, len(to.nodes))
	for _, node := range to.nodes {
		target, err := r.backend(node, who, md)
		if err != nil {
			return proxy.One2One, nil, err
		}
		backends = append(backends, target)
	}
	if to.aggregate {
		return proxy.One2Many, backends, nil
	}
	return proxy.One2One, backends, nil
}

// backend returns what answers for a node: this process, or a connection to the node. Only nodes which hold the CA's key
// can vouch for a caller, so workers do not forward.
func (r *router) backend(node string, who caller, md metadata.MD) (proxy.Backend, error) {
	if r.isLocal(node) {
		return &backend{node: node, conn: r.local, md: who.metadata()}, nil
	}
	m, ok := r.keeper.material()
	if !ok || !m.canSign() {
		return nil, status.Errorf(codes.PermissionDenied,
			"no request forwarding from %q to %q\nuse a control plane with a config as the endpoint", r.keeper.machine.Hostname(), node)
	}
	outgoing := who.metadata()
	outgoing.Set(proxyKey, append(md.Get(":authority"), m.hostname)...)
	return &backend{node: node, md: outgoing, dial: func(ctx context.Context) (*grpc.ClientConn, error) {
		return r.peers.connect(ctx, m, node)
	}}, nil
}

func (r *router) isLocal(node string) bool {
	if node == r.keeper.machine.Hostname() {
		return true
	}
	ip, err := netip.ParseAddr(node)
	return err == nil && slices.Contains(r.keeper.machine.Addresses(), ip)
}

// backend implements proxy.Backend for one request to one node.
type backend struct {
	node string
	md   metadata.MD
	conn *grpc.ClientConn
	dial func(context.Context) (*grpc.ClientConn, error)
}

// String implements proxy.Backend.
func (b *backend) String() string { return b.node }

// GetConnection implements proxy.Backend. Nothing of the caller's metadata is passed on but what identify made of it.
func (b *backend) GetConnection(ctx context.Context, _ string) (context.Context, *grpc.ClientConn, error) {
	ctx = metadata.NewOutgoingContext(ctx, b.md)
	if b.conn != nil {
		return ctx, b.conn, nil
	}
	conn, err := b.dial(ctx)
	if err != nil {
		return ctx, nil, status.Errorf(codes.Unavailable, "connecting to node %q: %v", b.node, err)
	}
	return ctx, conn, nil
}

// AppendInfo implements proxy.Backend.
func (b *backend) AppendInfo(streamed bool, reply []byte) ([]byte, error) {
	return signReply(b.node, streamed, reply)
}

// BuildError implements proxy.Backend.
func (b *backend) BuildError(streamed bool, err error) ([]byte, error) {
	return errorReply(b.node, streamed, err)
}
