package uapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
	"github.com/rdmashim/rdmashim/uapi/loopback"
)

// DefaultConnectTimeout bounds Dial and Request.Accept when ctx has no
// deadline: a silent peer is given up after it, with ErrUnreachable.
const DefaultConnectTimeout = 30 * time.Second

// Room for private data, in bytes.
const (
	MaxDialPrivate   = abi.UCMConnectData // 56
	MaxAcceptPrivate = abi.UCMAcceptData  // 196
	MaxRejectPrivate = abi.UCMRejectData  // 148
)

// DialConfig says how to connect. The zero value of every field means the
// default.
type DialConfig struct {
	// Private goes to the peer with the request, at most MaxDialPrivate bytes.
	// The peer sees zeroes behind it: its length is not on the wire. It is read
	// after Prepare, which may fill it in with what it knows of the queue pair.
	Private []byte
	// QPConfig is the queue pair's; both depths 0 mean 64 each. MTU is the
	// route's.
	QPConfig QPConfig
	// LocalAddr is the address to connect from; the device must have it (one of
	// the peer's IP version is chosen). Port 0 takes a free one.
	LocalAddr netip.AddrPort
	// KeepAlive is how long the connection is idle before the peer is asked for
	// a sign of life (DefaultKeepAlive). None: never.
	KeepAlive time.Duration
	// TOS is the type of service of the connection's packets, or traffic class
	// (0).
	TOS uint8
	// Prepare is called with the queue pair before the peer is asked: receives
	// that are posted there are posted before the peer can send. Its error ends
	// Dial. It is called once for all addresses that are tried.
	Prepare func(qp QP) error
}

// Dial connects a new queue pair to the listener at addr, HOST:PORT, through
// the RDMA connection manager: a listener of Listen, or of a program that uses
// librdmacm, RDMA_PS_TCP. QueryConn has the peer's private data, Done tells
// when the connection ends.
//
// HOST is an address or a name. An empty one and a wildcard, as in
// Listener.Addr, are this host: this device's own address, then those of the
// process's other devices, then, from a loopback address, the loopback
// addresses at which there are devices. Where HOST has several addresses they
// are tried in turn, IPv4 first and those of this host at which there is no
// device last, until one answers. An attempt takes at most an equal share of
// the time that is left, and 2 s if there is as much. A refusal by a program is
// final. The queue pair is one for all attempts.
//
// Errors; of several addresses, all that were met:
//   - ErrRefused: no program listens there or, as *RejectError, the program
//     refused; or no device has the address: its host said so (ICMP port
//     unreachable; Linux)
//   - ErrUnreachable: no answer within DefaultConnectTimeout; with EHOSTUNREACH
//     or ENETUNREACH at once, when the network says so; with EPERM when a packet
//     filter of this host drops the requests
//   - ctx's own when it ends first
//   - ENETUNREACH, EAFNOSUPPORT, EADDRNOTAVAIL: this device does not reach addr
//   - EMSGSIZE: the route carries less than the ports' MTU
//   - EINVAL: too much private data
//   - ENOENT: the kernel has no connection manager
//
// After an error no queue pair or connection is left.
func (d *Device) Dial(ctx context.Context, addr string, config DialConfig) (QP, error) {
	inner, cancel := bounded(ctx, DefaultConnectTimeout)
	defer cancel()
	remotes, err := resolve(inner, addr)
	qp := QP(-1)
	if err == nil {
		qp, err = d.dial(ctx, inner, remotes, &config)
	}
	return qp, opError("Dial", addr, err)
}

// dial tries the addresses in turn. ctx is the caller's, inner the bounded one
// made from it.
func (d *Device) dial(ctx, inner context.Context, remotes []netip.AddrPort, config *DialConfig) (QP, error) {
	if len(config.Private) > MaxDialPrivate {
		return -1, errs.Explain(syscall.EINVAL, "%d bytes of private data; a request carries %d", len(config.Private), MaxDialPrivate)
	}
	ch, err := d.channel()
	if err != nil {
		return -1, err
	}
	t := dialling{device: d, ch: ch, config: config, ctx: ctx}
	remotes = device.SilentLast(onThisHost(remotes, d.hostAddrs))
	var failed []error
	for i, remote := range remotes {
		err := t.try(inner, remote, len(remotes)-i)
		if err == nil {
			return t.q.num, nil
		}
		if len(remotes) > 1 {
			err = fmt.Errorf("%v %w", remote.Addr(), err)
		}
		if failed = append(failed, err); inner.Err() != nil || !elsewhere(err) {
			break
		}
	}
	if t.q.queuePair != nil {
		_ = d.destroyQP(t.q.num)
	}
	return -1, loopback.Explain(errs.Tried(failed))
}

// elsewhere reports whether another address of the peer may do: no peer has
// answered at this one.
func elsewhere(err error) bool {
	var rejected *RejectError
	var prepare *prepareError
	if errors.As(err, &prepare) || errors.As(err, &rejected) && (rejected.Reason == RejectedByProgram || rejected.Reason == RejectedUnsupportedOption) {
		return false
	}
	return slices.ContainsFunc([]error{ErrRefused, ErrUnreachable, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EAFNOSUPPORT, syscall.EADDRNOTAVAIL, syscall.ENODEV},
		func(way error) bool { return errors.Is(err, way) })
}

// prepareError is an error of DialConfig.Prepare.
type prepareError struct{ error }

