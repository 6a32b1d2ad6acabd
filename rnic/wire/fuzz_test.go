package wire_test

import (
	"bytes"
	"testing"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// seeds gives a fuzz target one recorded packet of each opcode, from at,
// without the ICRC and with at most limit bytes.
func seeds(f *testing.F, limit int, at func(p *wire.Packet) int) {
	seen := map[wire.Opcode]bool{}
	for _, fr := range allFrames(f) {
		var p wire.Packet
		body := fr.UDP[:len(fr.UDP)-wire.ICRCLen]
		if p.Parse(body) != nil || seen[p.Opcode] {
			continue
		}
		seen[p.Opcode] = true
		body = body[at(&p):]
		f.Add(body[:min(limit, len(body))])
	}
}

func FuzzPacket(f *testing.F) {
	seeds(f, 256, func(*wire.Packet) int { return 0 })
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, q wire.Packet
		before := bytes.Clone(b)
		err := p.Parse(b)
		if !bytes.Equal(b, before) {
			t.Fatal("Parse changed its input")
		}
		if err != nil {
			if e, ok := err.(wire.Error); !ok || int(e) >= wire.NumErrors {
				t.Fatalf("error %v is not one of the package's", err)
			}
			return
		}
		out := p.Append(dirty(len(b)))
		if len(out) != len(b) || p.Length() != len(b) {
			t.Fatalf("%d bytes in, %d out, Length %d", len(b), len(out), p.Length())
		}
		if err := q.Parse(out); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p.Payload, q.Payload) {
			t.Fatal("payload differs")
		}
		if !bytes.Equal(out, q.Append(nil)) {
			t.Fatal("the second encoding differs from the first")
		}
		for i := range out { // only reserved bits and pad may be lost, none may appear
			if out[i]&^b[i] != 0 {
				t.Fatalf("byte %d: %#x came from %#x", i, out[i], b[i])
			}
		}
	})
}

// FuzzHeaders checks that every header and management datagram survives: too
// short is an error, and what is read and written again loses reserved bits
// only. The first byte says which it is.
func FuzzHeaders(f *testing.F) {
	cases := headerCases()
	for i, c := range cases {
		mask := unhex(f, c.fields)
		f.Add(uint8(i), mask)
		f.Add(uint8(i), make([]byte, len(mask)))
		f.Add(uint8(i), bytes.Repeat([]byte{0xff}, len(mask)))
		for _, r := range recordedMADs(f) {
			if len(r.mad) >= len(mask)+wire.MADHeaderLen {
				f.Add(uint8(i), r.mad[wire.MADHeaderLen:][:len(mask)])
				break
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		c := cases[int(which)%len(cases)]
		mask := unhex(t, c.fields)
		n := len(mask)
		h := c.empty()
		if err := h.Parse(b); err != nil {
			if len(b) >= n || err != error(wire.ErrShort) {
				t.Fatal(err)
			}
			return
		}
		if len(b) < n {
			t.Fatalf("%s: %d bytes of %d accepted", c.name, len(b), n)
		}
		out := h.Append(dirty(n))
		if len(out) != n {
			t.Fatalf("%s: %d bytes written, want %d", c.name, len(out), n)
		}
		for i := range out {
			if out[i] != b[i]&mask[i] {
				t.Fatalf("%s: byte %d: %#x in, %#x out, mask %#x", c.name, i, b[i], out[i], mask[i])
			}
		}
	})
}

// FuzzICRC compares the fast computation with the definition.
func FuzzICRC(f *testing.F) {
	seen := map[int]bool{}
	for _, fr := range allFrames(f) {
		if n := len(fr.UDP); n < 128 && !seen[n] {
			seen[n] = true
			f.Add(fr.UDP, fr.ID, uint8(n))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, id uint16, cut uint8) {
		for _, pair := range pairs {
			fl, err := wire.NewFlow(pair[0], pair[1], cut&1 == 0)
			if err != nil {
				t.Fatal(err)
			}
			fl.Verify(b, id)
			if len(b) < wire.BTHLen || len(b) > 60000 {
				continue
			}
			at := max(wire.BTHLen, int(cut)%len(b))
			got := fl.ICRC(id, b[:at], b[at:])
			if want := plainICRC(pair[0], pair[1], cut&1 == 0, id, b); got != want {
				t.Fatalf("%#x, want %#x", got, want)
			}
			whole := wire.AppendICRC(bytes.Clone(b), got)
			found, ok := fl.Verify(whole, uint16(cut))
			if !ok || !fl.Check(whole, id) {
				t.Fatal("own CRC refused")
			}
			if pair[0].Addr().Is4() && found != id {
				t.Fatalf("identification %#x, want %#x", found, id)
			}
		}
	})
}
