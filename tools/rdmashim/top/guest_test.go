//go:build guest && linux

package top

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/stats"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// The kernel's device, read over netlink and through uapi while a WRITE goes
// over it.
func TestKernelDevice(t *testing.T) {
	const size = 1 << 20
	open := func() *uapi.Device {
		c := must.Get(uapi.Open("rxe0", uapi.OpenConfig{}))(t)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
	a, b := open(), open()
	info := must.Get(a.QueryDevice())(t)
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, size)

	s := Here()
	s.Device = "rxe0"
	_, _, err := s.First(t.Context())
	require.NoError(t, err)
	read := func() []stats.Device {
		list, warnings, err := s.Read(t.Context())
		require.NoError(t, err)
		require.Empty(t, warnings)
		return list
	}
	before := read()
	x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, size))
	x.Next(1)
	now := read()
	before[0].Time = now[0].Time.Add(-time.Second)
	f := frame(before, now, now[0].Time)
	t.Log("\n" + f.Text(0, 0))
	require.Len(t, f.Devices, 1)
	d := f.Devices[0]
	require.Equal(t, []string{"host:rxe0", "host", "ACTIVE"}, []string{d.Device.Device, d.Kind, d.Ports[0].State})
	require.Equal(t, info.NetDev, d.NetDev)
	require.Equal(t, info.Address, d.Address)
	packets := float64(size / info.MTU)
	require.GreaterOrEqual(t, d.Ports[0].Rates["sent_pkts"], packets, "and the acknowledgements")
	require.GreaterOrEqual(t, d.Ports[0].Rates["rcvd_pkts"], packets)

	pairs := map[uint32]Pair{}
	for _, q := range d.Pairs {
		pairs[q.QPN] = q
	}
	p, peer := pairs[uint32(x.QP)], pairs[uint32(y.QP)]
	require.Equal(t, []string{"RC", "RTS"}, []string{p.Type, p.State})
	require.EqualValues(t, y.QP, p.RemoteQPN)
	require.Equal(t, os.Getpid(), p.PID)
	require.NotEmpty(t, p.Process)
	require.Equal(t, packets, p.Rates["sq_psn"], "a packet sequence number for each packet")
	require.Equal(t, packets, peer.Rates["rq_psn"])
	require.Nil(t, p.Requester)
	require.Contains(t, f.Text(0, 0), "~"+number(packets))

	own := must.Get(a.Stats())(t)
	require.Equal(t, now[0].Ports[0].Counters, own.Ports[0].Counters, "sysfs says what netlink says")
	require.Len(t, own.QueuePairs, 1, "the device's")
	require.Equal(t, p.SQPSN, own.QueuePairs[0].SQPSN)
	require.Equal(t, info.Address.Addr(), own.QueuePairs[0].Peer.Addr())
	all := uapi.AllStats()
	require.Len(t, all, 1)
	require.Len(t, all[0].QueuePairs, 2, "those of both devices")
	for name := range own.Ports[0].Counters {
		require.NotEqual(t, stats.Lookup("no such counter").Help, stats.Lookup(name).Help, name)
	}
}
