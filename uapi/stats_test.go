package uapi_test

import (
	"encoding/json"
	"expvar"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/stats"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

var _ expvar.Var = uapi.StatsVar{}

// A WRITE of which packets are lost: the writer's counters tell the packets
// that were sent again and no other fault, the other side's tell the packets
// that came, and both queue pairs' counts equal their ports'.
func TestStatsOfAWriteUnderLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, mtu = 1 << 20, 1024
		a, b := uapitest.Pair(t, "loss=5%&seed=7&mtu=1024")
		x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, size)
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, size))
		x.Next(1)
		synctest.Wait()

		out := must.Get(a.Stats())(t)
		in := must.Get(b.Stats())(t)
		require.Equal(t, []string{"sim", "ACTIVE"}, []string{out.Kind, out.Ports[0].State})
		require.Equal(t, mtu, out.Ports[0].MTU)
		require.Equal(t, os.Getpid(), out.PID)
		require.False(t, out.Time.IsZero())

		p := out.Ports[0].Counters
		s := p.Summarize()
		require.Positive(t, p["fault_loss"])
		require.Positive(t, s.Retransmitted)
		require.EqualValues(t, 1, p["rdma_writes"])
		require.EqualValues(t, 1, s.Messages)
		require.EqualValues(t, size/mtu+s.Retransmitted, s.SentPackets, "each packet once, and the repeated ones")
		require.EqualValues(t, size+s.Retransmitted*mtu, s.SentBytes)
		require.EqualValues(t, p["nak_seq_rcvd"], s.NAKsReceived)
		require.Positive(t, p["completer_retry_err"])
		require.Zero(t, s.RNRReceived)
		require.Zero(t, s.NAKsSent)

		r := in.Ports[0].Counters.Summarize()
		require.EqualValues(t, s.SentPackets-p["fault_loss"], r.ReceivedPackets, "what was not lost has come")
		require.GreaterOrEqual(t, r.NAKsSent, s.NAKsReceived)
		require.Positive(t, r.NAKsSent)
		require.Zero(t, r.Retransmitted)

		q := out.QueuePairs[0]
		require.Len(t, out.QueuePairs, 1)
		require.EqualValues(t, x.QP, q.QPN)
		require.EqualValues(t, y.QP, q.RemoteQPN)
		require.Equal(t, in.Address, q.Peer)
		require.Equal(t, []string{"RC", "RTS"}, []string{q.Type, q.State})
		require.Equal(t, s.SentPackets, q.Counters.Summarize().SentPackets)
		require.NotNil(t, q.Requester)
		require.Zero(t, q.Requester.Outstanding)
		require.Zero(t, q.Requester.InFlight)
		require.Positive(t, q.Requester.Window)
		require.Positive(t, q.Requester.RTO)
		local := must.Get(a.LocalEndpoint(x.QP))(t)
		require.EqualValues(t, (local.PSN+size/mtu)&(1<<24-1), q.SQPSN)
		require.Equal(t, q.SQPSN, in.QueuePairs[0].RQPSN)
	})
}

// A port's counters are the sums over its queue pairs, of which some are gone.
func TestStatsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "loss=5%&seed=7&mtu=1024")
		sum := map[*uapi.Device]stats.Counters{a: {}, b: {}}
		for range 3 {
			x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, 1<<16)
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1<<16))
			x.Next(1)
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey^1, 8))
			require.Equal(t, uapi.WCRemAccessErr, x.NextUnchecked(1)[0].Status)
			synctest.Wait()
			for _, e := range []*uapitest.End{x, y} {
				d := must.Get(e.Stats())(t)
				require.Len(t, d.QueuePairs, 1)
				for name, n := range d.QueuePairs[0].Counters {
					sum[e.Device][name] += n
					require.Equal(t, sum[e.Device][name], d.Ports[0].Counters[name], name)
				}
				require.NotZero(t, sum[e.Device]["rcvd_pkts"])
				require.NoError(t, e.DestroyQP(e.QP))
			}
			time.Sleep(time.Second) // virtual: acknowledgements are repeated after the end
			d := must.Get(y.Stats())(t)
			sum[b]["sent_pkts"] += 5
			require.Equal(t, sum[b]["sent_pkts"], d.Ports[0].Counters["sent_pkts"])
		}
	})
}

