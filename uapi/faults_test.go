package uapi_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

const faulty = "loss=5%&reorder=10%&dup=1%&corrupt=0.5%&seed=7"

// transfer writes 2 MiB in pieces, reads them back and compares.
func transfer(t *testing.T, a, b *uapi.Context) {
	t.Helper()
	const size, piece = 2 << 20, 64 << 10
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: size / piece}, size)
	rand.NewChaCha8([32]byte{2}).Read(x.Buf)
	want := bytes.Clone(x.Buf)
	for at := uint64(0); at < size; at += piece {
		x.Must(x.PostWrite(x.QP, x.MR, at, x.Peer.Addr+at, x.Peer.RKey, piece))
	}
	for _, wc := range x.Next(size / piece) {
		require.NoError(t, wc.Err())
	}
	require.True(t, bytes.Equal(want, y.Buf), "written")
	clear(x.Buf)
	for at := uint64(0); at < size; at += piece {
		x.Must(x.PostRead(x.QP, x.MR, at, x.Peer.Addr+at, x.Peer.RKey, piece))
	}
	for _, wc := range x.Next(size / piece) {
		require.NoError(t, wc.Err())
	}
	require.True(t, bytes.Equal(want, x.Buf), "read back")

	counts, err := x.Counters()
	require.NoError(t, err)
	for _, name := range []string{"fault_loss", "fault_reorder", "fault_dup", "fault_corrupt", "retransmitted_pkts", "sent_pkts", "rcvd_pkts"} {
		require.Positive(t, counts[name], name)
	}
	loss := float64(counts["fault_loss"]) / float64(counts["sent_pkts"])
	require.InDelta(t, 0.05, loss, 0.025, "of %d packets", counts["sent_pkts"])
	own, err := x.Stats()
	require.NoError(t, err)
	require.NotEmpty(t, own.QueuePairs[0].Counters)
}

func TestFaultsOnSim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, faulty)
		transfer(t, a, b)
	})
}

func TestFaultsOnSoft(t *testing.T) {
	t.Parallel()
	transfer(t, openDevice(t, "soft?port=0&"+faulty), openDevice(t, "soft?port=0&"+faulty))
}
