package msgring_test

import (
	"bytes"
	"cmp"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestKits: of connections that follow each other each takes what one before
// left, a completion queue without the flushed requests of that one among it.
// The last one leaves nothing, as the end of uapitest.Pair sees.
func TestKits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		small := msgring.Config{Ring: 16 << 10}
		connect(t, a, b, small) // stands
		connect(t, a, b, msgring.Config{Ring: 32 << 10})
		var first *byte
		for range 20 {
			x, y := connect(t, a, b, small)
			lent := must.Get(x.Reserve(1))(t)
			if first == nil {
				first = &lent[0]
			}
			require.Same(t, first, &lent[0])
			lent[0] = 7
			require.NoError(t, x.Commit(1))
			got := make([]byte, 1)
			require.Equal(t, 1, must.Get(y.Read(got))(t))
			require.Equal(t, []byte{7}, got)
			require.NoError(t, x.Close())
			require.NoError(t, y.Close())
			givenBack(t, x, y)
		}
	})
}

// TestKitsOfTheClosed: a connection that is asked or closed once more, when its
// kit is the next one's, takes nothing of that.
func TestKitsOfTheClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		small := msgring.Config{Ring: 16 << 10}
		connect(t, a, b, small) // stands
		old, peer := connect(t, a, b, small)
		require.NoError(t, old.Close())
		require.NoError(t, peer.Close())
		givenBack(t, old, peer)
		x, y := connect(t, a, b, small)
		require.Equal(t, 1, must.Get(y.Write([]byte{7}))(t))
		synctest.Wait()
		for _, end := range []func() error{old.Close, old.Standing, old.CloseWrite, old.Abort} {
			require.ErrorIs(t, end(), net.ErrClosed)
		}
		_, err := old.Write([]byte{1})
		require.ErrorIs(t, err, net.ErrClosed)
		got := make([]byte, 1)
		require.NoError(t, x.SetReadDeadline(time.Now().Add(time.Minute)))
		require.Equal(t, 1, must.Get(x.Read(got))(t))
		require.Equal(t, []byte{7}, got)
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
		givenBack(t, x, y)
	})
}

// TestKitsAtOnce: many connections end at once, of which few leave a kit.
func TestKitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		connect(t, a, b, msgring.Config{Ring: 16 << 10})
		var all []*msgring.Conn
		for range 12 {
			x, y := connect(t, a, b, msgring.Config{Ring: 16 << 10})
			all = append(all, x, y)
		}
		for _, c := range all {
			require.NoError(t, c.Abort())
		}
		givenBack(t, all...)
	})
}

// TestKitsOnNetwork is TestKits over UDP on loopback, or on a real device,
// which flushes the requests of a queue pair in its own time.
func TestKitsOnNetwork(t *testing.T) {
	device := must.Get(uapi.Open(cmp.Or(realDevice, "soft"), uapi.OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	small := msgring.Config{Ring: 16 << 10}
	connect(t, device, device, small) // stands
	for range 20 {
		x, y := connect(t, device, device, small)
		require.Equal(t, 1, must.Get(x.Write([]byte{7}))(t))
		got := make([]byte, 1)
		require.Equal(t, 1, must.Get(y.Read(got))(t))
		require.Equal(t, []byte{7}, got)
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
		givenBack(t, x, y)
	}
	require.Len(t, device.OpenHandles(), 2*5+2*3, "two connections, and two kits")
}

// TestClosers: a goroutine that has closed a connection closes the next one,
// few of many stay for that, and none beyond the device's last connection.
func TestClosers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		small := msgring.Config{Ring: 16 << 10}
		first, last := connect(t, a, b, small)
		closers := func() (n int) {
			synctest.Wait()
			all := make([]byte, 1<<20)
			for g := range bytes.SplitSeq(all[:runtime.Stack(all, true)], []byte("\n\n")) {
				if bytes.Contains(g, []byte("synctest bubble")) && bytes.Contains(g, []byte("msgring.(*kits).end.func1(")) {
					n++
				}
			}
			return n
		}
		for range 3 {
			x, y := connect(t, a, b, small)
			require.NoError(t, x.Close())
			require.NoError(t, y.Close())
			givenBack(t, x, y)
			require.Equal(t, 2, closers(), "one a device")
		}
		var mine, theirs []*msgring.Conn
		for range 12 {
			x, y := connect(t, a, b, small)
			must.Get(x.Write([]byte{1}))(t)
			must.Get(y.Peek())(t)
			require.NoError(t, y.Close()) // goes on when what was lent is back
			mine, theirs = append(mine, x), append(theirs, y)
		}
		require.Equal(t, 1+12, closers())
		for _, y := range theirs {
			y.Discard(1)
		}
		givenBack(t, theirs...)
		require.Equal(t, 1+8, closers())
		for _, x := range mine {
			require.NoError(t, x.Close())
			givenBack(t, x)
			require.Equal(t, 1+8, closers(), "it waits again")
		}
		require.NoError(t, first.Close())
		require.NoError(t, last.Close())
		givenBack(t, first, last)
		require.Zero(t, closers())
	})
}
