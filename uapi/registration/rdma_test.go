package registration_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// TestQueuePairs: two connections of one listener at the same address are told
// apart by their queue pairs, whose numbers both ends know.
func TestQueuePairs(t *testing.T) {
	config := plain(transports[rdma()])
	config.Name = "orders"
	r := open(t, config)
	l := listen(t, r)
	var clients, servers [2]*registration.Conn
	seen := map[uint32]bool{}
	for i := range clients {
		clients[i], servers[i] = connect(t, r, l)
		x, y := clients[i].ConnectionState(), servers[i].ConnectionState()
		require.Equal(t, x.LocalQPN, y.RemoteQPN)
		require.Equal(t, y.LocalQPN, x.RemoteQPN)
		seen[x.LocalQPN], seen[y.LocalQPN] = true, true
		require.NotEmpty(t, x.Device)
		require.Equal(t, registration.ConnectionState{
			Registration: "orders", Transport: rdma(), Protocol: protocol, Device: y.Device,
			LocalQPN: y.LocalQPN, RemoteQPN: y.RemoteQPN, Datagrams: y.Datagrams,
		}, y)
	}
	require.Len(t, seen, 4)
	require.NotContains(t, seen, uint32(0))
	for i := range clients {
		require.NoError(t, clients[i].SendDatagram([]byte{byte(i)}))
	}
	for i := range servers {
		p := must.Get(servers[i].ReceiveDatagram(soon(t)))(t)
		require.Equal(t, []byte{byte(i)}, p)
	}
}

// gate is a connection that reads only while it is open.
type gate struct {
	net.Conn
	sync.RWMutex
}

func (g *gate) Read(p []byte) (int, error) {
	g.RLock()
	defer g.RUnlock()
	return g.Conn.Read(p)
}

// TestRingFull: while the peer does not empty its ring, a stream's writer waits
// and credit_waits tells; then it goes on, and nothing was lost.
func TestRingFull(t *testing.T) {
	const size = 256 << 10 // bytes; less than the windows of qmux
	config := plain(onRDMA(registration.Rings{Ring: 16 << 10}))
	r := open(t, config)
	name := "soft:" + loopback()
	if realDevice != "" {
		name = realDevice
	}
	device := must.Get(uapi.Open(name, uapi.OpenConfig{}))(t)
	defer device.Close()
	l := must.Get(rdmanet.ListenOn(device, ":0", rdmanet.Config{Ring: 16 << 10, Service: protocol}))(t)
	defer l.Close()
	port := l.Addr().(rdmanet.Addr).Port()
	client := must.Get(r.Dial(soon(t), netip.AddrPortFrom(r.Addr(), port).String()))(t)
	conn := must.Get(l.Accept())(t)
	defer conn.(*rdmanet.Conn).CloseContext(soon(t))
	peer := &gate{Conn: conn}
	server := must.Get(qmux.Server(peer, &streams))(t)
	s := must.Get(client.OpenStreamSync(soon(t)))(t)
	must.Get(s.Write([]byte("x")))(t)
	at := must.Get(server.AcceptStream(soon(t)))(t)
	must.Get(io.ReadFull(at, make([]byte, 1)))(t)
	require.NoError(t, client.SendDatagram([]byte("closes the gate"))) // ends the Read that is under way
	peer.Lock()

	before := r.Stats().Below.CreditWaits
	data := pattern(1, size)
	wrote := make(chan error, 1)
	go func() {
		_, err := s.Write(data)
		wrote <- err
	}()
	require.Eventually(t, func() bool { return r.Stats().Below.CreditWaits > before }, patience, time.Millisecond)
	select {
	case err := <-wrote:
		t.Fatal("wrote more than the ring takes: ", err)
	default:
	}
	peer.Unlock()
	got := make([]byte, size)
	must.Get(io.ReadFull(at, got))(t)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, <-wrote)
	require.NoError(t, client.CloseWithError(0, ""))
	require.NotZero(t, r.Stats().Below.CreditWaits)
}

// pattern is seeded bytes.
func pattern(seed uint64, size int) []byte {
	p := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(p)
	return p
}
