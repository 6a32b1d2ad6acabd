package cm

import "github.com/rdmashim/rdmashim/rnic/wire"

// PeerGone tells that the peers' device has gone for certain: Disconnected ends
// the connections whose queue pairs are named, and no DREQ is sent. Next:
// Event, NextTimeout.
func (m *Manager) PeerGone(now Time, named func(wire.QPN) bool) {
	for _, id := range m.Conns() {
		if c := m.conns[id]; c.state == Established && named(c.localQPN) {
			m.stop(c)
			c.suspicion = nil
			m.disconnected(c, now, Event{})
		}
	}
}