// A queue pair of datagrams has no peer and no window; its drops are told by
// cause.
func TestStatsOfDatagrams(t *testing.T) {
	a := must.Get(uapi.Open("sim", uapi.OpenConfig{}))(t)
	defer a.Close()
	qp := must.Get(a.CreateQPWith(uapi.QPConfig{Type: uapi.TypeUD, SendDepth: 1, RecvDepth: 1}))(t)
	d := must.Get(a.Stats())(t)
	q := d.QueuePairs[0]
	require.EqualValues(t, qp, q.QPN)
	require.Equal(t, []string{"UD", "RTS"}, []string{q.Type, q.State})
	require.Equal(t, d.Ports[0].MTU, q.MTU)
	require.False(t, q.Peer.IsValid())
	require.Equal(t, &stats.Requester{}, q.Requester)
	require.Contains(t, q.Counters, "drop_qkey")
}

// While no answer comes, a sent message is in flight, in the window, and
// outstanding.
func TestStatsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, 1<<20)
		require.NoError(t, b.DestroyQP(y.QP)) // its device drops the packets
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1<<20))
		synctest.Wait()
		d := must.Get(a.Stats())(t)
		r := d.QueuePairs[0].Requester
		require.Equal(t, 1, r.Outstanding)
		require.Positive(t, r.InFlight)
		require.LessOrEqual(t, r.InFlight, r.Window)
		require.Zero(t, r.RTT)
		require.Error(t, x.NextUnchecked(1)[0].Err())
		d = must.Get(b.Stats())(t)
		require.Positive(t, d.Ports[0].Counters.Drops()["qpn"])
		require.Empty(t, d.QueuePairs)
	})
}

func TestAllStats(t *testing.T) {
	a, b := uapitest.Pair(t, "")
	again := must.Get(uapi.Open(deviceOf(t, a), uapi.OpenConfig{}))(t)
	found := map[string]int{}
	for _, d := range uapi.AllStats() {
		found[d.Device]++
	}
	require.Equal(t, 1, found[deviceOf(t, a)], "a device is read once, however often it is open")
	require.Equal(t, 1, found[deviceOf(t, b)])
	var list []stats.Device
	require.NoError(t, json.Unmarshal([]byte(uapi.StatsVar{}.String()), &list))
	require.GreaterOrEqual(t, len(list), 2)

	require.NoError(t, again.Close())
	_, err := again.Stats()
	require.ErrorContains(t, err, "closed")
}

func deviceOf(t *testing.T, d *uapi.Device) string {
	return must.Get(d.QueryDevice())(t).Device
}

// Every counter of a soft device has a meaning that is written down.
func TestEveryCounterIsExplained(t *testing.T) {
	for _, device := range []string{"sim?loss=1%", "soft?port=0&shm=on&loss=1%&pcap=" + t.TempDir() + "/x.pcapng"} {
		c := must.Get(uapi.Open(device, uapi.OpenConfig{}))(t)
		d := must.Get(c.Stats())(t)
		require.Greater(t, len(d.Ports[0].Counters), 50)
		for name := range d.Ports[0].Counters {
			require.NotEqual(t, stats.Lookup("no such counter").Help, stats.Lookup(name).Help, name)
		}
		require.NoError(t, c.Close())
	}
}

// Readings and Close get on with each other.
func TestStatsWhileClosing(t *testing.T) {
	for _, device := range []string{"sim", "soft?port=0"} {
		d := must.Get(uapi.Open(device, uapi.OpenConfig{}))(t)
		must.Get(d.CreateQP(4, 4))(t)
		started, done := make(chan struct{}), make(chan error)
		go func() {
			for n := 0; ; n++ {
				if n == 3 {
					close(started)
				}
				uapi.AllStats()
				if _, err := d.Stats(); err != nil {
					done <- err
					return
				}
			}
		}()
		<-started
		require.NoError(t, d.Close())
		require.ErrorIs(t, <-done, net.ErrClosed)
	}
}
