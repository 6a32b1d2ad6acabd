package rnic

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

var _ driver.CMDevice = (*Device)(nil)

// cmUsers are the receivers of the communication manager's events. Guarded by
// Device.mu.
type cmUsers struct {
	listeners map[cm.ListenerID]driver.CMListenEvents
	conns     map[wire.CommID]driver.CMEvents
}

// cmListener is a driver.CMListener, cmConn a driver.CMConn.
type (
	cmListener struct {
		d   *Device
		id  cm.ListenerID
		end func() // of Config.Announce; or nil
	}
	cmConn struct {
		d    *Device
		id   wire.CommID
		sidr bool // it is a question for datagrams' queue pair
	}
)

// CMResolve implements driver.CMDevice. The next hop is not waited for: if it
// is silent, CMConnect reports that.
func (d *Device) CMResolve(src, dst netip.Addr) (driver.CMPath, error) {
	local, dst := d.caps.Local.Addr(), dst.Unmap()
	switch {
	case src.IsValid() && wire.Bare(src) != local.WithZone(""):
		return driver.CMPath{}, fmt.Errorf("rnic: device %s has the address %v, not %v: %w", d.name, local, src, syscall.EADDRNOTAVAIL)
	case dst.Is4() != local.Is4():
		return driver.CMPath{}, fmt.Errorf("rnic: device %s at %v does not reach %v, which is of the other IP version: %w", d.name, local, dst, syscall.ENETUNREACH)
	case local.IsLoopback() && !dst.IsLoopback() && !dst.IsMulticast():
		return driver.CMPath{}, fmt.Errorf("rnic: device %s at %v does not reach %v beyond this host: %w", d.name, local, dst, syscall.ENETUNREACH)
	case !dst.IsMulticast():
		if err := d.link.Reach(dst, 0); err != nil {
			return driver.CMPath{}, fmt.Errorf("rnic: device %s: %w", d.name, err)
		}
	}
	// A device is preferred where no source is asked for. With one, all that
	// have it are alike.
	preferred := src.IsValid() || dst == local || d.caps.NetDev != "" && routed(local, dst)
	return driver.CMPath{Local: local, Preferred: preferred}, nil
}

// routed reports whether the system would send to dst from local.
func routed(local, dst netip.Addr) bool {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, wire.Port))) // sends nothing
	if err != nil {
		return false
	}
	defer c.Close()
	from, ok := c.LocalAddr().(*net.UDPAddr)
	return ok && wire.Bare(from.AddrPort().Addr()) == local.WithZone("")
}

// CMListen implements driver.CMDevice.
func (d *Device) CMListen(service uint64, addr netip.Addr, backlog int, ev driver.CMListenEvents) (driver.CMListener, error) {
	l := &cmListener{d: d}
	if d.announce != nil {
		end, err := d.announce(service)
		if err != nil {
			return nil, err
		}
		l.end = end
	}
	err := d.withCM(func(_ cm.Time, m *cm.Manager) (err error) {
		if l.id, err = m.Listen(wire.ServiceID(service), addr, backlog); err == nil {
			d.gsi.users.listeners[l.id] = ev
		}
		return err
	})
	if err != nil {
		if l.end != nil {
			l.end()
		}
		return nil, err
	}
	return l, nil
}

// Redirect refers requests for a service of the communication manager to
// another UDP port of the device's address, until end is called. EADDRINUSE
// when the service is listened for, or redirected.
func (d *Device) Redirect(service uint64, port uint16) (end func(), err error) {
	l := &cmListener{d: d}
	err = d.withCM(func(_ cm.Time, m *cm.Manager) (err error) {
		l.id, err = m.Redirect(wire.ServiceID(service), port)
		return err
	})
	return l.Close, err
}

// Close implements driver.CMListener.
func (l *cmListener) Close() {
	_ = l.d.withCM(func(now cm.Time, m *cm.Manager) error {
		delete(l.d.gsi.users.listeners, l.id)
		return m.Unlisten(now, l.id)
	})
	if l.end != nil {
		l.end()
	}
}

