package rdmanl

import (
	"net"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// userSocket is a program's socket, with little room.
func userSocket(t *testing.T) int {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_USERSOCK)
	require.NoError(t, err)
	require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<13))
	return fd
}

// TestSocket: a dump that has no room in the program's socket follows as it is
// read. A program that closes its socket instead is not waited for, and its
// next socket gets nothing of it. While a dump is on its way another is EBUSY.
func TestSocket(t *testing.T) {
	b := newBusy(t)
	const regions = 1000
	var mrs []uapi.MR
	for range regions {
		mr := must.Get(b.device.RegMR(make([]byte, 8), uapi.AccessRemoteRead))(t)
		mrs = append(mrs, mr)
	}
	defer func() {
		for _, mr := range mrs {
			require.NoError(t, b.device.DeregMR(mr))
		}
	}()
	s := must.Get(NewSocket(b.Server))(t)
	dump := request(nldevType("RES_MR_GET"), flagRequest|flagDump, nldev.Encode("DEV_INDEX", uint32(b.known(t).Index)))

	gone := userSocket(t)
	require.NoError(t, s.Request(gone, dump))
	require.NoError(t, unix.Close(gone))

	fd := userSocket(t)
	require.NoError(t, s.Request(fd, dump))
	buf, found := make([]byte, 8192), 0
	for done := false; !done; {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		require.NoError(t, err)
		m, _, ok := next(buf[:n])
		require.True(t, ok)
		if done = m.typ == typeDone; !done {
			list := must.Get(nldev.DecodeTable[struct {
				MRN uint32 `nldev:"RES_MRN,required"`
			}](m.payload(), "RES_MR"))(t)
			found += len(list)
		}
	}
	require.Equal(t, regions+1, found)
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.busy) == 0
	}, 2*patience, glance)

	s.busy[inode(fd)] = true
	require.NoError(t, s.Request(fd, dump))
	n, _, err := unix.Recvfrom(fd, buf, 0)
	require.NoError(t, err)
	require.Equal(t, append(errnoBytes(syscall.EBUSY), dump...), buf[headerSize:n])
	route, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(route, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: 1 << 30}))
	require.ErrorIs(t, s.Request(route, dump), syscall.ECONNREFUSED)
	require.NoError(t, unix.Close(route))
	require.ErrorIs(t, s.Request(-1, dump), syscall.EBADF)
	require.NoError(t, unix.Close(fd))
	require.NoError(t, unix.Close(s.fd))
}

// TestBeside: the objects of other processes stand beside one's own; those that
// say nonsense, or nothing, are passed over.
func TestBeside(t *testing.T) {
	a, b := newBusy(t), newBusy(t)
	dir := t.TempDir()
	listen := func(name string) *net.UnixListener {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		require.NoError(t, err)
		return l
	}
	l, self, liar, dead := listen("b"), listen("a"), listen("liar"), listen("dead")
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	defer self.Close() // nobody accepts: it is not to be asked
	ended := make(chan struct{}, 2)
	go func() {
		Serve(l, b.Server)
		ended <- struct{}{}
	}()
	go func() {
		defer func() { ended <- struct{}{} }()
		for {
			c, err := liar.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte{200, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
			c.Close()
		}
	}()
	defer func() {
		require.NoError(t, l.Close())
		require.NoError(t, liar.Close())
		<-ended
		<-ended
	}()

	// The same index is one's own device here and another's there.
	other := a.known(t).Index
	require.NotEqual(t, other, b.known(t).Index)
	a.Beside = func(sent []byte) [][]byte {
		sent = slices.Clone(sent)
		copy(sent[headerSize:], nldev.Encode("DEV_INDEX", uint32(b.known(t).Index)))
		return Beside(filepath.Join(dir, "*"), filepath.Join(dir, "a"), nil)(sent)
	}
	m := manager(t, a.Server)
	d := must.Get(m.Device(t.Context(), a.name))(t)
	qps := must.Get(m.QPs(t.Context(), d))(t)
	require.Len(t, qps, len(a.qps)+len(b.qps))
	counts := must.Get(m.Summary(t.Context(), d))(t)
	require.Contains(t, counts, netlinkmgr.Counter{Name: "qp", Value: uint64(len(a.qps) + len(b.qps))})
	require.Contains(t, counts, netlinkmgr.Counter{Name: "ctx", Value: 2})

	e := must.Get(b.device.LocalEndpoint(b.qps[0]))(t)
	got, err := exchange(t, a.Server, nldevType("RES_QP_GET"), flagRequest, nldev.Encode("DEV_INDEX", uint32(other), "PORT_INDEX", uint32(1), "RES_LQPN", e.QPN))
	require.NoError(t, err)
	require.Len(t, got, 1, "one is found there, too")
}
