package netlinkmgr_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// watch is a running monitor and its news so far.
type watch struct {
	t   *testing.T
	k   *netlinktest.Kernel
	got []string
	log []string
	end func() error
}

func startWatch(t *testing.T, k *netlinktest.Kernel) *watch {
	w := &watch{t: t, k: k}
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		failed <- k.Manager().Monitor(ctx, netlinkmgr.MonitorOptions{
			Log: func(s string) { w.log = append(w.log, s) },
			Event: func(e netlinkmgr.Event) {
				index := "none"
				if e.Index != nil {
					index = fmt.Sprint(*e.Index)
				}
				w.got = append(w.got, fmt.Sprintf("%s %s %s index=%s port=%d on=%s old=%s %s mtu=%d", e.Kind, e.Source, e.Device, index, e.Port, e.NetDev, e.Old, e.State, e.MTU))
			},
		})
	}()
	w.end = func() error { stop(); return <-failed }
	synctest.Wait()
	return w
}

// hears gives the monitor notices and compares what it tells.
func (w *watch) hears(notices []netlinkmgr.Notice, want ...string) {
	w.t.Helper()
	for _, n := range notices {
		w.k.Notify(n)
	}
	synctest.Wait()
	require.Equal(w.t, want, w.got)
	w.got = nil
}

func uevent(action, name, old string) netlinkmgr.Notice {
	return netlinkmgr.Notice{Source: netlinkmgr.SourceUevent, Message: netlinktest.Uevent(action, name, old)}
}

func notification(kind uint8, name string, port, ndev uint32, netdev string) netlinkmgr.Notice {
	return netlinkmgr.Notice{Source: netlinkmgr.SourceRDMA, Message: netlinktest.Notification(kind, 1, name, port, ndev, netdev)}
}

func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := busy()
		w := startWatch(t, k)
		require.Equal(t, []string{"listening to uevents and to messages about network devices"}, w.log)
		link := func(change func(*netlinkmgr.NetDev), name string) netlinkmgr.Notice {
			d := *k.Dev(name)
			change(&d)
			return netlinkmgr.Notice{Source: netlinkmgr.SourceLink, Link: &d}
		}
		w.hears([]netlinkmgr.Notice{
			link(func(d *netlinkmgr.NetDev) { d.Carrier = false }, "eth0"),
			link(func(d *netlinkmgr.NetDev) { d.Up = false }, "eth0"),
			link(func(d *netlinkmgr.NetDev) { d.MTU = 4200 }, "eth0"),
			link(func(d *netlinkmgr.NetDev) { d.MTU = 4200 }, "docker0"), // no RDMA device is on it
		}, "NETDEV_STATE link rxe0 index=0 port=1 on=eth0 old= no-carrier mtu=1500",
			"NETDEV_STATE link rxe0 index=0 port=1 on=eth0 old= down mtu=1500",
			"NETDEV_STATE link rxe0 index=0 port=1 on=eth0 old= up mtu=4200")
		w.hears([]netlinkmgr.Notice{uevent("add", "rxe1", ""), uevent("move", "fast", "rxe1"), uevent("change", "fast", ""), uevent("remove", "fast", "")},
			"REGISTER uevent rxe1 index=none port=0 on= old=  mtu=0",
			"RENAME uevent fast index=none port=0 on= old=rxe1  mtu=0",
			"UNREGISTER uevent fast index=none port=0 on= old=  mtu=0")
		w.hears([]netlinkmgr.Notice{{Source: netlinkmgr.SourceLink, Err: fmt.Errorf("links: %w", syscall.ENOBUFS)}},
			"LOST link  index=none port=0 on= old=  mtu=0")
		require.NoError(t, w.end(), "its end is no error")
	})
}

// TestMonitorNotified: a kernel that tells of devices itself is believed.
func TestMonitorNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := busy()
		k.Notifies = true
		w := startWatch(t, k)
		require.Equal(t, []string{"listen true"}, k.Did)
		require.Contains(t, w.log[0], "RDMA notifications")
		w.hears([]netlinkmgr.Notice{
			notification(0, "rxe1", 0, 0, ""), notification(2, "rxe1", 1, 3, "docker0"), notification(4, "fast", 0, 0, ""),
			notification(3, "fast", 1, 3, "docker0"), notification(1, "fast", 0, 0, ""), notification(0xab, "fast", 0, 0, ""),
		}, "REGISTER rdma rxe1 index=1 port=0 on= old=  mtu=0", "NETDEV_ATTACH rdma rxe1 index=1 port=1 on=docker0 old=  mtu=0",
			"RENAME rdma fast index=1 port=0 on= old=  mtu=0", "NETDEV_DETACH rdma fast index=1 port=1 on=docker0 old=  mtu=0",
			"UNREGISTER rdma fast index=1 port=0 on= old=  mtu=0", "UNKNOWN_ab rdma fast index=1 port=0 on= old=  mtu=0")
		k.Notify(netlinkmgr.Notice{Source: netlinkmgr.SourceRDMA, Message: []byte{8, 0, 1, 0, 1, 0, 0, 0}})
		synctest.Wait()
		require.ErrorIs(t, w.end(), syscall.EBADMSG)
	})
}

// TestMonitorFails: the error says why it cannot listen.
func TestMonitorFails(t *testing.T) {
	k := netlinktest.New()
	k.Refuse["listen"] = syscall.EPERM
	err := k.Manager().Monitor(t.Context(), netlinkmgr.MonitorOptions{Event: func(netlinkmgr.Event) {}})
	require.ErrorContains(t, err, "CAP_NET_ADMIN")
	synctest.Test(t, func(t *testing.T) {
		w := startWatch(t, netlinktest.New()) // a kernel without RDMA: it may come
		w.hears([]netlinkmgr.Notice{{Link: w.k.Dev("eth0")}, uevent("add", "rxe0", "")}, "REGISTER uevent rxe0 index=none port=0 on= old=  mtu=0")
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
