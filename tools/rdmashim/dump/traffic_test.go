package dump

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
)

// traffic writes n bytes from one soft device to another, does two atomics,
// reads the bytes back, and returns the counters of the first device. It has
// the options first, and both have the others. Both devices are closed then.
func traffic(t *testing.T, first, both string, n int) map[string]uint64 {
	t.Helper()
	a, err := uapi.Open("soft?mtu=1024&"+both+"&"+first, uapi.OpenConfig{})
	require.NoError(t, err)
	defer a.Close()
	b, err := uapi.Open("soft?mtu=1024&"+both, uapi.OpenConfig{})
	require.NoError(t, err)
	defer b.Close()
	const access = uapi.AccessLocalWrite | uapi.AccessRemoteWrite | uapi.AccessRemoteRead | uapi.AccessRemoteAtomic
	ours, theirs := make([]byte, n), make([]byte, n)
	for i := range ours {
		ours[i] = byte(i * i)
	}
	mr, err := a.RegMR(ours, access)
	require.NoError(t, err)
	_, there, err := b.RegRegion(theirs, uapi.MRConfig{Access: access})
	require.NoError(t, err)
	qa, err := a.CreateQP(16, 16)
	require.NoError(t, err)
	qb, err := b.CreateQP(16, 16)
	require.NoError(t, err)
	ea, err := a.LocalEndpoint(qa)
	require.NoError(t, err)
	eb, err := b.LocalEndpoint(qb)
	require.NoError(t, err)
	require.NoError(t, a.ConnectQP(qa, eb))
	require.NoError(t, b.ConnectQP(qb, ea))

	done := func(id uapi.WRID, err error) {
		t.Helper()
		require.NoError(t, err)
		_, err = a.WaitWR(context.Background(), qa, id)
		require.NoError(t, err)
	}
	done(a.Write(qa, uapi.SGE{MR: mr, Length: uint64(n)}, there))
	done(a.FetchAdd(qa, uapi.SGE{MR: mr, Length: 8}, there, 1))
	done(a.FetchAdd(qa, uapi.SGE{MR: mr, Length: 8}, there, 1))
	done(a.Read(qa, uapi.SGE{MR: mr, Length: uint64(n)}, there))
	require.Equal(t, theirs, ours)
	s, err := a.Stats()
	require.NoError(t, err)
	return s.Ports[0].Counters
}
