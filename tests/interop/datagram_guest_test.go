//go:build guest && linux

package interop

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// pingpongQKey is the Q_Key of ibv_ud_pingpong.
const pingpongQKey = 0x11111111

// datagramEnd makes an end for datagrams.
func (d *device) datagramEnd(t *testing.T) *end {
	return d.newEnd(t, uapi.QPConfig{Type: uapi.TypeUD, QKey: pingpongQKey, SendDepth: 64, RecvDepth: 64})
}

// way is an address handle to where another end is.
func (e *end) way(t *testing.T, to uapi.Endpoint) uapi.AH {
	ah := must.Get(e.ctx.CreateAH(to.Addr))(t)
	t.Cleanup(func() { require.NoError(t, e.ctx.DestroyAH(ah)) })
	return ah
}

func (e *end) endpoint(t *testing.T) uapi.Endpoint {
	p := must.Get(e.ctx.LocalEndpoint(e.qp))(t)
	return p
}

// TestDatagrams sends datagrams of all lengths that matter both ways between
// rxe and the soft RNIC.
func TestDatagrams(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			soft := newDevice(t, "soft", openSoft(t, softName(f, 0, "")), 1<<16).datagramEnd(t)
			rxe := newDevice(t, "rxe", openRXE(t, f), 1<<16).datagramEnd(t)
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
			from.post(t, uapi.WR{ID: 11, Op: op, Flags: uapi.Signaled, Imm: uint32(n), AH: ah, RemoteQPN: there.QPN, RemoteQKey: pingpongQKey,
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

// TestDatagramPingpong lets ibv_ud_pingpong of the distribution run on rxe
// against the soft RNIC, as server and as client, with messages as long as the
// soft port's MTU.
func TestDatagramPingpong(t *testing.T) {
	for _, r := range programRuns() {
		t.Run(r.String(), func(t *testing.T) { datagramPingpong(t, r.family, r.mtu, r.role) })
	}
}

func datagramPingpong(t *testing.T, f family, size int, role string) {
	const iters = 40
	e := newDevice(t, "soft", openSoft(t, softName(f, 0, fmt.Sprintf("?mtu=%d", size))), iters*(uapi.GRHLen+size)).datagramEnd(t)
	mine := e.endpoint(t)
	args := func(port int) []string {
		return strings.Fields(fmt.Sprintf("-e -d rxe0 -g %d -s %d -n %d -r 64 -p %d", gidIndex(f.rxe), size, iters, port))
	}
	receive(t, e, iters, uapi.GRHLen+size)
	var p *program
	var theirs uapi.Endpoint
	if role == "server" {
		port := freePort(t)
		p = start(t, "ibv_ud_pingpong", args(port)...)
		c := dial(t, port)
		c.say(pingpongAddress(mine), pingpongText)
		theirs = parsePingpong(t, c.hear(pingpongText), size)
		c.say("done", len("done")+1)
	} else {
		accept, port := listen(t)
		p = start(t, "ibv_ud_pingpong", append(args(port), "127.0.0.1")...)
		c := accept()
		theirs = parsePingpong(t, c.hear(pingpongText), size)
		c.say(pingpongAddress(mine), pingpongText)
		require.Equal(t, "done", c.hear(len("done")+1))
	}
	ah := e.way(t, theirs)
	// As for connections the program echoes, beginning with what its buffer
	// held.
	echo := bytes.Repeat([]byte{0x7b}, size)
	if role == "client" {
		hearDatagram(t, e, 0, theirs.QPN, echo, 1)
	}
	for i := range iters {
		echo = pattern(size)
		copy(e.source(), echo)
		e.post(t, uapi.WR{ID: 1, Op: uapi.OpSend, Flags: uapi.Signaled, AH: ah, RemoteQPN: theirs.QPN, RemoteQKey: pingpongQKey,
			SGE: []uapi.SGE{{MR: e.mr, Length: uint64(size)}}})
		switch {
		case role == "server":
			hearDatagram(t, e, i, theirs.QPN, echo, 2)
		case i+1 < iters:
			hearDatagram(t, e, i+1, theirs.QPN, echo, 2)
		default:
			e.success(t, uapi.WCOpSend)
		}
		count(2, 2*size)
	}
	require.Contains(t, p.ends(t), fmt.Sprintf("%d bytes in", 2*size*iters))
}

// hearDatagram takes the given number of completions, one of which is that of
// message i, which must be want and come from a queue pair.
func hearDatagram(t *testing.T, e *end, i int, from uint32, want []byte, completions int) {
	size := uapi.GRHLen + len(want)
	for range completions {
		wc := e.ends(t, uapi.WCSuccess)
		if wc.Opcode == uapi.WCOpRecv {
			require.EqualValues(t, i, wc.WRID)
			require.EqualValues(t, size, wc.ByteLen)
			require.Equal(t, from, wc.SrcQPN)
		}
	}
	require.True(t, bytes.Equal(want, e.target()[i*size+uapi.GRHLen:][:len(want)]), "message %d: wrong bytes", i)
}
