package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// The packets of the benchmarks: the middle of a WRITE at path MTU 4096, and an
// acknowledgement.
var (
	benchWrite = wire.Packet{
		BTH:     wire.BTH{Opcode: wire.RCWriteMiddle, MigReq: true, PKey: wire.DefaultPKey, DestQPN: 17, PSN: 1},
		Payload: make([]byte, 4096),
	}
	benchAck = wire.Packet{
		BTH:  wire.BTH{Opcode: wire.RCAck, MigReq: true, PKey: wire.DefaultPKey, DestQPN: 17, PSN: 1},
		AETH: wire.AETH{Syndrome: wire.SyndromeACK(wire.NoCredits), MSN: 1},
	}
)

func benchFlow(tb testing.TB) wire.Flow {
	fl, err := wire.NewFlow(pairs[0][0], pairs[0][1], true)
	require.NoError(tb, err)
	return fl
}

// TestNoAllocation holds the data path's functions to none.
func TestNoAllocation(t *testing.T) {
	fl := benchFlow(t)
	for _, p := range []*wire.Packet{&benchWrite, &benchAck} {
		buf := make([]byte, 0, 8192)
		body := p.Append(nil)
		whole := wire.AppendICRC(body, fl.ICRC(1234, body))
		var q wire.Packet
		allocs := testing.AllocsPerRun(100, func() {
			head := p.AppendHeaders(buf)
			_ = wire.AppendICRC(head, fl.ICRC(0, head, p.Payload, wire.Pad(p.Pad)))
			_ = p.Append(buf)
			if id, ok := fl.Verify(whole, 0); !ok || id != 1234 || !fl.Check(whole, id) {
				panic("own CRC refused")
			}
			if err := q.Parse(body); err != nil {
				panic(err)
			}
			if err := q.Parse(body[:5]); err == nil {
				panic("short packet accepted")
			}
		})
		require.Zero(t, allocs, "%v", p.Opcode)
	}
}

func BenchmarkICRC(b *testing.B) {
	fl := benchFlow(b)
	for _, p := range []*wire.Packet{&benchWrite, &benchAck} {
		b.Run(p.Opcode.String(), func(b *testing.B) {
			head := p.AppendHeaders(nil)
			b.ReportAllocs()
			b.SetBytes(int64(len(head) + len(p.Payload)))
			for b.Loop() {
				fl.ICRC(0, head, p.Payload, wire.Pad(p.Pad))
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	fl := benchFlow(b)
	for _, p := range []*wire.Packet{&benchWrite, &benchAck} {
		for _, id := range []uint16{0, 0xbeef} {
			name := "id 0"
			if id != 0 {
				name = "unknown id"
			}
			b.Run(p.Opcode.String()+"/"+name, func(b *testing.B) {
				body := p.Append(nil)
				body = wire.AppendICRC(body, fl.ICRC(id, body))
				b.ReportAllocs()
				b.SetBytes(int64(len(body)))
				for b.Loop() {
					if _, ok := fl.Verify(body, 0); !ok {
						b.Fatal("own CRC refused")
					}
				}
			})
		}
	}
}
