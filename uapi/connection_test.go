package uapi

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

var cmNets atomic.Int64

// twoDevices are two on a private network.
func twoDevices(t *testing.T, options string) (a, b *Device) {
	t.Helper()
	name := fmt.Sprintf("sim?net=cm-%d%s", cmNets.Add(1), options)
	for _, c := range []**Device{&a, &b} {
		*c = must.Get(Open(name, OpenConfig{}))(t)
		t.Cleanup(func() {
			require.Empty(t, (*c).OpenHandles())
			require.NoError(t, (*c).Close())
		})
	}
	return a, b
}

// testDevice is a device that is open until the end of the test.
func testDevice(t *testing.T, name string) *Device {
	t.Helper()
	d := must.Get(Open(name, OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func addrOf(d *Device) netip.Addr { return d.chosen.addr.Addr() }

func dialable(d *Device, l *Listener) string {
	return netip.AddrPortFrom(addrOf(d), l.Addr().Port()).String()
}

// listening listens on a port that is free until the end of the test.
func listening(t *testing.T, c interface {
	Listen(string, ListenConfig) (*Listener, error)
}, config ListenConfig) *Listener {
	t.Helper()
	l := must.Get(c.Listen(":0", config))(t)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// joined are two ends of a connection.
type joined struct {
	a, b   *Device
	qa, qb QP
}

// join connects a to b, which must have the listener.
func join(t *testing.T, a, b *Device, l *Listener, config DialConfig) joined {
	t.Helper()
	return joinAs(t, a, b, l, config, func(*Request) error { return nil })
}

// joinAs is join, of which b prepares its end before it accepts.
func joinAs(
	t *testing.T, a, b *Device, l *Listener, config DialConfig, prepare func(*Request) error,
) joined {
	t.Helper()
	ctx := t.Context()
	j := joined{a: a, b: b}
	done := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			err = prepare(r)
		}
		if err == nil {
			j.qb, err = r.Accept(ctx, []byte("yes"))
		}
		done <- err
	}()
	j.qa = must.Get(a.Dial(ctx, dialable(b, l), config))(t)
	require.NoError(t, <-done)
	return j
}

func (j *joined) leave(t *testing.T) {
	require.NoError(t, j.a.DestroyQP(j.qa))
	require.NoError(t, j.b.DestroyQP(j.qb))
}

// linked connects a queue pair of each device to the other's.
func linked(t *testing.T, a, b *Device, config QPConfig) (qa, qb QP) {
	t.Helper()
	var qps [2]QP
	var ends [2]Endpoint
	for i, d := range []*Device{a, b} {
		qps[i] = must.Get(d.CreateQPWith(config))(t)
		ends[i] = must.Get(d.LocalEndpoint(qps[i]))(t)
	}
	require.NoError(t, a.ConnectQP(qps[0], ends[1]))
	require.NoError(t, b.ConnectQP(qps[1], ends[0]))
	return qps[0], qps[1]
}

// one waits for one completion.
func one(t *testing.T, d *Device, qp QP) WC {
	t.Helper()
	var wc [1]WC
	must.Get(d.WaitCQ(t.Context(), qp, wc[:]))(t)
	return wc[0]
}

// TestDialAndListen: private data both ways, receives before the connection,
// data both ways, and the end.
func TestDialAndListen(t *testing.T) {
	for _, options := range []string{"", "&loss=5%&dup=2%&seed=3"} {
		synctest.Test(t, func(t *testing.T) {
			a, b := twoDevices(t, options)
			l := listening(t, b, ListenConfig{})
			page := make([]byte, 4096)
			mb := must.Get(b.RegMR(page, AccessLocalWrite|AccessRemoteWrite))(t)
			src := []byte("by address and port")
			ma := must.Get(a.RegMR(src, AccessLocalWrite))(t)
			accepted := make(chan QP)
			go func() {
				r := must.Get(l.Accept(t.Context()))(t)
				require.Same(t, b, r.Device)
				require.Equal(t, addrOf(a), r.RemoteAddr.Addr())
				require.Equal(t, "ask\x00", string(r.PrivateData[:4]))
				require.Len(t, r.PrivateData, MaxDialPrivate)
				qp := must.Get(r.CreateQPWith(QPConfig{SendDepth: 4, RecvDepth: 4}))(t)
				_, err := r.CreateQPWith(QPConfig{})
				require.ErrorIs(t, err, syscall.EINVAL)
				must.Get(b.PostRecv(qp, mb, 0, 4096))(t)
				got := must.Get(r.Accept(t.Context(), []byte("answer")))(t)
				require.Equal(t, qp, got)
				_, err = r.Accept(t.Context(), nil)
				require.ErrorIs(t, err, syscall.EINVAL)
				require.ErrorIs(t, r.Reject(0, nil), syscall.EINVAL)
				accepted <- qp
			}()
			prepared, private := QP(0), make([]byte, 3)
			qa := must.Get(a.Dial(t.Context(), dialable(b, l), DialConfig{Private: private, Prepare: func(qp QP) error {
				prepared = qp
				copy(private, "ask")
				return nil
			}}))(t)
			require.Equal(t, prepared, qa)
			qb := <-accepted
			info := must.Get(a.QueryConn(qa))(t)
			require.Equal(t, "answer\x00", string(info.PrivateData[:7]))
			require.Len(t, info.PrivateData, MaxAcceptPrivate)
			require.Equal(t, dialable(b, l), info.RemoteAddr.String())
			theirs := must.Get(b.QueryConn(qb))(t)
			require.Equal(t, info.LocalAddr, theirs.RemoteAddr)
			q := must.Get(a.QueryQP(qa))(t)
			require.Equal(t, StateRTS, q.State)
			require.Equal(t, uint32(qb), q.Remote.QPN)
			require.EqualValues(t, defaultMinRNRTimer, q.MinRNRTimer)
			require.ErrorIs(t, a.ConnectQP(qa, q.Remote), syscall.EISCONN)

			must.Get(a.PostSend(qa, ma, uint64(len(src))))(t)
			require.Equal(t, WCSuccess, one(t, a, qa).Status)
			wc := one(t, b, qb)
			require.Equal(t, WCSuccess, wc.Status)
			require.Equal(t, string(src), string(page[:wc.ByteLen]))
			require.NoError(t, must.Get(a.Cause(qa))(t))
			require.NoError(t, a.Disconnect(qa))
			require.NoError(t, a.Disconnect(qa), "again")
			<-a.Done(qa)
			<-b.Done(qb)
			require.ErrorIs(t, must.Get(a.Cause(qa))(t), ErrDisconnected)
			require.ErrorIs(t, must.Get(b.Cause(qb))(t), ErrPeerDisconnected)
			require.ErrorIs(t, must.Get(b.Cause(qb))(t), syscall.ECONNRESET)
			j := joined{a, b, qa, qb}
			j.leave(t)
			_, err := a.Cause(qa)
			require.ErrorIs(t, err, syscall.EBADF)
			require.NoError(t, a.DeregMR(ma))
			require.NoError(t, b.DeregMR(mb))
		})
	}
}

// TestDialRefused: a closed port, at once; a program that refuses, with its
// reason and words.
func TestDialRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoDevices(t, "")
		start := time.Now()
		_, err := a.Dial(t.Context(), netip.AddrPortFrom(addrOf(b), 9).String(), DialConfig{})
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.ErrorContains(t, err, "nobody listens there")
		require.ErrorContains(t, err, "sim:")
		require.Less(t, time.Since(start), time.Second)
		l := listening(t, b, ListenConfig{})
		var refusing sync.WaitGroup
		defer refusing.Wait() // the refusal arrives before Reject has taken back the queue pair
		refusing.Go(func() {
			r := must.Get(l.Accept(t.Context()))(t)
			must.Get(r.CreateQPWith(QPConfig{}))(t)
			require.ErrorIs(t, r.Reject(1, nil), syscall.EINVAL)
			require.ErrorIs(t, r.Reject(0, make([]byte, MaxRejectPrivate+1)), syscall.EINVAL)
			require.NoError(t, r.Reject(RejectedUnsupportedOption, []byte("not you")))
			_, err := r.Accept(t.Context(), nil)
			require.ErrorIs(t, err, syscall.EINVAL)
		})
		_, err = a.Dial(t.Context(), dialable(b, l), DialConfig{})
		var rejected *RejectError
		require.ErrorAs(t, err, &rejected)
		require.ErrorIs(t, err, ErrRefused)
		require.Equal(t, RejectedUnsupportedOption, rejected.Reason)
		require.True(t, strings.HasPrefix(string(rejected.PrivateData), "not you\x00"))
		require.Len(t, rejected.PrivateData, MaxRejectPrivate)
	})
}

