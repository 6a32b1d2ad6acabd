package rdmanet_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestConn holds the connection to x/net's test of every net.Conn: on a network
// in memory and on loopback. It cannot run on virtual time, so a machine that
// is busy with race detectors would make peers late.
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
		if realDevice != "" && c.name == "loopback" {
			continue
		}
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
		must.Get(y.Write(make([]byte, 256<<10)))(t)
		must.Get(x.Write([]byte("x")))(t)
		must.Get(io.ReadFull(y, make([]byte, 1)))(t)
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
		n := must.Get(y.WriteTo(&got))(t)
		require.EqualValues(t, len(data), n)
		require.True(t, bytes.Equal(data, got.Bytes()))
	})
}

// TestSmallBuffersShareAChunk: buffers that WriteBuffers gathers go as one
// chunk.
func TestSmallBuffersShareAChunk(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		list := net.Buffers{[]byte("head"), []byte("er, "), []byte("body")}
		must.Get(x.WriteBuffers(&list))(t)
		require.EqualValues(t, 1, x.Stats().ChunksSent)
		got := make([]byte, 12)
		must.Get(io.ReadFull(y, got))(t)
		require.Equal(t, "header, body", string(got))
	})
}

// TestCloseCarriesWhatWasWritten: Close returns at once, and CloseContext when
// a slow reader's device has everything.
func TestCloseCarriesWhatWasWritten(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		data := make([]byte, 200<<10) // less than the ring
		must.Get(x.Write(data))(t)
		require.NoError(t, x.CloseContext(limited(t)))
		require.ErrorIs(t, x.Close(), net.ErrClosed)
		got := must.Get(io.ReadAll(y))(t)
		require.Len(t, got, len(data))
	})
}

// TestPeersDeviceGoes: the peer's process ends without a word.
func TestPeersDeviceGoes(t *testing.T) {
	h := softHost(t, rdmanet.Config{})
	device := must.Get(uapi.Open("soft", uapi.OpenConfig{}))(t)
	d := rdmanet.Dialer{Device: device}
	x := must.Get(d.Dial("rdma", h.addr))(t)
	y := must.Get(h.Accept())(t)
	require.NoError(t, device.Close())
	_, err := y.Read(make([]byte, 1))
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
		givenBack(t, rdmanet.Flush(limited(t))) // none lingers; other tests lost
		require.NoError(t, x.Close())
		if err := rdmanet.Flush(over); err != nil { // or it has gone already
			require.ErrorIs(t, err, context.Canceled)
		}
		require.NoError(t, rdmanet.Flush(limited(t)))
		require.NoError(t, x.CloseContext(limited(t)))
		require.NoError(t, y.CloseContext(limited(t)))
	})
}

// TestUndelivered: CloseContext and Flush say that what was written may not
// have arrived, Flush once; and nothing after SetLinger(0).
func TestUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, rdmanet.Config{})
		x, _ := h.join(t)
		abrupt, _ := h.join(t)
		require.NoError(t, abrupt.SetLinger(0))
		require.NoError(t, rdmanet.FlushDevice(limited(t), h.client))
		for _, c := range []*rdmanet.Conn{x, abrupt} {
			must.Get(c.Write(make([]byte, 200<<10)))(t)
		}
		require.NoError(t, h.server.Close())
		require.NoError(t, x.Close())
		require.NoError(t, abrupt.CloseContext(limited(t)))
		err := rdmanet.FlushDevice(limited(t), h.client)
		require.ErrorIs(t, err, rdmanet.ErrUndelivered)
		require.NotContains(t, err.Error(), "\n")
		require.NoError(t, rdmanet.FlushDevice(limited(t), h.client))
		err = x.CloseContext(limited(t))
		requireOpError(t, err, "close", rdmanet.ErrUndelivered)
	})
}
