package stream

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// origin is a TCP server of the test.
func origin(t *testing.T, serve func(c *net.TCPConn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c.(*net.TCPConn))
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-ended
	})
	return l.Addr().String()
}

// pair starts two proxies, from TCP to RDMA and from RDMA to a target.
func pair(t *testing.T, target string) (near, far *process) {
	t.Helper()
	far = start(t, "proxy", "--listen", "rdma:0", "--to", target)
	return start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+far.addr), far
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// TestProxy sends data through both proxies, which comes back after its end has
// gone through; both count alike.
func TestProxy(t *testing.T) {
	size := int64(64 << 20)
	if testing.Short() {
		size = 4 << 20
	}
	near, far := pair(t, "tcp:"+origin(t, func(c *net.TCPConn) {
		defer c.Close()
		sum := sha256.New()
		_, _ = io.Copy(io.MultiWriter(sum, c), c)
		_, _ = c.Write(sum.Sum(nil))
	}))
	c := dial(t, near.addr)
	sent, got := sha256.New(), sha256.New()
	go func() {
		_, _ = io.Copy(io.MultiWriter(sent, c), io.LimitReader(rand.NewChaCha8([32]byte{1}), size))
		_ = c.CloseWrite()
	}()
	_, err := io.CopyN(got, c, size)
	require.NoError(t, err)
	theirs, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, got.Sum(nil), theirs)
	require.Equal(t, sent.Sum(nil), theirs)
	require.NoError(t, c.Close())
	for _, p := range []*process{near, far} {
		r := p.connection()
		require.Equal(t, "closed", r.End, r.Error)
		require.Equal(t, size, r.There)
		require.Equal(t, size+sha256.Size, r.Back)
		total, stderr := p.stop()
		require.Equal(t, Total{Connections: 1, There: r.There, Back: r.Back}, total)
		require.Empty(t, stderr)
	}
}
