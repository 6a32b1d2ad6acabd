//go:build linux && !udpportable

package udp

import (
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"

	"golang.org/x/sys/unix"
)

// chunk is how many bytes are finished before the kernel is called: they are
// still in the processor's cache when it copies them, and the peer gets to work
// earlier.
const chunk = 64 << 10

// sender sends up to batchSize packets with one sendmmsg:
//
//	send   builds messages, hands them to the kernel, and sees to GSO sends
//	       that it refuses
//	build  cuts the batch into runs that can leave together (segments), each a
//	       message
//	add    puts a run's packets into a message, finished where they lie
//	flush  makes the system call
//
// Everything that the kernel reads is laid out once.
type sender struct {
	s     *socket
	peers peers
	zone  uint32 // scope of link-local peers
	room  int    // bytes that one send may carry
	limit int    // packets that one send may carry; 1: GSO is off

	hdr   [batchSize]unix.Mmsghdr
	env   [batchSize]envelope
	first [batchSize]int // the message's first packet in the batch
	size  [batchSize]int // and how many it has
	iov   [batchSize]unix.Iovec

	copies []byte // packets that are not finished where they lie
	piece  []byte // what the message's last entry of iov names

	next, end int // messages that are to be sent
	iovs      int // entries of iov in use
	failed    int // messages that the kernel refused
	again     int // how often the next message was tried again
	refused   unix.Errno
	try       func(fd uintptr) bool
	call      func(fd uintptr, msgs []unix.Mmsghdr) (int, unix.Errno) // sendmmsg, but for tests
	err       error
}

func (t *sender) init(s *socket) {
	t.s = s
	t.try = t.flush
	t.call = sendmmsg
	t.zone = scope(s.caps.IfIndex, s.local.Addr())
	t.room = payloadMTU(1<<16-1, s.local.Addr().Is4())
	t.limit = 1
	if s.offload.gso {
		t.limit = maxSegments
	}
	for i := range t.env {
		t.env[i].attach(&t.hdr[i].Hdr)
	}
}

// send finishes and sends at most batchSize packets.
func (t *sender) send(batch []link.Packet) error {
	defer t.forget()
	for len(batch) > 0 {
		end := t.build(batch, t.limit)
		if err := t.run(); err != nil {
			return err
		}
		if t.refused != 0 {
			at := t.first[t.next]
			end = at + t.size[t.next]
			if err := t.sendPlainly(batch[at:end]); err != nil {
				return err
			}
		}
		batch = batch[end:]
	}
	return nil
}

// sendPlainly sends the packets of a GSO send that the kernel refused, each by
// itself. It is GSO's fault if they leave now: EIO where the device cannot make
// checksums, or IPsec is on the way (udp.c:udp_send_skb), EINVAL where fewer
// segments are allowed. Then there is no GSO from now on.
func (t *sender) sendPlainly(batch []link.Packet) error {
	why := t.refused
	t.s.count.GSORefused.Add(1)
	t.build(batch, 1) // all of it: it was one send
	if err := t.run(); err != nil {
		return err
	}
	if t.failed == t.end || why != unix.EIO && why != unix.EINVAL {
		return nil
	}
	t.s.count.GSOReduced.Add(1)
	t.limit = 1
	return nil
}

// forget drops the references to packets: their memory is not the link's.
func (t *sender) forget() {
	clear(t.iov[:t.iovs])
	t.iovs, t.piece = 0, nil
}

// run hands the messages that were built to the kernel.
func (t *sender) run() error {
	t.next, t.failed, t.again, t.refused, t.err = 0, 0, 0, 0, nil
	if t.end == 0 {
		return nil
	}
	if err := t.s.raw.Write(t.try); err != nil {
		return err
	}
	return t.err
}

