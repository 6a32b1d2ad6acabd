package rdmanl

import (
	"context"
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestMain(m *testing.M) { leak.Main(m) }

const (
	testPort = 4711 // a port id
	testSeq  = 17
	testPID  = 4242
)

// busy is a device that is used, and a server for it.
type busy struct {
	*Server
	device, peer *uapi.Device
	qps          []uapi.QP
	mr           uapi.MR
	name         string
	addr         netip.Addr
}

// newBusy makes a region, a queue pair, a shared receive queue with two more
// queue pairs, and others as configured.
func newBusy(t testing.TB, more ...uapi.QPConfig) *busy {
	b := &busy{}
	b.device, b.peer = uapitest.Pair(t, "")
	info := must.Get(b.device.QueryDevice())(t)
	b.name, b.addr = info.Name, info.Address.Addr()
	p := must.Get(minikernel.Machine().ProcessOn(b.name, "rdma"))(t)
	t.Cleanup(p.Exit)
	b.Server = &Server{Process: p, PID: testPID}

	b.mr = must.Get(b.device.RegMR(make([]byte, 8192), uapi.AccessRemoteRead))(t)
	srq := must.Get(b.device.CreateSRQ(uapi.SRQConfig{Depth: 8}))(t)
	for _, c := range append(more, uapi.QPConfig{SendDepth: 4, RecvDepth: 4}, uapi.QPConfig{SRQ: srq}, uapi.QPConfig{SRQ: srq}) {
		qp := must.Get(b.device.CreateQPWith(c))(t)
		b.qps = append(b.qps, qp)
	}
	t.Cleanup(func() {
		for _, qp := range b.qps {
			require.NoError(t, b.device.DestroyQP(qp))
		}
		require.NoError(t, b.device.DestroySRQ(srq))
		require.NoError(t, b.device.DeregMR(b.mr))
	})
	return b
}

// connect has the peer connect to the device by the connection manager.
func (b *busy) connect(t *testing.T) {
	l := must.Get(b.device.Listen(netip.AddrPortFrom(b.addr, 0).String(), uapi.ListenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	uapitest.Dial(t, b.peer, l)
}

// known is the server's only one.
func (b *busy) known(t *testing.T) emu.DeviceInfo {
	list := b.Process.Devices()
	require.Len(t, list, 1)
	return list[0]
}

func request(typ, flags uint16, attrs []byte) []byte {
	return (&message{seq: testSeq}).reply(0, typ, flags, attrs)
}

// exchange sends a request and takes the answers apart, as a library does.
func exchange(t testing.TB, s *Server, typ, flags uint16, attrs []byte) (payloads [][]byte, err error) {
	t.Helper()
	answers := s.Answer(testPort, request(typ, flags, attrs))
	for i, b := range answers {
		m, rest, ok := next(b)
		require.True(t, ok && len(rest) == 0, "a datagram is a message: %x", b)
		require.EqualValues(t, testSeq, m.seq)
		require.EqualValues(t, testPort, binary.NativeEndian.Uint32(b[12:]))
		if m.typ == typ {
			require.LessOrEqual(t, len(b), 4096, "readers have a page")
			payloads = append(payloads, m.payload())
			continue
		}
		require.Equal(t, len(answers)-1, i, "the status comes last")
		require.Equal(t, map[bool]uint16{true: typeDone, false: typeError}[flags&flagDump != 0 && m.flags == flagMulti], m.typ)
		if n := int32(binary.NativeEndian.Uint32(m.payload())); n != 0 {
			return payloads, syscall.Errno(-n)
		}
	}
	return payloads, nil
}

// manager is netlinkmgr, which asks the server.
func manager(t testing.TB, s *Server) *netlinkmgr.Manager {
	return netlinkmgr.New(netlinkmgr.Kernel{RDMA: func(_ context.Context, r netlinkmgr.Request) ([][]byte, error) {
		return exchange(t, s, r.Type(), r.Flags(), r.Attrs)
	}})
}

// nldevType is the message type of a command.
func nldevType(command string) uint16 { return nldevClient<<10 | nldev.Command(command) }
