package rdmanet_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// startPeer runs bePeer in a process. line is the first one that it prints, the
// address of a listener.
func startPeer(t *testing.T, role string) (line func() string, process *os.Process) {
	t.Helper()
	p := child.Start(t, asPeer+"="+role)
	return func() string {
		return strings.TrimSpace(must.Get(p.Out.ReadString('\n'))(t))
	}, p.Process
}

// signals end a peer's process without a word, or have it stand still with its
// device.
var signals = map[string]os.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP}

// TestRival09DeadPeer: the peer's process is killed, or stands still with its
// device. Close and CloseWrite do not wait for it, CloseContext ends, and a
// call that waits ends with an error that says so. The kernel takes leave for
// a process that was killed, and stands in for one that is stopped. Through
// shared memory the end of a process is seen at once: a call that waits for
// nothing of its own is reset.
func TestRival09DeadPeer(t *testing.T) {
	for name, signal := range signals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, process := startPeer(t, echoByte)
			addr := line()
			var device *uapi.Device
			gone := syscall.ETIMEDOUT
			if realDevice != "" {
				device, gone = open(t, realDevice), syscall.ECONNRESET
			} else {
				device = must.Get(uapi.OpenRoute(t.Context(), addr, uapi.OpenConfig{}))(t)
				defer func() { require.NoError(t, device.Close()) }()
			}
			d := rdmanet.Dialer{Device: device, Config: rdmanet.Config{Linger: time.Millisecond}}
			var conns [2]*rdmanet.Conn
			for i := range conns {
				c := must.Get(d.DialContext(limited(t), "rdma", addr))(t)
				conns[i] = c.(*rdmanet.Conn)
				must.Get(c.Write([]byte{1}))(t)
				must.Get(io.ReadFull(c, make([]byte, 1)))(t)
			}
			require.NoError(t, process.Signal(signal))
			_, _ = conns[0].Write([]byte("nobody takes this"))
			_ = conns[0].CloseWrite()
			require.NoError(t, conns[0].Close())
			givenBack(t, conns[0].CloseContext(limited(t)))

			_, _ = conns[1].Write([]byte("nor this"))
			if realDevice != "" && name == "stopped" {
				require.NoError(t, conns[1].SetReadDeadline(time.Now().Add(time.Second)))
				_, err := conns[1].Read(make([]byte, 1))
				requireTimeout(t, err)
			} else {
				_, err := conns[1].Read(make([]byte, 1))
				if name == "killed" && errors.Is(err, syscall.ECONNRESET) && reached(t, device, "shm_deaths") {
					gone = syscall.ECONNRESET
				}
				requireOpError(t, err, "read", gone)
				_, err = conns[1].Write([]byte("nor this"))
				requireOpError(t, err, "write", gone)
			}
			givenBack(t, conns[1].CloseContext(limited(t)))
			require.Empty(t, device.OpenHandles())
		})
	}
}

// undelivered holds that CloseContext says that data was lost. The kernel may
// take it for a program that stands still.
func undelivered(t *testing.T, err error) {
	t.Helper()
	if realDevice != "" {
		givenBack(t, err)
		return
	}
	require.ErrorIs(t, err, rdmanet.ErrUndelivered)
}

// reached reports whether a device has counted anything under a name.
func reached(t *testing.T, device *uapi.Device, counter string) bool {
	t.Helper()
	return must.Get(device.Counters())(t)[counter] > 0
}

// TestPeerDiesWriting: the peer's process is killed or stands still while it
// writes and this end does. Bytes that have arrived are read. Then a reader
// that never writes learns it by the keepalive, and so does the writer, which
// waits for room in the peer's ring. The peer may have dialled or listened.
func TestPeerDiesWriting(t *testing.T) {
	config := rdmanet.Config{KeepAlive: time.Second, Linger: time.Millisecond}
	dialled := func(t *testing.T) (net.Conn, *os.Process) {
		line, process := startPeer(t, write)
		d := rdmanet.Dialer{Config: config}
		return must.Get(d.DialContext(limited(t), "rdma", line()))(t), process
	}
	accepted := func(t *testing.T) (net.Conn, *os.Process) {
		device := open(t, "soft")
		l := must.Get(rdmanet.ListenOn(device, ":0", config))(t)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		_, process := startPeer(t, at(t, device, l))
		return must.Get(l.Accept())(t), process
	}
	for name, signal := range signals {
		for role, connect := range map[string]func(*testing.T) (net.Conn, *os.Process){"listener": dialled, "dialer": accepted} {
			t.Run(role+" "+name, func(t *testing.T) {
				t.Parallel()
				c, process := connect(t)
				wrote := make(chan error, 1)
				go func() {
					_, err := c.Write(make([]byte, 1<<20))
					wrote <- err
				}()
				buf := make([]byte, 100_000)
				var err error
				for n := 0; err == nil; {
					if n > 1<<20 {
						_ = process.Signal(signal)
					}
					var k int
					k, err = c.Read(buf)
					for i, b := range buf[:k] {
						if b != pattern(n+i) {
							t.Fatalf("byte %d is %d", n+i, b)
						}
					}
					n += k
				}
				// A hang-up of shared memory tells of a killed peer, too.
				gone := func(err error) error {
					if name == "killed" && errors.Is(err, syscall.ECONNRESET) {
						return syscall.ECONNRESET
					}
					return syscall.ETIMEDOUT
				}
				requireOpError(t, err, "read", gone(err))
				err = <-wrote
				requireOpError(t, err, "write", gone(err))
				undelivered(t, c.(*rdmanet.Conn).CloseContext(limited(t)))
			})
		}
	}
}
