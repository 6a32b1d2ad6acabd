package shm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A look at the socket is a system call and costs more than the rings. While
// they are busy, it is looked at once in socketAfter, whether the rings had
// packets or not: far peers must not starve. The clock costs as much as a ring:
// it is read with every socketEvery-th look, and after each that found packets,
// which take their time. The rings are busy for hotLooks looks after a packet.
const (
	socketEvery = 16
	socketAfter = 20 * time.Microsecond
	hotLooks    = 64
)

// receiver is the receiving side. Its lock keeps the rings in their place.
type receiver struct {
	sync.Mutex
	devices []*device   // guarded: whose in is there
	rings   []*consumer // guarded: theirs
	turn    int         // guarded: the ring that is looked at first
	buf     []byte      // guarded: bytes that the last Recv handed out

	inUse    atomic.Bool // packets of the last Recv lie in rings or arenas
	deferred []func()    // guarded: unmap, when that is in use no more

	sleepers int // guarded: goroutines in Wait and Sleep
	awake    int // guarded: callers between StayAwake and MaySleep

	looks, hot int           // guarded: see socketEvery; since the clock was read, that are left
	socket     time.Duration // guarded: when the socket was looked at last, since start
}

// inbound is the ring from a device.
type inbound struct {
	consumer
	bad   error  // the rule it broke
	left  func() // the note to the producer that the ring is read no more
	free  func() // unmaps
	hang  func() // hangs up
	inUse bool   // packets of the last Recv lie in the ring, or where their sender has them

	arenas map[uint64][]byte // of the producer, mapped for reading
}

// Recv takes packets from the rings, and from the socket when its turn has
// come.
func (l *Link) Recv(batch []link.Packet) (n int, err error) {
	r := &l.rx
	if l.ins.Load() == 0 && !r.inUse.Load() {
		return l.Link.Recv(batch)
	}
	r.Lock()
	defer r.Unlock()
	if r.used(); l.ins.Load() == 0 {
		return l.Link.Recv(batch)
	}
	if r.socketsTurn(l.start) {
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

// socketsTurn reports whether the socket is to be looked at, too.
func (r *receiver) socketsTurn(start time.Time) bool {
	if r.looks++; r.looks < socketEvery && 0 < r.hot && r.hot < hotLooks {
		return false
	}
	r.looks = 0
	now := time.Since(start)
	if r.hot > 0 && now-r.socket < socketAfter {
		return false
	}
	r.socket = now
	return true
}

// takeFrom adds a ring's packets to batch[n:], and returns the new n. A ring
// that breaks the rules is marked bad, and read no more; dropBroken removes it.
func (l *Link) takeFrom(d *device, batch []link.Packet, n int) int {
	r := &l.rx
	if r.buf == nil { // for a batch of the longest that are copied as a rule
		r.buf = make([]byte, 0, len(batch)*inPlace+maxPacket)
	}
	var rec record
	for from := d.in.head; n < len(batch) && len(r.buf)+maxPacket <= cap(r.buf) && d.in.head-from < piece; {
		ok, err := d.in.next(&rec)
		if err == nil && ok {
			batch[n] = link.Packet{Peer: d.addr, Near: true}
			ok, err = l.open(d, &rec, &batch[n])
		} else if err == nil {
			break
		}
		if err != nil {
			d.in.bad = err
			return n
		}
		if ok {
			l.count.Received.Add(1)
			n++
		}
	}
	if !d.in.inUse {
		d.in.release()
	}
	return n
}

// used follows the last Recv: the packets that it handed out are in use no
// more. Preconditions, here and below: the lock is held.
func (r *receiver) used() {
	if !r.inUse.Swap(false) {
		return
	}
	for _, d := range r.devices {
		if d.in.inUse {
			d.in.inUse = false
			d.in.release()
		}
	}
	for i, f := range r.deferred {
		f()
		r.deferred[i] = nil
	}
	r.deferred = r.deferred[:0]
}

// InUse implements link.Near.
func (l *Link) InUse() bool { return l.rx.inUse.Load() }

// afterUse calls f, which unmaps what may be in use, as soon as it is not.
func (r *receiver) afterUse(f func()) {
	if r.inUse.Load() {
		r.deferred = append(r.deferred, f)
	} else {
		f()
	}
}

// inPlace is the least record in bytes whose payload stays in the ring until
// the next Recv.
const inPlace = 512

// open makes a packet of a record: ok is false for one that is lost. A payload
// that is only ever copied stays where it is, the rest is copied out, since the
// producer may still change it.
func (l *Link) open(d *device, rec *record, p *link.Packet) (ok bool, err error) {
	r := &l.rx
	start := len(r.buf)
	if rec.flags == referenced {
		r.buf = rec.appendTo(r.buf)
		return l.openRef(d, rec, r.buf[start:], p)
	}
	if rec.flags == 0 && l.tap == nil && rec.len() >= inPlace && len(rec.parts[1]) == 0 {
		b := rec.parts[0]
		r.buf = append(r.buf, b[:min(len(b), maxHeaders)]...)
		if n, pad := split(r.buf[start:]); n > 0 && wire.PadLen(len(b)-n-pad) == uint8(pad) {
			r.buf = r.buf[:start+n]
			p.Head, p.Payload = r.buf[start:len(r.buf):len(r.buf)], b[n:len(b)-pad:len(b)-pad]
			l.countInPlace(d, p)
			return true, nil
		}
		r.buf = r.buf[:start]
	}
	r.buf = rec.appendTo(r.buf)
	b, ok := l.unseal(d, r.buf[start:len(r.buf):len(r.buf)], rec.flags)
	if ok {
		p.Head = b
		l.count.ReceivedBytes.Add(payloadLen(b))
	}
	return ok, nil
}

// countInPlace counts a packet whose payload stays in the ring, or where its
// sender has it.
func (l *Link) countInPlace(d *device, p *link.Packet) {
	l.rx.inUse.Store(true)
	d.in.inUse = true
	l.count.ReceivedBytes.Add(uint64(len(p.Payload)))
}

// split returns the length of the headers and of the pad of a packet whose
// payload no engine looks into; 0 of any other.
func split(b []byte) (headers, pad int) {
	var h wire.BTH
	if h.Parse(b) != nil || h.Opcode.Service() != wire.ServiceRC {
		return 0, 0
	}
	switch h.Opcode.Operation() {
	case wire.OpSend, wire.OpWrite, wire.OpReadResponse:
		return h.Opcode.HeaderLen(), int(h.Pad)
	}
	return 0, 0
}

// openRef is open for a payload in an arena of the producer.
func (l *Link) openRef(d *device, rec *record, head []byte, p *link.Packet) (ok bool, err error) {
	if rec.state.Load() == wire.Void {
		return false, nil // its arena may have gone
	}
	mem := d.in.arenas[rec.arena]
	n, pad := split(head)
	if n != len(head) || rec.n == 0 || rec.n > wire.MaxPrivateMTU || rec.offset > uint64(len(mem)) || rec.n > uint64(len(mem))-rec.offset {
		return false, fmt.Errorf("%w: %d bytes at %d of arena %d, which has %d", errRecord, rec.n, rec.offset, rec.arena, len(mem))
	}
	p.Head, p.Payload, p.Pull = head[:n:n], mem[rec.offset:][:rec.n:rec.n], rec.state
	l.count.PulledBytes.Add(rec.n)
	if l.tap == nil {
		l.countInPlace(d, p)
		return true, nil
	}
	return l.pull(d, p, pad), nil
}

// pull copies a payload for the tap, which is shown whole packets.
func (l *Link) pull(d *device, p *link.Packet, pad int) bool {
	w := wire.Packet{Payload: p.Payload, Pull: p.Pull}
	if !w.Claim() {
		return false
	}
	b := append(append(bytes.Clone(p.Head), w.Payload...), wire.Pad(uint8(pad))...)
	if !w.Settle() {
		return false
	}
	b, ok := l.unseal(d, b, 0)
	p.Head, p.Payload, p.Pull = b, nil, nil
	l.count.ReceivedBytes.Add(payloadLen(b))
	return ok
}

// payloadLen is the length of a packet's payload; a record is not shorter than
// its BTH. A record that is no packet has some length, and is dropped later.
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
		l.count.ICRC.Add(1)
		return nil, false
	}
	return b[:end:end], true
}

