package cm

import "github.com/rdmashim/rdmashim/rnic/wire"

// PeerGone tells that the peers' device has gone for certain: Disconnected ends
// the connections whose queue pairs are named, and no DREQ is sent. Connections
// that have ended are asked for, too. Next: Event, NextTimeout.
func (m *Manager) PeerGone(now Time, named func(wire.QPN) bool) {
	for _, id := range m.Conns() {
		c := m.conns[id]
		if made := c.state == Idle || c.state >= Established; !made || !named(c.localQPN) {
			continue
		}
		if c.state == Established {
			m.stop(c)
			c.suspicion = nil
			m.disconnected(c, now, Event{})
		}
	}
}
