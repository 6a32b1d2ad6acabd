package registration_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
		p, err := servers[i].ReceiveDatagram(soon(t))
		require.NoError(t, err)
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
	device, err := uapi.Open(name)
	require.NoError(t, err)
	defer device.Close()
	l, err := rdmanet.ListenOn(device, ":0", rdmanet.Config{Ring: 16 << 10, Service: protocol})
	require.NoError(t, err)
	defer l.Close()
	port := l.Addr().(rdmanet.Addr).Port()
	client, err := r.Dial(soon(t), netip.AddrPortFrom(r.Addr(), port).String())
	require.NoError(t, err)
	conn, err := l.Accept()
	require.NoError(t, err)
	defer conn.(*rdmanet.Conn).CloseContext(soon(t))
	peer := &gate{Conn: conn}
	server, err := qmux.Server(peer, &streams)
	require.NoError(t, err)
	s, err := client.OpenStreamSync(soon(t))
	require.NoError(t, err)
	_, err = s.Write([]byte("x"))
	require.NoError(t, err)
	at, err := server.AcceptStream(soon(t))
	require.NoError(t, err)
	_, err = io.ReadFull(at, make([]byte, 1))
	require.NoError(t, err)
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
	_, err = io.ReadFull(at, got)
	require.NoError(t, err)
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

// faults of a network that loses, turns around and doubles packets.
const faults = "loss=1%&reorder=2%&dup=1%&mtu=1024&seed=7"

// TestFaults: on a network with faults, streams both ways and datagrams arrive
// byte for byte. The device sends again; the connections above it count nothing
// of that.
func TestFaults(t *testing.T) {
	for form, configure := range forms {
		t.Run(form, func(t *testing.T) {
			x := open(t, configure(registration.Soft{Addr: loopback(), Options: faults}))
			y := open(t, configure(registration.Soft{Addr: beside(), Options: faults}))
			client, server := connect(t, x, listen(t, y))
			exchange(t, client, server)
			for _, r := range []*registration.Registration{x, y} {
				s := r.Stats()
				require.NotZero(t, s.Below.Retransmitted)
				require.Zero(t, s.Lost+s.Retransmitted+s.CongestionEvents+s.MTUProbes)
				require.Zero(t, s.FramesSent["ACK"]+s.FramesReceived["ACK"])
			}
		})
	}
}

// exchange sends streams and datagrams both ways, all at once.
func exchange(t *testing.T, client, server *registration.Conn) {
	t.Helper()
	const (
		count     = 3       // streams each way
		size      = 1 << 18 // bytes of each
		datagrams = 50      // each way
	)
	var all sync.WaitGroup
	failed := make(chan error, 1024)
	run := func(f func() error) {
		all.Go(func() {
			if err := f(); err != nil {
				failed <- err
			}
		})
	}
	for i, ends := range [][2]*registration.Conn{{client, server}, {server, client}} {
		from, to := ends[0], ends[1]
		for k := range count {
			run(func() error {
				s, err := from.OpenUniStreamSync(soon(t))
				if err != nil {
					return err
				}
				seed := byte(count*i + k)
				if _, err = s.Write(append([]byte{seed}, pattern(uint64(seed), size)...)); err != nil {
					return err
				}
				return s.Close()
			})
			run(func() error {
				s, err := to.AcceptUniStream(soon(t))
				if err != nil {
					return err
				}
				p, err := io.ReadAll(s)
				if err == nil && !bytes.Equal(p[1:], pattern(uint64(p[0]), size)) {
					err = fmt.Errorf("stream %d differs in %d bytes", p[0], len(p)-1)
				}
				return err
			})
		}
		run(func() error {
			for k := range datagrams {
				if err := from.SendDatagram(pattern(uint64(k), 1000)); err != nil {
					return err
				}
			}
			return nil
		})
		run(func() error {
			for k := range datagrams {
				p, err := to.ReceiveDatagram(soon(t))
				if err != nil {
					return err
				}
				if !bytes.Equal(p, pattern(uint64(k), 1000)) {
					return fmt.Errorf("datagram %d differs", k)
				}
			}
			return nil
		})
	}
	all.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
}
