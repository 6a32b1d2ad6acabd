package core

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// hostile feeds a peer's bytes to an end, message by message, each behind a
// byte that says what this end does before, and two of its length.
func hostile(b []byte, act func(what byte), receive func(*wire.Message) (Event, error)) error {
	for len(b) >= 3 {
		n := int(binary.BigEndian.Uint16(b[1:]))
		act(b[0])
		if b = b[3:]; n > len(b) {
			return nil
		}
		var m wire.Message
		_, err := m.Parse(b[:n])
		if b = b[n:]; err != nil {
			continue // link cuts such a peer off; here the next one may be deeper
		}
		if _, err := receive(&m); err != nil {
			return err
		}
	}
	return nil
}

// said is messages as hostile reads them.
func said(what byte, list ...wire.Message) (b []byte) {
	for _, m := range list {
		text := m.Append(nil)
		b = append(binary.BigEndian.AppendUint16(append(b, what), uint16(len(text))), text...)
	}
	return b
}

// breached holds that an error is a breach of the protocol.
func breached(t *testing.T, err error) {
	var breach *wire.Breach
	if err != nil && !errors.As(err, &breach) {
		t.Fatal(err)
	}
}

// post holds that an end's messages can be written.
func post(t *testing.T, next func() (Send, bool)) {
	for m, ok := next(); ok; m, ok = next() {
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// count is how many slabs are freed.
func count(freed func() (Slab, bool)) (n Slab) {
	for _, ok := freed(); ok; _, ok = freed() {
		n++
	}
	return n
}

// FuzzServerSession: whatever a client sends, no slot is executed twice, the
// server's memory is bounded, and it ends with nothing held.
func FuzzServerSession(f *testing.F) {
	call := wire.Message{Type: wire.Request, Flags: wire.Define, Method: 1, Name: []byte("m"), Sequence: 1, Body: []byte("body")}
	offered, stream, void := call, call, wire.Message{Type: wire.Void, Slot: 2, Sequence: 1}
	offered.Body, offered.Flags, offered.Slot, offered.Offer = nil, wire.Offered, 1, wire.Offer{Addr: 1, RKey: 1, Length: 9}
	offered.Name = nil
	stream.Type, stream.Flags, stream.Name, stream.Body, stream.Slot, stream.Stream = wire.StreamOpen, 0, nil, nil, 3, 1
	data := wire.Message{Type: wire.StreamData, Slot: 3, Sequence: 1, Stream: 1, Body: []byte("x")}
	half := wire.Message{Type: wire.StreamHalf, Slot: 3, Sequence: 1, Stream: 1}
	f.Add(said(0, call, offered, stream, data, half, void))
	f.Add(append(said(1, call, call), said(2, offered, stream, data, data)...))
	f.Add(append(said(3, call, stream, half), said(4, call, void, void)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		const kept = 1000
		s := NewServer(ServerConfig{Slots: 4, SessionKept: kept, Kept: kept})
		epoch := uint32(1)
		var x *Session
		connect := func() {
			_, err := s.Admit(Address{}, id, epoch, 4)
			if err == nil {
				x, err = s.Connect(Address{}, id, epoch, func(*Session) { t.Fatal("another session ends") })
				s.Leave(id)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		connect()
		type call struct{ slot, sequence uint32 }
		executed := map[call]bool{}
		handlers := map[uint16]bool{}
		note := func(e Event) {
			if e.Kind != Execute && e.Kind != Open {
				return
			}
			c := call{uint32(e.Slot), x.slots[e.Slot].sequence}
			if executed[c] {
				t.Fatalf("call %v was executed twice", c)
			}
			executed[c], handlers[e.Slot] = true, true
		}
		slab := Slab(0)
		act := func(what byte) {
			switch what & 7 {
			case 1:
				for slot := range handlers {
					r := Reply{Body: make([]byte, int(what)*3)}
					if what&8 != 0 && !x.slots[slot].stream {
						slab++
						r = Reply{Slab: slab, Length: 50}
					}
					x.Finish(slot, &r)
					delete(handlers, slot)
				}
			case 2:
				for slot := range x.slots {
					note(x.Fetched(epoch, uint16(slot)))
				}
			case 3:
				for slot := range x.slots {
					if x.slots[slot].stream {
						_, _, _ = x.Data(uint16(slot), 10, 0, 0)
						x.Consumed(uint16(slot), 1)
					}
				}
			case 4:
				x.Disconnected(0, epoch, note)
				epoch++
				connect()
			default:
				post(t, x.Next)
			}
		}
		breached(t, hostile(b, act, func(m *wire.Message) (Event, error) {
			e, err := x.Receive(epoch, m)
			note(e)
			if s.Kept() > kept || len(x.slots) > 4 {
				t.Fatalf("%d bytes are kept in %d slots", s.Kept(), len(x.slots))
			}
			return e, err
		}))
		x.Disconnected(0, epoch, func(Event) {})
		x.End(func(Event) {})
		for slot := range handlers {
			x.Finish(slot, &Reply{})
		}
		freed := count(s.Freed)
		if s.Kept() != 0 || s.Sessions() != 0 || freed != slab {
			t.Fatalf("%d bytes, %d sessions and %d of %d slabs are left", s.Kept(), s.Sessions(), slab-freed, slab)
		}
	})
}

// FuzzClient: whatever a server sends, each call ends once, and its slot comes
// back.
func FuzzClient(f *testing.F) {
	reply := wire.Message{Type: wire.Reply, Sequence: 1, Body: []byte("body")}
	offered := wire.Message{Type: wire.Reply, Flags: wire.Offered, Slot: 1, Sequence: 1, Offer: wire.Offer{Addr: 1, RKey: 1, Length: 9}}
	data := wire.Message{Type: wire.StreamData, Slot: 2, Sequence: 1, Stream: 1, Body: []byte("x")}
	end := wire.Message{Type: wire.StreamEnd, Slot: 2, Sequence: 1, Stream: 1}
	f.Add(said(0, reply, offered, data, end))
	f.Add(append(said(0, reply, reply), said(2, offered, data, end, wire.Message{Type: wire.GoAway})...))
	f.Add(append(said(1, reply), said(3, data, data, end, reply)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := NewClient(4)
		calls := map[uint16]bool{}   // whose callers wait
		streams := map[uint16]bool{} // of them
		note := func(e Event) {
			switch e.Kind {
			case Answered, EndedUnknown, NotPosted:
				if !calls[e.Slot] || streams[e.Slot] {
					t.Fatalf("the call of slot %d ended twice", e.Slot)
				}
				delete(calls, e.Slot)
			}
		}
		connect := func() {
			if err := c.Connected(c.Attempt(), Resumed, 1, 4, note); err != nil {
				t.Fatal(err)
			}
		}
		slab := Slab(0)
		begin := func(stream bool) {
			slot, ok := c.Begin(stream)
			if !ok {
				return
			}
			calls[slot], streams[slot] = true, stream
			if !stream {
				slab++
				_, _ = c.Request(slot, "m", slab, 9)
				return
			}
			_, _ = c.Request(slot, "m", 0, 0)
		}
		connect()
		for i := range 3 {
			begin(i == 2)
		}
		act := func(what byte) {
			switch what & 7 {
			case 1:
				begin(what&8 != 0)
			case 2:
				for slot := range c.slots {
					note(c.Fetched(c.epoch, uint16(slot)))
				}
			case 3:
				c.Disconnected(c.epoch, note)
				connect()
			case 4:
				for slot := range calls {
					c.Abandon(slot)
					delete(calls, slot)
					break
				}
			default:
				post(t, c.Next)
			}
		}
		breached(t, hostile(b, act, func(m *wire.Message) (Event, error) {
			e, err := c.Receive(c.epoch, m)
			note(e)
			return e, err
		}))
		c.Close(note)
		for slot := range calls {
			if !streams[slot] {
				t.Fatalf("the call of slot %d has not ended", slot)
			}
			c.Abandon(slot)
		}
		if freed := count(c.Freed); freed != slab {
			t.Fatalf("%d of %d slabs are left", slab-freed, slab)
		}
	})
}
