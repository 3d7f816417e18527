package balancer

import (
	"io"
	"net"
)

// copyHalf copies one direction. At its orderly end the writer is told that no more comes; after an error both
// connections are closed, so that the other direction ends too.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		if half.CloseWrite() == nil {
			return
		}
	}
	_ = to.Close()
	_ = from.Close()
}
