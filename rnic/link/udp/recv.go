package udp

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// datagram is one that was received.
type datagram struct {
	data  []byte
	from  netip.AddrPort
	id    uint16 // likely identification: its place among those that came together
	whole bool

	marked, crowded bool // see link.Packet
}

// badReads bounds the reads of one Recv that bring nothing good, so that a
// sender of rubbish does not keep it for ever.
const badReads = 4

// Recv hands out datagrams whose ICRC is right. Datagrams of one read may take
// several calls; nothing is read before all of them were handed out.
func (s *socket) Recv(batch []link.Packet) (int, error) {
	good, reads := s.groups.take(batch), 0
	for good < len(batch) {
		d, ok := s.rx.next()
		if ok {
			if s.check(d, &batch[good]) {
				good++
			}
			continue
		}
		if good > 0 || reads == badReads {
			break // they lie where the next read would go
		}
		reads++
		if some, err := s.rx.fill(); err != nil || !some {
			return 0, err
		}
	}
	return good, nil
}

// Wait implements link.Link.
func (s *socket) Wait() error {
	var err error
	if s.groups.waiting.Load() == 0 {
		err = s.raw.Wait()
	}
	s.waits.Add(1)
	return err
}

// Sleep implements link.Link.
func (s *socket) Sleep(d time.Duration, waits bool) error {
	var err error
	switch {
	case s.groups.waiting.Load() > 0:
	case waits:
		err = s.raw.Sleep(d)
	default:
		s.raw.Doze(d)
	}
	s.waits.Add(1) // there may be something to read
	return err
}

// Interrupt implements link.Link.
func (s *socket) Interrupt() { s.raw.Interrupt() }

// Watch implements link.Watcher; ENOTSUP where the netpoller watches the socket
// itself.
func (s *socket) Watch(fd int) error {
	if w, ok := s.raw.(interface{ Watch(fd int) error }); ok {
		return w.Watch(fd)
	}
	return syscall.ENOTSUP
}

// check verifies a received datagram and describes it in pkt.
func (s *socket) check(d datagram, pkt *link.Packet) bool {
	if !d.whole || len(d.data) < wire.BTHLen+wire.ICRCLen || len(d.data) > s.caps.Longest {
		s.count.Malformed.Add(1)
		return false
	}
	from := s.rx.peers.from(d.from, s.local)
	if from == nil {
		s.count.Malformed.Add(1)
		return false
	}
	id, ok := from.flow.Verify(d.data, d.id)
	if s.tap != nil {
		s.tap.Datagram(link.Inbound, d.from, s.local, id, d.data, nil, nil)
	}
	if !ok || !from.habit.takes(id) || id != 0 && len(d.data) > wire.MaxSolvable {
		s.count.ICRC.Add(1)
		return false
	}
	if d.from.Addr().Is4() && id != d.id {
		s.rx.learn(id)
		if id != 0 {
			s.count.Solved.Add(1)
		}
	}
	end := len(d.data) - wire.ICRCLen
	*pkt = link.Packet{Peer: d.from, Head: d.data[:end:end], Marked: d.marked, Crowded: d.crowded}
	return true
}