func (e *prepareError) Unwrap() error { return e.error }

// dialling is a Dial on its way.
type dialling struct {
	device *Device
	ch     *rdmacm.Channel
	config *DialConfig
	ctx    context.Context // the caller's
	q      managedPair     // made when the first address was resolved; in INIT then
}

// try asks at one address, with n attempts to go.
func (d *dialling) try(inner context.Context, remote netip.AddrPort, n int) error {
	start := time.Now()
	try, cancel := share(inner, n)
	defer cancel()
	local, err := d.device.source(d.config.LocalAddr, remote.Addr())
	if err != nil {
		return err
	}
	failed := func(err error) error {
		if ended := try.Err(); ended != nil && errors.Is(err, ended) {
			silence := fmt.Sprintf("for %v%s", time.Since(start).Round(time.Millisecond), d.device.absent(remote.Addr()))
			if d.ctx.Err() == nil {
				err = fmt.Errorf("%w %s", ErrUnreachable, silence)
			} else {
				err = fmt.Errorf("%w: no answer %s", ended, silence)
			}
		}
		return fmt.Errorf("from %v on %s: %w", local.Addr(), d.device.where.OpenName(), d.device.returned(setupError(d.ctx, inner, err)))
	}
	id, err := d.ch.Resolve(try, local, remote, rdmacm.Options{TOS: d.config.TOS})
	if err != nil {
		return failed(err)
	}
	first := d.q.queuePair == nil
	if first {
		if d.q, err = d.device.newManaged(d.config.QPConfig); err != nil {
			_ = id.Destroy()
			return err
		}
	}
	info, err := d.q.dialOnce(try, id, d.config, first)
	if err != nil {
		_ = id.Destroy()
		return failed(err)
	}
	d.q.begin(id, info, d.config.KeepAlive)
	return nil
}

// absent says why an address may be silent.
func (d *Device) absent(remote netip.Addr) string {
	switch {
	case d.where.Spec.Kind == device.Sim:
		return ""
	case remote.IsLoopback() && loopback.Down() != "":
		return ": " + loopback.Down()
	case device.Silent(remote):
		return fmt.Sprintf(": nothing has UDP port %d of that address of this host", RoCEPort)
	}
	return fmt.Sprintf(": is a device open there, and does no firewall drop UDP port %d?", d.askedPort())
}

// returned says what it means that a request came back.
func (d *Device) returned(err error) error {
	var event *rdmacm.EventError
	switch {
	case !errors.As(err, &event):
		return err
	case errors.Is(event, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nothing has UDP port %d of that address; open a device there (a soft one, or load rdma_rxe)", ErrRefused, d.askedPort())
	case errors.Is(event, syscall.EPERM):
		return fmt.Errorf("%w; a packet filter of this host does not let UDP to port %d leave", err, d.askedPort())
	}
	return err
}

// askedPort is the UDP port at which other devices are asked for connections.
func (d *Device) askedPort() uint16 {
	if d.where.Beside() || d.where.Spec.Kind == device.Host {
		return RoCEPort
	}
	return d.chosen.addr.Port()
}

// dialOnce moves the queue pair to INIT, lets the program post receives the
// first time, and connects.
func (q managedPair) dialOnce(ctx context.Context, id *rdmacm.ID, config *DialConfig, first bool) (info ConnInfo, err error) {
	if err := id.Init(q); err != nil {
		return info, err
	}
	if config.Prepare != nil && first {
		if err := config.Prepare(q.num); err != nil {
			return info, &prepareError{err}
		}
	}
	peer, err := id.Connect(ctx, q, q.param(config.Private))
	if err != nil {
		return info, err
	}
	route, err := id.Route()
	return ConnInfo{LocalAddr: route.Local, RemoteAddr: route.Remote, PrivateData: peer.Private}, err
}

// bounded gives ctx a deadline if it has none.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// source is the device's address from which to reach remote.
func (d *Device) source(asked netip.AddrPort, remote netip.Addr) (netip.AddrPort, error) {
	none := netip.AddrPort{}
	local, err := asked.Addr(), error(nil)
	if !local.IsValid() {
		if local, err = d.sourceFor(remote); err != nil {
			return none, err
		}
	}
	if err := reachable(local.Unmap(), remote); err != nil {
		return none, err
	}
	return netip.AddrPortFrom(local.Unmap(), asked.Port()), nil
}

// sourceFor chooses among the device's addresses: the chosen one if it is of
// the peer's IP version, else the best of that version.
func (d *Device) sourceFor(remote netip.Addr) (netip.Addr, error) {
	own := d.chosen.gid.Addr.Unmap()
	fits := func(a netip.Addr) bool {
		return a.Is4() == remote.Is4() && (a.Is4() || a.IsLinkLocalUnicast() == remote.IsLinkLocalUnicast())
	}
	best := own
	if !fits(own) {
		gids, err := d.verbs.GIDs(uint8(d.chosen.port))
		if err != nil {
			return own, d.ended(err, &d.closed, "")
		}
		gids = slices.DeleteFunc(gids, func(g verbs.GID) bool { return !fits(g.Addr.Unmap()) })
		if len(gids) > 0 {
			best = device.BestGID(gids).Addr.Unmap()
		}
	}
	if zone := remote.Zone(); zone != "" && best.IsLinkLocalUnicast() {
		best = best.WithZone(zone)
	}
	return best, nil
}
