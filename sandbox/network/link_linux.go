package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// EnsureSandbox makes the sandbox's namespace and its bridge with the gateway address.
func EnsureSandbox(namespace string, gateway netip.Prefix) error {
	if err := Create(namespace); err != nil {
		return err
	}
	err := Do(namespace, func() error {
		if err := set("net/ipv4/ip_forward", "1"); err != nil {
			return err
		}
		// Frames between nodes are switched, not filtered: a rule of this namespace is never meant for them.
		if err := set("net/bridge/bridge-nf-call-iptables", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return ensureBridge(gateway)
	})
	if err != nil {
		return fmt.Errorf("making the bridge of network namespace %q: %w", namespace, err)
	}
	return nil
}

func ensureBridge(gateway netip.Prefix) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: Bridge}}
	if err := netlink.LinkAdd(bridge); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return configure(Bridge, gateway)
}

// EnsureNode makes the node's namespace and connects it to the bridge. A link that is not as described is made anew.
func EnsureNode(link Link) error {
	if err := ensureNode(link); err != nil {
		return fmt.Errorf("connecting network namespace %q: %w", link.Namespace, err)
	}
	return nil
}

func ensureNode(link Link) error {
	if err := Create(link.Namespace); err != nil {
		return err
	}
	node, err := Open(link.Namespace)
	if err != nil {
		return err
	}
	defer node.Close()
	if !connected(node, link) {
		if err := Do(link.Sandbox, func() error { return plug(node, link) }); err != nil {
			return err
		}
	}
	return node.Do(func() error {
		if err := set("net/ipv4/ip_forward", "1"); err != nil {
			return err
		}
		if err := configure(NodeInterface, link.Address); err != nil {
			return err
		}
		return netlink.RouteReplace(&netlink.Route{Dst: nil, Gw: net.IP(link.Gateway.AsSlice())})
	})
}

// connected tells whether both ends of the link are there.
func connected(node *Handle, link Link) bool {
	err := node.Do(func() error {
		_, err := netlink.LinkByName(NodeInterface)
		return err
	})
	if err != nil {
		return false
	}
	return Do(link.Sandbox, func() error {
		port, err := netlink.LinkByName(link.Port)
		if err == nil && port.Attrs().MasterIndex == 0 {
			err = errors.New("not on the bridge")
		}
		return err
	}) == nil
}

// plug makes the veth pair, from inside the sandbox's namespace.
func plug(node *Handle, link Link) error {
	if err := deleteLink(link.Port); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(Bridge)
	if err != nil {
		return fmt.Errorf("finding bridge %q: %w", Bridge, err)
	}
	veth := &netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: link.Port, MasterIndex: bridge.Attrs().Index},
		PeerName:      NodeInterface,
		PeerNamespace: netlink.NsFd(int(node.File().Fd())),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("making veth %q: %w", link.Port, err)
	}
	port, err := netlink.LinkByName(link.Port)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(port)
}

// DeleteNode removes the node's link and namespace. What is missing already is fine.
func DeleteNode(link Link) error {
	var unplug error
	if Exists(link.Sandbox) {
		unplug = Do(link.Sandbox, func() error { return deleteLink(link.Port) })
	}
	return errors.Join(unplug, Delete(link.Namespace))
}

// DeleteSandbox removes the bridge and the sandbox's namespace.
func DeleteSandbox(namespace string) error {
	var unbridge error
	if Exists(namespace) {
		// Another mount namespace may still hold this one; what is in it must go now all the same.
		unbridge = Do(namespace, func() error { return deleteLink(Bridge) })
	}
	return errors.Join(unbridge, Delete(namespace))
}

// configure gives the interface its address and brings it up.
func configure(name string, address netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding interface %q: %w", name, err)
	}
	ip := &net.IPNet{IP: net.IP(address.Addr().AsSlice()), Mask: net.CIDRMask(address.Bits(), address.Addr().BitLen())}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: ip}); err != nil {
		return fmt.Errorf("setting address %s of %q: %w", address, name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing up %q: %w", name, err)
	}
	return nil
}

func loopbackUp() error {
	link, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding loopback: %w", err)
	}
	return netlink.LinkSetUp(link)
}

func deleteLink(name string) error {
	link, err := netlink.LinkByName(name)
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finding interface %q: %w", name, err)
	}
	if err := netlink.LinkDel(link); err != nil {
		return fmt.Errorf("deleting interface %q: %w", name, err)
	}
	return nil
}

// set writes a sysctl of the thread's network namespace.
func set(key, value string) error {
	if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0o644); err != nil {
		return fmt.Errorf("setting %s: %w", key, err)
	}
	return nil
}
