package xprt

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// serve has an RPC server whose replies are answer's on a device; dial connects
// clients to it.
func serve(t *testing.T, answer func(call []byte) []byte) (device *uapi.Device, addr string) {
	t.Helper()
	device, server := uapitest.Pair(t, "")
	l := must.Get(Listen(server, ":0", t.Logf))(t)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveRecords(c, answer)
		}
	}()
	info := must.Get(server.QueryDevice())(t)
	return device, netip.AddrPortFrom(info.Address.Addr(), l.rdma.Addr().Port()).String()
}

func serveRecords(c net.Conn, answer func([]byte) []byte) {
	defer c.Close()
	for {
		call, err := readRecord(c)
		if err != nil {
			return
		}
		reply := answer(call)
		half := len(reply) / 2 // in two fragments
		b := append(be.AppendUint32(nil, uint32(half)), reply[:half]...)
		b = append(be.AppendUint32(b, uint32(len(reply)-half)|lastFragment), reply[half:]...)
		if _, err := io.Copy(c, &sliced{b}); err != nil {
			return
		}
	}
}

// sliced reads as much as is asked for.
type sliced struct{ b []byte }

func (s *sliced) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b)
	s.b = s.b[n:]
	return n, nil
}

// client is a client's queue pair whose messages a test writes: they are sent
// from the first 16 KiB of mem, replies come to the next.
type client struct {
	t   *testing.T
	d   *uapi.Device
	qp  uapi.QP
	mr  uapi.MR
	mem []byte
	at  uapi.Region
}

const (
	repliesAt = 16 << 10
	chunksAt  = 32 << 10
)

func dial(t *testing.T, d *uapi.Device, addr string, private []byte) *client {
	t.Helper()
	c := &client{t: t, d: d, mem: make([]byte, 4<<20)}
	var err error
	c.mr, c.at, err = d.RegRegion(c.mem, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteRead | uapi.AccessRemoteWrite})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.DeregMR(c.mr)) })
	c.qp = must.Get(d.Dial(t.Context(), addr, uapi.DialConfig{Private: private}))(t)
	t.Cleanup(func() { require.NoError(t, d.DestroyQP(c.qp)) })
	return c
}

// call sends a message and returns the reply's header and the bytes behind it.
// Errors: the reason for the connection's end, and errAnswer.
func (c *client) call(msg []byte) (h header, rest []byte, err error) {
	c.t.Helper()
	if msg, err = c.exchange(msg); err != nil {
		return h, nil, err
	}
	if h, rest, err = parse(msg); err == nil && h.proc == procError {
		err = fmt.Errorf("%w: %d", errAnswer, be.Uint32(msg[16:]))
	}
	return h, rest, err
}

var errAnswer = errors.New("the server's answer is an error")

// exchange sends a message and returns the next that comes.
func (c *client) exchange(msg []byte) ([]byte, error) {
	c.t.Helper()
	copy(c.mem, msg)
	must.Get(c.d.PostRecv(c.qp, c.mr, repliesAt, inline))(c.t)
	must.Get(c.d.PostSend(c.qp, c.mr, uint64(len(msg))))(c.t)
	for {
		var wc [1]uapi.WC
		if _, err := c.d.WaitCQ(c.t.Context(), c.qp, wc[:]); err != nil {
			return nil, err
		}
		if err := wc[0].Err(); err != nil {
			return nil, err
		}
		if wc[0].Opcode == uapi.WCOpRecv {
			return c.mem[repliesAt:][:wc[0].ByteLen], nil
		}
	}
}

// chunk is n bytes of the client's memory, from at on, in pieces.
func (c *client) chunk(at, n, pieces int) (list []segment) {
	for ; pieces > 0; pieces-- {
		k := n / pieces
		list = append(list, segment{c.at.RKey, uint32(k), c.at.Addr + uint64(at)})
		at, n = at+k, n-k
	}
	return list
}

// message is a header with its chunks, as a client sends it.
func message(h header) []byte {
	var b []byte
	for _, v := range []uint32{h.xid, 1, credits, h.proc} {
		b = be.AppendUint32(b, v)
	}
	for _, r := range h.reads {
		b = be.AppendUint32(be.AppendUint32(b, 1), r.at)
		b = be.AppendUint64(be.AppendUint32(be.AppendUint32(b, r.key), r.length), r.addr)
	}
	b = be.AppendUint32(b, 0)
	for _, w := range h.writes {
		b = appendSegments(be.AppendUint32(b, 1), w, math.MaxInt)
	}
	b = be.AppendUint32(b, 0)
	if h.reply == nil {
		return be.AppendUint32(b, 0)
	}
	return appendSegments(be.AppendUint32(b, 1), h.reply, math.MaxInt)
}

// reads is a read chunk at a position.
func reads(at int, list []segment) (chunk []readChunk) {
	for _, s := range list {
		chunk = append(chunk, readChunk{uint32(at), s})
	}
	return chunk
}
