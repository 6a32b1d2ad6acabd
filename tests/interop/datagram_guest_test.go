//go:build guest && linux

package interop

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

const datagramQKey = 0x11111111

// datagramEnd makes an end for datagrams.
func (d *device) datagramEnd(t *testing.T) *end {
	return d.newEnd(t, uapi.QPConfig{Type: uapi.TypeUD, QKey: datagramQKey, SendDepth: 64, RecvDepth: 64})
}

// way is an address handle to where another end is.
func (e *end) way(t *testing.T, to uapi.Endpoint) uapi.AH {
	ah := must.Get(e.device.CreateAH(to.Addr, uapi.AHConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, e.device.DestroyAH(ah)) })
	return ah
}

func (e *end) endpoint(t *testing.T) uapi.Endpoint {
	return must.Get(e.device.LocalEndpoint(e.qp))(t)
}

// TestDatagrams sends datagrams of all lengths that matter both ways between
// rxe and the soft RNIC.
func TestDatagrams(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			a, b := devices(t, softName(f, 0, ""), f, 1<<16)
			soft, rxe := a.datagramEnd(t), b.datagramEnd(t)
			for _, way := range []struct{ from, to *end }{{soft, rxe}, {rxe, soft}} {
				t.Run(way.from.name+" sends", func(t *testing.T) { datagrams(t, way.from, way.to) })
			}
			require.Zero(t, lab.kmsg.badICRCs(t))
		})
	}
}

func datagrams(t *testing.T, from, to *end) {
	here, there := from.endpoint(t), to.endpoint(t)
	ah := from.way(t, there)
	for _, n := range []int{0, 1, 2, 3, 4, 255, 256, 1023, 1024, 1025, 2048, 4095, 4096} {
		for _, op := range []uapi.Op{uapi.OpSend, uapi.OpSendImm} {
			want := pattern(n)
			copy(from.source(), want)
			fill(to.target(), uapi.GRHLen+n)
			to.post(t, uapi.WR{ID: 7, Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: to.mr, Offset: uint64(to.half + margin), Length: uint64(uapi.GRHLen + n)}}})
			from.post(t, uapi.WR{ID: 11, Op: op, Flags: uapi.Signaled, Imm: uint32(n), AH: ah, RemoteQPN: there.QPN, RemoteQKey: datagramQKey,
				SGE: []uapi.SGE{{MR: from.mr, Length: uint64(n)}}})
			from.success(t, uapi.WCOpSend)
			wc := to.success(t, uapi.WCOpRecv)
			require.EqualValues(t, uapi.GRHLen+n, wc.ByteLen)
			require.Equal(t, here.QPN, wc.SrcQPN)
			require.Equal(t, op == uapi.OpSendImm, wc.Flags&uapi.WCWithImm != 0)
			require.EqualValues(t, map[bool]int{true: n}[op == uapi.OpSendImm], wc.Imm)
			grh := bytes.Clone(to.target()[margin:][:uapi.GRHLen])
			holds(t, fmt.Sprintf("%v of %d bytes", op, n), to.target(), append(grh, want...))
			src := must.Get(uapi.DatagramSource(grh))(t)
			require.Equal(t, here.Addr.Addr(), src)
			count(1, n)
		}
	}
}