// TestRedirectedError: the error of a program at the only port of a card.
func TestRedirectedError(t *testing.T) {
	err := error(&RejectError{Reason: 24})
	require.ErrorIs(t, err, ErrRefused)
	require.EqualError(t, err, "connection refused: what listens there is at another UDP port of that host, where only soft devices ask")
}

// TestDialSilent: a host that does not answer is given up at the documented
// time, or ctx's.
func TestDialSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoDevices(t, "")
		start := time.Now()
		nobody := netip.AddrPortFrom(netip.MustParseAddr("10.99.0.9"), 1)
		if addrOf(a).Is6() {
			t.Fatal("the network has changed")
		}
		_, err := a.Dial(t.Context(), nobody.String(), DialConfig{})
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.Equal(t, DefaultConnectTimeout, time.Since(start))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = a.Dial(ctx, nobody.String(), DialConfig{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, ErrUnreachable)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = a.Dial(ctx, nobody.String(), DialConfig{})
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestAcceptGaveUp: the peer that asked goes before, or while, its request is
// accepted.
func TestAcceptGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoDevices(t, "")
		l := listening(t, b, ListenConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		dialled := make(chan error, 1)
		go func() {
			_, err := a.Dial(ctx, dialable(b, l), DialConfig{})
			dialled <- err
		}()
		r := must.Get(l.Accept(t.Context()))(t)
		must.Get(r.CreateQPWith(QPConfig{}))(t)
		cancel()
		require.ErrorIs(t, <-dialled, context.Canceled)
		synctest.Wait()
		_, err := r.Accept(t.Context(), nil)
		require.ErrorIs(t, err, ErrGaveUp)
		require.Empty(t, b.OpenHandles())
	})
}

