//go:build guest && linux

package interop

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	e.endpoint(t) // so that it takes receives
	receive(t, e, iters, size)
	line := fmt.Sprintf("-e -d rxe0 -g %d -m %d -s %d -n %d -r 64", gidIndex(f.rxe), mtu, size, iters)
	p := pingpongTalk(t, role, "ibv_rc_pingpong", line, e, func(text string) {
		require.NoError(t, e.device.ConnectQP(e.qp, parsePingpong(t, text, mtu)))
	})
	pingpongEcho(t, e, role, iters, size, 0, uapi.WR{})
	require.Contains(t, p.ends(t), fmt.Sprintf("%d bytes in", 2*size*iters))
}

// pingpongTalk starts one of rdma-core's programs on rxe, in a role, with the
// arguments of a line, and exchanges the end's address for the program's, which
// connect takes.
func pingpongTalk(t *testing.T, role, name, line string, e *end, connect func(text string)) *program {
	mine := pingpongAddress(e.endpoint(t))
	args := append(strings.Fields(line), "-p")
	if role == "server" {
		port := freePort(t)
		p := start(t, name, append(args, strconv.Itoa(port))...)
		c := dial(t, port)
		c.say(mine, pingpongText)
		connect(c.hear(pingpongText))
		c.say("done", len("done")+1)
		return p
	}
	accept, port := listen(t)
	p := start(t, name, append(args, strconv.Itoa(port), "127.0.0.1")...)
	c := accept()
	connect(c.hear(pingpongText))
	c.say(mine, pingpongText)
	require.Equal(t, "done", c.hear(len("done")+1))
	return p
}

// pingpongEcho exchanges messages of size bytes, each sent as wr and received
// behind header bytes. The program sends what it received last, at first what
// it filled its buffer with: an echo.
func pingpongEcho(t *testing.T, e *end, role string, iters, size, header int, wr uapi.WR) {
	wr.ID, wr.Op, wr.Flags, wr.SGE = 1, uapi.OpSend, uapi.Signaled, []uapi.SGE{{MR: e.mr, Length: uint64(size)}}
	echo := bytes.Repeat([]byte{0x7b}, size)
	if role == "client" {
		hear(t, e, 0, header, wr.RemoteQPN, echo, 1)
	}
	for i := range iters {
		echo = pattern(size)
		copy(e.source(), echo)
		e.post(t, wr)
		switch {
		case role == "server":
			hear(t, e, i, header, wr.RemoteQPN, echo, 2)
		case i+1 < iters:
			hear(t, e, i+1, header, wr.RemoteQPN, echo, 2)
		default:
			e.success(t, uapi.WCOpSend)
		}
		count(2, 2*size)
	}
}

// receive posts the receives of all messages, each with memory of its own.
func receive(t *testing.T, e *end, n, size int) {
	fill(e.target(), n*size)
	for i := range n {
		e.post(t, uapi.WR{ID: uapi.WRID(i), Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: e.mr, Offset: uint64(e.half + i*size), Length: uint64(size)}}})
	}
}

// hear takes the given number of completions, one of which is that of message
// i, which must be want behind the header that datagrams have, with the queue
// pair that they are from; another one, if any, is that of the send it answers.
func hear(t *testing.T, e *end, i, header int, from uint32, want []byte, completions int) {
	size := header + len(want)
	for range completions {
		wc := e.ends(t, uapi.WCSuccess)
		if wc.Opcode == uapi.WCOpRecv {
			require.EqualValues(t, i, wc.WRID)
			require.EqualValues(t, size, wc.ByteLen)
			require.True(t, header == 0 || from == wc.SrcQPN)
		}
	}
	require.True(t, bytes.Equal(want, e.target()[i*size+header:][:len(want)]), "message %d: wrong bytes", i)
}
