package registration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// startPeer runs bePeer in a process, and tells where it listens, by transport.
func startPeer(t *testing.T) (addrs map[string]string, process *os.Process) {
	t.Helper()
	p := child.Start(t, asPeer+"=1")
	addrs = map[string]string{}
	for range transports {
		line := must.Get(p.Out.ReadString('\n'))(t)
		var kind, addr string
		_, err := fmt.Sscan(line, &kind, &addr)
		require.NoError(t, err, "%s", line)
		addrs[kind] = addr
	}
	return addrs, p.Process
}

// TestPeerKilled: the peer's process is killed. Connections of every transport
// end, by the default idle time at the latest, and the error of whatever waits
// on them names the transport.
func TestPeerKilled(t *testing.T) {
	addrs, process := startPeer(t)
	conns := map[string]*registration.Conn{}
	waiting := map[string]registration.Stream{}
	for kind, transport := range transports {
		config := secure(transport)
		config.Streams.MaxIdleTimeout = 0
		c := must.Get(open(t, config).Dial(soon(t), addrs[kind]))(t)
		s := must.Get(c.OpenStreamSync(soon(t)))(t)
		must.Get(s.Write([]byte("x")))(t)
		must.Get(io.ReadFull(s, make([]byte, 1)))(t)
		conns[kind], waiting[kind] = c, s
	}
	killed := time.Now()
	require.NoError(t, process.Kill())
	for kind, s := range waiting {
		_, err := s.Read(make([]byte, 1))
		t.Logf("after %v: %v", time.Since(killed).Round(time.Millisecond), err)
		require.ErrorContains(t, err, "registration "+kind+": read "+addrs[kind])
		_, err = s.Write([]byte("x"))
		require.ErrorContains(t, err, "registration "+kind+": write")
		_, err = conns[kind].AcceptStream(soon(t))
		require.ErrorContains(t, err, "registration "+kind+": accept stream")
		<-conns[kind].Context().Done()
		require.ErrorContains(t, context.Cause(conns[kind].Context()), "registration "+kind)
		require.True(t, errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.ECONNRESET), "%v", err)
	}
}
