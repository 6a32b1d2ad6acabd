package uapi

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/cm"
)

// DefaultConnectTimeout bounds Dial and Request.Accept when ctx has no deadline: a silent
// peer is given up after it, with ErrUnreachable.
const DefaultConnectTimeout = 30 * time.Second

// Room for private data, in bytes.
const (
	MaxDialPrivate   = abi.UCMConnectData // 56
	MaxAcceptPrivate = abi.UCMAcceptData  // 196
	MaxRejectPrivate = abi.UCMRejectData  // 148
)

// DialConfig says how to connect. The zero value of every field means the default.
type DialConfig struct {
	// Private goes to the peer with the request, at most MaxDialPrivate bytes. The peer sees
	// zeroes behind it: its length is not on the wire.
	Private []byte
	// QPConfig is the queue pair's; both depths 0 mean 64 each. MTU is the
	// route's.
	QPConfig QPConfig
	// LocalAddr is the address to connect from; the device must have it (one of the peer's
	// IP version is chosen). Port 0 takes a free one.
	LocalAddr netip.AddrPort
	// KeepAlive is how long the connection is idle before the peer is asked for a sign of life
	// (DefaultKeepAlive). Negative: never.
	KeepAlive time.Duration
	// TOS is the type of service of the connection's packets, or traffic class (0).
	TOS uint8
	// Prepare is called with the queue pair before the peer is asked: receives that are posted
	// there are posted before the peer can send. Its error ends Dial.
	Prepare func(qp QP) error
}

// Dial connects a new queue pair to who listens at addr, HOST:PORT, through the RDMA connection
// manager: Listen, or a program that uses librdmacm, RDMA_PS_TCP. QueryConn tells what the peer
// said, Done when the connection ends.
//
// Errors: ErrRefused when nobody listens there or, as *RejectError, when the program refused;
// ErrUnreachable when nobody answers within DefaultConnectTimeout; ctx's own when it ends first;
// ENETUNREACH, EAFNOSUPPORT or EADDRNOTAVAIL when this device does not reach addr; EMSGSIZE when the route carries less than the
// ports' MTU; EINVAL for too much private data; ENOENT when the kernel has no connection manager. After an error there is nothing left.
func (c *Context) Dial(ctx context.Context, addr string, config DialConfig) (QP, error) {
	qp, err := c.dial(ctx, addr, &config)
	if err != nil {
		return -1, opError("Dial", addr, err)
	}
	return qp, nil
}

func (c *Context) dial(ctx context.Context, addr string, config *DialConfig) (QP, error) {
	if len(config.Private) > MaxDialPrivate {
		return -1, explain(syscall.EINVAL, "%d bytes of private data; a request carries %d", len(config.Private), MaxDialPrivate)
	}
	inner, cancel := bounded(ctx)
	defer cancel()
	remote, err := lookup(inner, addr)
	if err != nil {
		return -1, err
	}
	local, err := c.source(config.LocalAddr, remote.Addr())
	if err != nil {
		return -1, err
	}
	ch, err := c.channel()
	if err != nil {
		return -1, err
	}
	id, err := ch.Resolve(inner, local, remote, cm.Options{TOS: config.TOS})
	if err != nil {
		return -1, c.from(local, setupError(ctx, inner, err))
	}
	q, err := c.newManaged(config.QPConfig)
	if err != nil {
		_ = id.Destroy()
		return -1, err
	}
	info, err := q.ask(inner, id, config)
	if err != nil {
		_ = id.Destroy()
		_ = c.destroyQP(q.num)
		return -1, c.from(local, setupError(ctx, inner, err))
	}
	q.begin(id, info, config.KeepAlive)
	return q.num, nil
}

// ask moves the queue pair to INIT, lets the program post receives, and connects.
func (q managedPair) ask(ctx context.Context, id *cm.ID, config *DialConfig) (info ConnInfo, err error) {
	if err := id.Init(q); err != nil {
		return info, err
	}
	if config.Prepare != nil {
		if err := config.Prepare(q.num); err != nil {
			return info, err
		}
	}
	peer, err := id.Connect(ctx, q, q.param(config.Private))
	if err != nil {
		return info, err
	}
	route, err := id.Route()
	return ConnInfo{LocalAddr: route.Local, RemoteAddr: route.Remote, PrivateData: peer.Private}, err
}

// from says where an attempt was made from.
func (c *Context) from(local netip.AddrPort, err error) error {
	return fmt.Errorf("from %v on %s: %w", local.Addr(), c.station.device(), err)
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, DefaultConnectTimeout)
}

// lookup reads HOST:PORT, where HOST may be a name.
func lookup(ctx context.Context, addr string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(addr); err == nil {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.AddrPort{}, explain(syscall.EINVAL, "%v; write HOST:PORT", err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return netip.AddrPort{}, explain(syscall.EINVAL, "port %q: %v", service, err)
	}
	if host == "" {
		return netip.AddrPort{}, explain(syscall.EINVAL, "%q has no host", addr)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	best := found[0]
	for _, a := range found { // IPv4 first, as GIDs are chosen
		if a.Unmap().Is4() {
			best = a
			break
		}
	}
	return netip.AddrPortFrom(best.Unmap(), uint16(port)), nil
}

// source is the device's address from which to reach remote.
func (c *Context) source(asked netip.AddrPort, remote netip.Addr) (netip.AddrPort, error) {
	none := netip.AddrPort{}
	local, err := asked.Addr(), error(nil)
	if !local.IsValid() {
		if local, err = c.sourceFor(remote); err != nil {
			return none, err
		}
	}
	if err := reachable(local.Unmap(), remote); err != nil {
		return none, err
	}
	return netip.AddrPortFrom(local.Unmap(), asked.Port()), nil
}

// sourceFor chooses among the device's addresses: the context's own if it is of the peer's IP
// version, else the best one that is.
func (c *Context) sourceFor(remote netip.Addr) (netip.Addr, error) {
	own := c.chosen.gid.Addr.Unmap()
	fits := func(a netip.Addr) bool {
		return a.Is4() == remote.Is4() && (a.Is4() || a.IsLinkLocalUnicast() == remote.IsLinkLocalUnicast())
	}
	best := own
	if !fits(own) {
		gids, err := c.verbs.GIDs(uint8(c.chosen.port))
		if err != nil {
			return own, c.ended(err, &c.closed, "")
		}
		rank := 0
		for _, g := range gids {
			if r, _ := gidRank(g); fits(g.Addr.Unmap()) && (rank == 0 || r < rank) {
				best, rank = g.Addr.Unmap(), r
			}
		}
	}
	if zone := remote.Zone(); zone != "" && best.IsLinkLocalUnicast() {
		best = best.WithZone(zone)
	}
	return best, nil
}
