//go:build linux && !udpportable

package udp

import (
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// maxMessages is how many messages one recvmmsg takes at most.
	maxMessages = 64
	// groMessages and groSlot are the number and size of buffers with GRO,
	// which merges up to 64 KiB.
	groMessages = 32
	groSlot     = 1 << 16
)

// receiver receives up to maxMessages messages with one recvmmsg, and cuts them
// into datagrams where they lie: with GRO a message is many datagrams of one
// sender behind each other, all of one length but the last.
type receiver struct {
	s     *socket
	peers peers

	hdr  [maxMessages]unix.Mmsghdr
	env  [maxMessages]envelope
	iov  [maxMessages]unix.Iovec
	buf  []byte
	slot int // bytes of buf for each message
	most int // messages

	dry      bool   // the last call took all there was, and fill has not said so yet
	waits    uint64 // of the socket, before that call
	waited   bool   // there was a Wait before it
	got, cur int    // messages of the last call, and the next one to be cut up
	open     bool   // a message is being cut up
	rest     []byte // of that message
	segment  int    // its datagrams' length
	id       uint16 // likely identification of the next one
	from     netip.AddrPort
	cutOff   bool // its end is missing
	marked   bool // it met congestion
	crowded  bool // the buffer was too full before the last call (isCrowded)

	try func(fd uintptr)
	err error
}

// buffers are of receivers that have ended: a new one is cleared, 2 MiB of it.
var buffers sync.Pool

func (r *receiver) init(s *socket) {
	r.s = s
	r.try = r.recvmmsg
	r.most, r.slot = maxMessages, slotSize
	if s.offload.gro {
		r.most, r.slot = groMessages, groSlot
	}
	if b, ok := buffers.Get().(*[]byte); ok && len(*b) == r.most*r.slot {
		r.buf = *b
	} else {
		r.buf = make([]byte, r.most*r.slot)
	}
	for i := range r.most {
		point(&r.iov[i], r.buf[i*r.slot:][:r.slot])
		h := &r.hdr[i].Hdr
		h.Iov = &r.iov[i]
		h.SetIovlen(1)
		r.env[i].attach(h)
	}
	r.got = r.most // all headers are to be made ready
	r.cur = r.most
}

// fill reads messages when all datagrams were taken, and reports whether there
// were any. A read that brought less than it could have emptied the socket: the
// next fill spares the system call, unless there was a Wait, which looks for
// itself.
func (r *receiver) fill() (bool, error) {
	waits := r.s.waits.Load()
	if r.dry && r.waits == waits {
		r.dry = false
		return false, nil
	}
	r.waited, r.waits = r.waits != waits, waits
	for i := range r.got {
		h := &r.hdr[i].Hdr
		h.Namelen = unix.SizeofSockaddrInet6
		r.env[i].wantOptions(h)
	}
	r.got, r.cur, r.err = 0, 0, nil
	if err := r.s.raw.Control(r.try); err != nil {
		r.end()
		return false, err
	}
	r.dry = r.got > 0 && r.got < r.most
	return r.got > 0, r.err
}

// end gives the buffer of a socket that is closed to the next one. Nothing lies
// in it any more that a Recv has handed out.
func (r *receiver) end() {
	if b := r.buf; b != nil {
		r.buf = nil
		buffers.Put(&b)
	}
}

func (r *receiver) recvmmsg(fd uintptr) {
	sysmon.use()
	if r.s.errors.due.Load() {
		r.s.errors.drain(fd)
	}
	for tries := 0; tries <= pendingTries; {
		n, errno := recvmmsg(fd, r.hdr[:r.most], 0)
		switch {
		case errno == 0:
			r.got = n
			r.crowded = r.isCrowded(fd)
			return
		case errno == unix.EAGAIN:
			if r.waited {
				r.s.errors.drain(fd) // the Wait may have ended for it
			}
			return
		case errno == unix.EINTR:
		case isPending(errno):
			r.s.errors.drain(fd)
			tries++
		default:
			r.err = errno
			return
		}
	}
}

// isCrowded reports whether the packets of several peers filled more than half
// of the receive buffer, or a peer's all of it: that one keeps to its window.
// Packets just read were in it: the kernel charges a datagram with two bytes
// for each of its own, merged ones with a quarter more. A read that may have
// left some asks the kernel how full the buffer is still.
func (r *receiver) isCrowded(fd uintptr) bool {
	most, held := r.s.caps.RecvBuffer, 0
	for i := range r.got {
		n := int(r.hdr[i].Len)
		if held += n + n/4; n <= slotSize {
			held += n - n/4
		}
		if r.env[i].addr != r.env[0].addr {
			most = r.s.caps.RecvBuffer / 2
		}
	}
	if r.got < r.most || held > most {
		return held > most
	}
	_, left, ok := overflows(fd)
	return ok && int(left) > most
}

// next returns the next datagram of what was read.
func (r *receiver) next() (d datagram, ok bool) {
	if !r.open {
		if r.cur == r.got {
			return d, false
		}
		r.start(r.cur)
		r.cur++
	}
	n := min(r.segment, len(r.rest))
	d = datagram{data: r.rest[:n:n], from: r.from, id: r.id, whole: true, marked: r.marked, crowded: r.crowded}
	r.rest = r.rest[n:]
	r.id++
	if len(r.rest) == 0 {
		r.open = false
		d.whole = !r.cutOff
	}
	return d, true
}

// start begins with a message.
func (r *receiver) start(i int) {
	h, e := &r.hdr[i], &r.env[i]
	r.open = true
	r.rest = r.buf[i*r.slot:][:min(int(h.Len), r.slot)]
	r.cutOff = h.Hdr.Flags&unix.MSG_TRUNC != 0
	r.from = getAddr(&e.addr)
	r.id = 0
	r.segment = len(r.rest)
	var n int
	if n, r.marked = e.options(&h.Hdr); n > 0 && n < len(r.rest) {
		r.segment = n
		r.s.count.GROReads.Add(1)
		r.s.count.GROPackets.Add(uint64((len(r.rest) + n - 1) / n))
	}
}

// learn notes the identification of the datagram that next returned last; in
// one message they usually follow each other.
func (r *receiver) learn(id uint16) { r.id = id + 1 }
