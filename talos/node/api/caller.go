package api

import (
	"context"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

const (
	// roleKey carries a caller's roles from one node to the next, under Talos' name for it.
	roleKey = "talos-role"
	// proxyKey marks a request that was routed already, under Talos' name for it.
	proxyKey = "proxyfrom"
	// maintenanceKey marks a caller without a certificate inside the process; it never leaves it.
	maintenanceKey = "cozynode-maintenance"
)

// caller is who sent a request.
type caller struct {
	roles role.Set
	// maintenance means anyone: the request came while the node had no config.
	maintenance bool
}

// identify finds out who sent the request that ctx belongs to. The config in force now counts, not the one of the
// connection's handshake: a connection from maintenance mode is worth nothing once there is a config.
func (k *keeper) identify(ctx context.Context) (caller, error) {
	m, ok := k.material()
	if !ok {
		return caller{maintenance: true}, nil
	}
	sender, ok := peer.FromContext(ctx)
	if !ok {
		return caller{}, status.Error(codes.Unauthenticated, "the connection has no peer")
	}
	info, ok := sender.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return caller{}, errConfigured
	}
	certs := info.State.PeerCertificates
	if err := k.verifyClient(m, certs); err != nil {
		return caller{}, status.Errorf(codes.Unauthenticated, "checking the client certificate: %v", err)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return caller{roles: rolesOf(certs[0].Subject.Organization, md)}, nil
}

// rolesOf returns the roles that a certificate's organizations grant. An impersonator, such as another node that
// forwards a request, acts with the roles named in the metadata.
func rolesOf(organizations []string, md metadata.MD) role.Set {
	granted, _ := role.Parse(organizations)
	if forwarded := md.Get(roleKey); len(forwarded) > 0 && granted.Includes(role.Impersonator) {
		granted, _ = role.Parse(forwarded)
	}
	return granted
}

// metadata returns what tells the caller to the node's own service, or to another node.
func (c caller) metadata() metadata.MD {
	md := metadata.MD{}
	if c.maintenance {
		md.Set(maintenanceKey, "true")
	}
	if roles := c.roles.Strings(); len(roles) > 0 {
		md.Set(roleKey, roles...)
	}
	return md
}

// callerFrom reads what metadata wrote.
func callerFrom(ctx context.Context) caller {
	md, _ := metadata.FromIncomingContext(ctx)
	roles, _ := role.Parse(md.Get(roleKey))
	return caller{roles: roles, maintenance: len(md.Get(maintenanceKey)) > 0}
}

// authorize decides whether a caller may call a method.
func authorize(table map[string]rule, method string, who caller) error {
	known, ok := table[method]
	switch {
	case who.maintenance && !known.maintenance:
		return status.Errorf(codes.Unimplemented, "%s: API is not implemented in maintenance mode", method)
	case !ok:
		return status.Errorf(codes.Unimplemented, "cozynode does not implement %s", method)
	case who.maintenance || known.roles.IncludesAny(who.roles):
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "not authorized: %s needs one of the roles %v", method, known.roles.Strings())
}