// build makes messages of the packets at the front of a batch, with up to limit
// packets each, and returns how many packets it took. A packet that cannot
// leave is counted when it is the first: packets behind a message that the
// kernel refuses are built again.
func (t *sender) build(batch []link.Packet, limit int) int {
	t.end, t.iovs = 0, 0
	t.copies = t.copies[:0]
	at := 0
	for bytes := 0; at < len(batch) && bytes < chunk; {
		first := &batch[at]
		drop, to := &t.s.count.Malformed, (*peer)(nil)
		if len(first.Head) >= wire.BTHLen {
			drop, to = &t.s.refused.Unreachable, t.peers.to(t.s.local, first.Peer)
		}
		if to == nil {
			if t.end > 0 {
				break
			}
			drop.Add(1)
			at++
			continue
		}
		if first.Alone && to.gso.alone() {
			t.s.count.GSOSuspended.Add(1)
		}
		most := limit
		if !to.gso.allowed() {
			most = 1
		}
		n, size := segments(batch[at:], most, t.room)
		if !first.Alone {
			to.gso.sent(n)
		}
		t.first[t.end], t.size[t.end] = at, n
		t.add(batch[at:at+n], to, size)
		at += n
		bytes += n * size
	}
	return at
}

// add finishes packets into the next message.
func (t *sender) add(run []link.Packet, to *peer, size int) {
	h, e := &t.hdr[t.end].Hdr, &t.env[t.end]
	t.end++
	begin := t.iovs
	t.piece = nil
	for i := range run {
		p := &run[i]
		var whole []byte
		whole, t.copies = finish(t.copies, p, to.flow, uint16(i))
		t.show(p, i, whole)
		t.refer(whole)
	}
	h.Iov = &t.iov[begin]
	h.SetIovlen(t.iovs - begin)
	h.Namelen = putAddr(&e.addr, run[0].Peer, t.zone)
	h.Control = nil
	h.SetControllen(0)
	if len(run) > 1 {
		e.setSegments(h, size)
		t.s.count.GSOSends.Add(1)
		t.s.count.GSOPackets.Add(uint64(len(run)))
	}
}

// refer adds bytes to the message: to its last piece, if they lie behind that.
func (t *sender) refer(b []byte) {
	last := t.piece
	if n := len(last); n > 0 && cap(last) > n && &last[:n+1][n] == &b[0] {
		t.piece = last[:n+len(b)]
		t.iovs--
	} else {
		t.piece = b
	}
	point(&t.iov[t.iovs], t.piece)
	t.iovs++
}

// show lets the tap, if there is one, see a datagram that leaves. A datagram of
// a GSO send that the kernel refuses is shown a second time, as it leaves then.
func (t *sender) show(p *link.Packet, id int, whole []byte) {
	if t.s.tap == nil {
		return
	}
	if !t.s.local.Addr().Is4() {
		id = 0
	}
	t.s.tap.Datagram(link.Outbound, t.s.local, p.Peer, uint16(id), whole, nil, nil)
}

// flush sends what is left. It returns false when the socket's buffer is full:
// the netpoller calls it again.
func (t *sender) flush(fd uintptr) bool {
	for t.next < t.end {
		n, errno := t.call(fd, t.hdr[t.next:t.end])
		switch {
		case errno == 0:
			t.next += n
			t.again = 0
			if t.next < t.end {
				t.s.errors.due.Store(true) // why it stopped is not said
			}
		case errno == unix.EAGAIN:
			return false
		case errno == unix.EINTR:
		case errno == unix.EBADF, errno == unix.ENOTSOCK:
			t.err = errno
			return true
		case isPending(errno) && t.again < pendingTries:
			t.s.errors.due.Store(true)
			t.again++
		case errno == unix.ENOBUFS:
			// The interface's queue has dropped it, all of a GSO send: a loss.
			t.s.refused.NoBuffer.Add(uint64(t.size[t.next]))
			t.skip()
		case t.size[t.next] > 1:
			t.refused = errno
			return true
		default: // about the first message: the others may have better luck
			t.s.drop(errno)
			t.s.errors.refused(getAddr(&t.env[t.next].addr), errno, pointed(t.hdr[t.next].Hdr.Iov))
			t.skip()
		}
	}
	return true
}

// skip leaves a message out that the kernel refused.
func (t *sender) skip() {
	t.failed++
	t.next++
	t.again = 0
}