// CMConnect implements driver.CMDevice. The ABI knows no UDP port of the peer's
// device: it is Config.PeerPort, or the one to which that sends.
func (d *Device) CMConnect(p *driver.CMRequest, ev driver.CMEvents) (driver.CMConn, error) {
	_, sidr := wire.ServiceID(p.Service).UDPPort()
	c := &cmConn{d: d, sidr: sidr}
	mtu := d.pathMTU(p.Dst.Addr().Unmap())
	err := d.withCM(func(now cm.Time, m *cm.Manager) (err error) {
		if sidr {
			return c.resolve(now, m, p, ev)
		}
		c.id, err = m.Connect(now, &cm.ConnectParams{
			Peer:    netip.AddrPortFrom(p.Dst.Addr().Unmap(), d.cmPort),
			Service: wire.ServiceID(p.Service), Src: p.Src, Dst: p.Dst.Addr(), QPN: wire.QPN(p.Param.QPN), MTU: uint8(mtu),
			MaxDestRdAtomic: p.Param.ResponderResources, MaxRdAtomic: p.Param.InitiatorDepth,
			RetryCount: p.Param.RetryCount, RNRRetryCount: p.Param.RNRRetryCount, FlowControl: p.Param.FlowControl, SRQ: p.Param.SRQ,
			TrafficClass: p.TOS, FlowLabel: p.FlowLabel & 0xfffff, Timeout: wire.AckTimeout(p.AckTimeout), Private: p.Private,
		})
		if err == nil {
			d.gsi.users.conns[c.id] = ev
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dispatch gives an event to its receiver. Preconditions: mu is held.
func (d *Device) dispatch(e cm.Event) {
	if e.Kind == cm.ConnectRequest || e.Kind == cm.SIDRRequest {
		d.request(e)
		return
	}
	if e.Kind == cm.Probe {
		d.probe(e)
		return
	}
	ev := d.gsi.users.conns[e.Conn]
	if ev == nil {
		return
	}
	out := driver.CMEvent{}
	switch e.Kind {
	case cm.ConnectResponse:
		d.estimate(e.QPN, e.RoundTrip)
		out = driver.CMEvent{Event: abi.UCMEventConnectResponse, Peer: peerParam(&e.Attr), Private: e.Private}
	case cm.Connected: // like Linux without the RTU's private data
		d.estimate(e.QPN, e.RoundTrip)
		out.Event = abi.UCMEventEstablished
	case cm.Rejected:
		out = driver.CMEvent{Event: abi.UCMEventRejected, Status: int32(e.Reason), Private: e.Private}
		if e.Errno != 0 { // as of iWARP (cma.c: cma_iw_handler)
			out.Status = -linuxErrno(e.Errno)
		}
	case cm.Unreachable:
		out = driver.CMEvent{Event: abi.UCMEventUnreachable, Status: -linuxErrno(e.Errno)}
	case cm.Disconnected:
		out.Event = abi.UCMEventDisconnected
	case cm.TimeWaitExit:
		out.Event = abi.UCMEventTimewaitExit
	case cm.SIDRReply:
		out = answered(&e)
	}
	ev.Event(out)
	d.drive.Woke()
}

// estimate gives a queue pair its first guess of the round trip: how long the
// handshake took that connected it. Preconditions: mu is held.
func (d *Device) estimate(n wire.QPN, took cm.Duration) {
	if q := d.qps[n]; q != nil && took > 0 {
		if rc, ok := q.engine.(*engine.QP); ok {
			rc.Estimate(engine.Duration(took))
		}
	}
}

// probe asks the peer of a connection for a sign of life, through the queue
// pair that the connection is said to have.
func (d *Device) probe(e cm.Event) {
	now, m := cm.Time(d.now()), d.gsi.cm
	switch q := d.qps[e.QPN]; {
	case q == nil || q.engine.Attr().DestQPN != e.Attr.RemoteQPN:
		m.Gone(now, e.Conn)
	case !m.AnswerProbe(now, e.Conn, q.engine.Counters().RcvdPkts): // it has answered, or never will
	case q.engine.Ping():
		d.schedule(q)
	default:
		m.Gone(now, e.Conn)
	}
	d.wakeWorker() // events are reported when all was sent
}

// linuxErrno is Linux's number, which the ABI carries on every host, of why a
// peer was not reached; ETIMEDOUT's where nothing is said.
func linuxErrno(why syscall.Errno) int32 {
	switch why {
	case syscall.EPERM:
		return 1
	case syscall.ENETUNREACH:
		return 101
	case syscall.ECONNREFUSED:
		return 111
	case syscall.EHOSTUNREACH:
		return 113
	}
	return 110
}

// request offers a request to its listener. A request without a taker is
// forgotten, and the peer asks again, or refused. Preconditions: mu is held.
func (d *Device) request(e cm.Event) {
	users, port := &d.gsi.users, uint16(0)
	if _, p, ok := e.Service.IP(); ok {
		port = p
	}
	var ev driver.CMEvents
	l := users.listeners[e.Listener]
	err := error(syscall.ECONNREFUSED)
	if l != nil {
		ev, err = l.Request(&cmConn{d, e.Conn, e.Kind == cm.SIDRRequest}, &driver.CMRequest{
			Service: uint64(e.Service), Src: e.Src, Dst: netip.AddrPortFrom(e.Dst, port), Param: peerParam(&e.Attr), Private: e.Private,
			TOS: e.Attr.TrafficClass, FlowLabel: e.Attr.FlowLabel,
		})
	}
	switch {
	case errors.Is(err, syscall.EAFNOSUPPORT):
		_ = d.gsi.cm.Destroy(cm.Time(d.now()), e.Conn)
		d.wakeWorker() // events are reported when all was sent
		return
	case err != nil:
		d.gsi.cm.Forget(e.Conn)
		return
	}
	users.conns[e.Conn] = ev
	d.drive.Woke()
}

func peerParam(a *cm.Attr) driver.CMPeerParam {
	return driver.CMPeerParam{QPN: uint32(a.RemoteQPN), ResponderResources: a.MaxDestRdAtomic, InitiatorDepth: a.MaxRdAtomic,
		RetryCount: a.RetryCount, RNRRetryCount: a.RNRRetryCount, FlowControl: a.FlowControl, SRQ: a.SRQ}
}

// Attr implements driver.CMConn. The DLID carries a soft device's UDP port.
func (c *cmConn) Attr() (out driver.CMAttr, err error) {
	err = c.d.withCM(func(_ cm.Time, m *cm.Manager) error {
		a, err := m.Attr(c.id)
		if err != nil {
			return err
		}
		port := portLID(a.Peer.Port())
		if a.Soft {
			port = a.Peer.Port()
		}
		out = driver.CMAttr{
			AV: abi.QPDest{DGID: gidOf(a.Peer.Addr()).As16(), FlowLabel: a.FlowLabel, HopLimit: a.HopLimit,
				TrafficClass: a.TrafficClass, IsGlobal: 1},
			DestQPN: uint32(a.RemoteQPN), RQPSN: uint32(a.RQPSN), SQPSN: uint32(a.SQPSN), PathMTU: abi.MTU(a.MTU),
			MaxRdAtomic: a.MaxRdAtomic, MaxDestRdAtomic: a.MaxDestRdAtomic, Timeout: uint8(a.Timeout),
			RetryCnt: a.RetryCount, RNRRetry: a.RNRRetryCount,
		}
		if port != 0 {
			out.AV.SetUDPPort(port)
		}
		return nil
	})
	return out, err
}

// Taken implements driver.CMConn.
func (c *cmConn) Taken() {
	_ = c.d.withCM(func(_ cm.Time, m *cm.Manager) error { return m.Take(c.id) })
}

// Accept implements driver.CMConn.
func (c *cmConn) Accept(r *driver.CMReply) error {
	if c.sidr {
		return c.answer(&cm.AnswerParams{QPN: wire.QPN(r.Param.QPN), QKey: r.QKey, Private: r.Private})
	}
	return c.d.withCM(func(now cm.Time, m *cm.Manager) error {
		return m.Accept(now, c.id, &cm.AcceptParams{
			QPN: wire.QPN(r.Param.QPN), MaxDestRdAtomic: r.Param.ResponderResources, MaxRdAtomic: r.Param.InitiatorDepth,
			RNRRetryCount: r.Param.RNRRetryCount, FlowControl: r.Param.FlowControl, SRQ: r.Param.SRQ, Private: r.Private,
		})
	})
}

// Confirm implements driver.CMConn.
func (c *cmConn) Confirm() error {
	return c.d.withCM(func(_ cm.Time, m *cm.Manager) error { return m.Confirm(c.id) })
}

// Reject implements driver.CMConn.
func (c *cmConn) Reject(reason abi.UCMRejReason, private []byte) error {
	if c.sidr {
		return c.answer(&cm.AnswerParams{Status: wire.SIDRRejected, Private: private})
	}
	return c.d.withCM(func(now cm.Time, m *cm.Manager) error {
		return m.Reject(now, c.id, wire.RejectReason(reason), private)
	})
}

// Disconnect implements driver.CMConn.
func (c *cmConn) Disconnect() error {
	return c.d.withCM(func(now cm.Time, m *cm.Manager) error {
		c.d.finalAckBeforeDREQ(c.id)
		return m.Disconnect(now, c.id)
	})
}

// CommEstablished implements driver.CMConn.
func (c *cmConn) CommEstablished() error {
	return c.d.withCM(func(_ cm.Time, m *cm.Manager) error {
		return m.CommEstablished(c.id)
	})
}

// Destroy implements driver.CMConn.
func (c *cmConn) Destroy() {
	_ = c.d.withCM(func(now cm.Time, m *cm.Manager) error {
		delete(c.d.gsi.users.conns, c.id)
		c.d.finalAckBeforeDREQ(c.id)
		return m.Destroy(now, c.id)
	})
}

// resolve asks for the queue pair that serves datagrams. Preconditions: the
// device is locked.
func (c *cmConn) resolve(now cm.Time, m *cm.Manager, p *driver.CMRequest, ev driver.CMEvents) (err error) {
	c.id, err = m.Resolve(now, &cm.ResolveParams{
		Peer:    netip.AddrPortFrom(p.Dst.Addr().Unmap(), c.d.cmPort),
		Service: wire.ServiceID(p.Service), Src: p.Src, Dst: p.Dst.Addr(), Private: p.Private,
	})
	if err == nil {
		c.d.gsi.users.conns[c.id] = ev
	}
	return err
}

// answer answers such a question.
func (c *cmConn) answer(a *cm.AnswerParams) error {
	return c.d.withCM(func(now cm.Time, m *cm.Manager) error { return m.Answer(now, c.id, a) })
}

// answered is the event of an answer. The DLID carries a soft device's UDP
// port.
func answered(e *cm.Event) driver.CMEvent {
	if e.Status != wire.SIDRValid {
		return driver.CMEvent{Event: abi.UCMEventUnreachable, Status: int32(e.Status), Private: e.Private}
	}
	peer := e.Attr.Peer
	return driver.CMEvent{
		Event: abi.UCMEventEstablished, Private: e.Private, Peer: driver.CMPeerParam{QPN: uint32(e.Attr.RemoteQPN)}, QKey: e.QKey,
		AV: abi.QPDest{DGID: gidOf(peer.Addr()).As16(), DLID: portLID(peer.Port()), IsGlobal: 1},
	}
}
