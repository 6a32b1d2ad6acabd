package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// TestRecordedSIDR reads the three exchanges that the text of the recording
// describes: a request that is accepted, one that the listener rejects, and one
// to a port without a listener.
func TestRecordedSIDR(t *testing.T) {
	const port, qpn = 0x1d42, 0x123456
	const qkey = 0x01234567 // RDMA_UDP_QKEY of Linux
	want := []wire.SIDRREP{
		{Status: wire.SIDRValid, QPN: qpn, QKey: qkey},
		{Status: wire.SIDRRejected},
		{Status: wire.SIDRUnsupportedService},
	}
	said := []string{"sidr yes", "sidr no", ""}
	var req wire.SIDRREQ
	reqs, reps := 0, 0
	for _, r := range recordedMADs(t) {
		var h wire.MAD
		require.NoError(t, h.Parse(r.mad))
		body := r.mad[wire.MADHeaderLen:]
		switch h.Attribute {
		case wire.AttrSIDRREQ:
			require.NoError(t, req.Parse(body))
			require.EqualValues(t, 0xffff, req.PKey)
			require.Equal(t, wire.UDPService(port+uint16(reqs)), req.ServiceID)
			var ip wire.IPCM
			require.NoError(t, ip.Parse(req.Private[:]))
			require.Equal(t, r.src, ip.Src().Addr())
			require.Equal(t, ip, wire.NewIPCM(ip.Src(), ip.Dst()))
			require.Equal(t, "sidr", text(req.Private[wire.IPCMLen:]))
			reqs++
		case wire.AttrSIDRREP:
			var rep wire.SIDRREP
			require.NoError(t, rep.Parse(body))
			require.Equal(t, said[reps], text(rep.Private[:]))
			w := want[reps]
			w.RequestID, w.ServiceID, w.Private = req.RequestID, req.ServiceID, rep.Private
			require.Equal(t, w, rep)
			reps++
		}
	}
	require.Equal(t, []int{3, 3}, []int{reqs, reps})
}

// text returns b up to the zeros that fill it.
func text(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }

func TestSIDRStatusNames(t *testing.T) {
	seen := map[string]bool{}
	for s := wire.SIDRValid; s <= wire.SIDRUnsupportedVersion; s++ {
		require.NotEmpty(t, s.String())
		require.False(t, seen[s.String()], "%v", s)
		seen[s.String()] = true
	}
	require.Equal(t, "status 6", wire.SIDRStatus(6).String())
	require.Equal(t, "status 255", wire.SIDRStatus(255).String())
}
