package rdmanet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestConn holds the connection to what x/net expects of every net.Conn: on a
// network in memory and on loopback. It cannot run on virtual time, so a
// machine that is busy with race detectors would make peers late.
func TestConn(t *testing.T) {
	if testing.Short() {
		t.Skip("nettest needs a machine that keeps real time; run it without -short")
	}
	for _, c := range []struct {
		name   string
		host   func(*testing.T, rdmanet.Config) *host
		config rdmanet.Config
	}{
		{"default", newHost, rdmanet.Config{}},
		{"smallest ring", newHost, rdmanet.Config{Ring: 16 << 10}},
		{"loopback", softHost, rdmanet.Config{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.host(t, c.config)
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				x, y, err := h.pipe()
				if err != nil {
					return nil, nil, nil, err
				}
				return x, y, func() {
					_ = x.Close()
					_ = y.Close()
				}, nil
			})
		})
	}
}

// TestBothWaysThroughSmallRings: both ends write 4 MiB at once, which the rings
// hold a fraction of.
func TestBothWaysThroughSmallRings(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 16 << 10})
		bothWays(t, x, y, 4<<20)
		require.EqualValues(t, 4<<20, x.Stats().BytesSent)
		require.EqualValues(t, 4<<20, y.Stats().BytesReceived)
		require.Equal(t, 16<<10, x.Info().PeerRing)
	})
}

// bothWays has each end write n random bytes, end its data, and check the
// other's.
func bothWays(t *testing.T, x, y net.Conn, n int) {
	t.Helper()
	type half interface{ CloseWrite() error }
	var all sync.WaitGroup
	for i, from := range []net.Conn{x, y} {
		to := []net.Conn{y, x}[i]
		data := make([]byte, n)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(data)
		all.Go(func() {
			_, err := from.Write(data)
			if err == nil {
				err = from.(half).CloseWrite()
			}
			if err != nil {
				t.Errorf("write: %v", err)
			}
		})
		all.Go(func() {
			got, err := io.ReadAll(to)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("read %d bytes of %d: %v", len(got), n, err)
			}
		})
	}
	all.Wait()
}

// TestHalfClose: the end of one direction leaves the other.
func TestHalfClose(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		_, err := x.Write([]byte("question"))
		require.NoError(t, err)
		require.NoError(t, x.CloseWrite())
		_, err = x.Write([]byte("more"))
		require.ErrorIs(t, err, syscall.EPIPE)
		got, err := io.ReadAll(y)
		require.NoError(t, err)
		require.Equal(t, "question", string(got))
		_, err = y.Write([]byte("answer"))
		require.NoError(t, err)
		require.NoError(t, y.Close())
		got, err = io.ReadAll(x)
		require.NoError(t, err)
		require.Equal(t, "answer", string(got))
		_, err = x.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err, "unwrapped, and again")
	})
}

// TestCloseRead: the peer goes on writing more than the ring holds, and readers
// get io.EOF whatever deadline is set.
func TestCloseRead(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 16 << 10})
		reading := make(chan error)
		go func() {
			_, err := x.Read(make([]byte, 1))
			reading <- err
		}()
		require.NoError(t, x.CloseRead())
		require.NoError(t, x.CloseRead())
		require.NoError(t, x.SetReadDeadline(time.Unix(1, 0)))
		require.Equal(t, io.EOF, <-reading)
		_, err := x.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		n, err := x.WriteTo(io.Discard)
		require.Zero(t, n)
		require.NoError(t, err)
		_, err = y.Write(make([]byte, 256<<10))
		require.NoError(t, err)
		_, err = x.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(y, make([]byte, 1))
		require.NoError(t, err)
	})
}

// TestDeadlines: the connection is usable after one, and nothing of what a
// Write counted is lost or sent twice.
func TestDeadlines(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 16 << 10})
		require.NoError(t, y.SetReadDeadline(time.Now().Add(time.Millisecond)))
		_, err := y.Read(make([]byte, 1))
		requireTimeout(t, err)
		data := make([]byte, 256<<10)
		_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
		require.NoError(t, x.SetWriteDeadline(time.Now().Add(time.Millisecond)))
		n, err := x.Write(data)
		requireTimeout(t, err)
		require.Less(t, n, len(data))
		require.NoError(t, x.SetDeadline(time.Time{}))
		require.NoError(t, y.SetDeadline(time.Time{}))
		go func() {
			_, _ = x.Write(data[n:])
			_ = x.CloseWrite()
		}()
		got, err := io.ReadAll(y)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
	})
}

func requireTimeout(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var e net.Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Timeout())
}

// TestCopies: ReadFrom, WriteTo and WriteBuffers carry the bytes, also those of
// buffers longer than a chunk.
func TestCopies(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 64 << 10})
		data := make([]byte, 300_000)
		_, _ = rand.NewChaCha8([32]byte{9}).Read(data)
		go func() {
			n, err := x.ReadFrom(struct{ io.Reader }{bytes.NewReader(data[:100_000])})
			if err != nil || n != 100_000 {
				t.Errorf("ReadFrom: %d, %v", n, err)
			}
			list := net.Buffers{data[100_000:100_001], nil, data[100_001:100_100], data[100_100:299_999], data[299_999:]}
			n, err = x.WriteBuffers(&list)
			if err != nil || n != 200_000 || len(list) != 0 {
				t.Errorf("WriteBuffers: %d, %v, %d left", n, err, len(list))
			}
			_ = x.CloseWrite()
		}()
		var got bytes.Buffer
		n, err := y.WriteTo(&got)
		require.NoError(t, err)
		require.EqualValues(t, len(data), n)
		require.True(t, bytes.Equal(data, got.Bytes()))
	})
}

