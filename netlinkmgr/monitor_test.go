package netlinkmgr_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// watch runs a script against a monitor; each step's events are compared.
type watch struct {
	t   *testing.T
	k   *netlinktest.Kernel
	mu  sync.Mutex
	got []string
	log []string
	end func() error
}

func say(e netlinkmgr.Event) string {
	s := []string{string(e.Kind), string(e.Source), e.Device}
	if e.Index == nil {
		s = append(s, "no-index")
	}
	if e.Port != 0 {
		s = append(s, fmt.Sprintf("port=%d", e.Port))
	}
	if e.NetDev != "" {
		s = append(s, "on="+e.NetDev)
	}
	if e.From+e.To != "" {
		s = append(s, e.From+">"+e.To)
	}
	if e.GID != nil {
		s = append(s, fmt.Sprintf("%d=%s", e.GID.Index, e.GID.Addr()))
	}
	return strings.Join(s, " ")
}

func startWatch(t *testing.T, k *netlinktest.Kernel) *watch {
	w := &watch{t: t, k: k}
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		failed <- k.Manager().Monitor(ctx, netlinkmgr.MonitorOptions{
			Log: func(s string) { w.log = append(w.log, s) },
			Event: func(e netlinkmgr.Event) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.got = append(w.got, say(e))
			},
		})
	}()
	w.end = func() error { stop(); return <-failed }
	synctest.Wait()
	return w
}

// does makes a change, lets the monitor settle and compares.
func (w *watch) does(change func(), want ...string) {
	w.t.Helper()
	change()
	time.Sleep(3 * time.Second) // of the test's own clock
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Equal(w.t, want, w.got)
	w.got = nil
}

func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := busy()
		w := startWatch(t, k)
		require.Len(t, w.log, 1)
		require.Contains(t, w.log[0], "the test")
		require.Contains(t, w.log[0], "no RDMA notifications")
		w.does(func() {})

		link := func(d netlinkmgr.NetDev, gone bool) { k.Notify(netlinkmgr.Notice{Link: &d, Gone: gone}) }
		change := func(do func(d *netlinkmgr.NetDev)) {
			k.Lock()
			d := k.Dev("eth0")
			do(d)
			now := *d
			k.Unlock()
			link(now, false)
		}
		w.does(func() { change(func(d *netlinkmgr.NetDev) { d.Carrier = false }) },
			"NETDEV_STATE link rxe0 port=1 on=eth0 up>no-carrier", "PORT_STATE look rxe0 port=1 on=eth0 ACTIVE>DOWN")
		w.does(func() { change(func(d *netlinkmgr.NetDev) { d.Carrier = true; d.MTU = 4200 }) },
			"NETDEV_STATE link rxe0 port=1 on=eth0 no-carrier>up", "NETDEV_MTU link rxe0 port=1 on=eth0 1500>4200", "PORT_STATE look rxe0 port=1 on=eth0 DOWN>ACTIVE")
		w.does(func() {
			// Down and up again, faster than any look.
			change(func(d *netlinkmgr.NetDev) { d.Up = false })
			change(func(d *netlinkmgr.NetDev) { d.Up = true })
		}, "NETDEV_STATE link rxe0 port=1 on=eth0 up>down", "NETDEV_STATE link rxe0 port=1 on=eth0 down>up")
		w.does(func() {
			change(func(d *netlinkmgr.NetDev) { d.Addrs = append(d.Addrs, netlinktest.Addrs("10.9.9.9/24")...) })
			k.Notify(netlinkmgr.Notice{Addr: true})
		}, "GID_ADD look rxe0 port=1 on=eth0 2=10.9.9.9")
		w.does(func() { change(func(d *netlinkmgr.NetDev) { d.Addrs = d.Addrs[:2] }) }, "GID_DELETE look rxe0 port=1 on=eth0 2=10.9.9.9")
		w.does(func() {
			k.Lock()
			d := *k.Dev("docker0")
			k.Unlock()
			d.MTU = 9000
			link(d, false)
		})

		// Devices come, are renamed and go.
		w.does(func() {
			k.Lock()
			k.AddLink("rxe1", "docker0", true)
			k.Unlock()
			k.Notify(netlinkmgr.Notice{Uevent: netlinktest.Uevent("add", "rxe1", "")})
		}, "REGISTER uevent rxe1", "NETDEV_ATTACH look rxe1 port=1 on=docker0", "PORT_STATE look rxe1 port=1 on=docker0 >DOWN",
			"GID_ADD look rxe1 port=1 on=docker0 0=fe80::42:ff:fe00:1", "GID_ADD look rxe1 port=1 on=docker0 1=172.17.0.1")
		w.does(func() {
			k.Lock()
			k.Links[1].Name = "fast"
			k.Unlock()
			k.Notify(netlinkmgr.Notice{Uevent: netlinktest.Uevent("move", "fast", "rxe1")})
		}, "RENAME uevent fast rxe1>fast")
		w.does(func() {
			k.Lock()
			k.Links = k.Links[:1]
			k.Unlock()
			k.Notify(netlinkmgr.Notice{Uevent: netlinktest.Uevent("remove", "fast", "")})
		}, "UNREGISTER uevent fast")
		// Come and gone before it could be looked at; and seen before its uevent.
		w.does(func() {
			k.Notify(netlinkmgr.Notice{Uevent: netlinktest.Uevent("add", "quick", "")})
			k.Notify(netlinkmgr.Notice{Uevent: netlinktest.Uevent("remove", "quick", "")})
		}, "REGISTER uevent quick no-index", "UNREGISTER uevent quick no-index")
		w.does(func() {
			k.Lock()
			k.Links = nil
			k.Unlock()
			time.Sleep(2 * time.Second)
			k.Notify(netlinkmgr.Notice{Uevent: netlinktest.Uevent("remove", "rxe0", "")})
		}, "UNREGISTER look rxe0")
		w.does(func() { k.Notify(netlinkmgr.Notice{Err: fmt.Errorf("links: %w", syscall.ENOBUFS)}) }, "LOST look  no-index >links: no buffer space available")
		w.does(func() {
			k.Notify(netlinkmgr.Notice{Uevent: []byte("add@/devices/x\x00ACTION=add\x00SUBSYSTEM=net\x00")})
		})
		require.NoError(t, w.end(), "its end is no error")
	})
}

