package uapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
	"github.com/rdmashim/rdmashim/uapi/loopback"
)

// OpenRoute opens the device from which addr, HOST or HOST:PORT, is reached:
// the one that config.Device or RDMASHIM_DEVICE names; else the kernel's device
// that has the address from which the system's route to there leaves; else the
// soft device on that address. Of a name's addresses the first is taken to
// which there is a device, in the order in which Dial tries them. The error
// lists the attempts.
//
// To addresses of this host the device is one that leaves the address itself to
// programs that listen there: to 127.0.0.0/8 it is on 127.128.0.0 plus the
// number of the process, or one of the next addresses (Linux); to others it is
// on the same address and a free UDP port, from which soft devices are reached.
func OpenRoute(ctx context.Context, addr string, config OpenConfig) (*Context, error) {
	if name, _ := orVariable(config.Device); name != "" {
		return OpenWith(config.Device, config)
	}
	remotes, err := resolve(ctx, withAnyPort(addr))
	var c *Context
	if err == nil {
		c, err = openRoute(silentLast(onThisHost(remotes, loopbackListeners())), config)
	}
	return c, opError("OpenRoute", addr, err)
}

// openRoute opens the device on the way to the first address that has one.
func openRoute(remotes []netip.AddrPort, config OpenConfig) (*Context, error) {
	var failed []error
	for _, remote := range remotes {
		local, err := routeSource(remote.Addr())
		if err == nil {
			var c *Context
			if c, err = openToward(local, remote.Addr(), config); err == nil {
				return c, nil
			}
			err = fmt.Errorf("no device for the route to %v from %v: %w", remote.Addr(), local, err)
		}
		failed = append(failed, err)
	}
	return nil, errs.Tried(failed)
}

// openToward opens the device at local from which remote is reached.
func openToward(local, remote netip.Addr, config OpenConfig) (*Context, error) {
	here := local == remote.Unmap() || remote.IsLoopback()
	kinds := deviceKinds(config.Kinds)
	c, failed := openHostAt(local, config)
	switch {
	case c != nil:
		return c, nil
	case !kinds.has(kindSoft):
		failed = append(failed, noDevice(local, kinds))
		return nil, errs.Tried(failed)
	}
	var err error
	config.dials = here
	switch {
	case !here || devices.owns(local):
		c, err = OpenWith(softName(local), config)
	case local.Is4() && local.IsLoopback() && len(loopbacks()) > 1:
		c, err = openClientLoopback(remote, config)
	default:
		c, err = openBeside(softAt(local), config)
	}
	if err != nil {
		return nil, errs.Tried(append(failed, err))
	}
	return c, nil
}

// clientAddrs is the number of its own addresses that a process tries.
const clientAddrs = 16

// openClientLoopback opens a device on a loopback address that no program
// listens on by habit.
func openClientLoopback(remote netip.Addr, config OpenConfig) (*Context, error) {
	for i := range clientAddrs {
		addr := clientAddr(os.Getpid() + i)
		if addr == remote {
			continue
		}
		c, err := OpenWith(softName(addr), config)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return c, err
		}
	}
	return openBeside(softAt(loopbacks()[0]), config)
}

// clientAddr is 127.128.0.0 plus n. Linux numbers no process beyond 2^22.
func clientAddr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(128 + n>>16&0x7f), byte(n >> 8), byte(n)})
}

// routeSource is the address from which the system would send to remote.
func routeSource(remote netip.Addr) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, RoCEPort))) // sends nothing
	if err != nil {
		return netip.Addr{}, loopback.Explain(err)
	}
	defer conn.Close()
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	return local, nil
}

const gidV2 = "RoCE v2"
