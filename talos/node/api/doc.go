// Package api serves the Talos machine API for a node that is a plain Linux host running cozynode.
//
// It holds the server, its TLS modes, the role rules, the proxying to other nodes and the certificate signing
// service of control planes. What the node is and does it learns from a [Machine], which the runtime implements.
package api