// TestSmallBuffersShareAChunk: what WriteBuffers gathers goes as one.
func TestSmallBuffersShareAChunk(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		list := net.Buffers{[]byte("head"), []byte("er, "), []byte("body")}
		_, err := x.WriteBuffers(&list)
		require.NoError(t, err)
		require.EqualValues(t, 1, x.Stats().ChunksSent)
		got := make([]byte, 12)
		_, err = io.ReadFull(y, got)
		require.NoError(t, err)
		require.Equal(t, "header, body", string(got))
	})
}

// TestCloseCarriesWhatWasWritten: Close returns at once, and CloseContext when
// a slow reader's device has everything.
func TestCloseCarriesWhatWasWritten(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		data := make([]byte, 200<<10) // less than the ring
		_, err := x.Write(data)
		require.NoError(t, err)
		require.NoError(t, x.CloseContext(limited(t)))
		require.ErrorIs(t, x.Close(), net.ErrClosed)
		got, err := io.ReadAll(y)
		require.NoError(t, err)
		require.Len(t, got, len(data))
	})
}

// TestLingerZero: the peer gets ECONNRESET, and not the end of the data.
func TestLingerZero(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		require.NoError(t, x.SetLinger(0))
		require.NoError(t, x.Close())
		_, err := y.Read(make([]byte, 1))
		requireOpError(t, err, "read", syscall.ECONNRESET)
	})
}

// TestUnreadDataResets: a peer that closes without reading all is no orderly
// end.
func TestUnreadDataResets(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		_, err := x.Write([]byte("nobody reads this"))
		require.NoError(t, err)
		require.NoError(t, y.SetReadDeadline(time.Now().Add(patience)))
		_, err = io.ReadFull(y, make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, y.Close())
		_, err = x.Read(make([]byte, 1))
		requireOpError(t, err, "read", syscall.ECONNRESET)
	})
}

// TestCloseIsBoundedWithPeerNotReading: the peer's program stands still with a
// full ring; Close needs its device only.
func TestCloseIsBoundedWithPeerNotReading(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 16 << 10})
		require.NoError(t, x.SetWriteDeadline(time.Now().Add(time.Millisecond)))
		_, err := x.Write(make([]byte, 256<<10))
		requireTimeout(t, err)
		require.NoError(t, x.CloseContext(limited(t)))
		_, err = io.Copy(io.Discard, y)
		require.NoError(t, err)
	})
}

// TestCloseDuringCalls: calls that wait end with net.ErrClosed, whatever they
// are.
func TestCloseDuringCalls(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, _ := connect(t, rdmanet.Config{Ring: 16 << 10})
		calls := map[string]func() error{
			"read":  func() error { _, err := x.Read(make([]byte, 1)); return err },
			"write": func() error { _, err := x.Write(make([]byte, 1<<20)); return err },
		}
		ended := make(chan error)
		for op, call := range calls {
			go func() {
				err := call()
				var e *net.OpError
				if !errors.Is(err, net.ErrClosed) || !errors.As(err, &e) || e.Op != op {
					t.Errorf("%s: %v", op, err)
				}
				ended <- err
			}()
		}
		require.NoError(t, x.Close())
		<-ended
		<-ended
		require.ErrorIs(t, x.SetDeadline(time.Now()), net.ErrClosed)
		require.ErrorIs(t, x.CloseWrite(), net.ErrClosed)
	})
}

// TestPeersDeviceGoes: the peer's process ends without a word.
func TestPeersDeviceGoes(t *testing.T) {
	h := softHost(t, rdmanet.Config{})
	device, err := uapi.Open("soft")
	require.NoError(t, err)
	d := rdmanet.Dialer{Context: device}
	x, err := d.Dial("rdma", h.addr)
	require.NoError(t, err)
	y, err := h.Accept()
	require.NoError(t, err)
	require.NoError(t, device.Close())
	_, err = y.Read(make([]byte, 1))
	requireOpError(t, err, "read", syscall.ECONNRESET)
	_, err = x.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
}

// requireOpError holds that err is the *net.OpError of a call, with an errno
// and in one line.
func requireOpError(t *testing.T, err error, op string, errno error) {
	t.Helper()
	var e *net.OpError
	require.ErrorAs(t, err, &e)
	require.Equal(t, op, e.Op)
	require.Equal(t, "rdma", e.Net)
	require.ErrorIs(t, err, errno)
	require.NotContains(t, err.Error(), "\n")
}

// TestFlush waits for connections that were closed.
func TestFlush(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		over, cancel := context.WithCancel(context.Background())
		cancel()
		require.NoError(t, rdmanet.Flush(limited(t)), "none lingers")
		require.NoError(t, x.Close())
		if err := rdmanet.Flush(over); err != nil { // or it has gone already
			require.ErrorIs(t, err, context.Canceled)
		}
		require.NoError(t, rdmanet.Flush(limited(t)))
		require.NoError(t, x.CloseContext(limited(t)))
		require.NoError(t, y.CloseContext(limited(t)))
	})
}

// TestConnectionsLeaveNothing: 100 one after another and 16 at once, whose
// objects, goroutines and descriptors the host and TestMain look for.
func TestConnectionsLeaveNothing(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, rdmanet.Config{Ring: 16 << 10})
		turn := func() error {
			x, y, err := h.pipe()
			if err == nil {
				_, err = x.Write([]byte("x"))
			}
			if err == nil {
				err = x.Close()
			}
			if err == nil {
				err = y.Close()
			}
			return err
		}
		for range 100 {
			require.NoError(t, turn())
		}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if err := turn(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}
