package supervisor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// longestSocketPath is the room in sockaddr_un.sun_path on Linux less the end (unix(7)); macOS has 4 less.
const longestSocketPath = 103

// A state directory may lie deeper than a socket path may be long. Linux can name it by a descriptor instead.

func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return (&net.Dialer{}).DialContext(ctx, "unix", short)
}

func listenSocket(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("removing the old socket: %w", err)
	}
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	listener, err := net.Listen("unix", short)
	if err != nil {
		return nil, fmt.Errorf("opening socket %q: %w", path, err)
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(short == path)
	}
	return listener, nil
}

func shortPath(path string) (short string, done func(), err error) {
	if len(path) <= longestSocketPath {
		return path, func() {}, nil
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", directory.Fd(), filepath.Base(path)), func() { _ = directory.Close() }, nil
}
