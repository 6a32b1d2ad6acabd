package msgring

import (
	"bytes"
	"testing"

	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// FuzzRecord gives both ends of an exchange any bytes of a stranger. They take
// at most one record, and accept a hello only if it is one.
func FuzzRecord(f *testing.F) {
	ring := uint32(64 << 10)
	h := core.Hello{
		Mode: Messages, Quantum: core.DefaultQuantum(ring), Ring: ring, Controls: core.Controls,
		Longest: core.LongestChunk(ring), Addr: 1 << 40, RKey: 5,
	}
	refusal := Refusal{Version: Version, Reason: ReasonBusy, Text: "later"}
	for kind, payload := range map[byte][][]byte{
		recordHello:   {h.Append(nil, false), h.Append(nil, true), nil},
		recordRefusal: {refusal.Append(nil), nil},
		7:             {{1, 2, 3}},
	} {
		for _, p := range payload {
			var b bytes.Buffer
			_ = writeRecord(&b, kind, p)
			f.Add(b.Bytes())
			f.Add(b.Bytes()[:b.Len()/2])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		kind, payload, err := readRecord(r)
		if err == nil {
			var again bytes.Buffer
			_ = writeRecord(&again, kind, payload)
			if used := b[:len(b)-r.Len()]; !bytes.Equal(again.Bytes(), used) {
				t.Fatalf("%x is read as %x", used, again.Bytes())
			}
		}
		var peer core.Hello
		if err := readAnswer(bytes.NewReader(b), &peer); err == nil {
			if err := peer.Check(); err != nil {
				t.Fatal(err)
			}
		}
		config := Config{Mode: Messages}
		if peer, err := config.admit(payload); err == nil {
			if err := peer.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
