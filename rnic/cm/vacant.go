package cm

import (
	"slices"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Vacant services: a program that listens for each connection anew has no
// listener for a moment, in which its peer may ask. What comes then is held
// until there is a listener again, or refused a moment late (Config.Vacancy).

// vacantPause is how long a request is held: less than the time after which a
// peer asks again, and than what a program notices that is refused.
const vacantPause = Time(200 * Millisecond)

// How many services are remembered as vacant, and requests held, at most.
const (
	maxVacant = 1024
	maxHeld   = 64
)

// held is a request for a vacant service.
type held struct {
	service wire.ServiceID
	due     Time
	message *message
}

// place is a service of an IP port, whatever the protocol: a program may listen
// for datagrams next at the port where it listened for connections.
func place(service wire.ServiceID) wire.ServiceID {
	if _, port, ok := service.IP(); ok {
		return wire.TCPService(port)
	}
	return service
}

// vacate notes that a service has lost its last listener.
func (m *Manager) vacate(service wire.ServiceID, now Time) {
	if m.cfg.Vacancy == 0 {
		return
	}
	if len(m.vacant) >= maxVacant {
		clear(m.vacant)
	}
	m.vacant[place(service)] = now + Time(m.cfg.Vacancy)
}

// occupy makes the requests due that a new listener can have.
func (m *Manager) occupy(service wire.ServiceID) {
	delete(m.vacant, place(service))
	for i := range m.held {
		if m.held[i].service == service {
			m.held[i].due = 1
		}
	}
}

// waitsForListener deals with a request for a service without a listener that
// may get one soon, and reports whether it did.
func (m *Manager) waitsForListener(service wire.ServiceID, now Time, msg *message) bool {
	if now < Time(m.cfg.Grace) {
		m.counters.DropGrace++
		return true
	}
	until := m.vacant[place(service)]
	if now >= until {
		delete(m.vacant, place(service))
		return false
	}
	if msg.held || len(m.held) == maxHeld {
		return false
	}
	kept := *msg
	kept.held, kept.data = true, slices.Clone(msg.data)
	m.held = append(m.held, held{service, now + vacantPause, &kept})
	m.credit-- // the answer comes later: this request earns nothing
	m.counters.Held++
	return true
}

// serveHeld takes the held requests again that are due.
func (m *Manager) serveHeld(now Time) {
	var due []*message
	m.held = slices.DeleteFunc(m.held, func(h held) bool {
		if h.due <= now {
			due = append(due, h.message)
		}
		return h.due <= now
	})
	for _, msg := range due {
		sent := len(m.out)
		m.dispatch(now, msg)
		m.earn(sent)
	}
}