// TestMonitorNotified: a kernel that tells of devices itself is believed, and
// nothing is told twice.
func TestMonitorNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := busy()
		k.Notifies = true
		w := startWatch(t, k)
		require.NotContains(t, w.log[0], "no RDMA notifications")
		w.does(func() {
			k.Lock()
			k.AddLink("rxe1", "docker0", true)
			k.Unlock()
			k.Notify(netlinkmgr.Notice{Uevent: netlinktest.Uevent("add", "rxe1", "")})
			k.Notify(netlinkmgr.Notice{RDMA: netlinktest.Notification(0, 1, "rxe1", 0, 0, "")})
			k.Notify(netlinkmgr.Notice{RDMA: netlinktest.Notification(2, 1, "rxe1", 1, 3, "docker0")})
		}, "REGISTER rdma rxe1", "NETDEV_ATTACH rdma rxe1 port=1 on=docker0", "PORT_STATE look rxe1 port=1 on=docker0 >DOWN",
			"GID_ADD look rxe1 port=1 on=docker0 0=fe80::42:ff:fe00:1", "GID_ADD look rxe1 port=1 on=docker0 1=172.17.0.1")
		w.does(func() {
			k.Lock()
			k.Links[1].Name = "fast"
			k.Unlock()
			k.Notify(netlinkmgr.Notice{RDMA: netlinktest.Notification(4, 1, "fast", 0, 0, "")})
		}, "RENAME rdma fast rxe1>fast")
		w.does(func() {
			k.Lock()
			k.Links = k.Links[:1]
			k.Unlock()
			k.Notify(netlinkmgr.Notice{RDMA: netlinktest.Notification(3, 1, "fast", 1, 3, "docker0")})
			k.Notify(netlinkmgr.Notice{RDMA: netlinktest.Notification(1, 1, "fast", 0, 0, "")})
			k.Notify(netlinkmgr.Notice{RDMA: netlinktest.Notification(0xab, 1, "fast", 0, 0, "")})
		}, "NETDEV_DETACH rdma fast port=1 on=docker0", "UNREGISTER rdma fast", "UNKNOWN_ab rdma fast")
		k.Notify(netlinkmgr.Notice{RDMA: []byte{8, 0, 1, 0, 1, 0, 0, 0}})
		synctest.Wait()
		require.ErrorIs(t, w.end(), syscall.EBADMSG)
	})
}

// TestMonitorFails: what keeps it from listening is said.
func TestMonitorFails(t *testing.T) {
	k := netlinktest.New()
	k.Refuse["listen"] = syscall.EPERM
	err := k.Manager().Monitor(t.Context(), netlinkmgr.MonitorOptions{Event: func(netlinkmgr.Event) {}})
	require.ErrorContains(t, err, "CAP_NET_ADMIN")
	synctest.Test(t, func(t *testing.T) {
		w := startWatch(t, netlinktest.New()) // a kernel without RDMA: it may come
		w.does(func() {
			w.k.Lock()
			defer w.k.Unlock()
			w.k.LoadRXE()
			w.k.AddLink("rxe0", "eth0", true)
		}, "REGISTER look rxe0", "NETDEV_ATTACH look rxe0 port=1 on=eth0", "PORT_STATE look rxe0 port=1 on=eth0 >ACTIVE",
			"GID_ADD look rxe0 port=1 on=eth0 0=fe80::5054:ff:fe12:3456", "GID_ADD look rxe0 port=1 on=eth0 1=10.0.2.15")
		w.k.Notify(netlinkmgr.Notice{Err: errors.New("gone")})
		synctest.Wait()
		require.ErrorContains(t, w.end(), "gone")
	})
}

func busy() *netlinktest.Kernel {
	k := netlinktest.New()
	k.LoadRXE()
	k.AddLink("rxe0", "eth0", true)
	return k
}

// TestMonitorCannotStart: what it listened to is closed again.
func TestMonitorCannotStart(t *testing.T) {
	f := busy().Functions()
	var listening context.Context
	listen := f.Listen
	f.Listen = func(ctx context.Context, rdma bool) (<-chan netlinkmgr.Notice, []string, error) {
		listening = ctx
		return listen(ctx, rdma)
	}
	f.NetDevs = func(context.Context) ([]netlinkmgr.NetDev, error) { return nil, syscall.EIO }
	err := netlinkmgr.New(f).Monitor(t.Context(), netlinkmgr.MonitorOptions{Event: func(netlinkmgr.Event) {}})
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, listening.Err(), context.Canceled)
}
