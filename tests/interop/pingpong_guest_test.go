//go:build guest && linux

package interop

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// ibv_rc_pingpong's exchange: the client sends LID, queue pair number, packet
// sequence number and GID in hexadecimal, with its closing zero; the server
// connects and answers with its own; the client connects and says "done".
const pingpongText = len("0000:000000:000000:00000000000000000000000000000000") + 1

func pingpongAddress(e uapi.Endpoint) string {
	gid := e.Addr.Addr().As16()
	return fmt.Sprintf("%04x:%06x:%06x:%x", 0, e.QPN, e.PSN, gid[:])
}

func parsePingpong(t *testing.T, text string, mtu int) uapi.Endpoint {
	e := uapi.Endpoint{MTU: mtu, MaxRdAtomic: 1}
	var lid uint32
	var gid string
	_, err := fmt.Sscanf(text, "%x:%x:%x:%s", &lid, &e.QPN, &e.PSN, &gid)
	require.NoError(t, err, "%q", text)
	raw, err := hex.DecodeString(gid)
	require.NoError(t, err, "%q", text)
	require.Len(t, raw, 16)
	e.Addr = netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw)).Unmap(), uapi.RoCEPort)
	return e
}

// TestPingpong lets ibv_rc_pingpong of the distribution run on rxe against the
// soft RNIC, as server and as client.
func TestPingpong(t *testing.T) {
	for _, r := range programRuns() {
		t.Run(r.String(), func(t *testing.T) { pingpong(t, r.family, r.mtu, r.role) })
	}
}

func pingpong(t *testing.T, f family, mtu int, role string) {
	const iters, size = 20, 10000 // three packets or ten
	e := partner(t, f, mtu, iters*size)
	mine := must.Get(e.ctx.LocalEndpoint(e.qp))(t)
	args := func(port int) []string {
		return strings.Fields(fmt.Sprintf("-e -d rxe0 -g %d -m %d -s %d -n %d -r 64 -p %d", gidIndex(f.rxe), mtu, size, iters, port))
	}
	receive(t, e, iters, size)
	var p *program
	if role == "server" {
		port := freePort(t)
		p = start(t, "ibv_rc_pingpong", args(port)...)
		c := dial(t, port)
		c.say(pingpongAddress(mine), pingpongText)
		require.NoError(t, e.ctx.ConnectQP(e.qp, parsePingpong(t, c.hear(pingpongText), mtu)))
		c.say("done", len("done")+1)
	} else {
		accept, port := listen(t)
		p = start(t, "ibv_rc_pingpong", append(args(port), "127.0.0.1")...)
		c := accept()
		theirs := parsePingpong(t, c.hear(pingpongText), mtu)
		require.NoError(t, e.ctx.ConnectQP(e.qp, theirs))
		c.say(pingpongAddress(mine), pingpongText)
		require.Equal(t, "done", c.hear(len("done")+1))
	}
	// The program sends what it received last, at first what it filled its
	// buffer with: an echo.
	echo := bytes.Repeat([]byte{0x7b}, size)
	if role == "client" {
		hear(t, e, 0, size, echo, 1)
	}
	for i := range iters {
		echo = pattern(size)
		copy(e.source(), echo)
		e.post(t, uapi.WR{ID: 1, Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: e.mr, Length: size}}})
		switch {
		case role == "server":
			hear(t, e, i, size, echo, 2)
		case i+1 < iters:
			hear(t, e, i+1, size, echo, 2)
		default:
			e.success(t, uapi.WCOpSend)
		}
		count(2, 2*size)
	}
	text := p.ends(t)
	require.Contains(t, text, fmt.Sprintf("%d bytes in", 2*size*iters))
}

// receive posts the receives of all messages, each with memory of its own.
func receive(t *testing.T, e *end, n, size int) {
	fill(e.target(), n*size)
	for i := range n {
		e.post(t, uapi.WR{ID: uapi.WRID(i), Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: e.mr, Offset: uint64(e.half + i*size), Length: uint64(size)}}})
	}
}

// hear takes the given number of completions, one of which is that of message
// i, which must be want, and another one, if any, that of the send it answers.
func hear(t *testing.T, e *end, i, size int, want []byte, completions int) {
	for range completions {
		wc := e.ends(t, uapi.WCSuccess)
		if wc.Opcode == uapi.WCOpRecv {
			require.EqualValues(t, i, wc.WRID)
			require.EqualValues(t, size, wc.ByteLen)
		}
	}
	require.True(t, bytes.Equal(want, e.target()[i*size:][:size]), "message %d: wrong bytes", i)
}
