package cm

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// ListenerID names a listener of a manager; 0 is none.
type ListenerID uint32

// Listener answers for a service.
type Listener struct {
	id      ListenerID
	service wire.ServiceID
	addr    netip.Addr // zero: every address; unspecified: every one of its version
	backlog int
	waiting int // requests that count against backlog

	redirect uint16 // not 0: the UDP port of the device that has the service

	asking int                // requests without an answer
	from   map[netip.Addr]int // of them, by source address
}

// full reports whether the listener takes no further request from an address.
// Addresses can be made up; a share for each keeps one host, or a forger of
// its address, from keeping all others out.
func (l *Listener) full(from netip.Addr, most int) bool {
	return l.waiting >= l.backlog || l.asking >= most || l.from[from] >= max(most*3/4, 1)
}

// countRequest counts c as a request without an answer.
func (l *Listener) countRequest(c *conn) {
	c.listener, c.waiting = l, true
	l.waiting++
	l.asking++
	l.from[c.remoteID().addr]++
}

// Listen asks for the connection requests for a service that name addr, for all
// of its IP version when addr is unspecified, or for all when it is the zero
// Addr. Of services that are not of the RDMA IP CM service only all can be had
// (EINVAL). At most backlog requests wait for Take, Accept or Reject, and
// Config.MaxRequests for Accept or Reject; more are dropped, and their senders
// try again. EADDRINUSE tells of a listener that would get the same requests.
// Services of the port space UDP are asked for by SIDR_REQ, and all others by
// REQ. Next: NextTimeout.
func (m *Manager) Listen(service wire.ServiceID, addr netip.Addr, backlog int) (ListenerID, error) {
	addr = wire.Bare(addr)
	if _, _, ip := service.IP(); !ip && addr.IsValid() {
		return 0, fmt.Errorf("cm: service %v has no addresses: %w", service, syscall.EINVAL)
	}
	for _, l := range m.services[service] {
		if covers(l.addr, addr) || covers(addr, l.addr) {
			return 0, fmt.Errorf("cm: service %v has a listener already: %w", service, syscall.EADDRINUSE)
		}
	}
	for m.nextListen++; m.nextListen == 0 || m.listeners[m.nextListen] != nil; m.nextListen++ {
	}
	l := &Listener{id: m.nextListen, service: service, addr: addr, backlog: max(backlog, 1), from: make(map[netip.Addr]int)}
	m.listeners[l.id] = l
	m.services[service] = append(m.services[service], l)
	m.occupy(service)
	return l.id, nil
}

// Unlisten ends a listener. Requests that were reported stay their owner's.
// Next: Transmit.
func (m *Manager) Unlisten(now Time, id ListenerID) error {
	l := m.listeners[id]
	if l == nil {
		return fmt.Errorf("cm: no listener %d: %w", id, syscall.ENOENT)
	}
	delete(m.listeners, id)
	list := slices.DeleteFunc(m.services[l.service], func(o *Listener) bool { return o == l })
	if m.services[l.service] = list; len(list) == 0 {
		delete(m.services, l.service)
		m.vacate(l.service, now)
	}
	return nil
}

// Take tells that the program has taken a ConnectRequest over: it does not
// count against the backlog any more.
func (m *Manager) Take(id wire.CommID) error {
	c, err := m.lookup(id)
	if err == nil {
		c.taken()
	}
	return err
}

// taken takes c out of its listener's backlog.
func (c *conn) taken() {
	if c.waiting {
		c.waiting = false
		c.listener.waiting--
	}
}

// answered ends being a request without an answer.
func (m *Manager) answered(c *conn) {
	c.taken()
	l := c.listener
	if l == nil {
		return
	}
	c.listener = nil
	l.asking--
	if from := c.remoteID().addr; l.from[from] > 1 {
		l.from[from]--
	} else {
		delete(l.from, from)
	}
}

// ofDatagrams reports whether a service is one of the port space UDP: its peers
// do not connect but ask for a queue pair and a Q_Key (SIDR).
func ofDatagrams(service wire.ServiceID) bool {
	_, is := service.UDPPort()
	return is
}

// listenerFor returns the listener of a service at an address; nil for none.
func (m *Manager) listenerFor(service wire.ServiceID, dst netip.Addr) *Listener {
	for _, l := range m.services[service] {
		if covers(l.addr, wire.Bare(dst)) {
			return l
		}
	}
	return nil
}

// covers reports whether a listener at an address has the requests for another.
func covers(at, dst netip.Addr) bool {
	return !at.IsValid() || at == dst || at.IsUnspecified() && dst.IsValid() && at.Is4() == dst.Is4()
}
