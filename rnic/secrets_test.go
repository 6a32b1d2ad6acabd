package rnic

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// drawn holds the numbers that a device drew, in order.
type drawn struct {
	guid       uint64
	keys, qpns []uint32
	ids, psns  []uint32 // of REQs, as on the wire
	tids       []uint64
}

// draw lets a new device make n regions, queue pairs and requests for
// connections.
func draw(t *testing.T, seed uint64, n int) (d drawn) {
	l := must.Get(sim.NewNetwork(sim.Options{}).Attach(netip.AddrPort{}))(t)
	tap := &wiretap{Link: l}
	dev := must.Get(New(Config{Name: "soft0", Link: tap, Seed: seed}))(t)
	defer dev.Close()
	pd := must.Get(dev.AllocPD())(t)
	d.guid = dev.QueryDevice().NodeGUID
	peer := netip.AddrPortFrom(dev.Addr().Addr().Next(), wire.Port)
	for range n {
		d.keys = append(d.keys, register(t, dev, pd, 8, allAccess).mr.RKey())
		d.qpns = append(d.qpns, newQP(t, dev, pd, qpOptions{}).qp.Num())
		require.NoError(t, dev.withCM(func(now cm.Time, m *cm.Manager) error {
			_, err := m.Connect(now, &cm.ConnectParams{Peer: peer, Service: 5, Src: dev.Addr(), QPN: 77, MTU: 1})
			return err
		}))
	}
	// The device's worker sends what it met, after Connect has returned.
	require.Eventually(t, func() bool { return len(tap.recorded()) >= n }, patience, time.Millisecond)
	for _, sent := range tap.recorded() {
		var p wire.Packet
		require.NoError(t, p.Parse(append(sent.Head, sent.Payload...)))
		var h wire.MAD
		require.NoError(t, h.Parse(p.Payload))
		require.Equal(t, wire.AttrREQ, h.Attribute)
		var r wire.REQ
		require.NoError(t, r.Parse(p.Payload[wire.MADHeaderLen:]))
		require.Equal(t, d.guid, r.LocalCAGUID, "it is public")
		if slices.Contains(d.ids, uint32(r.LocalCommID)) { // sent again
			continue
		}
		d.ids, d.psns, d.tids = append(d.ids, uint32(r.LocalCommID)), append(d.psns, uint32(r.StartingPSN)), append(d.tids, h.TID)
	}
	require.Len(t, d.ids, n)
	return d
}

// TestSecretsDoNotFollowFromEachOther: a user who sees some numbers of a device
// cannot count on to those of other users. Values are drawn, so neighbours are
// far apart and no distance comes twice; nor does one sequence show in another.
func TestSecretsDoNotFollowFromEachOther(t *testing.T) {
	const n = 32
	d := draw(t, 0, n)
	sequences := map[string][]uint32{"keys": d.keys, "queue pair numbers": d.qpns, "communication identifiers": d.ids, "PSNs": d.psns}
	tids := make([]uint32, 0, 2*n)
	for _, tid := range d.tids {
		tids = append(tids, uint32(tid>>32), uint32(tid))
	}
	sequences["transactions"] = tids
	seen := map[uint32]string{uint32(d.guid) & 0xffffff: "GUID", uint32(d.guid>>24) & 0xffffff: "GUID"}
	common := 0
	for name, values := range sequences {
		steps := map[uint32]bool{}
		near, again := 0, 0
		for i, v := range values {
			if other := seen[v&0xffffff]; other != "" && other != name {
				common++
			}
			seen[v&0xffffff] = name
			if i == 0 {
				continue
			}
			step := v - values[i-1]
			if min(step, -step) <= 512 {
				near++
			}
			if steps[step] {
				again++
			}
			steps[step] = true
		}
		// Chance gives a few of 24 bits' numbers, one in 500 runs the first.
		require.Less(t, near, 4, "%s: neighbours, of %x", name, values)
		require.Less(t, again, 2, "%s: distances that repeat, of %x", name, values)
	}
	require.Less(t, common, 3, "values in two sequences")
}

// TestSeedRepeats: with a seed everything repeats; without, nothing does.
func TestSeedRepeats(t *testing.T) {
	require.Equal(t, draw(t, 7, 4), draw(t, 7, 4))
	a, b := draw(t, 0, 1), draw(t, 0, 1)
	require.NotEqual(t, a.guid, b.guid)
	require.NotEqual(t, a.keys, b.keys)
	require.NotEqual(t, a.qpns, b.qpns)
	require.NotEqual(t, a.ids, b.ids)
	require.NotEqual(t, a.psns, b.psns)
	require.NotEqual(t, a.tids, b.tids)
}