// TestDialMistakes are found before anything is sent, and leave nothing.
func TestDialMistakes(t *testing.T) {
	a, b := twoDevices(t, "")
	to := netip.AddrPortFrom(addrOf(b), 9).String()
	for _, c := range []struct {
		addr   string
		config DialConfig
		want   error
	}{
		{to, DialConfig{Private: make([]byte, MaxDialPrivate+1)}, syscall.EINVAL},
		{to, DialConfig{QPConfig: QPConfig{Retry: 8}}, syscall.EINVAL},
		{to, DialConfig{LocalAddr: netip.MustParseAddrPort("10.77.0.1:0")}, syscall.EADDRNOTAVAIL},
		{to, DialConfig{LocalAddr: netip.MustParseAddrPort("[2001:db8::1]:0")}, syscall.EAFNOSUPPORT},
		{to, DialConfig{Prepare: func(QP) error { return syscall.EDOM }}, syscall.EDOM},
		{"10.0.0.1", DialConfig{}, syscall.EINVAL},
		{":1", DialConfig{}, ErrRefused}, // this host
		{"[2001:db8::1]:1", DialConfig{}, syscall.EAFNOSUPPORT},
	} {
		_, err := a.Dial(t.Context(), c.addr, c.config)
		require.ErrorIs(t, err, c.want, "%s %+v", c.addr, c.config)
		require.Empty(t, a.OpenHandles())
	}
	for addr, want := range map[string]error{"x": syscall.EINVAL, "10.0.0.1:x": syscall.EINVAL, ":65536": syscall.EINVAL, "10.77.0.1:1": syscall.EADDRNOTAVAIL} {
		_, err := a.Listen(addr, ListenConfig{})
		require.ErrorIs(t, err, want, addr)
	}
	l := must.Get(a.Listen(":7471", ListenConfig{}))(t)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err := l.Accept(t.Context())
	require.ErrorIs(t, err, net.ErrClosed)
	qp := must.Get(a.CreateQP(1, 1))(t)
	<-a.Done(qp)
	cause, err := a.Cause(qp)
	require.NoError(t, cause)
	require.ErrorIs(t, err, syscall.ENOTCONN)
	require.ErrorIs(t, a.Disconnect(qp), syscall.ENOTCONN)
	require.NoError(t, a.DestroyQP(qp))
	<-a.Done(qp)
	cause, err = a.Cause(qp)
	require.NoError(t, cause, "a wrong handle is no end of a connection")
	require.ErrorIs(t, err, syscall.EBADF)
}

