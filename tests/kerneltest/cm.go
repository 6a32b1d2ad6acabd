package kerneltest

import (
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// CMWire connects fake devices: messages arrive at once, with the wire's lock
// held, as a driver raises events with its own.
type CMWire struct {
	mu        sync.Mutex
	listeners map[*cmListener]bool
	conns     map[*cmConn]bool
	silent    bool // requests are lost
	asked     driver.CMRequest
}

// CMDevice is a Device with a communication manager.
type CMDevice struct {
	*Device
	wire *CMWire
	addr netip.Addr
}

// NewCMWire returns a wire without devices.
func NewCMWire() *CMWire {
	return &CMWire{listeners: map[*cmListener]bool{}, conns: map[*cmConn]bool{}}
}

// Silence has requests get lost, or arrive again.
func (w *CMWire) Silence(silent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = silent
}

// Asked returns the last request.
func (w *CMWire) Asked() driver.CMRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// Left returns how many listeners and connections there are.
func (w *CMWire) Left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.listeners) + len(w.conns)
}

// Device returns a device of that name and address on the wire.
func (w *CMWire) Device(name, addr string) *CMDevice {
	d := &CMDevice{NewDevice(name), w, netip.MustParseAddr(addr)}
	d.Attr.NodeGUID += uint64(len(name)) + uint64(d.addr.As4()[3])
	d.GIDTable = []driver.GIDEntry{{Index: 5, GID: netip.AddrFrom16(d.addr.As16()), Type: uint32(abi.GIDTypeRoCEv2), NetDev: "lo", IfIndex: 1}}
	return d
}

type cmListener struct {
	dev     *CMDevice
	service uint64
	addr    netip.Addr
	room    int
	ev      driver.CMListenEvents
}

type cmConn struct {
	dev      *CMDevice
	peer     *cmConn
	ev       driver.CMEvents
	state    string // "asking", "asked", "answered", "confirming", "up", "over"
	param    driver.CMPeerParam
	listener *cmListener // until it is taken
}

func (d *CMDevice) CMResolve(src, dst netip.Addr) (driver.CMPath, error) {
	if src.IsValid() && src != d.addr {
		return driver.CMPath{}, syscall.EADDRNOTAVAIL
	}
	if dst.As4()[0] != 10 {
		return driver.CMPath{}, syscall.ENETUNREACH
	}
	return driver.CMPath{Local: d.addr, GIDIndex: 5, Preferred: dst == d.addr}, nil
}

func (d *CMDevice) CMListen(service uint64, addr netip.Addr, backlog int, ev driver.CMListenEvents) (driver.CMListener, error) {
	d.wire.mu.Lock()
	defer d.wire.mu.Unlock()
	l := &cmListener{d, service, addr, backlog, ev}
	d.wire.listeners[l] = true
	return l, nil
}

func (l *cmListener) Close() {
	l.dev.wire.mu.Lock()
	defer l.dev.wire.mu.Unlock()
	delete(l.dev.wire.listeners, l)
}

func (d *CMDevice) CMConnect(r *driver.CMRequest, ev driver.CMEvents) (driver.CMConn, error) {
	w := d.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &cmConn{dev: d, ev: ev, state: "asking", param: r.Param}
	w.conns[c], w.asked = true, *r
	if w.silent {
		return c, nil
	}
	for l := range w.listeners {
		if l.service != r.Service || l.dev.addr != r.Dst.Addr() || l.addr.IsValid() && l.addr != r.Dst.Addr() {
			continue
		}
		if l.room == 0 {
			return c, nil
		}
		l.room--
		p := &cmConn{dev: l.dev, peer: c, state: "asked", listener: l}
		there := *r
		there.GIDIndex = 5
		there.Private = append(append([]byte(nil), r.Private...), make([]byte, abi.UCMConnectData-len(r.Private))...)
		there.Param.ResponderResources, there.Param.InitiatorDepth = r.Param.InitiatorDepth, r.Param.ResponderResources
		var err error
		if p.ev, err = l.ev.Request(p, &there); err == nil {
			w.conns[p] = true
			c.peer = p
			return c, nil
		}
		l.room++
	}
	c.over(driver.CMEvent{Event: abi.UCMEventRejected, Status: int32(abi.UCMRejInvalidServiceID)})
	return c, nil
}

