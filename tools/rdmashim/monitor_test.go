package main

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// TestEventLines holds the form of an event, as JSON and as a line.
func TestEventLines(t *testing.T) {
	at := time.Date(2026, 11, 21, 4, 5, 6, 789e6, time.UTC)
	for _, c := range []struct {
		e          netlinkmgr.Event
		json, text string
	}{
		{netlinkmgr.Event{Kind: netlinkmgr.EventRegister, Source: netlinkmgr.SourceUevent, Device: "rxe0", Index: ptr(uint32(0))},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"REGISTER","rdma_index":0,"rdma_dev":"rxe0","source":"uevent"}`,
			"04:05:06.789 [REGISTER]\tdev 0 rxe0"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventUnregister, Source: netlinkmgr.SourceUevent, Device: "rxe0"},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"UNREGISTER","rdma_dev":"rxe0","source":"uevent"}`,
			"04:05:06.789 [UNREGISTER]\tdev rxe0"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventNetDevAttach, Source: netlinkmgr.SourceRDMA, Device: "rxe0", Index: ptr(uint32(2)), Port: 1, NetDevIndex: 4, NetDev: "eth0"},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"NETDEV_ATTACH","rdma_index":2,"rdma_dev":"rxe0","port":1,"netdev_idx":4,"netdev_name":"eth0","source":"rdma"}`,
			"04:05:06.789 [NETDEV_ATTACH]\tdev 2 rxe0 port 1 netdev 4 eth0"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventPortState, Source: netlinkmgr.SourceLook, Device: "rxe0", Index: ptr(uint32(2)), Port: 1, NetDevIndex: 4, NetDev: "eth0", From: "DOWN", To: "ACTIVE"},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"PORT_STATE","rdma_index":2,"rdma_dev":"rxe0","port":1,"netdev_idx":4,"netdev_name":"eth0","from":"DOWN","to":"ACTIVE","source":"look"}`,
			"04:05:06.789 [PORT_STATE]\tdev 2 rxe0 port 1 netdev 4 eth0 from DOWN to ACTIVE"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventGIDAdd, Source: netlinkmgr.SourceLook, Device: "rxe0", Index: ptr(uint32(2)), Port: 1, NetDevIndex: 4, NetDev: "eth0",
			GID: &netlinkmgr.GID{Index: 1, GID: netip.MustParseAddr("::ffff:10.0.0.1"), Type: netlinkmgr.GIDRoCEv2}},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"GID_ADD","rdma_index":2,"rdma_dev":"rxe0","port":1,"netdev_idx":4,"netdev_name":"eth0","gid_index":1,"gid":"::ffff:10.0.0.1","gid_type":"RoCE v2","source":"look"}`,
			"04:05:06.789 [GID_ADD]\tdev 2 rxe0 port 1 netdev 4 eth0 index 1 gid ::ffff:10.0.0.1 RoCE v2"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventLost, Source: netlinkmgr.SourceLook, To: "too many"},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"LOST","to":"too many","source":"look"}`,
			"04:05:06.789 [LOST]\t to too many"},
	} {
		c.e.Time = at
		var b bytes.Buffer
		require.NoError(t, (&rdmaCall{out: &b, json: true, pretty: true}).printEvent(&c.e))
		require.Equal(t, c.json+"\n", b.String())
		b.Reset()
		require.NoError(t, (&rdmaCall{out: &b}).printEvent(&c.e))
		require.Equal(t, c.text+"\n", b.String())
	}
}

// TestMonitorEnds: its end is wished for, and a reader that went away is said.
func TestMonitorEnds(t *testing.T) {
	k := busyKernel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	c := &rdmaCall{ctx: ctx, m: k.Manager(), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	require.NoError(t, monitor(c, nil))
	gone := errors.New("nobody reads")
	c = &rdmaCall{ctx: t.Context(), m: k.Manager(), out: failingWriter{gone}, err: onWrite(func() {
		k.Notify(netlinkmgr.Notice{Uevent: netlinktest.Uevent("add", "quick", "")})
	})}
	require.ErrorIs(t, monitor(c, nil), gone)
	_, _, err := runRDMA(t, k, "monitor now")
	var usage *usageError
	require.ErrorAs(t, err, &usage)
	stdout, _, err := runRDMA(t, k, "mon help")
	require.NoError(t, err)
	require.Contains(t, stdout, "GID_ADD")
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// onWrite does something when it is written to.
type onWrite func()

func (f onWrite) Write(b []byte) (int, error) { f(); return len(b), nil }
