package rdma

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// TestEventLines holds the form of an event, as JSON and as a line.
func TestEventLines(t *testing.T) {
	at := time.Date(2026, 11, 21, 4, 5, 6, 789e6, time.UTC)
	for _, c := range []struct {
		e          netlinkmgr.Event
		json, text string
	}{
		{netlinkmgr.Event{Kind: netlinkmgr.EventRegister, Source: netlinkmgr.SourceUevent, Device: "rxe0", Index: new(uint32(0))},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"REGISTER","rdma_index":0,"rdma_dev":"rxe0","source":"uevent"}`,
			"04:05:06.789 [REGISTER]\tdev 0 rxe0"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventUnregister, Source: netlinkmgr.SourceUevent, Device: "rxe0"},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"UNREGISTER","rdma_dev":"rxe0","source":"uevent"}`,
			"04:05:06.789 [UNREGISTER]\tdev rxe0"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventNetDevAttach, Source: netlinkmgr.SourceRDMA, Device: "rxe0", Index: new(uint32(2)), Port: 1, NetDevIndex: 4, NetDev: "eth0"},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"NETDEV_ATTACH","rdma_index":2,"rdma_dev":"rxe0","port":1,"netdev_idx":4,"netdev_name":"eth0","source":"rdma"}`,
			"04:05:06.789 [NETDEV_ATTACH]\tdev 2 rxe0 port 1 netdev 4 eth0"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventNetDevState, Source: netlinkmgr.SourceLink, Device: "rxe0", Index: new(uint32(2)), Port: 1, NetDevIndex: 4, NetDev: "eth0", State: "up", MTU: 4200},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"NETDEV_STATE","rdma_index":2,"rdma_dev":"rxe0","port":1,"netdev_idx":4,"netdev_name":"eth0","state":"up","mtu":4200,"source":"link"}`,
			"04:05:06.789 [NETDEV_STATE]\tdev 2 rxe0 port 1 netdev 4 eth0 up mtu 4200"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventRename, Source: netlinkmgr.SourceUevent, Device: "fast", Old: "rxe0"},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"RENAME","rdma_dev":"fast","old_name":"rxe0","source":"uevent"}`,
			"04:05:06.789 [RENAME]\tdev fast was rxe0"},
		{netlinkmgr.Event{Kind: netlinkmgr.EventLost, Source: netlinkmgr.SourceLink},
			`{"time":"2026-11-21T04:05:06.789Z","event_type":"LOST","source":"link"}`,
			"04:05:06.789 [LOST]\t"},
	} {
		c.e.Time = at
		var b bytes.Buffer
		require.NoError(t, (&call{out: &b, json: true, pretty: true}).printEvent(&c.e))
		require.Equal(t, c.json+"\n", b.String())
		b.Reset()
		require.NoError(t, (&call{out: &b}).printEvent(&c.e))
		require.Equal(t, c.text+"\n", b.String())
	}
}

// TestMonitorEnds: its end is wished for, and a reader that went away is said.
func TestMonitorEnds(t *testing.T) {
	k := netlinktest.Busy()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	c := &call{ctx: ctx, m: k.Manager(), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	require.NoError(t, monitor(c, nil))
	gone := errors.New("nobody reads")
	c = &call{ctx: t.Context(), m: k.Manager(), out: failingWriter{gone}, err: onWrite(func() {
		k.Notify(netlinkmgr.Notice{Source: netlinkmgr.SourceUevent, Message: netlinktest.Uevent("add", "quick", "")})
	})}
	require.ErrorIs(t, monitor(c, nil), gone)
	_, _, err := runRDMA(t, k, "monitor now")
	require.ErrorAs(t, err, new(*cli.UsageError))
	stdout, _, err := runRDMA(t, k, "mon help")
	require.NoError(t, err)
	require.Contains(t, stdout, "NETDEV_STATE")
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// onWrite does something when it is written to.
type onWrite func()

func (f onWrite) Write(b []byte) (int, error) { f(); return len(b), nil }
