package stack

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// shareAt marks the run of this test binary as a server: the device to open.
const shareAt = "RDMASHIM_TEST_SHM"

// TestSharedHelper is the program that the tests below start and kill: it
// accepts everything, posts no receive, and tells its memory.
func TestSharedHelper(t *testing.T) {
	if os.Getenv(shareAt) == "" {
		return
	}
	d, err := uapi.Open(os.Getenv(shareAt), uapi.OpenConfig{})
	if err != nil {
		fmt.Println("refused:", err)
		return
	}
	if l, err := d.Listen(":0", uapi.ListenConfig{}); err == nil {
		fmt.Println("listening", l.Addr().Port())
		go shareAll(l)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// shareAll accepts connections; the private data tells address and key of a
// megabyte.
func shareAll(l *uapi.Listener) {
	for {
		r, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		d, memory := r.Device, make([]byte, 1<<20)
		mr, err := d.RegMR(memory, uapi.AccessLocalWrite|uapi.AccessRemoteWrite|uapi.AccessRemoteRead)
		if err != nil {
			return
		}
		info, err := d.QueryMR(mr)
		if err == nil {
			_, err = r.CreateQPWith(uapi.QPConfig{RecvDepth: 1})
		}
		if err == nil {
			_, _ = r.Accept(context.Background(), fmt.Appendf(nil, "%d %d", info.Addr, info.RKey))
		}
	}
}

// shared opens a device that meets others of this host.
func shared(t *testing.T, n int, options string) *uapi.Device {
	t.Helper()
	d := must.Get(uapi.Open(ownSoft(n)+"?shm=on"+options, uapi.OpenConfig{}))(t)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func reading(t *testing.T, d *uapi.Device, counter string) uint64 {
	t.Helper()
	s := must.Get(d.Stats())(t)
	require.Contains(t, s.Ports[0].Counters, counter)
	return s.Ports[0].Counters[counter]
}

// way is the way that a queue pair's packets take.
func way(t *testing.T, d *uapi.Device, qp uapi.QP) string {
	t.Helper()
	s := must.Get(d.Stats())(t)
	at := must.Get(d.LocalEndpoint(qp))(t)
	for _, q := range s.QueuePairs {
		if q.QPN == at.QPN {
			return q.Way
		}
	}
	t.Fatal("the queue pair is not in the reading")
	return ""
}

// dialShared connects to a device that it meets. With the timeout None the
// queue pair waits for ever for answers, so that only a hang-up ends it.
func dialShared(t *testing.T, d *uapi.Device, port string, timeout time.Duration) (qp uapi.QP, remote, rkey uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	qp = must.Get(d.Dial(ctx, strings.TrimPrefix(ownSoft(1), "soft:")+":"+port, uapi.DialConfig{QPConfig: uapi.QPConfig{SendDepth: 4, RecvDepth: 1, Timeout: timeout}}))(t)
	info := must.Get(d.QueryConn(qp))(t)
	must.Get(fmt.Sscan(string(info.PrivateData), &remote, &rkey))(t)
	sent, rcvd := reading(t, d, "shm_sent_pkts"), reading(t, d, "shm_rcvd_pkts")
	mr := must.Get(d.RegMR(make([]byte, 64), uapi.AccessLocalWrite))(t)
	id := must.Get(d.PostWrite(qp, mr, 0, remote, uint32(rkey), 64))(t)
	must.Get(d.WaitWR(ctx, qp, id))(t)
	require.Greater(t, reading(t, d, "shm_sent_pkts"), sent)
	require.Greater(t, reading(t, d, "shm_rcvd_pkts"), rcvd)
	return qp, remote, rkey
}

// ownSoft names a soft device at an address that no other process's tests use.
func ownSoft(n int) string {
	pid := os.Getpid()
	return fmt.Sprintf("soft:127.%d.%d.%d", 32+(pid>>8)%192, pid%256, 1+n)
}

// sends posts a SEND that the peer has no receive for: it is outstanding as
// long as the peer lives.
func sends(t *testing.T, d *uapi.Device, qp uapi.QP) {
	t.Helper()
	mr := must.Get(d.RegMR(make([]byte, 64), uapi.AccessLocalWrite))(t)
	must.Get(d.PostSend(qp, mr, 64))(t)
}

// ends waits for the failure of the SEND that sends posted, and for Done.
func ends(t *testing.T, d *uapi.Device, qp uapi.QP, status ...uapi.Status) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wc [1]uapi.WC
	n := must.Get(d.WaitCQ(ctx, qp, wc[:]))(t)
	require.Equal(t, 1, n)
	require.Contains(t, status, wc[0].Status)
	select {
	case <-d.Done(qp):
	case <-ctx.Done():
		t.Fatal("the connection goes on")
	}
	require.NoError(t, d.DestroyQP(qp))
}

// A process that is killed ends the connections of its peers at once, with the
// status that silence would have had, and comes back at its address as another
// device. Requests that wait for ever are flushed with the connection.
func TestSharedMemoryKill(t *testing.T) {
	victims(t, 10, func(i int, a *uapi.Device, victim *os.Process, port string) {
		timeout, status := 2*time.Hour, uapi.WCRetryExcErr
		if i%2 == 1 {
			timeout, status = uapi.None, uapi.WCWRFlushErr
		}
		qp, _, _ := dialShared(t, a, port, timeout)
		sends(t, a, qp)
		require.NoError(t, victim.Kill())
		ends(t, a, qp, status)
	})
}

// The end of a device fails nothing that waits for nothing: receives of a queue
// pair without connection manager stay, as if the way had been a wire.
func TestSharedMemoryKeepsReceives(t *testing.T) {
	a, b := shared(t, 0, ""), shared(t, 1, "")
	var qp [2]uapi.QP
	var at [2]uapi.Endpoint
	for i, d := range []*uapi.Device{a, b} {
		qp[i] = must.Get(d.CreateQP(4, 4))(t)
		at[i] = must.Get(d.LocalEndpoint(qp[i]))(t)
	}
	require.NoError(t, a.ConnectQP(qp[0], at[1]))
	require.NoError(t, b.ConnectQP(qp[1], at[0]))
	mr := must.Get(a.RegMR(make([]byte, 64), uapi.AccessLocalWrite))(t)
	must.Get(a.PostRecv(qp[0], mr, 0, 64))(t)
	require.Equal(t, "shm", way(t, a, qp[0]))
	require.NoError(t, b.Close())
	require.Eventually(t, func() bool { return way(t, a, qp[0]) == "net" }, time.Minute, time.Millisecond)
	s := must.Get(a.Stats())(t)
	require.Equal(t, "RTS", s.QueuePairs[0].State)
	var wc [1]uapi.WC
	n := must.Get(a.PollCQ(qp[0], wc[:]))(t)
	require.Zero(t, n)
}

// victims starts TestSharedHelper n times, with -short and -race a third as
// often, for a test that gets the port of its service and kills or stops it. A
// device that outlives them counts their deaths.
func victims(t *testing.T, n int, test func(i int, a *uapi.Device, victim *os.Process, port string)) {
	t.Helper()
	if testing.Short() || amount.Race {
		n /= 3
	}
	a := shared(t, 0, "")
	for i := range n {
		p := child.Start(t, shareAt+"="+ownSoft(1)+"?shm=on", "-test.run=^TestSharedHelper$")
		text := must.Get(p.Out.ReadString('\n'))(t)
		port, ok := strings.CutPrefix(strings.TrimSpace(text), "listening ")
		require.True(t, ok, text)
		test(i, a, p.Process, port)
		_ = p.Process.Kill()
		_ = p.Wait()
		require.Eventually(t, func() bool { return reading(t, a, "shm_deaths") == uint64(i+1) }, time.Minute, time.Millisecond)
	}
}

// A process that is killed, or stopped, while it reads lent buffers: the
// buffers come back, and may be freed.
func TestLendToVictims(t *testing.T) {
	victims(t, 12, func(i int, a *uapi.Device, victim *os.Process, port string) {
		qp, remote, rkey := dialShared(t, a, port, uapi.None)
		mem := must.Get(uapi.Alloc(1 << 20))(t)
		mr := must.Get(a.RegMR(mem, uapi.AccessLocalWrite))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := reading(t, a, "shm_ref_bytes")
		for n := 0; n < 1+i || reading(t, a, "shm_ref_bytes") == before; n++ {
			id := must.Get(a.PostWrite(qp, mr, 0, remote, uint32(rkey), 1<<20))(t)
			must.Get(a.WaitWR(ctx, qp, id))(t)
		}
		for range 3 {
			must.Get(a.PostWrite(qp, mr, 0, remote, uint32(rkey), 1<<20))(t)
		}
		if i%2 == 0 {
			require.NoError(t, victim.Kill())
			var wc [3]uapi.WC
			for n := 0; n < len(wc); {
				k := must.Get(a.WaitCQ(ctx, qp, wc[n:]))(t)
				n += k
			}
		} else {
			require.NoError(t, victim.Signal(syscall.SIGSTOP))
		}
		require.NoError(t, a.DestroyQP(qp))
		require.NoError(t, a.DeregMR(mr))
		clear(mem)
		require.NoError(t, uapi.Free(mem))
	})
}

// A process that has taken the name of a client's device, and is silent, delays
// the answer to that client, who then has as long to confirm as any other.
func TestSilentNeighbourOfClient(t *testing.T) {
	server, client, other := shared(t, 1, ""), shared(t, 2, ""), shared(t, 3, "")
	require.NoError(t, client.Close())
	client = must.Get(uapi.Open(ownSoft(2)+"?shm=off", uapi.OpenConfig{}))(t)
	t.Cleanup(func() { _ = client.Close() })
	name := "@rdmashim/1/" + addrOf(t, client).String()
	silent := must.Get(net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: name}))(t)
	defer silent.Close()
	l := must.Get(server.Listen(":0", uapi.ListenConfig{Pending: 1}))(t)
	dialled, accepted := make(chan error, 2), make(chan error, 2)
	go func() {
		for range 2 {
			r, err := l.Accept(t.Context())
			if err == nil {
				_, err = r.Accept(t.Context(), nil)
			}
			accepted <- err
		}
	}()
	for _, d := range []*uapi.Device{client, other} {
		go func() {
			qp, err := d.Dial(t.Context(), net.JoinHostPort(addrOf(t, server).Addr().String(), fmt.Sprint(l.Addr().Port())), uapi.DialConfig{})
			if err == nil {
				err = d.DestroyQP(qp)
			}
			dialled <- err
		}()
		if d == client {
			asked := must.Get(silent.Accept())(t)
			defer asked.Close()
		}
	}
	for range 2 {
		require.NoError(t, <-dialled)
		require.NoError(t, <-accepted)
	}
	require.NoError(t, l.Close())
}
