package qmux

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/built"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// rdmaListener listens on a device until the test ends, when every connection
// has been closed and is gone.
func rdmaListener(t *testing.T, device *uapi.Device) (address string, l *rdmanet.Listener) {
	t.Helper()
	l = must.Get(rdmanet.ListenOn(device, ":0", rdmanet.Config{}))(t)
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.Empty(t, device.OpenHandles())
	})
	info := must.Get(device.QueryDevice())(t)
	return netip.AddrPortFrom(info.Address.Addr(), l.Addr().(rdmanet.Addr).Port()).String(), l
}

// network is a listener on a private network in memory, with faults, and a
// dialer to it.
type network struct {
	*rdmanet.Listener
	rdmanet.Dialer
	address string
}

// gone has a connection closed and gone when the test ends: qmux closes it some
// time after CloseWithError. What the other end had not read when it closed may
// not have arrived.
func gone(t *testing.T, conn net.Conn, err error) (net.Conn, error) {
	if c, ok := conn.(*rdmanet.Conn); ok {
		t.Cleanup(func() {
			if err := c.CloseContext(soon(t)); !errors.Is(err, rdmanet.ErrUndelivered) {
				require.NoError(t, err)
			}
		})
	}
	return conn, err
}

func newNetwork(t *testing.T, faults string) *network {
	t.Helper()
	server, client := uapitest.Pair(t, faults)
	address, l := rdmaListener(t, server)
	return &network{l, rdmanet.Dialer{Device: client}, address}
}

// pair makes a connection.
func (n *network) pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	client, err := n.DialContext(soon(t), "rdma", n.address)
	client = must.Get(gone(t, client, err))(t)
	server, err = n.Accept()
	server = must.Get(gone(t, server, err))(t)
	return client, server
}

// softDevice is a device on loopback.
func softDevice(t *testing.T) *uapi.Device {
	t.Helper()
	device := must.Get(uapi.Open("soft", uapi.OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	return device
}

// proxy runs 'rdmashim proxy', which is at path, and is the link through it:
// the other process is on TCP, and this one on RDMA.
type proxy struct{ path string }

func (p proxy) listen(t *testing.T) (string, func() (net.Conn, error)) {
	address, l := rdmaListener(t, softDevice(t))
	return p.run(t, "tcp:127.0.0.1:0", "rdma:"+address), func() (net.Conn, error) {
		conn, err := l.Accept()
		return gone(t, conn, err)
	}
}

func (p proxy) dial(t *testing.T, address string) (net.Conn, error) {
	d := rdmanet.Dialer{Device: softDevice(t)}
	conn, err := d.DialContext(soon(t), "rdma", p.run(t, "rdma:"+ownAddress(), "tcp:"+address))
	return gone(t, conn, err)
}

// proxies numbers the processes.
var proxies atomic.Int32

// ownAddress is one of loopback that no other process has: of two that open a
// device on one at the same moment, one may fail.
func ownAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 119+os.Getpid()>>8&0x7, os.Getpid()&0xff, 1+proxies.Add(1)%254)
}

// run runs it until the test ends.
func (p proxy) run(t *testing.T, from, to string) (listening string) {
	t.Helper()
	cmd := exec.Command(p.path, "proxy", "--json", "--listen", from, "--to", to)
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	lines, carried := bufio.NewReader(out), make(chan struct{})
	t.Cleanup(func() {
		select {
		case <-carried: // else the device waits for a peer that is gone
		case <-soon(t).Done():
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := lines.ReadString('\n')
	if err != nil {
		close(carried)
	}
	require.NoError(t, err)
	var said struct{ Listening string }
	require.NoError(t, json.Unmarshal([]byte(line), &said), line)
	go func() {
		defer close(carried)
		_, _ = lines.ReadString('\n') // of the connection that has ended
	}()
	return said.Listening
}

// TestProxied is TestScenario through RDMA.
func TestProxied(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the tool; run it without -short")
	}
	p := proxy{built.Tool(t)}
	eachSession(t, []link{
		{name: "plain", listen: p.listen, dial: p.dial},
		{name: "tls", secure: true, listen: p.listen, dial: p.dial},
	}, small.theirs, scenario)
}