func (c *cmConn) over(ev driver.CMEvent) {
	c.state = "over"
	c.ev.Event(ev)
}

// locked runs f when the connection is in a state that fits.
func (c *cmConn) locked(f func() error, states ...string) error {
	c.dev.wire.mu.Lock()
	defer c.dev.wire.mu.Unlock()
	if !slices.Contains(states, c.state) {
		return syscall.EINVAL
	}
	return f()
}

func (c *cmConn) Attr() (a driver.CMAttr, err error) {
	err = c.locked(func() error {
		a = driver.CMAttr{AV: abi.QPDest{DGID: c.peer.dev.addr.As16(), HopLimit: 64}, DestQPN: c.peer.param.QPN, PathMTU: abi.MTU1024,
			RQPSN: 1, SQPSN: 2, MaxRdAtomic: c.peer.param.ResponderResources, MaxDestRdAtomic: c.peer.param.InitiatorDepth,
			Timeout: 18, RetryCnt: 7, RNRRetry: 7}
		return nil
	}, "asked", "answered", "confirming", "up")
	return a, err
}

func (c *cmConn) Taken() {
	c.dev.wire.mu.Lock()
	defer c.dev.wire.mu.Unlock()
	c.takenLocked()
}

func (c *cmConn) takenLocked() {
	if c.listener != nil {
		c.listener.room++
		c.listener = nil
	}
}

func (c *cmConn) Accept(r *driver.CMReply) error {
	return c.locked(func() error {
		c.takenLocked()
		if c.peer == nil || c.peer.state != "asking" {
			return syscall.EINVAL
		}
		c.state, c.param, c.peer.state = "answered", r.Param, "confirming"
		p := r.Param
		p.ResponderResources, p.InitiatorDepth = p.InitiatorDepth, p.ResponderResources
		c.peer.ev.Event(driver.CMEvent{Event: abi.UCMEventConnectResponse, Peer: p,
			Private: append(append([]byte(nil), r.Private...), make([]byte, abi.UCMAcceptData-len(r.Private))...)})
		return nil
	}, "asked")
}

func (c *cmConn) Confirm() error {
	return c.locked(func() error {
		c.state, c.peer.state = "up", "up"
		c.peer.ev.Event(driver.CMEvent{Event: abi.UCMEventEstablished})
		return nil
	}, "confirming")
}

func (c *cmConn) Reject(why abi.UCMRejReason, private []byte) error {
	return c.locked(func() error {
		c.takenLocked()
		c.state = "over"
		if c.peer != nil && c.peer.state != "over" {
			c.peer.over(driver.CMEvent{Event: abi.UCMEventRejected, Status: int32(why),
				Private: append(append([]byte(nil), private...), make([]byte, abi.UCMRejectData-len(private))...)})
		}
		return nil
	}, "asked", "answered", "confirming")
}

func (c *cmConn) Disconnect() error {
	return c.locked(func() error {
		c.disconnect()
		return nil
	}, "up")
}

func (c *cmConn) disconnect() {
	for _, end := range []*cmConn{c.peer, c} {
		end.over(driver.CMEvent{Event: abi.UCMEventDisconnected})
		end.ev.Event(driver.CMEvent{Event: abi.UCMEventTimewaitExit})
	}
}

func (c *cmConn) CommEstablished() error { return c.locked(func() error { return nil }, "answered") }

func (c *cmConn) Destroy() {
	w := c.dev.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	c.takenLocked()
	switch c.state {
	case "asked", "answered", "confirming", "asking":
		if c.peer != nil && c.peer.state != "over" {
			c.peer.over(driver.CMEvent{Event: abi.UCMEventRejected, Status: int32(abi.UCMRejConsumerDefined), Private: make([]byte, abi.UCMRejectData)})
		}
	case "up":
		c.disconnect()
	}
	c.state = "over"
	delete(w.conns, c)
}
