//go:build !linux

package network

import (
	"net/netip"
	"os"
)

// Create returns ErrUnsupported.
func Create(string) error { return ErrUnsupported }

// Exists returns false.
func Exists(string) bool { return false }

// Delete does nothing.
func Delete(string) error { return nil }

// Handle is an open namespace.
type Handle struct{}

// Open returns ErrUnsupported.
func Open(string) (*Handle, error) { return nil, ErrUnsupported }

// Current returns ErrUnsupported.
func Current() (*Handle, error) { return nil, ErrUnsupported }

// FromFile returns an unusable handle.
func FromFile(*os.File) *Handle { return &Handle{} }

// File returns nil.
func (*Handle) File() *os.File { return nil }

// Close does nothing.
func (*Handle) Close() error { return nil }

// Do returns ErrUnsupported.
func (*Handle) Do(func() error) error { return ErrUnsupported }

// Do returns ErrUnsupported.
func Do(string, func() error) error { return ErrUnsupported }

// EnsureSandbox returns ErrUnsupported.
func EnsureSandbox(string, netip.Prefix) error { return ErrUnsupported }

// EnsureNode returns ErrUnsupported.
func EnsureNode(Link) error { return ErrUnsupported }

// DeleteNode does nothing.
func DeleteNode(Link) error { return nil }

// DeleteSandbox does nothing.
func DeleteSandbox(string) error { return nil }
