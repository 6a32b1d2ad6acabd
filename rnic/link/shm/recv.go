package shm

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A look at the socket is a system call and costs more than the rings. While
// they are busy, the socket is looked at with every socketEvery-th look, and
// after socketAfter at the latest, whether the rings had packets or not: far
// peers must not starve. The rings are busy for hotLooks looks after a packet.
const (
	socketEvery = 16
	socketAfter = 100 * time.Microsecond
	hotLooks    = 64
)

// receiver is the receiving side. Its lock keeps the rings in their place.
type receiver struct {
	sync.Mutex
	devices []*device   // guarded: whose in is there
	rings   []*consumer // guarded: theirs
	turn    int         // guarded: the ring that is looked at first
	buf     []byte      // guarded: what the last Recv handed out

	sleepers int // guarded: goroutines in Wait and Doze

	looks, hot int           // guarded: see socketEvery
	socket     time.Duration // guarded: when the socket was looked at last, since start
}

// inbound is the ring from a device.
type inbound struct {
	consumer
	bad  error  // what it broke
	left func() // tells the producer that nobody reads any more
	free func() // unmaps
}

// Recv takes packets from the rings, and from the socket when its turn has
// come.
func (l *Link) Recv(batch []link.Packet) (n int, err error) {
	if l.ins.Load() == 0 {
		return l.Link.Recv(batch)
	}
	r := &l.rx
	r.Lock()
	defer r.Unlock()
	if r.looks++; r.looks%socketEvery == 0 || r.hot == 0 || time.Since(l.start)-r.socket >= socketAfter {
		r.socket = time.Since(l.start)
		// Half of the batch at most, so that neither waits for the other.
		if n, err = l.Link.Recv(batch[:(len(batch)+1)/2]); err != nil {
			return 0, err
		}
	}
	r.buf = r.buf[:0]
	before := n
	for k := range r.devices {
		if n == len(batch) {
			break
		}
		n = l.takeFrom(r.devices[(r.turn+k)%len(r.devices)], batch, n)
	}
	l.dropBroken()
	if len(r.devices) > 0 {
		r.turn = (r.turn + 1) % len(r.devices)
	}
	if r.hot = max(r.hot-1, 0); n > before {
		r.hot = hotLooks
	}
	return n, nil
}

// takeFrom adds a ring's packets to batch[n:], and returns the new n. A ring
// that breaks the rules is emptied of its consumer; dropBroken removes it.
func (l *Link) takeFrom(d *device, batch []link.Packet, n int) int {
	r := &l.rx
	if r.buf == nil {
		r.buf = make([]byte, 0, len(batch)*pathPacket+maxPacket)
	}
	for n < len(batch) && len(r.buf)+maxPacket <= cap(r.buf) {
		b, flags, ok, err := d.in.next(r.buf)
		if err != nil {
			d.in.bad = err
			return n
		}
		if !ok {
			break
		}
		if b, ok = l.unseal(d, b, flags); !ok {
			continue
		}
		l.count.received.Add(1)
		l.count.receivedBytes.Add(payloadLen(b))
		r.buf = r.buf[:len(r.buf)+len(b)]
		batch[n] = link.Packet{Peer: d.addr, Head: b}
		n++
	}
	d.in.release()
	return n
}

// payloadLen is the length of a packet's payload; a record is not shorter than
// its BTH. What is no packet has some length, and is dropped later.
func payloadLen(b []byte) uint64 {
	var h wire.BTH
	_ = h.Parse(b)
	return uint64(max(len(b)-max(h.Opcode.HeaderLen(), wire.BTHLen)-int(h.Pad), 0))
}

// unseal checks the ICRC of a record that has one, and shows it to the tap.
func (l *Link) unseal(d *device, b []byte, flags uint32) (packet []byte, ok bool) {
	if flags&sealed == 0 {
		if l.tap != nil {
			var icrc [wire.ICRCLen]byte
			binary.LittleEndian.PutUint32(icrc[:], d.from.ICRC(0, b))
			l.tap.Datagram(link.Inbound, d.addr, l.local, 0, b, nil, icrc[:])
		}
		return b, true
	}
	if l.tap != nil {
		l.tap.Datagram(link.Inbound, d.addr, l.local, 0, b, nil, nil)
	}
	end := len(b) - wire.ICRCLen
	if end < wire.BTHLen || d.from.ICRC(0, b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		l.count.icrc.Add(1)
		return nil, false
	}
	return b[:end:end], true
}

// dropBroken leaves the rings that broke the rules. Preconditions, here and
// below: the lock is held.
func (l *Link) dropBroken() {
	for i := len(l.rx.devices) - 1; i >= 0; i-- {
		if d := l.rx.devices[i]; d.in.bad != nil {
			err, left := d.in.bad, d.in.left
			l.leaveIn(d)
			left()
			l.broke(d, err)
		}
	}
}

// enterIn adds the ring from a device.
func (l *Link) enterIn(d *device, in *inbound) {
	d.in = in
	l.rx.devices = append(l.rx.devices, d)
	l.rx.rings = append(l.rx.rings, &in.consumer)
	l.ins.Add(1)
}

// leaveIn ends the ring from a device.
func (l *Link) leaveIn(d *device) {
	for i, other := range l.rx.devices {
		if other != d {
			continue
		}
		l.rx.devices = append(l.rx.devices[:i], l.rx.devices[i+1:]...)
		l.rx.rings = append(l.rx.rings[:i], l.rx.rings[i+1:]...)
		d.in.free()
		d.in = nil
		l.ins.Add(-1)
		return
	}
}

// Wait blocks until a ring or the socket may have packets. Without the lock a
// ring may come meanwhile: it begins with its asleep word set, and its coming
// interrupts the Wait.
func (l *Link) Wait() error { return l.wait(l.Link.Wait) }

// Sleep implements link.Sleeper.
func (l *Link) Sleep(d time.Duration) error {
	return l.wait(func() error { return link.Sleep(l.Link, d) })
}

func (l *Link) wait(inner func() error) error {
	if l.fallAsleep() {
		return nil
	}
	err := inner()
	l.wakeUp()
	return err
}

// Doze implements link.Dozer.
func (l *Link) Doze(d time.Duration) {
	if l.fallAsleep() {
		return
	}
	link.Doze(l.Link, d)
	l.wakeUp()
}

func (l *Link) fallAsleep() (found bool) {
	l.rx.Lock()
	defer l.rx.Unlock()
	if found = sleepAll(l.rx.rings); found {
		l.rx.stay()
		return true
	}
	l.rx.sleepers++
	return false
}

// wakeUp takes back what fallAsleep did, unless another goroutine still sleeps:
// a program may doze while the listener waits. The eventfd is read even if no
// asleep word was taken: a producer may write it late. When it was not what
// ended the sleep, the next Recv looks at the socket.
func (l *Link) wakeUp() {
	l.rx.Lock()
	defer l.rx.Unlock()
	l.rx.sleepers--
	if l.rx.sleepers > 0 || !l.place.drain() {
		l.rx.looks = socketEvery - 1
	}
	l.rx.stay()
}

// stay takes back the asleep words if nobody sleeps.
func (r *receiver) stay() {
	if r.sleepers == 0 {
		awakeAll(r.rings)
	}
}