// TestDialNarrowRoute: a route that carries less than the ports do is told when
// connecting, at both ends.
func TestDialNarrowRoute(t *testing.T) {
	for _, narrow := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			a, b := twoDevices(t, "")
			both := []*Device{a, b}
			both[narrow].where.Route = func(netip.Addr) (int, error) { return 1024, nil }
			l := listening(t, b, ListenConfig{})
			accepted := make(chan error)
			go func() {
				r := must.Get(l.Accept(t.Context()))(t)
				_, err := r.Accept(t.Context(), nil)
				accepted <- err
			}()
			_, err := a.Dial(t.Context(), dialable(b, l), DialConfig{})
			errs := []error{err, <-accepted}
			require.ErrorIs(t, errs[narrow], syscall.EMSGSIZE)
			require.ErrorContains(t, errs[narrow], "mtu=1024")
			require.Error(t, errs[1-narrow])
		})
	}
}

// TestListenEverywhere: one listener on all devices of the process, which tells
// the device of a request.
func TestListenEverywhere(t *testing.T) {
	a, b := twoDevices(t, "")
	d, err := Open(b.where.OpenName(), OpenConfig{}) // the same device once more
	require.NoError(t, err)
	defer d.Close()
	l := must.Get(listen(netip.AddrPortFrom(netip.IPv6Unspecified(), 0), []*Device{a, b, d}, ListenConfig{}))(t)
	defer l.Close()
	require.Len(t, l.parts, 2)
	for _, to := range []*Device{a, b} {
		from := a
		if to == a {
			from = b
		}
		var refusing sync.WaitGroup
		refusing.Go(func() {
			r := must.Get(l.Accept(t.Context()))(t)
			require.Same(t, to, r.Device)
			require.NoError(t, r.Reject(0, nil))
		})
		_, err := from.Dial(t.Context(), dialable(to, l), DialConfig{})
		require.ErrorIs(t, err, ErrRefused)
		refusing.Wait()
	}
}

// TestDeviceCloseEndsListening: waiters wake. TestOnDone has what becomes of
// connections.
func TestDeviceCloseEndsListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := twoDevices(t, "")
		l := must.Get(d.Listen(":0", ListenConfig{}))(t)
		accepted := make(chan error)
		go func() {
			_, err := l.Accept(t.Context())
			accepted <- err
		}()
		require.NoError(t, d.Close())
		require.ErrorIs(t, <-accepted, net.ErrClosed)
		require.NoError(t, l.Close())
		_, err := d.Dial(t.Context(), "10.0.0.1:1", DialConfig{})
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = d.Listen(":0", ListenConfig{})
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
