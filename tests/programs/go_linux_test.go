//go:build amd64 || arm64

package programs

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/built"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestGoPrograms: programs in Go and those of librdmacm are each other's peers,
// as client and as server, also where both lose packets. Both ends check bytes.
func TestGoPrograms(t *testing.T) {
	needs(t, "rping")
	verbsHeader(t)
	header(t, "/usr/include/rdma/rdma_cma.h", "librdmacm-dev")
	tool := built.Tool(t)
	peer := compile(t, "../../../tests/interop/testdata/cmpeer", "-lrdmacm", "-libverbs")
	for _, options := range some([]string{"", "?loss=1%&seed=3"}, 1) {
		for _, c := range []struct{ name, goes, server, client string }{
			{"ping", "ping", "rping -s -v -C 20 -a ADDR -p PORT", "rping -c -v -V -C 20 -a ADDR -p PORT"},
			{"write-read", "sample write-read", peer + " server write-read ADDR PORT", peer + " client write-read ADDR PORT"},
			{"write-imm", "sample write-imm", peer + " server write-imm ADDR PORT", peer + " client write-imm ADDR PORT"},
		} {
			here, _ := newDevice()
			there, addr := newDevice()
			filled := strings.NewReplacer("ADDR", addr, "PORT", freePort(t))
			inC := func(device, line string) func() *process {
				return func() *process { return start(t, device+options, strings.Fields(filled.Replace(line))...) }
			}
			inGo := func(device, line string) func() *process {
				args := append(strings.Fields(c.goes+" "+filled.Replace(line)), "--device", device+options)
				return func() *process { return begin(t, exec.CommandContext(t.Context(), tool, args...)) }
			}
			goClient := "client ADDR --port PORT"
			if c.name == "ping" {
				goClient += " --count 20"
			}
			t.Run(c.name+" C client"+options, func(t *testing.T) {
				meet(t, nil, inGo(there, "server --once --port PORT"), inC(here, c.client))
			})
			t.Run(c.name+" Go client"+options, func(t *testing.T) {
				meet(t, nil, inC(there, c.server), inGo(here, goClient))
			})
		}
	}
}

// ibv_rc_pingpong's exchange over TCP: the client sends LID, queue pair number,
// packet sequence number and GID in hexadecimal, with its closing zero; the
// server connects and answers with its own; the client connects and says
// "done".
const pingpongText = len("0000:000000:000000:00000000000000000000000000000000") + 1

// TestGoPingpong: a program of uapi plays with ibv_rc_pingpong, as its server
// and as its client, and looks at every byte.
func TestGoPingpong(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	for _, options := range some([]string{"", "?loss=1%&seed=3"}, 1) {
		for _, serves := range []bool{true, false} {
			t.Run(fmt.Sprintf("serves=%v%s", serves, options), func(t *testing.T) { goPingpong(t, options, serves) })
		}
	}
}

const pingpongRounds, pingpongSize = 50, 10000

func goPingpong(t *testing.T, options string, serves bool) {
	device, _ := newDevice()
	d, err := uapi.Open(device+options, uapi.OpenConfig{})
	require.NoError(t, err)
	defer d.Close()
	g := player{t: t, Device: d, page: make([]byte, 2*pingpongSize)}
	g.mr = must.Get(d.RegMR(g.page, uapi.AccessLocalWrite))(t)
	g.qp = must.Get(d.CreateQP(4, 4))(t)

	device, _ = newDevice()
	port := freePort(t)
	args := []string{device + options, "ibv_rc_pingpong", "-e", "-g", "0", "-r", "8", "-p", port,
		"-n", fmt.Sprint(pingpongRounds), "-s", fmt.Sprint(pingpongSize)}
	var p *process
	var conn net.Conn
	if serves {
		accepts, err := net.Listen("tcp", "127.0.0.1:"+port)
		require.NoError(t, err)
		defer accepts.Close()
		p = start(t, args[0], append(args[1:], "127.0.0.1")...)
		conn = must.Get(accepts.Accept())(t)
	} else {
		p = start(t, args[0], args[1:]...)
		p.listens(port)
		conn = must.Get(net.Dial("tcp", "127.0.0.1:"+port))(t)
	}
	defer conn.Close()
	g.meet(conn, serves)

	// The program sends what it received last, at first what it has filled its
	// memory with.
	echo := bytes.Repeat([]byte{0x7b}, pingpongSize)
	for i := range pingpongRounds {
		if serves {
			g.wait(1 + min(i, 1)) // a message, and the send before it
			require.True(t, bytes.Equal(echo, g.page[pingpongSize:]), "message %d", i)
			g.receive()
		}
		echo = g.send(i)
		if !serves {
			g.wait(2)
			require.True(t, bytes.Equal(echo, g.page[pingpongSize:]), "message %d", i)
			g.receive()
		}
	}
	require.Contains(t, p.ends(0), fmt.Sprintf("%d bytes in", 2*pingpongRounds*pingpongSize))
}

// player is the end in Go.
type player struct {
	t *testing.T
	*uapi.Device
	qp   uapi.QP
	mr   uapi.MR
	page []byte // what is sent, then what is received
}

func (g *player) meet(conn net.Conn, serves bool) {
	g.t.Helper()
	mine := must.Get(g.LocalEndpoint(g.qp))(g.t)
	g.receive()
	gid := mine.Addr.Addr().As16()
	text := fmt.Appendf(nil, "%04x:%06x:%06x:%x\x00", 0, mine.QPN, mine.PSN, gid[:])
	require.NoError(g.t, conn.SetDeadline(time.Now().Add(patience)))
	say := func(text []byte) {
		must.Get(conn.Write(text))(g.t)
	}
	if !serves {
		say(text)
	}
	theirs := make([]byte, pingpongText)
	must.Get(io.ReadFull(conn, theirs))(g.t)
	require.NoError(g.t, g.ConnectQP(g.qp, pingpongEndpoint(g.t, string(theirs))))
	if serves {
		say(text)
	} else {
		say([]byte("done\x00"))
	}
}

func (g *player) receive() {
	must.Get(g.PostRecv(g.qp, g.mr, pingpongSize, pingpongSize))(g.t)
}

// send sends the message of a round, and returns it.
func (g *player) send(round int) []byte {
	for i := range pingpongSize {
		g.page[i] = byte(round + i)
	}
	must.Get(g.PostSend(g.qp, g.mr, pingpongSize))(g.t)
	return bytes.Clone(g.page[:pingpongSize])
}

// wait takes n completions.
func (g *player) wait(n int) {
	for range n {
		var wc [1]uapi.WC
		must.Get(g.WaitCQ(g.t.Context(), g.qp, wc[:]))(g.t)
		require.Equal(g.t, uapi.WCSuccess, wc[0].Status, "%v", wc[0])
	}
}

func pingpongEndpoint(t *testing.T, text string) (e uapi.Endpoint) {
	t.Helper()
	var lid uint32
	var gid string
	_, err := fmt.Sscanf(strings.TrimRight(text, "\x00"), "%x:%x:%x:%s", &lid, &e.QPN, &e.PSN, &gid)
	require.NoError(t, err, "%q", text)
	raw, err := hex.DecodeString(gid)
	require.NoError(t, err, "%q", text)
	require.Len(t, raw, 16)
	e.Addr = netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw)).Unmap(), uapi.RoCEPort)
	e.MTU, e.MaxRdAtomic = 1024, 1
	return e
}