// dropBroken leaves the rings that broke the rules. Preconditions, here and
// below: the lock is held.
func (l *Link) dropBroken() {
	for i := len(l.rx.devices) - 1; i >= 0; i-- {
		if d := l.rx.devices[i]; d.in.bad != nil {
			left := d.in.left
			l.countBroken(d, d.in.bad)
			l.leaveIn(d)
			left()
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
		in := d.in
		d.in = nil
		l.rx.afterUse(func() {
			in.free()
			for _, mem := range in.arenas {
				unmap(mem)
			}
		})
		l.ins.Add(-1)
		return
	}
}

// Wait blocks until a ring or the socket may have packets. Without the lock a
// ring may come meanwhile: it begins with its asleep word set, and its coming
// interrupts the Wait.
func (l *Link) Wait() error { return l.wait(true, l.Link.Wait) }

// Sleep implements link.Link.
func (l *Link) Sleep(d time.Duration, waits bool) error {
	return l.wait(waits, func() error { return l.Link.Sleep(d, waits) })
}

func (l *Link) wait(owner bool, inner func() error) error {
	if l.fallAsleep() {
		return nil
	}
	err := inner()
	l.wakeUp(owner)
	return err
}

func (l *Link) fallAsleep() (found bool) {
	l.rx.Lock()
	defer l.rx.Unlock()
	if found = sleepAll(l.rx.rings); found {
		l.rx.clearAsleep()
		return true
	}
	l.rx.sleepers++
	return false
}

// wakeUp takes back what fallAsleep did, unless another goroutine still sleeps:
// a program may doze while the link's owner waits. The owner drains the bell,
// and a program that dozes alone. If it drained the owner's, that would sleep
// on, with asleep words that were taken; if the owner left it to the program,
// no Wait would block until that has dozed. It is drained even if no asleep
// word was taken: a producer may write it late. When it was not what ended the
// sleep, the next Recv looks at the socket.
func (l *Link) wakeUp(owner bool) {
	l.rx.Lock()
	defer l.rx.Unlock()
	l.rx.sleepers--
	if !owner && l.rx.sleepers > 0 || !l.place.drain(max(1, len(l.rx.rings))) {
		l.rx.hot = 0
	}
	l.rx.clearAsleep()
}

// StayAwake implements link.Near.
func (l *Link) StayAwake() {
	l.rx.Lock()
	defer l.rx.Unlock()
	l.rx.awake++
	for _, c := range l.rx.rings {
		c.awake()
	}
}

// MaySleep implements link.Near. It does for the sleepers what fallAsleep did.
func (l *Link) MaySleep() {
	l.rx.Lock()
	defer l.rx.Unlock()
	if l.rx.awake--; l.rx.awake == 0 && l.rx.sleepers > 0 && (sleepAll(l.rx.rings) || l.rx.inUse.Load()) {
		l.Interrupt()
	}
}

// clearAsleep takes back the asleep words if no goroutine sleeps.
func (r *receiver) clearAsleep() {
	if r.sleepers == 0 {
		for _, c := range r.rings {
			c.awake()
		}
	}
}
