package wire_test

import (
	"bytes"
	"testing"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/rnic/wire/wiretest"
)

// seeds gives a fuzz target one recorded packet of each opcode, from at, without
// the ICRC and with at most limit bytes.
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

// fuzzHeader checks that a header survives: too short is an error, and what is
// read and written again loses reserved bits only.
func fuzzHeader(f *testing.F, empty func() header, mask []byte) {
	n := len(mask)
	f.Add(mask)
	f.Add(make([]byte, n))
	f.Add(bytes.Repeat([]byte{0xff}, n))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := empty()
		if err := h.Parse(b); err != nil {
			if len(b) >= n || err != error(wire.ErrShort) {
				t.Fatal(err)
			}
			return
		}
		if len(b) < n {
			t.Fatalf("%d bytes of %d accepted", len(b), n)
		}
		out := h.Append(dirty(n))
		if len(out) != n {
			t.Fatalf("%d bytes written, want %d", len(out), n)
		}
		for i := range out {
			if out[i] != b[i]&mask[i] {
				t.Fatalf("byte %d: %#x in, %#x out, mask %#x", i, b[i], out[i], mask[i])
			}
		}
	})
}

func fuzzCase(f *testing.F, name string) {
	for _, c := range headerCases() {
		if c.name == name {
			h := func(p *wire.Packet) int { return wire.BTHLen }
			if name == "BTH" {
				h = func(*wire.Packet) int { return 0 }
			}
			mask := unhex(f, c.fields)
			seeds(f, len(mask), h)
			fuzzHeader(f, c.empty, mask)
			return
		}
	}
	f.Fatalf("no header %s", name)
}

func FuzzBTH(f *testing.F)          { fuzzCase(f, "BTH") }
func FuzzRETH(f *testing.F)         { fuzzCase(f, "RETH") }
func FuzzAETH(f *testing.F)         { fuzzCase(f, "AETH") }
func FuzzAtomicETH(f *testing.F)    { fuzzCase(f, "AtomicETH") }
func FuzzAtomicAckETH(f *testing.F) { fuzzCase(f, "AtomicAckETH") }
func FuzzImmDt(f *testing.F)        { fuzzCase(f, "ImmDt") }
func FuzzIETH(f *testing.F)         { fuzzCase(f, "IETH") }
func FuzzDETH(f *testing.F)         { fuzzCase(f, "DETH") }
func FuzzFETH(f *testing.F)         { fuzzCase(f, "FETH") }

func FuzzGRH(f *testing.F) {
	f.Add(make([]byte, wire.GRHLen))
	f.Add((&wire.GRH{Src: pairs[0][0].Addr(), Dst: pairs[0][1].Addr(), HopLimit: 1}).Append(nil))
	f.Add((&wire.GRH{Src: pairs[2][0].Addr(), Dst: pairs[2][1].Addr(), HopLimit: 1}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again wire.GRH
		if h.Parse(b) != nil {
			return
		}
		if err := again.Parse(h.Append(nil)); err != nil {
			t.Fatal(err)
		}
		again.Src, again.Dst = again.Src.Unmap(), again.Dst.Unmap()
		h.Src, h.Dst = h.Src.Unmap(), h.Dst.Unmap()
		if h.Src.Is4() == h.Dst.Is4() && h.FlowLabel == again.FlowLabel && h != again {
			t.Fatalf("%+v became %+v", h, again)
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
			fl.Verify(b)
			if len(b) < wire.BTHLen || len(b) > 60000 {
				continue
			}
			at := max(wire.BTHLen, int(cut)%len(b))
			got := fl.ICRC(id, b[:at], b[at:])
			if want := plainICRC(pair[0], pair[1], cut&1 == 0, id, b); got != want {
				t.Fatalf("%#x, want %#x", got, want)
			}
			whole := wire.AppendICRC(bytes.Clone(b), got)
			found, ok := fl.Verify(whole)
			if !ok || !fl.Check(whole, id) {
				t.Fatal("own CRC refused")
			}
			if pair[0].Addr().Is4() && found != id {
				t.Fatalf("identification %#x, want %#x", found, id)
			}
		}
	})
}

func FuzzPcap(f *testing.F) {
	f.Add([]byte("\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = wiretest.Read(b) })
}
