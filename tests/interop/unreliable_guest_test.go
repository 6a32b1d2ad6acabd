//go:build guest && linux

package interop

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
)

// TestUnreliableConnections sends messages of all lengths that matter both ways
// between rxe and the soft RNIC, over unreliable connections. A message comes
// when its receive completes; a WRITE, when the SEND behind it does.
func TestUnreliableConnections(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			a, b := devices(t, softName(f, 0, ""), f, 1<<16)
			soft, rxe := newPair(t, a, b, uapi.QPConfig{Type: uapi.TypeUC})
			for _, way := range []struct{ from, to *end }{{soft, rxe}, {rxe, soft}} {
				t.Run(way.from.name+" sends", func(t *testing.T) { unreliableMessages(t, way.from, way.to) })
			}
			require.Zero(t, lab.kmsg.badICRCs(t))
		})
	}
}

func unreliableMessages(t *testing.T, from, to *end) {
	for _, n := range []int{0, 1, 3, 4, 1023, 1024, 1025, 4096, 4097, 20000} {
		for _, op := range []uapi.Op{uapi.OpWrite, uapi.OpWriteImm, uapi.OpSend, uapi.OpSendImm} {
			want := pattern(n)
			copy(from.source(), want)
			fill(to.target(), n)
			to.post(t, uapi.WR{ID: 7, Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: to.mr, Offset: uint64(to.half + margin), Length: uint64(n)}}})
			wr := uapi.WR{ID: 11, Op: op, Flags: uapi.Signaled, Imm: uint32(n), SGE: []uapi.SGE{{MR: from.mr, Length: uint64(n)}}}
			if op == uapi.OpWrite || op == uapi.OpWriteImm {
				wr.RemoteAddr, wr.RKey = to.region.Addr+uint64(to.half+margin), to.region.RKey
			}
			from.post(t, wr)
			require.Equal(t, uapi.WCSuccess, from.next(t).Status)
			if op == uapi.OpWrite {
				from.post(t, uapi.WR{Op: uapi.OpSend, Flags: uapi.Signaled})
				from.success(t, uapi.WCOpSend)
			}
			wc := to.ends(t, uapi.WCSuccess)
			require.EqualValues(t, map[bool]int{false: n}[op == uapi.OpWrite], wc.ByteLen)
			holds(t, fmt.Sprintf("%v of %d bytes", op, n), to.target(), want)
			count(1, n)
		}
	}
}
