package cm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// ListenerID names a listener of a manager; 0 is none.
type ListenerID uint32

// Listener answers for a service.
type Listener struct {
	id      ListenerID
	service wire.ServiceID
	addr    netip.Addr // zero: every address
	backlog int
	pending int // requests that count against backlog
}

// Listen asks for the connection requests for a service that name addr, or for all
// when addr is the zero Addr or unspecified. Of services that are not of the RDMA
// IP CM service only all can be had (EINVAL). At most backlog requests wait for
// Take, Accept or Reject; more are dropped, and their senders try again.
// EADDRINUSE tells of a listener that would get the same requests.
func (m *Manager) Listen(service wire.ServiceID, addr netip.Addr, backlog int) (ListenerID, error) {
	addr = bare(addr)
	if addr.IsUnspecified() {
		addr = netip.Addr{}
	}
	if _, _, ip := service.IP(); !ip && addr.IsValid() {
		return 0, fmt.Errorf("cm: service %v has no addresses: %w", service, syscall.EINVAL)
	}
	for _, l := range m.services[service] {
		if !l.addr.IsValid() || !addr.IsValid() || l.addr == addr {
			return 0, fmt.Errorf("cm: somebody listens for service %v: %w", service, syscall.EADDRINUSE)
		}
	}
	for m.nextListen++; m.nextListen == 0 || m.listeners[m.nextListen] != nil; m.nextListen++ {
	}
	l := &Listener{id: m.nextListen, service: service, addr: addr, backlog: max(backlog, 1)}
	m.listeners[l.id] = l
	m.services[service] = append(m.services[service], l)
	return l.id, nil
}

// Unlisten ends a listener. Requests that were reported stay their owner's.
// Next: Transmit.
func (m *Manager) Unlisten(id ListenerID) error {
	l := m.listeners[id]
	if l == nil {
		return fmt.Errorf("cm: no listener %d: %w", id, syscall.ENOENT)
	}
	delete(m.listeners, id)
	list := m.services[l.service]
	for i := range list {
		if list[i] == l {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if m.services[l.service] = list; len(list) == 0 {
		delete(m.services, l.service)
	}
	return nil
}

// Take tells that the program has taken a ConnectRequest over: it does not count
// against the backlog any more.
func (m *Manager) Take(id wire.CommID) error {
	c, err := m.lookup(id)
	if err == nil {
		m.answered(c)
	}
	return err
}

// answered takes c out of its listener's backlog.
func (m *Manager) answered(c *conn) {
	if c.waiting {
		c.waiting = false
		c.listener.pending--
	}
	c.listener = nil
}

// listenerFor returns who answers for a service at an address; nil: nobody.
func (m *Manager) listenerFor(service wire.ServiceID, dst netip.Addr) *Listener {
	for _, l := range m.services[service] {
		if !l.addr.IsValid() || l.addr == bare(dst) {
			return l
		}
	}
	return nil
}
